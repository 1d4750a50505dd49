//! `segno store verify`: whether a backup is whole, and whether it is complete.

use std::path::Path;

use segno_stores::{Written, verify_backup};
use serde::Serialize;

use super::Content;
use super::ledger::ShownLedger;
use crate::exit::Failure;
use crate::output::{Output, Table, count};
use crate::progress::Meter;

#[derive(Debug, Serialize)]
struct Verified {
    file: String,
    #[serde(flatten)]
    content: Content,
    #[serde(flatten)]
    ledger: ShownLedger,
}

/// Reads the file to its end.
pub fn run(file: &Path, output: &Output) -> Result<(), Failure> {
    let mut meter = Meter::new(output, None);
    let Written { content, ledger } = verify_backup(file, &mut |progress| meter.transfer(progress))?;
    drop(meter);
    let taken = output.time_of_ms(content.taken_at_ms);
    let file = file.display().to_string();
    let verified = Verified { file, content: content.into(), ledger: ShownLedger::of(ledger) };
    verified.ledger.warn("the backup");
    let content = &verified.content;
    let table = Table::default()
        .line("file", &verified.file)
        .line("taken", taken)
        .section("whole, with")
        .line("instances", count(content.instances))
        .line("executions", count(content.executions))
        .line("events", count(content.events))
        .line("queued messages", count(content.messages))
        .line("queued activities", count(content.work_items))
        .line("records", count(content.records))
        .line("sha256", &content.sha256);
    let table = verified.ledger.lines(table);
    output.print(&verified, table)
}
