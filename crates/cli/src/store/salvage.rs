//! `segno store salvage`: what can be saved of a damaged store.

use segno_stores::StoreUrl;
use serde::Serialize;

use super::{Problem, check_target};
use crate::exit::Failure;
use crate::output::{Output, Table, count};
use crate::progress::Meter;

#[derive(Debug, Serialize)]
struct Salvaged {
    from: String,
    to: String,
    instances: u64,
    records: u64,
    queued: u64,
    left_out: Vec<Problem>,
    more_left_out: u64,
}

/// Does it.
pub fn run(from: &StoreUrl, to: &StoreUrl, output: &Output) -> Result<(), Failure> {
    check_target(from, to)?;
    let mut meter = Meter::new(output, Some(0));
    let report = from.salvage(to, |progress| {
        meter.set_total(progress.rows_total);
        meter.show("saving", progress.rows_done, "rows");
    })?;
    drop(meter);
    let salvaged = Salvaged {
        from: from.to_string(),
        to: to.to_string(),
        instances: report.instances,
        records: report.records,
        queued: report.queued,
        left_out: report.left_out.iter().map(Problem::from).collect(),
        more_left_out: report.more_left_out,
    };
    let mut table = Table::default()
        .line("from", &salvaged.from)
        .line("to", &salvaged.to)
        .section("saved")
        .line("instances", count(salvaged.instances))
        .line("records", count(salvaged.records))
        .line("queued", count(salvaged.queued))
        .section("left out");
    for finding in &report.left_out {
        table = table.line(&finding.place, format!("{}: {}", finding.key, finding.problem));
    }
    if salvaged.more_left_out > 0 {
        table = table.line("and", format!("{} more", count(salvaged.more_left_out)));
    }
    output.print(&salvaged, table)
}
