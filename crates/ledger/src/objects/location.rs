//! Where a ledger is, as text: a directory, memory, or a bucket.

use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::prefix::PrefixStore;
use segno::store::ErrorKind;

use super::{StorageError, Stores};

/// A place for objects.
#[derive(Debug, Clone, Copy)]
pub struct Location<'a> {
    /// `file:DIR`, `memory:`, or the URL of a bucket, such as `s3://bucket/folder`.
    pub url: &'a str,
    /// Credentials and options of a bucket, by the names of `object_store`, such as `aws_region`; those of the environment
    /// come on top of none.
    pub options: &'a [(String, String)],
}

/// A URL that was read.
enum Kind<'a> {
    Memory,
    Directory(&'a Path),
    Bucket,
}

impl Location<'_> {
    /// Checks the URL without opening anything.
    ///
    /// # Errors
    /// `Invalid` when the URL cannot be that of a place that this build knows.
    pub fn check(&self) -> Result<(), StorageError> {
        self.kind().map(|_| ())
    }

    /// Opens the place. A directory is created.
    ///
    /// # Errors
    /// `Invalid` when the URL or an option is wrong, `Unavailable` when the directory cannot be used.
    pub fn open(&self) -> Result<Arc<dyn ObjectStore>, StorageError> {
        match self.kind()? {
            Kind::Memory => Ok(Arc::new(InMemory::new())),
            Kind::Directory(directory) => Ok(Stores::directory(directory)?.ledger),
            Kind::Bucket => self.bucket(),
        }
    }

    fn kind(&self) -> Result<Kind<'_>, StorageError> {
        match self.url.split_once(':') {
            Some(("memory", "")) => Ok(Kind::Memory),
            Some(("file", directory)) if !directory.trim_matches('/').is_empty() => {
                Ok(Kind::Directory(Path::new(directory.strip_prefix("//").unwrap_or(directory))))
            }
            Some(("s3", _)) => self.of_feature("aws", cfg!(feature = "aws")),
            Some(("az" | "abfs" | "abfss", _)) => self.of_feature("azure", cfg!(feature = "azure")),
            Some(("gs", _)) => self.of_feature("gcp", cfg!(feature = "gcp")),
            _ => {
                Err(self
                    .invalid(&"is no place for a ledger; write file:DIR, memory:, s3://…, az://… or gs://…"))
            }
        }
    }

    fn of_feature(&self, feature: &str, is_built_in: bool) -> Result<Kind<'_>, StorageError> {
        match is_built_in {
            true => Ok(Kind::Bucket),
            false => {
                let problem =
                    format!("this build has no such store; build with --features segno-ledger/{feature}");
                Err(self.invalid(&problem))
            }
        }
    }

    fn bucket(&self) -> Result<Arc<dyn ObjectStore>, StorageError> {
        let url = url::Url::parse(self.url).map_err(|error| self.invalid(&error))?;
        let given = self.options.iter().map(|(name, value)| (name.clone(), value.clone()));
        let environment = std::env::vars().map(|(name, value)| (name.to_ascii_lowercase(), value));
        let environment = environment.filter(|(name, _)| {
            self.options.is_empty()
                && ["aws_", "azure_", "google_"].iter().any(|prefix| name.starts_with(prefix))
        });
        let opened = object_store::parse_url_opts(&url, given.chain(environment));
        let (store, prefix) = opened.map_err(|error| self.invalid(&error))?;
        Ok(Arc::new(PrefixStore::new(store, prefix)))
    }

    fn invalid(&self, problem: &dyn std::fmt::Display) -> StorageError {
        // A bucket's URL has no secret; a query of it might.
        let shown = self.url.split(['?', '@']).next_back().unwrap_or_default();
        StorageError::new(ErrorKind::Invalid, shown, problem)
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
        for url in ["", "memory", "file:", "file:///", "ftp://host/x", "/srv/ledger"] {
            let error = Location { url, options: &[] }.check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{url}");
        }
    }
}
