//! How far a call is, for people: a section of `segno show`.

use segno_api::call::{CallDetails, CallState, FailedAttempt, MadeBy};

use super::history::shortened;
use crate::output::{Output, Table};

/// Adds what is known of a call to the table of its instance.
pub fn lines(table: Table, call: &CallDetails, output: &Output) -> Table {
    let mut table = table.section("call").line("input", shortened(call.input.text()));
    if call.state != CallState::Ended {
        table = table.line("state", &call.waits_for);
    }
    table = table.line("attempt", format!("{} of {}", call.attempt, call.max_attempts));
    let optional = [
        ("made by", made_by(&call.made_by, output)),
        ("pool", call.pool.as_ref().map(|pool| pool.name.clone())),
        ("waits until", call.waits_until.filter(|_| call.retry_at.is_none()).map(|at| output.time(at))),
        ("worker", call.worker.clone()),
        ("lease until", call.lease_expires_at.map(|at| output.time(at))),
        ("last heard of", call.heartbeat_at.map(|at| output.time(at))),
        ("progress", call.progress.as_ref().map(|progress| shortened(progress.text()))),
        ("progress of", call.progress_at.map(|at| output.time(at))),
        ("next attempt", call.retry_at.map(|at| output.time(at))),
        ("deliveries", (call.deliveries > 1).then(|| call.deliveries.to_string())),
        ("tag", call.tag.clone()),
        ("deadline", call.deadline.map(|at| output.time(at))),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            table = table.line(name, value);
        }
    }
    if call.failed_attempts.is_empty() {
        return table;
    }
    let mut table = table.section("failed attempts");
    for failed in &call.failed_attempts {
        table = table.line(failed.attempt.to_string(), failure(failed, output));
    }
    table
}

fn failure(failed: &FailedAttempt, output: &Output) -> String {
    let message = shortened(failed.failure.message.lines().next().unwrap_or_default());
    format!("{}  {}: {message}", output.time(failed.failed_at), failed.failure.category)
}

fn made_by(made_by: &MadeBy, output: &Output) -> Option<String> {
    let id = made_by.id.as_deref()?;
    let kind = made_by.kind.as_str();
    Some(match made_by.time {
        Some(time) => format!("{kind} {id} for {}", output.time(time)),
        None => format!("{kind} {id}"),
    })
}
