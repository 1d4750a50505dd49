//! Which store to measure, read from its URL. The one place that knows the schemes.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use segno::store::Store;
use segno::store::memory::MemoryStore;
use segno_embedded::EmbeddedStore;
use segno_postgres::{PostgresOptions, PostgresStore};

/// A store to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `memory:`, gone with the process.
    Memory,
    /// `segno:DIR`, the embedded store in a directory.
    Embedded(PathBuf),
    /// `postgres://…`, the store in a database.
    Postgres(String),
}

impl StoreUrl {
    /// Opens the store: empty in memory, with whatever is there already in a directory or database.
    pub async fn open(&self) -> anyhow::Result<Arc<dyn Store>> {
        match self {
            StoreUrl::Memory => Ok(MemoryStore::new()),
            StoreUrl::Embedded(directory) => Ok(EmbeddedStore::open(directory)?),
            StoreUrl::Postgres(url) => Ok(PostgresStore::open(url).await?),
        }
    }
}

impl FromStr for StoreUrl {
    type Err = anyhow::Error;

    fn from_str(url: &str) -> anyhow::Result<Self> {
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        match scheme {
            "memory" if url == "memory:" => Ok(StoreUrl::Memory),
            "memory" => {
                anyhow::bail!("{url:?} has too much or too little; the store in memory is just \"memory:\"")
            }
            "segno" if rest.is_empty() => anyhow::bail!("{url:?} names no directory; use segno:DIR"),
            "segno" => Ok(StoreUrl::Embedded(PathBuf::from(rest))),
            "postgres" | "postgresql" => {
                PostgresOptions::from_url(url)?;
                Ok(StoreUrl::Postgres(url.to_owned()))
            }
            _ => anyhow::bail!("unknown store {url:?}; use memory:, segno:DIR or postgres://…"),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory:"),
            StoreUrl::Embedded(directory) => write!(f, "segno:{}", directory.display()),
            // Neither a password nor what else is in the URL belongs into a report.
            StoreUrl::Postgres(_) => f.write_str("postgres:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_or_refused_with_a_reason() {
        assert_eq!("memory:".parse::<StoreUrl>().unwrap(), StoreUrl::Memory);
        assert_eq!(StoreUrl::Memory.to_string(), "memory:");
        let embedded = "segno:/tmp/x".parse::<StoreUrl>().unwrap();
        assert_eq!(embedded, StoreUrl::Embedded(PathBuf::from("/tmp/x")));
        assert_eq!(embedded.to_string(), "segno:/tmp/x");
        let postgres = "postgresql://u:secret@localhost/segno".parse::<StoreUrl>().unwrap();
        assert_eq!(postgres.to_string(), "postgres:", "no password in a report");
        for (url, reason) in [
            ("", "unknown store"),
            ("memory", "just \"memory:\""),
            ("memory:x", "just \"memory:\""),
            ("segno:", "names no directory"),
            ("postgres://localhost/segno?schema=A", "cannot be a schema"),
            ("mysql://localhost", "unknown store"),
        ] {
            let error = url.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(error.contains(reason), "{url}: {error}");
        }
    }
}
