//! A probe of the object stores of a node before anything relies on them: whether they can be reached, whether the
//! credentials permit what the node does, and whether the stores have the properties that the ledger is built on. A put
//! if absent must not replace an object, and a listing must have what was written before it. Some stores with the
//! interface of S3 ignore the condition of a put; two compactors would then overwrite each other without noticing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use segno::clock::{Clock, timeout};
use segno::store::ErrorKind;

use super::{StorageError, Stores};

/// Topmost folder of the objects of probes. No tenant can have this name.
pub const PROBES: &str = "_probe";

/// Folder of the objects of probes: rules for `*/*/ledger/*` fit the folders below it.
const FOLDER: &str = "_probe/_probe";

/// A probe of one store that takes longer than this has failed: the store does not answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a node does with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// It appends to the log and joins what was appended.
    Log,
    /// It writes manifests and tables.
    State,
    /// Both.
    LogAndState,
    /// It reads manifests and tables.
    ReadState,
    /// It writes, reads and merges files of the archive.
    Archive,
}

impl Usage {
    fn folders(self) -> &'static [&'static str] {
        match self {
            Usage::Log => &["ledger"],
            Usage::State | Usage::ReadState => &["manifests", "state"],
            Usage::LogAndState => &["ledger", "manifests", "state"],
            Usage::Archive => &["archive"],
        }
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Usage::Log => "the log",
            Usage::State => "manifests and tables",
            Usage::LogAndState => "the log, manifests and tables",
            Usage::ReadState => "manifests and tables, read only",
            Usage::Archive => "the archive",
        })
    }
}

/// A store that is to be probed.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The store.
    pub store: Arc<dyn ObjectStore>,
    /// What is tried with it.
    pub usage: Usage,
}

/// What a node does with the stores of a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// It drives runs: it appends and folds.
    Drive,
    /// It reads what others have folded.
    Read,
}

impl Stores {
    /// The probe of the place of the log, if this node uses it, and that of the place of manifests and tables, if it is
    /// another one or the only one.
    pub fn probes(&self, duty: Duty) -> (Option<Probe>, Option<Probe>) {
        let is_shared = Arc::ptr_eq(&self.ledger, &self.state);
        let probe = |store: &Arc<dyn ObjectStore>, usage| Some(Probe { store: Arc::clone(store), usage });
        match (duty, is_shared) {
            (Duty::Drive, true) => (probe(&self.ledger, Usage::LogAndState), None),
            (Duty::Drive, false) => (probe(&self.ledger, Usage::Log), probe(&self.state, Usage::State)),
            (Duty::Read, true) => (probe(&self.ledger, Usage::ReadState), None),
            (Duty::Read, false) => (None, probe(&self.state, Usage::ReadState)),
        }
    }
}

impl Probe {
    /// Lists, writes, reads and deletes a small object in every folder that is used. `name` is one that no other probe
    /// has.
    ///
    /// # Errors
    /// `Invalid` when the store or its credentials have to be changed, `Unavailable` when it cannot be known now; both
    /// with what to do.
    pub async fn run(&self, clock: &dyn Clock, name: &str) -> Result<(), StorageError> {
        for folder in self.usage.folders() {
            let trial = Trial { folder, store: &*self.store };
            let tried = async {
                match self.usage {
                    Usage::ReadState => trial.read_only(name).await,
                    _ => trial.whole(name).await,
                }
            };
            let late = || {
                let problem =
                    format!("it has not answered within {PATIENCE:?}; check endpoint, region and network");
                Err(trial.error(ErrorKind::Unavailable, &problem))
            };
            timeout(clock, PATIENCE, tried).await.unwrap_or_else(late)?;
        }
        Ok(())
    }
}

/// One folder under trial.
struct Trial<'a> {
    folder: &'static str,
    store: &'a dyn ObjectStore,
}

impl Trial<'_> {
    fn below(&self) -> Path {
        Path::from(format!("{FOLDER}/{}", self.folder))
    }

    fn path(&self, name: &str) -> Path {
        self.below().join(format!("{name}.json"))
    }

    fn error(&self, kind: ErrorKind, problem: &str) -> StorageError {
        StorageError::new(kind, format!("{}/", self.folder), problem)
    }

    /// An object that is absent has to be reported as such: without the permission to list, S3 refuses the read instead,
    /// and readers find the newest manifest by the first number that is absent.
    async fn read_only(&self, name: &str) -> Result<(), StorageError> {
        self.store.list(Some(&self.below())).try_next().await.map_err(self.failed("list"))?;
        match self.store.get(&self.path(name)).await {
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("read")(error)),
            Ok(_) => Err(self.error(ErrorKind::Invalid, "it returns an object that was never written")),
        }
    }

    async fn whole(&self, name: &str) -> Result<(), StorageError> {
        self.read_only(name).await?;
        let path = self.path(name);
        let first = Bytes::from_static(b"\"first\"");
        self.put_new(&path, first.clone()).await.map_err(self.failed("write"))?;
        let outcome = self.object(&path, &first).await;
        let deleted = self.store.delete(&path).await.map_err(self.failed("delete"));
        outcome.and(deleted)
    }

    /// What has to hold for an object that was put.
    async fn object(&self, path: &Path, first: &Bytes) -> Result<(), StorageError> {
        match self.put_new(path, Bytes::from_static(b"\"second\"")).await {
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {}
            Ok(()) => {
                let problem = "it overwrites an object that is put only if absent (If-None-Match: *); the ledger needs \
                               a store that honours this condition";
                return Err(self.error(ErrorKind::Invalid, problem));
            }
            Err(error) => return Err(self.failed("write")(error)),
        }
        let read = async { self.store.get(path).await?.bytes().await }.await.map_err(self.failed("read"))?;
        let part = self.store.get_range(path, 1..3).await.map_err(self.failed("read"))?;
        if read != *first || part != first.slice(1..3) {
            return Err(self.error(ErrorKind::Invalid, "it returns other bytes than were written"));
        }
        let listed = self.store.list(Some(&self.below())).try_collect::<Vec<_>>().await;
        let listed = listed.map_err(self.failed("list"))?;
        if listed.iter().all(|meta| meta.location != *path) {
            let problem =
                "its listing lacks an object that was written before; the ledger needs a consistent store";
            return Err(self.error(ErrorKind::Invalid, problem));
        }
        Ok(())
    }

    async fn put_new(&self, path: &Path, bytes: Bytes) -> Result<(), Error> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.store.put_opts(path, PutPayload::from_bytes(bytes), options).await.map(drop)
    }

    /// The error of a call, with what to change.
    fn failed(&self, verb: &'static str) -> impl Fn(Error) -> StorageError {
        move |error| {
            let answer = answer_of(&error);
            let (kind, problem) = match &error {
                Error::NotFound { .. } => (
                    ErrorKind::Invalid,
                    format!("there is no such bucket or container ({answer}); create it first"),
                ),
                Error::Unauthenticated { .. } | Error::PermissionDenied { .. }
                    if is_unknown(&error, &answer) =>
                {
                    (
                        ErrorKind::Invalid,
                        format!("the credentials are not accepted ({answer}); correct or renew them"),
                    )
                }
                Error::PermissionDenied { .. } => (
                    ErrorKind::Invalid,
                    format!(
                        "the credentials do not permit to {verb} objects ({answer}); grant them that, or use others"
                    ),
                ),
                Error::NotImplemented { .. } | Error::NotSupported { .. } => (
                    ErrorKind::Invalid,
                    format!("it cannot {verb} objects as the ledger needs it ({answer})"),
                ),
                _ => (
                    ErrorKind::Unavailable,
                    format!(
                        "objects cannot be {} ({answer}); check endpoint, region and network",
                        done(verb)
                    ),
                ),
            };
            self.error(kind, &problem)
        }
    }
}

/// Whether a store does not know the credentials, which some answer like a missing permission.
fn is_unknown(error: &Error, answer: &str) -> bool {
    const CODES: [&str; 6] = [
        "AuthenticationFailed",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "SignatureDoesNotMatch",
    ];
    matches!(error, Error::Unauthenticated { .. }) || CODES.iter().any(|code| answer.contains(code))
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
    use object_store::memory::InMemory;
    use segno::clock::SystemClock;

    use super::*;
    use crate::objects::faulty::{Faults, Faulty};

    async fn probed(store: Arc<dyn ObjectStore>, usage: Usage) -> Result<(), String> {
        let clock = SystemClock::shared();
        Probe { store, usage }.run(&*clock, "a").await.map_err(|error| error.to_string())
    }

    async fn is_empty(store: &dyn ObjectStore) -> bool {
        store.list(None).try_next().await.unwrap().is_none()
    }

    #[tokio::test]
    async fn a_store_that_keeps_its_word_passes_and_nothing_is_left_in_it() {
        let store = Arc::new(InMemory::new());
        for usage in [Usage::Log, Usage::State, Usage::LogAndState, Usage::ReadState, Usage::Archive] {
            probed(store.clone(), usage).await.unwrap();
        }
        assert!(is_empty(&*store).await);
    }

    #[tokio::test]
    async fn a_store_that_overwrites_objects_put_if_absent_is_refused() {
        let faults = Faults { ignores_conditions: true, ..Faults::NONE };
        let store = Faulty::new(Arc::new(InMemory::new()), faults, 1);
        let error = probed(store.clone(), Usage::LogAndState).await.unwrap_err();
        assert!(error.starts_with("ledger/: ") && error.contains("honours this condition"), "{error}");
        assert!(is_empty(&*store).await);
    }

    #[tokio::test]
    async fn a_store_whose_listing_is_behind_is_refused() {
        let faults = Faults { delayed_list: 100, ..Faults::NONE };
        let store = Faulty::new(Arc::new(InMemory::new()), faults, 1);
        let error = probed(store, Usage::LogAndState).await.unwrap_err();
        assert!(error.contains("a consistent store"), "{error}");
    }

    #[tokio::test]
    async fn a_node_that_only_reads_writes_nothing() {
        let store = Faulty::new(Arc::new(InMemory::new()), Faults::NONE, 1);
        let stores = Stores { ledger: Arc::new(InMemory::new()), state: store.clone() };
        let (log, state) = stores.probes(Duty::Read);
        assert!(log.is_none());
        state.unwrap().run(&*SystemClock::shared(), "a").await.unwrap();
        assert_eq!(store.writes(), 0);
        let (log, state) = stores.probes(Duty::Drive);
        assert_eq!((log.unwrap().usage, state.unwrap().usage), (Usage::Log, Usage::State));
        let (both, none) = Stores::in_memory().probes(Duty::Drive);
        assert_eq!((both.unwrap().usage, none.is_none()), (Usage::LogAndState, true));
    }

    #[test]
    fn errors_name_what_to_change() {
        let store = InMemory::new();
        let source = || "403: <Error>\n<Code>AccessDenied</Code><Message>no</Message>\n</Error>".into();
        let path = || "a".to_owned();
        for (error, kind, says) in [
            (
                Error::PermissionDenied { path: path(), source: source() },
                ErrorKind::Invalid,
                "permit to write objects (AccessDenied); grant",
            ),
            (
                Error::Unauthenticated { path: path(), source: source() },
                ErrorKind::Invalid,
                "are not accepted (AccessDenied); correct",
            ),
            (
                Error::PermissionDenied { path: path(), source: "<Code>SignatureDoesNotMatch</Code>".into() },
                ErrorKind::Invalid,
                "are not accepted (SignatureDoesNotMatch); correct",
            ),
            (
                Error::NotFound { path: path(), source: source() },
                ErrorKind::Invalid,
                "no such bucket or container (AccessDenied); create",
            ),
            (
                Error::Generic { store: "S3", source: "connection\n refused".into() },
                ErrorKind::Unavailable,
                "S3 error: connection refused",
            ),
        ] {
            let error = Trial { folder: "ledger", store: &store }.failed("write")(error);
            assert_eq!(error.kind(), kind, "{error}");
            let error = error.to_string();
            assert!(error.starts_with("ledger/: ") && error.contains(says), "{error}");
        }
    }
}
