//! `segno store compact`: gives unused disk space back.

use segno_stores::StoreUrl;
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{Output, Table, size};
use crate::progress::Meter;

#[derive(Debug, Serialize)]
struct Compacted {
    store: String,
    bytes_before: u64,
    bytes_after: u64,
}

/// Does it.
pub fn run(store: &StoreUrl, output: &Output) -> Result<(), Failure> {
    let mut meter = Meter::new(output, Some(0));
    let report = store.compact(|progress| {
        meter.set_total(progress.rows_total);
        meter.show("compacting", progress.rows_done, "rows");
    })?;
    drop(meter);
    let (bytes_before, bytes_after) = (report.bytes_before, report.bytes_after);
    let compacted = Compacted { store: store.to_string(), bytes_before, bytes_after };
    let table = Table::default()
        .line("store", &compacted.store)
        .line("before", size(bytes_before))
        .line("after", size(bytes_after));
    output.print(&compacted, table)
}
