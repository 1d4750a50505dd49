//! `segno store check`: whether everything of a store can be read and agrees.

use segno_stores::StoreUrl;
use serde::Serialize;

use super::Problem;
use crate::exit::Failure;
use crate::output::{Output, Table, count};
use crate::progress::Meter;

#[derive(Debug, Serialize)]
struct Checked {
    store: String,
    sound: bool,
    rows: u64,
    log_records: u64,
    findings: Vec<Problem>,
    more_findings: u64,
    /// What other users of the machine may read or change.
    exposed: Vec<Exposed>,
}

#[derive(Debug, Serialize)]
struct Exposed {
    path: String,
    mode: String,
}

/// Does it.
pub fn run(store: &StoreUrl, output: &Output) -> Result<(), Failure> {
    let mut meter = Meter::new(output, Some(0));
    let report = store.check(|progress| {
        // Every row is looked at twice: by itself, and together with others.
        meter.set_total(progress.rows_total / 2);
        meter.show("checking", progress.rows_done / 2, "rows");
    })?;
    drop(meter);
    let exposed = store
        .exposed_files()?
        .into_iter()
        .map(|file| Exposed { path: file.path.display().to_string(), mode: format!("{:04o}", file.mode) });
    let checked = Checked {
        store: store.to_string(),
        sound: report.is_sound(),
        rows: report.rows,
        log_records: report.log_records,
        findings: report.findings.iter().map(Problem::from).collect(),
        more_findings: report.more_findings,
        exposed: exposed.collect(),
    };
    let mut table = Table::default()
        .line("store", &checked.store)
        .line("rows", count(checked.rows))
        .line("log records", count(checked.log_records))
        .line("result", if checked.sound { "sound" } else { "DAMAGED" })
        .section("findings");
    for finding in &report.findings {
        table = table.line(&finding.place, format!("{}: {}", finding.key, finding.problem));
    }
    if checked.more_findings > 0 {
        table = table.line("and", format!("{} more", count(checked.more_findings)));
    }
    for Exposed { path, mode } in &checked.exposed {
        output.warn(&format!(
            "other users may read or change {path} (mode {mode}); `chmod go= {path}` takes that away, \
             and so does the next server that opens the store"
        ));
    }
    output.print(&checked, table)?;
    if checked.sound { Ok(()) } else { Err(Failure::Unsound) }
}
