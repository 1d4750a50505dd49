//! The ledger: where the log and the tables of DAG runs are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use segno_ledger::drive::DriverOptions;
use segno_ledger::drive::limits::{BUCKET_FOLD_INTERVAL, MAX_FOLD_INTERVAL};
use segno_ledger::objects::{Location, StorageError, Stores};
use segno_ledger::transfer::Place;
use segno_stores::StoreUrl;
use serde::{Deserialize, Serialize};

use super::{Settings, SettingsError};

/// Days for which runs of DAGs are kept, unless the setting has another number.
const RUN_DAYS: u32 = 90;

/// Most days: a hundred years.
const MAX_RUN_DAYS: u32 = 36_500;

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Folder of the ledger inside the directory of an embedded store.
const FOLDER: &str = "ledger";

/// The ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LedgerSettings {
    /// Where the log is, and the tables unless they have a place of their own: `file:DIR`, `memory:`, or the URL of a bucket.
    /// By default the folder `ledger` inside the directory of an embedded store; a store on PostgreSQL has none by default.
    pub url: Option<String>,
    /// TOML file with the credentials and options of that place, as `aws_region = "eu-central-1"`; without it, those of the
    /// environment.
    pub credentials: Option<PathBuf>,
    /// Where manifests and tables are, if not beside the log.
    pub state_url: Option<String>,
    /// TOML file with the credentials and options of that place.
    pub state_credentials: Option<PathBuf>,
    /// Days for which runs of DAGs are kept after their end; 0 keeps them for ever.
    pub run_days: u32,
    /// Shortest time between two folds of a tenant's events in milliseconds; by default 250 for tables in a bucket, else none.
    pub fold_interval_ms: Option<u32>,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        LedgerSettings {
            url: None,
            credentials: None,
            state_url: None,
            state_credentials: None,
            run_days: RUN_DAYS,
            fold_interval_ms: None,
        }
    }
}

impl Settings {
    /// The object stores of the ledger; none if no place is set and the store has none of its own.
    ///
    /// # Errors
    /// Names the setting, what is wrong with it, and what to do.
    pub fn ledger_stores(&self) -> Result<Option<Stores>, SettingsError> {
        let ledger = &self.ledger;
        let Some(url) = self.ledger_url()? else { return Ok(None) };
        let refused = |name: &'static str| {
            move |error: StorageError| SettingsError::value(name, format!("cannot be used: {error}"))
        };
        let options = options("ledger.credentials", ledger.credentials.as_ref())?;
        let log = Location { url: &url, options: &options }.open().map_err(refused("ledger.url"))?;
        let Some(state_url) = &ledger.state_url else { return Ok(Some(Stores::shared(log))) };
        let options = self::options("ledger.state_credentials", ledger.state_credentials.as_ref())?;
        let state = Location { url: state_url, options: &options };
        let state = state.open().map_err(refused("ledger.state_url"))?;
        Ok(Some(Stores { ledger: log, state }))
    }

    /// Settings of the driver of DAG runs.
    pub fn ledger_driver(&self) -> DriverOptions {
        let mut options = DriverOptions::default();
        let days = Some(self.ledger.run_days).filter(|days| *days > 0);
        options.compactor.run_retention_ms = days.map(|days| u64::from(days) * DAY_MS);
        options.fold_interval = self.fold_interval();
        options
    }

    fn fold_interval(&self) -> Duration {
        let ledger = &self.ledger;
        if let Some(set_ms) = ledger.fold_interval_ms {
            return Duration::from_millis(set_ms.into());
        }
        let urls = [&ledger.url, &ledger.state_url].into_iter().flatten();
        let is_bucket = urls.into_iter().any(|url| Location { url, options: &[] }.is_bucket());
        if is_bucket { BUCKET_FOLD_INTERVAL } else { Duration::ZERO }
    }

    /// Where the ledger is, for those that copy the store.
    pub fn ledger_place(&self) -> Place {
        Place::of(self.ledger.url.as_deref(), self.ledger.state_url.as_deref())
    }

    /// The URL of one of the settings that name a place for objects.
    pub(crate) fn url_of_objects(&self, setting: &str) -> Result<String, SettingsError> {
        let url = match setting {
            "ledger.state_url" => self.ledger.state_url.clone(),
            "archive.url" => self.archive.url.clone(),
            _ => self.ledger_url()?,
        };
        Ok(url.unwrap_or_default())
    }

    /// Where the log is.
    fn ledger_url(&self) -> Result<Option<String>, SettingsError> {
        if let Some(url) = &self.ledger.url {
            return Ok(Some(url.clone()));
        }
        Ok(match self.store_url()? {
            StoreUrl::Embedded(directory) => Some(format!("file:{}", directory.join(FOLDER).display())),
            StoreUrl::Memory => Some("memory:".to_owned()),
            StoreUrl::Postgres(_) => None,
        })
    }

    /// Checks what types cannot.
    pub(super) fn check_ledger(&self) -> Result<(), SettingsError> {
        let ledger = &self.ledger;
        for (name, url) in [("ledger.url", &ledger.url), ("ledger.state_url", &ledger.state_url)] {
            let Some(url) = url else { continue };
            Location { url, options: &[] }
                .check()
                .map_err(|error| SettingsError::value(name, error.to_string()))?;
        }
        for (name, file, url) in [
            ("ledger.credentials", &ledger.credentials, &ledger.url),
            ("ledger.state_credentials", &ledger.state_credentials, &ledger.state_url),
        ] {
            if file.is_some() && url.is_none() {
                let problem = format!("belongs to {}, which is not set", name.replace("credentials", "url"));
                return Err(SettingsError::value(name, problem));
            }
        }
        if ledger.run_days > MAX_RUN_DAYS {
            let problem =
                format!("is {}; write at most {MAX_RUN_DAYS}, or 0 to keep runs for ever", ledger.run_days);
            return Err(SettingsError::value("ledger.run_days", problem));
        }
        let longest_ms = MAX_FOLD_INTERVAL.as_millis();
        if let Some(set_ms) = ledger.fold_interval_ms.filter(|set_ms| u128::from(*set_ms) > longest_ms) {
            let problem = format!("is {set_ms}; write at most {longest_ms}");
            return Err(SettingsError::value("ledger.fold_interval_ms", problem));
        }
        let has_log = ledger.url.is_some() || !matches!(self.store_url()?, StoreUrl::Postgres(_));
        match (&ledger.state_url, has_log) {
            (Some(_), false) => {
                Err(SettingsError::value("ledger.state_url", "needs ledger.url; set where the log is, too"))
            }
            _ => Ok(()),
        }
    }
}

/// Credentials and options from a file.
pub(super) fn options(
    name: &'static str,
    file: Option<&PathBuf>,
) -> Result<Vec<(String, String)>, SettingsError> {
    let Some(file) = file else { return Ok(Vec::new()) };
    let refused = |problem: String| SettingsError::value(name, format!("{}: {problem}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    // The text of the error would show a line with a secret.
    let read: Result<BTreeMap<String, String>, toml::de::Error> = toml::from_str(&text);
    let options = read.map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        refused(format!("is no TOML with texts only, near byte {place}; write name = \"value\" on each line"))
    })?;
    Ok(options.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(store: &str, url: Option<&str>, state_url: Option<&str>) -> Result<Option<String>, String> {
        let mut settings = Settings::default();
        settings.store.url = store.to_owned();
        settings.ledger.url = url.map(str::to_owned);
        settings.ledger.state_url = state_url.map(str::to_owned);
        settings.check_ledger().map_err(|error| error.to_string())?;
        settings.ledger_url().map_err(|error| error.to_string())
    }

    #[test]
    fn a_ledger_is_beside_an_embedded_store_and_has_to_be_set_for_postgres() {
        assert_eq!(checked("segno:/srv/segno", None, None), Ok(Some("file:/srv/segno/ledger".to_owned())));
        assert_eq!(checked("memory:", None, None), Ok(Some("memory:".to_owned())));
        assert_eq!(checked("postgres://segno@db/segno", None, None), Ok(None));
        let url = Some("file:/srv/ledger");
        assert_eq!(checked("postgres://segno@db/segno", url, None), Ok(url.map(str::to_owned)));
        for (store, url, state, name) in [
            ("memory:", Some("what"), None, "ledger.url"),
            ("memory:", Some("ftp://host/x"), None, "ledger.url"),
            ("memory:", None, Some("file:"), "ledger.state_url"),
            ("postgres://segno@db/segno", None, Some("file:/srv/state"), "needs ledger.url"),
        ] {
            let error = checked(store, url, state).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn folds_of_a_bucket_have_a_shortest_interval_and_the_setting_counts() {
        let mut settings = Settings::default();
        assert_eq!(settings.ledger_driver().fold_interval, Duration::ZERO, "in a directory");
        settings.ledger.fold_interval_ms = Some(1_000);
        assert_eq!(settings.ledger_driver().fold_interval, Duration::from_secs(1));
        settings.ledger.fold_interval_ms = Some(10_001);
        let refused = settings.check_ledger().unwrap_err().to_string();
        assert!(
            refused.contains("ledger.fold_interval_ms") && refused.contains("at most 10000"),
            "{refused}"
        );
    }

    #[test]
    fn a_secret_in_a_file_that_cannot_be_read_is_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("credentials.toml");
        std::fs::write(&file, "aws_secret_access_key = hunter2\n").unwrap();
        let error = options("ledger.credentials", Some(&file)).unwrap_err().to_string();
        assert!(error.contains("ledger.credentials") && !error.contains("hunter2"), "{error}");
        std::fs::write(&file, "aws_secret_access_key = \"hunter2\"\n").unwrap();
        assert_eq!(options("x", Some(&file)).unwrap(), [("aws_secret_access_key".into(), "hunter2".into())]);
    }
}
