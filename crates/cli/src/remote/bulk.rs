//! `segno bulk`: one thing for many instances.

use std::io::{IsTerminal, stderr, stdin};

use segno_api::Client;
use segno_api::bulk::{Bulk as Request, BulkAction, BulkFilter, BulkLeft, BulkResult};
use segno_server::HumanDuration;

use super::arguments::{Bulk, BulkVerb, Matching};
use crate::exit::Failure;
use crate::output::{Output, Table, count};
use crate::progress::Meter;

/// Instances of one request, so that progress can be shown and no request takes long.
const AT_ONCE: usize = 1_000;

/// Ids that are shown of those that are changed, and of those that are left.
const SAMPLE: usize = 20;

/// Counts the instances that match, asks, and changes them.
pub async fn run(arguments: Bulk, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let (action, matching, reason, force) = match arguments.verb {
        BulkVerb::Cancel { matching, reason } => (BulkAction::Cancel, matching, reason, false),
        BulkVerb::Pause { matching, reason } => (BulkAction::Pause, matching, reason, false),
        BulkVerb::Resume { matching } => (BulkAction::Resume, matching, None, false),
        BulkVerb::Delete { matching, force } => (BulkAction::Delete, matching, None, force),
        BulkVerb::Restart { matching, reason, force } => (BulkAction::Restart, matching, reason, force),
        BulkVerb::Retry { matching, reason } => (BulkAction::Retry, matching, reason, false),
    };
    let Matching { filter, ends, id: mut ids, ids: file, idempotency_key, dry_run, yes } = matching;
    if let Some(file) = file {
        ids.extend(ids_of(&file)?);
    }
    let filter = BulkFilter {
        prefix: filter.prefix,
        status: filter.status,
        orchestration: filter.orchestration,
        function: filter.function,
        label: filter.label,
        created_from: output.optional_moment(filter.created_from)?,
        created_before: output.optional_moment(filter.created_before)?,
        parent: None,
        failure: ends.failure,
        ended_from: output.optional_moment(ends.ended_from)?,
        ended_before: output.optional_moment(ends.ended_before)?,
        longer_than_ms: ends.longer_than.map(HumanDuration::as_ms),
        shorter_than_ms: ends.shorter_than.map(HumanDuration::as_ms),
    };
    let limit = Some(AT_ONCE);
    let mut request = Request { action, filter, ids, reason, dry_run: true, force, limit, cursor: None };
    let counted = walk(&client, &mut request, None, Meter::new(output, None)).await?;
    if dry_run {
        return output.print(&counted, table(&counted, "would change"));
    }
    if !yes {
        confirm(&counted)?;
    }
    request.dry_run = false;
    let meter = Meter::new(output, Some(counted.matched as u64));
    let total = walk(&client, &mut request, idempotency_key.as_deref(), meter).await?;
    output.print(&total, table(&total, "changed"))
}

/// The ids in a file, one on each line.
fn ids_of(file: &str) -> Result<Vec<String>, Failure> {
    let text = match file {
        "-" => std::io::read_to_string(stdin())?,
        file => std::fs::read_to_string(file)
            .map_err(|error| Failure::Refused(format!("--ids {file}: {error}")))?,
    };
    let ids: Vec<String> =
        text.lines().map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect();
    match ids.is_empty() {
        true => Err(Failure::Refused(format!("--ids {file}: there is no id in it"))),
        false => Ok(ids),
    }
}

/// All requests that it takes to reach the last instance that matches. Under a key, each request has its own: one that was
/// answered before, also in an earlier run of the command, is answered in the same way, so the walk continues where it
/// stopped.
async fn walk(
    client: &Client,
    request: &mut Request,
    key: Option<&str>,
    mut meter: Meter,
) -> Result<BulkResult, Failure> {
    let mut total = BulkResult {
        matched: 0,
        changed: 0,
        would_change: None,
        sample: Vec::new(),
        left: BulkLeft::default(),
        left_sample: Vec::new(),
        next_cursor: None,
    };
    request.cursor = None;
    for page in 1_u64.. {
        let key = key.map(|key| format!("{key}-{page}"));
        let done = client.bulk_under(request, key.as_deref()).await?;
        let room = |named: usize| SAMPLE.saturating_sub(named);
        total.sample.extend(done.sample.into_iter().take(room(total.sample.len())));
        total.left_sample.extend(done.left_sample.into_iter().take(room(total.left_sample.len())));
        total.matched += done.matched;
        total.changed += done.changed;
        total.left += done.left;
        total.would_change = done.would_change.map(|more| total.would_change.unwrap_or(0) + more);
        meter.show(if request.dry_run { "found" } else { "done" }, total.matched as u64, "instances");
        request.cursor = done.next_cursor;
        if request.cursor.is_none() {
            break;
        }
    }
    Ok(total)
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
    if result.would_change.is_some() {
        for id in &result.sample {
            table = table.line("such as", id);
        }
    }
    table
}
