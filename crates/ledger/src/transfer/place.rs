//! Where the ledger of a store is, as a record of the store: whoever copies the store finds the ledger by it.

use segno::store::{Expect, ProviderError, RecordBatch, RecordWrite, Store};
use serde::{Deserialize, Serialize};

/// Kind of the record. It has one id, `place`.
pub const PLACE: &str = "segno.ledger-place";

/// Id of the record.
const ID: &str = "place";

/// Where a ledger is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The log: `file:DIR`, or the URL of a bucket without its options; none for the folder inside the directory of an
    /// embedded store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Manifests and tables, if not beside the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_url: Option<String>,
}

impl Place {
    /// A place by the URLs of the settings. Directories become absolute; queries, which may have secrets, go.
    pub fn of(url: Option<&str>, state_url: Option<&str>) -> Self {
        Place { url: url.map(shown), state_url: state_url.map(shown) }
    }

    /// The place of a record.
    ///
    /// # Errors
    /// When a newer build wrote it.
    pub fn of_record(body: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }

    /// Notes the place in a store, unless it is noted already.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn note(&self, store: &dyn Store) -> Result<(), ProviderError> {
        let body = serde_json::to_vec(self).expect("a place has plain fields");
        let expect = match store.get_record(PLACE, ID).await? {
            Some(record) if record.body == body => return Ok(()),
            Some(record) => Expect::Version(record.version),
            None => Expect::Absent,
        };
        let write = RecordWrite::Put {
            kind: PLACE.to_owned(),
            id: ID.to_owned(),
            expect,
            due_at_ms: None,
            time_to_live: None,
            body: body.into(),
        };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        match store.commit_records(batch).await {
            // Another node has noted its place first.
            Err(error) if error.kind() == segno::store::ErrorKind::Conflict => Ok(()),
            other => other.map(drop),
        }
    }
}

fn shown(url: &str) -> String {
    match url.strip_prefix("file:") {
        Some(directory) => {
            let directory = std::path::Path::new(directory.strip_prefix("//").unwrap_or(directory));
            let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
            format!("file:{}", absolute.display())
        }
        None => {
            let plain = url.split('?').next().unwrap_or_default();
            match plain.split_once("://") {
                Some((scheme, rest)) => {
                    // A name before the host may be a container; with a password it is a credential.
                    match rest.split_once('@') {
                        Some((user, host)) if user.contains(':') => format!("{scheme}://{host}"),
                        _ => format!("{scheme}://{rest}"),
                    }
                }
                None => plain.to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use segno::store::Records as _;
    use segno::store::memory::MemoryStore;

    use super::*;

    #[test]
    fn a_place_has_no_secrets_and_no_relative_directory() {
        let here = std::env::current_dir().unwrap();
        for (url, expected) in [
            ("s3://bucket/folder?key=secret", "s3://bucket/folder".to_owned()),
            ("s3://me:secret@bucket/folder", "s3://bucket/folder".to_owned()),
            (
                "abfss://c@account.dfs.core.windows.net/x",
                "abfss://c@account.dfs.core.windows.net/x".to_owned(),
            ),
            ("memory:", "memory:".to_owned()),
            ("file:///srv/ledger", "file:/srv/ledger".to_owned()),
            ("file:ledger", format!("file:{}/ledger", here.display())),
        ] {
            assert_eq!(Place::of(Some(url), None).url, Some(expected), "{url}");
        }
    }

    #[tokio::test]
    async fn a_store_knows_the_last_place_that_was_noted() {
        let store = MemoryStore::new();
        for url in [None, None, Some("s3://a"), Some("s3://b")] {
            let place = Place::of(url, None);
            place.note(&*store).await.unwrap();
            let record = store.get_record(PLACE, ID).await.unwrap().unwrap();
            assert_eq!(Place::of_record(&record.body).unwrap(), place);
        }
    }
}
