//! Runbooks: where their CSV files are, what is kept of batches, and views of their tables.

use std::path::PathBuf;
use std::time::Duration;

use segno_postgres::check_view_schema;
use segno_runbook::drive::{DriverOptions, KEEP_INVOCATIONS};
use segno_stores::StoreUrl;
use serde::{Deserialize, Serialize};

use super::{Settings, SettingsError};

const SECONDS_PER_HOUR: u64 = 60 * 60;

/// Longest time that can be set: ten years.
const MAX_HOURS: u64 = 10 * 366 * 24;

/// Runbooks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunbookSettings {
    /// CSV files of tenants are below `<this>/<namespace>/<tenant>/`; without it, no files are
    /// read.
    pub csv_directory: Option<PathBuf>,
    /// Batches that ended longer ago than this are deleted.
    pub retention_hours: Option<u64>,
    /// How long the calls of ended steps are kept.
    pub keep_invocations_hours: u64,
    /// Schema in which views of the tables are made, on PostgreSQL; without it, there are none.
    pub views: Option<String>,
}

impl Default for RunbookSettings {
    fn default() -> Self {
        let keep_invocations_hours = KEEP_INVOCATIONS.as_secs() / SECONDS_PER_HOUR;
        RunbookSettings { csv_directory: None, retention_hours: None, keep_invocations_hours, views: None }
    }
}

impl Settings {
    /// What drivers of batches are told.
    pub fn for_batches(&self) -> DriverOptions {
        let hours = |hours: u64| Duration::from_secs(hours.saturating_mul(SECONDS_PER_HOUR));
        DriverOptions {
            retention: self.runbooks.retention_hours.map(hours),
            keep_invocations: Some(hours(self.runbooks.keep_invocations_hours)),
            ..DriverOptions::default()
        }
    }

    /// Checks what types cannot.
    pub(super) fn check_runbooks(&self) -> Result<(), SettingsError> {
        let runbooks = &self.runbooks;
        if runbooks.csv_directory.as_ref().is_some_and(|directory| !directory.is_absolute()) {
            return Err(SettingsError::value("runbooks.csv_directory", "must be an absolute path"));
        }
        for (name, hours) in [
            ("runbooks.retention_hours", runbooks.retention_hours.unwrap_or(1)),
            ("runbooks.keep_invocations_hours", runbooks.keep_invocations_hours),
        ] {
            if !(1..=MAX_HOURS).contains(&hours) {
                return Err(SettingsError::value(name, format!("must be from 1 to {MAX_HOURS}")));
            }
        }
        self.check_views()
    }

    fn check_views(&self) -> Result<(), SettingsError> {
        let Some(schema) = &self.runbooks.views else { return Ok(()) };
        let refused = |text: String| SettingsError::value("runbooks.views", text);
        check_view_schema(schema).map_err(|error| refused(error.to_string()))?;
        match self.store_url()? {
            StoreUrl::Postgres(_) => Ok(()),
            StoreUrl::Embedded(_) | StoreUrl::Memory => {
                let text = "needs a store on PostgreSQL, and store.url names another one; leave it out, or set store.url to postgres://…";
                Err(refused(text.to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_that_cannot_be_are_refused_by_name() {
        let of = |runbooks| Settings { runbooks, ..Settings::default() };
        assert!(of(RunbookSettings::default()).check_runbooks().is_ok());
        for (runbooks, name) in [
            (RunbookSettings { retention_hours: Some(0), ..RunbookSettings::default() }, "retention_hours"),
            (RunbookSettings { keep_invocations_hours: 0, ..RunbookSettings::default() }, "keep_invocations"),
            (RunbookSettings { retention_hours: Some(u64::MAX), ..RunbookSettings::default() }, "87840"),
        ] {
            let error = of(runbooks).check_runbooks().unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn views_need_postgres_and_a_plain_name() {
        let checked = |url: &str, schema: &str| {
            let runbooks = RunbookSettings { views: Some(schema.to_owned()), ..RunbookSettings::default() };
            let mut settings = Settings { runbooks, ..Settings::default() };
            settings.store.url = url.to_owned();
            settings.check_runbooks().map_err(|error| error.to_string())
        };
        assert_eq!(checked("postgres://segno@db/segno", "segno_views"), Ok(()));
        for (url, schema, reason) in [
            ("segno:/tmp/data", "segno_views", "needs a store on PostgreSQL"),
            ("memory:", "segno_views", "needs a store on PostgreSQL"),
            ("postgres://segno@db/segno", "a\"; DROP SCHEMA segno", "lower-case letters"),
        ] {
            let error = checked(url, schema).unwrap_err();
            assert!(error.contains("runbooks.views") && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn the_directory_of_csv_files_is_an_absolute_path() {
        let settings = |directory: &str| Settings {
            runbooks: RunbookSettings { csv_directory: Some(directory.into()), ..RunbookSettings::default() },
            ..Settings::default()
        };
        settings("/srv/members").check().unwrap();
        let error = settings("members").check().unwrap_err().to_string();
        assert!(error.contains("runbooks.csv_directory"), "{error}");
    }
}
