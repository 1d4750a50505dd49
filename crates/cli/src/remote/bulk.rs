//! `segno bulk`: one thing for many instances.

use std::io::{IsTerminal, stderr, stdin};

use segno_api::instance::{Bulk as Request, BulkFilter, BulkResult};

use super::arguments::Bulk;
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Table, count, print};
use crate::progress::Meter;

/// Instances of one request, so that progress can be shown.
const AT_ONCE: usize = 1_000;

/// Does it.
pub async fn run(arguments: Bulk, format: Format) -> Result<(), Failure> {
    let client = arguments.connection.client()?;
    let filter = arguments.filter;
    let mut request = Request {
        action: arguments.action,
        filter: BulkFilter {
            prefix: filter.prefix,
            status: filter.status,
            orchestration: filter.orchestration,
            label: filter.label,
            created_from: filter.created_from,
            created_before: filter.created_before,
        },
        reason: arguments.reason,
        dry_run: true,
        force: arguments.force,
        limit: None,
    };
    let counted = client.bulk(&request).await?;
    if arguments.dry_run {
        return print(format, &counted, table(&counted, "would be touched"));
    }
    if !arguments.yes {
        confirm(&counted)?;
    }
    request.dry_run = false;
    let mut total = BulkResult { matched: 0, changed: 0, more: false };
    let mut meter = Meter::new(Some(counted.matched as u64));
    // What was changed leaves some filters and stays in others, so rounds end with one that changes nothing more.
    request.limit = (counted.matched > AT_ONCE && request.filter.status.is_some()).then_some(AT_ONCE);
    loop {
        let done = client.bulk(&request).await?;
        total.matched += done.matched;
        total.changed += done.changed;
        meter.show("done", total.changed as u64, "instances");
        if !done.more || done.changed == 0 {
            total.more = done.more;
            break;
        }
    }
    drop(meter);
    print(format, &total, table(&total, "changed"))
}

fn confirm(counted: &BulkResult) -> Result<(), Failure> {
    let more = if counted.more { " or more" } else { "" };
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return Err(Failure::Refused(format!(
            "{} instances{more} match; say --yes to go on",
            counted.matched
        )));
    }
    eprint!("{} instances{more} match. Go on? [y/N] ", count(counted.matched as u64));
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Refused("nothing was done".to_owned())),
    }
}

fn table(result: &BulkResult, what: &str) -> Table {
    let more = if result.more { "yes" } else { "no" };
    let number = if what == "changed" { result.changed } else { result.matched };
    Table::default()
        .line("matched", count(result.matched as u64))
        .line(what, count(number as u64))
        .line("more match", more)
}
