//! The object stores of the ledger and of the archive: opened, and probed before anything relies on them.
//!
//! A store that the ledger cannot work with, and credentials or a bucket that are wrong, end the start: they do not
//! become right by themselves. A store that does not answer does not, because everything but DAG runs works without it;
//! runs are not driven until it has passed its probe.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, sleep};
use segno::ids::IdSource;
use segno::store::ErrorKind;
use segno_ledger::drive::Ledger;
use segno_ledger::objects::{Duty, Probe, StorageError, Stores, Usage};
use segno_ledger::transfer::Place;

use crate::settings::{Role, Settings, SettingsError};

/// Pause before a store that did not answer is probed again.
const PAUSE: Duration = Duration::from_secs(2);

/// The object stores of a server.
pub(crate) struct ObjectStores {
    /// Those of the ledger.
    pub ledger: Option<Stores>,
    /// Where they are.
    pub place: Place,
    /// That of the archive.
    pub archive: Option<Stores>,
}

/// A place of the settings that has passed its probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedPlace {
    /// The setting that names it.
    pub setting: &'static str,
    /// Where it is.
    pub url: String,
    /// What was tried there.
    pub usage: Usage,
}

/// A probe, and the setting that it is about.
struct Subject {
    setting: &'static str,
    probe: Probe,
}

/// Stores of the ledger that did not answer when the server started.
pub(crate) struct Unproven {
    subjects: Vec<Subject>,
    problem: String,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl ObjectStores {
    /// Opens the stores of the settings; those of the program instead, if it has its own.
    ///
    /// # Errors
    /// Names the setting, what is wrong with it, and what to do.
    pub fn open(settings: &Settings, of_program: Option<Stores>) -> Result<Self, SettingsError> {
        let (ledger, place) = match of_program {
            Some(stores) => (Some(stores), Place::of(Some("object stores of the program"), None)),
            None => (settings.ledger_stores()?, settings.ledger_place()),
        };
        let archive = settings.archive_stores(ledger.as_ref())?;
        Ok(ObjectStores { ledger, place, archive })
    }

    fn of_ledger(&self, settings: &Settings) -> Vec<Subject> {
        let duty = if settings.has(Role::Orchestrator) { Duty::Drive } else { Duty::Read };
        let (log, state) = self.ledger.as_ref().map_or((None, None), |stores| stores.probes(duty));
        let log = log.map(|probe| Subject { setting: "ledger.url", probe });
        let state = state.map(|probe| Subject { setting: "ledger.state_url", probe });
        log.into_iter().chain(state).collect()
    }

    fn of_archive(&self, settings: &Settings) -> Option<Subject> {
        let setting = if settings.archive.url.is_some() { "archive.url" } else { "ledger.url" };
        let store = Arc::clone(&self.archive.as_ref()?.ledger);
        Some(Subject { setting, probe: Probe { store, usage: Usage::Archive } })
    }

    /// Probes them. Returns the stores of the ledger if they do not answer.
    ///
    /// # Errors
    /// What has to be changed: the setting, what its store refused, and what to do.
    pub async fn probe(
        &self,
        settings: &Settings,
        (clock, ids): (Arc<dyn Clock>, Arc<dyn IdSource>),
    ) -> Result<Option<Unproven>, SettingsError> {
        if let Some(subject) = self.of_archive(settings)
            && let Err(error) = subject.run(&*clock, &*ids).await
        {
            refuse(&subject, &error)?;
            tracing::warn!(setting = subject.setting, %error, "the archive does not answer; retention deletes nothing until it does");
        }
        let subjects = self.of_ledger(settings);
        match run_all(&subjects, &*clock, &*ids).await {
            Ok(()) => Ok(None),
            Err((subject, error)) => {
                refuse(subject, &error)?;
                let problem = problem(subject, &error);
                tracing::warn!(%problem, "the ledger does not answer; no DAG run is driven until it does");
                Ok(Some(Unproven { subjects, problem, clock, ids }))
            }
        }
    }
}

impl Subject {
    async fn run(&self, clock: &dyn Clock, ids: &dyn IdSource) -> Result<(), StorageError> {
        self.probe.run(clock, &ids.new_uuid().simple().to_string()).await
    }
}

async fn run_all<'s>(
    subjects: &'s [Subject],
    clock: &dyn Clock,
    ids: &dyn IdSource,
) -> Result<(), (&'s Subject, StorageError)> {
    for subject in subjects {
        subject.run(clock, ids).await.map_err(|error| (subject, error))?;
    }
    Ok(())
}

fn problem(subject: &Subject, error: &StorageError) -> String {
    format!("{}: {error}", subject.setting)
}

/// An error that does not go away by itself.
fn refuse(subject: &Subject, error: &StorageError) -> Result<(), SettingsError> {
    match error.kind() {
        ErrorKind::Invalid => Err(SettingsError::value(subject.setting, format!("cannot be used: {error}"))),
        _ => Ok(()),
    }
}

impl Unproven {
    /// Returns when the stores have passed their probe. Until then the health of the ledger shows why not.
    pub async fn passed(self, ledger: &Ledger) {
        ledger.unproven(Some(self.problem.clone()));
        loop {
            sleep(&*self.clock, PAUSE).await;
            match run_all(&self.subjects, &*self.clock, &*self.ids).await {
                Ok(()) => break,
                Err((subject, error)) => {
                    let problem = problem(subject, &error);
                    tracing::warn!(%problem, "the ledger is not driven yet");
                    ledger.unproven(Some(problem));
                }
            }
        }
        ledger.unproven(None);
        tracing::info!("the ledger answers; DAG runs are driven from now on");
    }
}

/// Probes the object stores of settings without starting a server. A directory is created.
///
/// # Errors
/// Names the setting, what is wrong with it or with its store, and what to do.
pub async fn probe_objects(
    settings: &Settings,
    clock: &dyn Clock,
    ids: &dyn IdSource,
) -> Result<Vec<ProbedPlace>, SettingsError> {
    let stores = ObjectStores::open(settings, None)?;
    let mut probed = Vec::new();
    for subject in stores.of_ledger(settings).into_iter().chain(stores.of_archive(settings)) {
        let failed = |error| SettingsError::value(subject.setting, format!("cannot be used: {error}"));
        subject.run(clock, ids).await.map_err(failed)?;
        let url = settings.url_of_objects(subject.setting)?;
        probed.push(ProbedPlace { setting: subject.setting, url, usage: subject.probe.usage });
    }
    Ok(probed)
}

#[cfg(test)]
mod tests {
    use segno::clock::SystemClock;
    use segno::ids::SystemIds;

    use super::*;

    #[tokio::test]
    async fn every_place_of_the_settings_is_probed_for_what_this_node_does_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let url = |name: &str| Some(format!("file:{}", directory.path().join(name).display()));
        let mut settings = Settings::default();
        settings.store.url = "memory:".to_owned();
        (settings.ledger.url, settings.ledger.state_url) = (url("log"), url("state"));
        (settings.archive.enabled, settings.archive.url) = (true, url("archive"));
        let (clock, ids) = (SystemClock::shared(), SystemIds::shared());
        let probed = |settings: Settings| {
            let (clock, ids) = (clock.clone(), ids.clone());
            async move { probe_objects(&settings, &*clock, &*ids).await }
        };
        let places = probed(settings.clone()).await.unwrap();
        let seen: Vec<_> = places.iter().map(|place| (place.setting, place.usage)).collect();
        let expected =
            [("ledger.url", Usage::Log), ("ledger.state_url", Usage::State), ("archive.url", Usage::Archive)];
        assert_eq!(seen, expected);
        assert_eq!(Some(&places[0].url), url("log").as_ref());
        settings.server.roles = [Role::Api].into();
        let places = probed(settings.clone()).await.unwrap();
        assert_eq!((places[0].setting, places[0].usage), ("ledger.state_url", Usage::ReadState));
        // A file in the place of a folder: nothing can be put there.
        std::fs::create_dir_all(directory.path().join("broken/_probe/_probe")).unwrap();
        std::fs::write(directory.path().join("broken/_probe/_probe/archive"), "").unwrap();
        settings.archive.url = url("broken");
        let error = probed(settings).await.unwrap_err().to_string();
        assert!(error.starts_with("archive.url: cannot be used: archive/: "), "{error}");
    }
}
