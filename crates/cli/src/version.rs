//! `segno version`: what this program is, what it was built with, and which formats it reads and writes.

use segno_stores::Formats;
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{Output, Table};

/// The commit that it was built from, if the build was told: `SEGNO_COMMIT=$(git rev-parse HEAD) cargo build`.
const COMMIT: Option<&str> = option_env!("SEGNO_COMMIT");

/// What was built in that the default build leaves out.
const FEATURES: &[&str] = match (cfg!(feature = "amqp"), cfg!(feature = "otlp")) {
    (true, true) => &["amqp", "otlp"],
    (true, false) => &["amqp"],
    (false, true) => &["otlp"],
    (false, false) => &[],
};

#[derive(Serialize)]
struct Version {
    version: &'static str,
    commit: Option<&'static str>,
    features: &'static [&'static str],
    formats: Formats,
}

/// Prints it.
pub fn run(output: &Output) -> Result<(), Failure> {
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: COMMIT.filter(|commit| !commit.is_empty()),
        features: FEATURES,
        formats: Formats::CURRENT,
    };
    let features = if FEATURES.is_empty() { "none".to_owned() } else { FEATURES.join(", ") };
    let formats = &version.formats;
    let table = Table::default()
        .line("version", version.version)
        .line("commit", version.commit.unwrap_or("unknown"))
        .line("features", features)
        .section("formats")
        .line("embedded store", formats.embedded.to_string())
        .line("schema in PostgreSQL", formats.postgres.to_string())
        .line("backup file", formats.backup.to_string());
    output.print(&version, table)
}
