//! A trial of an object store before anything relies on it: whether it can be reached, whether the credentials permit
//! what the ledger does, and whether it has the two properties that the ledger is built on. A put if absent must not
//! replace an object, and a listing must have what was written before it. Some stores with the interface of S3 ignore the
//! condition of a put; two compactors would then overwrite each other without noticing.

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use segno::store::ErrorKind;

use super::StorageError;

/// Folder of what trials write: no slug is like this, so it is none of a tenant. The folders below have the form of
/// those of a scope, so that rules for `*/*/ledger/*` fit them.
const FOLDER: &str = "_segno/probe";

/// What a store has to permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// The log.
    Log,
    /// Manifests and tables.
    State,
    /// The log, manifests and tables.
    LogAndState,
    /// The archive.
    Archive,
}

impl Usage {
    fn folders(self) -> &'static [&'static str] {
        match self {
            Usage::Log => &["ledger"],
            Usage::State => &["manifests", "state"],
            Usage::LogAndState => &["ledger", "manifests", "state"],
            Usage::Archive => &["archive"],
        }
    }
}

/// A trial.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'a> {
    /// How the store is used.
    pub usage: Usage,
    /// A name that no other trial has.
    pub name: &'a str,
}

impl Probe<'_> {
    /// Lists, writes, reads and deletes a small object in every folder that is used.
    ///
    /// # Errors
    /// `Invalid` or `Unavailable`: what failed, and what to change.
    pub async fn run(&self, store: &dyn ObjectStore) -> Result<(), StorageError> {
        for folder in self.usage.folders() {
            self.try_folder(store, folder).await?;
        }
        Ok(())
    }

    async fn try_folder(&self, store: &dyn ObjectStore, folder: &str) -> Result<(), StorageError> {
        let below = Path::from(format!("{FOLDER}/{folder}"));
        let path = below.clone().join(format!("{}.json", self.name));
        let trial = Trial { folder };
        store.list(Some(&below)).try_next().await.map_err(trial.failed("list"))?;
        let (first, second) = (Bytes::from_static(b"\"first\""), Bytes::from_static(b"\"second\""));
        put_new(store, &path, first.clone()).await.map_err(trial.failed("write"))?;
        let outcome = self.try_object(store, &trial, &path, (first, second)).await;
        let deleted = store.delete(&path).await.map_err(trial.failed("delete"));
        outcome.and(deleted)
    }

    async fn try_object(
        &self,
        store: &dyn ObjectStore,
        trial: &Trial<'_>,
        path: &Path,
        (first, second): (Bytes, Bytes),
    ) -> Result<(), StorageError> {
        match put_new(store, path, second).await {
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
            Ok(()) => {
                let problem = "it overwrites an object that is put only if absent (If-None-Match: *); the ledger \
                               needs a store that honours this condition";
                return Err(StorageError::new(ErrorKind::Invalid, trial.folder, problem));
            }
            Err(error) => return Err(trial.failed("write")(error)),
        }
        let read = async { store.get(path).await?.bytes().await }.await.map_err(trial.failed("read"))?;
        if read != first {
            let problem = "it returns other bytes than were written";
            return Err(StorageError::new(ErrorKind::Invalid, trial.folder, problem));
        }
        let folder = Path::from(format!("{FOLDER}/{}", trial.folder));
        let listed: Vec<_> = store.list(Some(&folder)).try_collect().await.map_err(trial.failed("list"))?;
        if listed.iter().all(|meta| meta.location != *path) {
            let problem =
                "its listing lacks an object that was written before; the ledger needs a consistent store";
            return Err(StorageError::new(ErrorKind::Invalid, trial.folder, problem));
        }
        Ok(())
    }
}

async fn put_new(store: &dyn ObjectStore, path: &Path, bytes: Bytes) -> Result<(), Error> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    store.put_opts(path, PutPayload::from_bytes(bytes), options).await.map(drop)
}

/// One folder under trial.
struct Trial<'a> {
    folder: &'a str,
}

impl Trial<'_> {
    /// The error of a call, with what to change.
    fn failed(&self, verb: &'static str) -> impl Fn(Error) -> StorageError {
        let folder = self.folder.to_owned();
        move |error| {
            let answer = answer_of(&error);
            let (kind, problem) = match &error {
                Error::NotFound { .. } => (
                    ErrorKind::Invalid,
                    format!("there is no such bucket or container ({answer}); create it first"),
                ),
                Error::Unauthenticated { .. } => (
                    ErrorKind::Invalid,
                    format!("the credentials are not accepted ({answer}); correct or renew them"),
                ),
                Error::PermissionDenied { .. } => (
                    ErrorKind::Invalid,
                    format!(
                        "the credentials do not permit to {verb} objects ({answer}); grant them that, or use others"
                    ),
                ),
                _ => (
                    ErrorKind::Unavailable,
                    format!(
                        "objects cannot be {} ({answer}); check endpoint, region and network",
                        done(verb)
                    ),
                ),
            };
            StorageError::new(kind, format!("{folder}/"), problem)
        }
    }
}

fn done(verb: &str) -> &'static str {
    match verb {
        "list" => "listed",
        "write" => "written",
        "read" => "read",
        _ => "deleted",
    }
}

/// The answer of a store: the code in its XML if there is one, because the whole of it has several lines.
fn answer_of(error: &Error) -> String {
    let text = error.to_string();
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    match code {
        Some((code, _)) => code.chars().take(100).collect(),
        None => text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(400).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::objects::faulty::{Faults, Faulty};

    fn probe() -> Probe<'static> {
        Probe { usage: Usage::LogAndState, name: "a" }
    }

    #[tokio::test]
    async fn a_store_that_keeps_its_word_passes_and_nothing_is_left_in_it() {
        let store = InMemory::new();
        probe().run(&store).await.unwrap();
        assert!(store.list(None).try_next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_store_that_overwrites_objects_put_if_absent_is_refused() {
        let store =
            Faulty::new(Arc::new(InMemory::new()), Faults { ignores_conditions: true, ..Faults::NONE }, 1);
        let error = probe().run(&*store).await.unwrap_err().to_string();
        assert!(error.contains("honours this condition"), "{error}");
        assert!(store.list(None).try_next().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_store_whose_listing_is_behind_is_refused() {
        let faults = Faults { delayed_list: 100, ..Faults::NONE };
        let store = Faulty::new(Arc::new(InMemory::new()), faults, 1);
        let error = probe().run(&*store).await.unwrap_err().to_string();
        assert!(error.contains("a consistent store"), "{error}");
    }

    #[test]
    fn errors_name_what_to_change() {
        let source = || "403: <Error>\n<Code>AccessDenied</Code><Message>no</Message>\n</Error>".into();
        let path = || "a".to_owned();
        for (error, says) in [
            (
                Error::PermissionDenied { path: path(), source: source() },
                "permit to write objects (AccessDenied); grant",
            ),
            (
                Error::Unauthenticated { path: path(), source: source() },
                "are not accepted (AccessDenied); correct",
            ),
            (
                Error::NotFound { path: path(), source: source() },
                "no such bucket or container (AccessDenied); create",
            ),
            (
                Error::Generic { store: "S3", source: "connection\n refused".into() },
                "S3 error: connection refused",
            ),
        ] {
            let error = Trial { folder: "ledger" }.failed("write")(error).to_string();
            assert!(error.starts_with("ledger/: ") && error.contains(says), "{error}");
        }
    }
}
