//! Where a ledger is, as text: a directory, memory, or a bucket.

use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use segno::store::ErrorKind;

use super::bucket::{self, Provider};
use super::{StorageError, Stores};

/// A place for objects.
#[derive(Debug, Clone, Copy)]
pub struct Location<'a> {
    /// `file:DIR`, `memory:`, or the URL of a bucket, such as `s3://bucket/folder`.
    pub url: &'a str,
    /// Credentials and options of a bucket, by the names of `object_store`, such as `aws_region`. They replace those of the
    /// environment.
    pub options: &'a [(String, String)],
}

/// A URL that was read.
enum Kind<'a> {
    Memory,
    Directory(&'a Path),
    Bucket(Provider),
}

impl Location<'_> {
    /// Checks the URL without opening anything.
    ///
    /// # Errors
    /// `Invalid` when the URL cannot be that of a place that this build knows.
    pub fn check(&self) -> Result<(), StorageError> {
        match self.kind()? {
            Kind::Bucket(_) => bucket::parse(self.url).map(|_| ()).map_err(|problem| self.invalid(&problem)),
            Kind::Memory | Kind::Directory(_) => Ok(()),
        }
    }

    /// Opens the place. A directory is created; nothing is sent to a bucket, see [`super::Probe`].
    ///
    /// # Errors
    /// `Invalid` when the URL or an option is wrong, `Unavailable` when the directory cannot be used.
    pub fn open(&self) -> Result<Arc<dyn ObjectStore>, StorageError> {
        match self.kind()? {
            Kind::Memory => Ok(Arc::new(InMemory::new())),
            Kind::Directory(directory) => Ok(Stores::directory(directory)?.ledger),
            Kind::Bucket(provider) => {
                bucket::open(provider, self.url, self.options).map_err(|problem| self.invalid(&problem))
            }
        }
    }

    /// Whether it is a bucket, whose calls take long and cost money.
    pub fn is_bucket(&self) -> bool {
        matches!(self.kind(), Ok(Kind::Bucket(_)))
    }

    fn kind(&self) -> Result<Kind<'_>, StorageError> {
        let provider = match self.url.split_once(':') {
            Some(("memory", "")) => return Ok(Kind::Memory),
            Some(("file", directory)) if !directory.trim_matches('/').is_empty() => {
                let directory = directory.strip_prefix("//").unwrap_or(directory);
                return Ok(Kind::Directory(Path::new(directory)));
            }
            Some((scheme, _)) => Provider::of_scheme(scheme),
            None => None,
        };
        let Some(provider) = provider else {
            let problem = "is no place for objects; write file:DIR, memory:, s3://BUCKET/FOLDER, \
                           az://CONTAINER/FOLDER or gs://BUCKET/FOLDER";
            return Err(self.invalid(&problem));
        };
        match provider.is_built_in() {
            true => Ok(Kind::Bucket(provider)),
            false => {
                let feature = provider.feature();
                let problem = format!(
                    "this build has no client for {provider}; install one with it: cargo install --path crates/cli \
                     --features {feature}"
                );
                Err(self.invalid(&problem))
            }
        }
    }

    fn invalid(&self, problem: &dyn std::fmt::Display) -> StorageError {
        StorageError::new(ErrorKind::Invalid, shown(self.url), problem)
    }
}

/// A URL without what may be secret: a query, and a user with a password.
pub(super) fn shown(url: &str) -> String {
    let plain = url.split(['?', '#']).next().unwrap_or_default();
    match plain.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((user, host)) if user.contains(':') => format!("{scheme}://{host}"),
            _ => plain.to_owned(),
        },
        None => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_directory_memory_or_a_bucket_of_this_build() {
        let directory = tempfile::tempdir().unwrap();
        let url = format!("file:{}/a/b", directory.path().display());
        Location { url: &url, options: &[] }.open().unwrap();
        assert!(directory.path().join("a/b").is_dir());
        Location { url: "memory:", options: &[] }.open().unwrap();
        for url in ["", "memory", "file:", "file:///", "ftp://host/x", "/srv/ledger", "s3"] {
            let error = Location { url, options: &[] }.check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
            assert!(error.to_string().contains("is no place for objects; write file:DIR"), "{error}");
        }
    }

    #[test]
    fn a_build_without_a_client_names_the_feature_that_has_it() {
        for (url, feature) in [
            ("s3://bucket/x", "s3"),
            ("az://container/x", "azure"),
            ("abfss://container@account.dfs.core.windows.net/x", "azure"),
            ("gs://bucket", "gcs"),
        ] {
            let checked = Location { url, options: &[] }.check();
            match Provider::of_scheme(url.split(':').next().unwrap()).unwrap().is_built_in() {
                true => checked.unwrap(),
                false => {
                    let error = checked.unwrap_err().to_string();
                    assert!(error.ends_with(&format!("--features {feature}")), "{error}");
                }
            }
        }
    }

    #[test]
    fn errors_do_not_show_secrets_of_a_url() {
        for (url, expected) in [
            ("s3://me:hunter2@bucket/x?key=hunter2", "s3://bucket/x"),
            (
                "abfss://container@account.dfs.core.windows.net/x",
                "abfss://container@account.dfs.core.windows.net/x",
            ),
            ("gs://bucket/x#hunter2", "gs://bucket/x"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }
}
