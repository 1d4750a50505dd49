//! `segno bulk`: one thing for many instances.

use std::io::{IsTerminal, stderr, stdin};

use segno_api::Client;
use segno_api::instance::{Bulk as Request, BulkAction, BulkFilter, BulkLeft, BulkResult};

use super::arguments::{Bulk, BulkVerb, Matching};
use crate::exit::Failure;
use crate::output::{Output, Table, count};
use crate::progress::Meter;

/// Instances of one request, so that progress can be shown and no request takes long.
const AT_ONCE: usize = 1_000;

/// Counts the instances that match, asks, and changes them.
pub async fn run(arguments: Bulk, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let (action, matching, reason, force) = match arguments.verb {
        BulkVerb::Cancel { matching, reason } => (BulkAction::Cancel, matching, reason, false),
        BulkVerb::Pause { matching, reason } => (BulkAction::Pause, matching, reason, false),
        BulkVerb::Resume { matching } => (BulkAction::Resume, matching, None, false),
        BulkVerb::Delete { matching, force } => (BulkAction::Delete, matching, None, force),
    };
    let Matching { filter, dry_run, yes } = matching;
    let filter = BulkFilter {
        prefix: filter.prefix,
        status: filter.status,
        orchestration: filter.orchestration,
        function: filter.function,
        label: filter.label,
        created_from: output.optional_moment(filter.created_from)?,
        created_before: output.optional_moment(filter.created_before)?,
    };
    let mut request =
        Request { action, filter, reason, dry_run: true, force, limit: Some(AT_ONCE), cursor: None };
    let counted = walk(&client, &mut request, Meter::new(output, None)).await?;
    if dry_run {
        return output.print(&counted, table(&counted, "would change"));
    }
    if !yes {
        confirm(&counted)?;
    }
    request.dry_run = false;
    let total = walk(&client, &mut request, Meter::new(output, Some(counted.matched as u64))).await?;
    output.print(&total, table(&total, "changed"))
}

/// All requests that it takes to reach the last instance that matches.
async fn walk(client: &Client, request: &mut Request, mut meter: Meter) -> Result<BulkResult, Failure> {
    let left = BulkLeft::default();
    let mut total = BulkResult { matched: 0, changed: 0, would_change: None, left, next_cursor: None };
    request.cursor = None;
    loop {
        let done = client.bulk(request).await?;
        total.matched += done.matched;
        total.changed += done.changed;
        total.left += done.left;
        total.would_change = done.would_change.map(|more| total.would_change.unwrap_or(0) + more);
        meter.show(if request.dry_run { "found" } else { "done" }, total.matched as u64, "instances");
        request.cursor = done.next_cursor;
        if request.cursor.is_none() {
            return Ok(total);
        }
    }
}

fn confirm(counted: &BulkResult) -> Result<(), Failure> {
    let matched = match counted.matched {
        1 => "1 instance matches".to_owned(),
        many => format!("{} instances match", count(many as u64)),
    };
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return Err(Failure::Refused(format!("{matched}; pass --yes to continue")));
    }
    eprint!("{matched}. Continue? [y/N] ");
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Refused("nothing was done".to_owned())),
    }
}

fn table(result: &BulkResult, what: &str) -> Table {
    let number = result.would_change.unwrap_or(result.changed);
    let mut table =
        Table::default().line("matched", count(result.matched as u64)).line(what, count(number as u64));
    for (left, reason) in result.left.reasons().into_iter().filter(|(left, _)| *left > 0) {
        table = table.line("left as is", format!("{}: {reason}", count(left as u64)));
    }
    table
}
