//! The archive: where retention puts what it removes from the store.

use std::path::PathBuf;
use std::time::Duration;

use segno_actions::Keep;
use segno_ledger::archive::{Group, UpkeepOptions};
use segno_ledger::objects::{Location, Stores};
use segno_stores::StoreUrl;
use serde::{Deserialize, Serialize};

use super::ledger::options;
use super::{Settings, SettingsError};

/// The archive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveSettings {
    /// Whether retention archives what it removes.
    pub enabled: bool,
    /// Where the archive is, if not beside the ledger: `file:DIR`, `memory:`, or the URL of a bucket.
    pub url: Option<String>,
    /// TOML file with the credentials and options of that place; without it, those of the environment.
    pub credentials: Option<PathBuf>,
    /// Archived rows are removed so many days after what they are about has ended; never without it.
    pub keep_days: Option<u32>,
    /// The same for actions.
    pub keep_actions_days: Option<u32>,
    /// The same for histories of recurring actions.
    pub keep_recurring_days: Option<u32>,
    /// The same for the audit log.
    pub keep_audit_days: Option<u32>,
    /// The same for batches of runbooks.
    pub keep_batches_days: Option<u32>,
}

impl ArchiveSettings {
    /// The groups with a time of their own: setting, group, days.
    fn own_days(&self) -> [(&'static str, Group, Option<u32>); 4] {
        [
            ("archive.keep_actions_days", Group::Actions, self.keep_actions_days),
            ("archive.keep_recurring_days", Group::Recurring, self.keep_recurring_days),
            ("archive.keep_audit_days", Group::Audit, self.keep_audit_days),
            ("archive.keep_batches_days", Group::Batches, self.keep_batches_days),
        ]
    }
}

impl Settings {
    /// The objects of the archive; `None` when the archive is off. `ledger` is the place beside which it is by default.
    ///
    /// # Errors
    /// Names the setting, what is wrong with it, and what to do.
    pub fn archive_stores(&self, ledger: Option<&Stores>) -> Result<Option<Stores>, SettingsError> {
        if !self.archive.enabled {
            return Ok(None);
        }
        let Some(url) = &self.archive.url else {
            return ledger.map(|ledger| Some(ledger.clone())).ok_or_else(no_place);
        };
        let options = options("archive.credentials", self.archive.credentials.as_ref())?;
        let opened = Location { url, options: &options }.open();
        let refused = |error| SettingsError::value("archive.url", format!("cannot be used: {error}"));
        Ok(Some(Stores::shared(opened.map_err(refused)?)))
    }

    /// How long entries of the audit log are kept in the store, and what becomes of them then.
    pub fn keep_audit(&self) -> Keep {
        let time = Duration::from_secs(u64::from(self.auth.audit_days) * 24 * 60 * 60);
        if self.archive.enabled { Keep::Retire(time) } else { Keep::Expire(time) }
    }

    /// How the files of the archive are kept.
    pub fn archive_upkeep(&self) -> UpkeepOptions {
        let day = Duration::from_secs(24 * 60 * 60);
        let keep = self.archive.keep_days.map(|days| day * days);
        let own = self.archive.own_days().into_iter();
        let keep_of = own.filter_map(|(_, group, days)| Some((group, day * days?))).collect();
        UpkeepOptions { keep, keep_of, ..UpkeepOptions::default() }
    }

    /// Checks what types cannot.
    pub(super) fn check_archive(&self) -> Result<(), SettingsError> {
        let archive = &self.archive;
        if let Some(url) = &archive.url {
            let checked = Location { url, options: &[] }.check();
            checked.map_err(|error| SettingsError::value("archive.url", error.to_string()))?;
        }
        if archive.url.as_deref() == Some("memory:") && !matches!(self.store_url()?, StoreUrl::Memory) {
            return Err(SettingsError::value(
                "archive.url",
                "is memory:, which ends with the process, while the store stays: what leaves the store would be lost",
            ));
        }
        if archive.credentials.is_some() && archive.url.is_none() {
            return Err(SettingsError::value(
                "archive.credentials",
                "belongs to archive.url, which is not set",
            ));
        }
        let all = ("archive.keep_days", archive.keep_days);
        let own = archive.own_days().map(|(name, _, days)| (name, days));
        for (name, days) in std::iter::once(all).chain(own) {
            if days == Some(0) {
                return Err(SettingsError::value(
                    name,
                    "must be at least 1; leave it out to keep rows for ever",
                ));
            }
        }
        let has_place = archive.url.is_some()
            || self.ledger.url.is_some()
            || !matches!(self.store_url()?, StoreUrl::Postgres(_));
        if archive.enabled && !has_place {
            return Err(no_place());
        }
        Ok(())
    }
}

fn no_place() -> SettingsError {
    SettingsError::value(
        "archive.enabled",
        "needs a place; set archive.url, or ledger.url, beside which the archive is by default",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(store: &str, archive: ArchiveSettings) -> Result<(), String> {
        let mut settings = Settings { archive, ..Settings::default() };
        settings.store.url = store.to_owned();
        settings.check_archive().map_err(|error| error.to_string())
    }

    #[test]
    fn an_archive_has_a_place_or_is_refused() {
        let on = || ArchiveSettings { enabled: true, ..ArchiveSettings::default() };
        checked("memory:", ArchiveSettings::default()).unwrap();
        checked("segno:/srv/segno", on()).unwrap();
        let url = Some("file:/srv/archive".to_owned());
        checked("postgres://segno@db/segno", ArchiveSettings { url, ..on() }).unwrap();
        let credentials = Some(PathBuf::from("c.toml"));
        for (store, archive, problem) in [
            ("postgres://segno@db/segno", on(), "archive.enabled: needs a place"),
            ("memory:", ArchiveSettings { url: Some("x".to_owned()), ..on() }, "archive.url"),
            ("memory:", ArchiveSettings { credentials, ..on() }, "archive.credentials"),
            ("memory:", ArchiveSettings { keep_days: Some(0), ..on() }, "archive.keep_days"),
            ("memory:", ArchiveSettings { keep_actions_days: Some(0), ..on() }, "keep_actions_days"),
        ] {
            let error = checked(store, archive).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }
}
