//! One run of a query: its rows, their difference from what is known, and what came of it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use segno::clock::{self, Clock, duration_ms};
use segno::store::ListRecords;
use segno_actions::functions::Scope;

use super::apply::{Active, Applier, BatchStates, drive_error};
use super::claim::{ATTEMPTS, Claim, Part};
use super::known::{SourceMember, forget};
use super::node::QueryServices;
use super::row::{HeldMember, MAX_HELD_SAMPLES, PendingRemoval, QueryCounts, QueryFailure, QueryRow};
use crate::definition::{DataSource, SourceKind};
use crate::drive::ended_calls;
use crate::drive::error::DriveError;
use crate::drive::place::{HEADS, SOURCE_MEMBERS, index_folder};
use crate::drive::post::timestamp;
use crate::drive::published::RunbookHead;
use crate::drive::runbooks::Runbooks;
use crate::limits::{DEFAULT_INTERVAL_SEC, SOURCE_TIMEOUT};
use crate::members::{Rows, immediate_start};
use crate::rows::{Row, RowKey};
use crate::source::{
    BatchState, Decisions, Difference, Merge, MissingMember, PlacedRow, Query, Removals, SourceError,
    place_rows,
};
use crate::telemetry;
use crate::template::columns_needed;

/// Known members that are read at once.
const PAGE: usize = 1_000;

/// How often a run looks whether its query was switched off.
const LOOK_AT_SWITCH: Duration = Duration::from_secs(1);

/// Runs of one query that may be cut off in a row. A query that ends its node is not run again at
/// once.
const MAX_ATTEMPTS: u32 = 5;

/// Why a run has no result.
enum RunError {
    /// The source.
    Source(SourceError),
    /// The store, or the lease.
    Drive(DriveError),
    /// The runs before it were cut off.
    CutOff,
    /// The query was switched off.
    SwitchedOff,
}

impl<E: Into<DriveError>> From<E> for RunError {
    fn from(error: E) -> Self {
        RunError::Drive(error.into())
    }
}

/// What a run found.
struct Found {
    counts: QueryCounts,
    removals: Removals,
    /// Members that the open batches have.
    known: u64,
    /// What had been decided when removals were made.
    decisions: Decisions,
}

/// Runs a query to its end and stores what came of it.
pub(super) async fn run(services: &QueryServices, mut claim: Claim) -> Result<(), DriveError> {
    let found = match Box::pin(find(services, &mut claim)).await {
        Ok(found) => Ok(found),
        Err(RunError::SwitchedOff) => return end(services, claim, None).await,
        Err(RunError::Drive(error @ (DriveError::Store(_) | DriveError::LeaseLost))) => return Err(error),
        Err(RunError::Drive(error)) => Err(("stored-data-unreadable", error.to_string())),
        Err(RunError::Source(error)) => Err((error.code(), error.to_string())),
        Err(RunError::CutOff) => {
            let message = format!(
                "{MAX_ATTEMPTS} runs did not come to their end: their nodes died; look at the logs of the nodes, \
                 and have the query return fewer rows if they ran out of memory"
            );
            Err(("source-failed", message))
        }
    };
    let (scope, runbook) = (claim.scope.id_prefix(), claim.row.name.clone());
    match &found {
        Ok(Found { counts, .. }) => tracing::debug!(%scope, %runbook, ?counts, "a data source was queried"),
        Err((code, message)) => {
            tracing::warn!(%scope, %runbook, %code, %message, "the query of a data source failed");
        }
    }
    end(services, claim, Some(found)).await
}

/// Stores what came of a run and when the next one is.
async fn end(
    services: &QueryServices,
    mut claim: Claim,
    found: Option<Result<Found, (&'static str, String)>>,
) -> Result<(), DriveError> {
    for _ in 0..ATTEMPTS {
        let row = ended(&services.runbooks, &claim, found.as_ref()).await?;
        let held = row.pending_removal.as_ref().filter(|pending| pending.set == row.run);
        let held = held.map(|pending| (pending.set, pending.count));
        if claim.release(row).await? {
            if let Some((set, count)) = held {
                metrics::counter!(telemetry::REMOVALS_HELD).increment(1);
                let (scope, runbook) = (claim.scope.id_prefix(), &claim.row.name);
                tracing::warn!(%scope, %runbook, set, count, "the removal of members waits for approval");
            }
            return Ok(());
        }
    }
    Err(claim.contended())
}

async fn ended(
    runbooks: &Runbooks,
    claim: &Claim,
    found: Option<&Result<Found, (&'static str, String)>>,
) -> Result<QueryRow, DriveError> {
    let mut row = claim.row.clone();
    let now = timestamp(runbooks.store.now_ms().await?);
    let head = runbooks.head(&claim.scope, &row.name).await;
    let head = head.map_err(|error| drive_error(error, HEADS, &row.name))?;
    row.attempts = 0;
    // Switched off and on again: the run that was cut off is made up for.
    let mut is_due = found.is_none();
    match found {
        Some(Ok(found)) => {
            // A decision that came while this run was at it is not left waiting.
            is_due = found.decisions != row.decisions();
            row.counts = Some(found.counts);
            row.last_error = None;
            row.pending_removal = found.pending(&row, now);
        }
        Some(Err((code, message))) => row.last_error = Some(QueryFailure::new(code, message, now)),
        None => {}
    }
    if !head.is_automation_enabled {
        row.next_run_at = None;
        return Ok(row);
    }
    let definition = runbooks.definitions.get(&claim.scope, &row.name, head.active_version).await;
    let interval_sec =
        definition.map_or(DEFAULT_INTERVAL_SEC, |definition| definition.data_source.interval_sec);
    let next = next_run(row.next_run_at.unwrap_or(now), interval_sec, now);
    row.next_run_at = Some(if is_due { now } else { next });
    Ok(row)
}

/// The next run: an interval after the last one was due, or from now if that has passed.
fn next_run(due: Timestamp, interval_sec: u64, now: Timestamp) -> Timestamp {
    let interval = SignedDuration::from_secs(i64::try_from(interval_sec).unwrap_or(i64::MAX));
    let after = |time: Timestamp| time.checked_add(interval).unwrap_or(Timestamp::MAX);
    let next = after(due);
    if next > now { next } else { after(now) }
}

impl Found {
    /// The members whose removal waits for approval. While none is added, the set keeps its name.
    fn pending(&self, row: &QueryRow, now: Timestamp) -> Option<PendingRemoval> {
        let held = || self.removals.held.values().flatten();
        let count = held().count() as u64;
        if count == 0 {
            return None;
        }
        let before = row.pending_removal.as_ref();
        let shown = before.map_or(0, |pending| pending.set);
        let is_shown = |missing: &MissingMember| missing.member.held.is_some_and(|run| run <= shown);
        let is_same = held().all(is_shown);
        let sample = held()
            .take(MAX_HELD_SAMPLES)
            .map(|missing| HeldMember { batch_id: missing.member.batch_id, key: missing.member.key.clone() });
        Some(PendingRemoval {
            set: if is_same { shown } else { row.run },
            count,
            of: self.known,
            batches: self.removals.held.len() as u64,
            sample: sample.collect(),
            at: before.filter(|_| is_same).map_or(now, |pending| pending.at),
            is_approved: is_same && shown <= row.approved_run && shown > row.rejected_run,
        })
    }
}

/// The runbook of a query, unless automation is disabled.
async fn enabled(runbooks: &Runbooks, claim: &Claim) -> Result<RunbookHead, RunError> {
    let name = &claim.row.name;
    let head = runbooks.head(&claim.scope, name).await.map_err(|error| drive_error(error, HEADS, name))?;
    if head.is_automation_enabled { Ok(head) } else { Err(RunError::SwitchedOff) }
}

/// Queries the source and sends what has changed.
async fn find(services: &QueryServices, claim: &mut Claim) -> Result<Found, RunError> {
    let runbooks = &services.runbooks;
    let (scope, name) = (claim.scope.clone(), claim.row.name.clone());
    let head = enabled(runbooks, claim).await?;
    if claim.row.attempts > MAX_ATTEMPTS {
        return Err(RunError::CutOff);
    }
    let row = runbooks.version(&scope, &name, Some(head.active_version)).await;
    let row = row.map_err(|error| drive_error(error, HEADS, &name))?;
    let definition = runbooks.definitions.get(&scope, &name, head.active_version).await?;
    let source = definition.data_source.clone();
    let active = Active { row, definition };
    let rows = query(services, claim, &active, &source).await?;
    // From here on the run goes to its end, so that no batch is left without some of its members.
    enabled(runbooks, claim).await?;
    let now = timestamp(claim.store().now_ms().await?);
    let mut counts = QueryCounts { rows: rows.rows.len() as u64, ..QueryCounts::default() };
    let placed = place_rows(rows.rows, &source);
    counts.skipped = placed.unreadable.warnings() as u64;
    let mut states = BatchStates::default();
    let mut difference = compare(claim, runbooks, &mut states, (placed.rows, now)).await?;
    let decisions = claim.row.decisions();
    let known = difference.known.values().sum::<usize>() as u64;
    let removals = difference.take_removals(source.max_removed_percent, decisions);
    let (states, counts_of) = (&mut states, &mut counts);
    let mut applier = Applier { claim, runbooks, active: &active, states, counts: counts_of, lists: 0 };
    applier.apply(difference, &removals).await?;
    Ok(Found { counts, removals, known, decisions })
}

/// Runs the query, and renews the lease meanwhile. A query that is switched off is cancelled.
async fn query(
    services: &QueryServices,
    claim: &mut Claim,
    active: &Active,
    source: &DataSource,
) -> Result<Rows, RunError> {
    if source.kind == SourceKind::Manual {
        let message = "its batches are created by hand, and nothing is queried; publish a version with another \
                       data source, or disable automation";
        return Err(RunError::Source(SourceError::wrong("manual", message)));
    }
    let (scope, name) = (claim.scope.clone(), claim.row.name.clone());
    let due = claim.row.next_run_at.map_or(0, Timestamp::as_millisecond);
    // The same whenever this run is made again: a function is called once for each time that the
    // query is due.
    let key = format!("query-{name}-{due}");
    if let Some(keep) = services.keep_invocations.filter(|_| source.kind.is_called()) {
        let due_at_ms = claim.store().now_ms().await?.saturating_add(duration_ms(keep));
        let writes = vec![ended_calls::write_job(&scope, &key, due_at_ms)];
        claim.commit(Part { message: None, writes }).await?;
    }
    let required = columns_needed(&active.definition);
    let query = Query { scope: &scope, source, required: &required, key: &key, timeout: SOURCE_TIMEOUT };
    let mut rows = Box::pin(services.sources.rows(query));
    loop {
        let look = LOOK_AT_SWITCH.min(claim.renew_every());
        tokio::select! {
            biased;
            rows = &mut rows => return rows.map_err(RunError::Source),
            () = pause(&*services.clock, look) => {}
        }
        // A store that does not answer for a moment does not cut the query off.
        if let Err(RunError::SwitchedOff) = enabled(&services.runbooks, claim).await {
            drop(rows);
            services.sources.cancel(query).await;
            return Err(RunError::SwitchedOff);
        }
        claim.keep().await?;
    }
}

async fn pause(clock: &dyn Clock, duration: Duration) {
    clock::sleep(clock, duration).await;
}

/// Merges the rows with the members that earlier queries brought.
async fn compare(
    claim: &mut Claim,
    runbooks: &Runbooks,
    states: &mut BatchStates,
    (rows, now): (Vec<PlacedRow>, Timestamp),
) -> Result<Difference, DriveError> {
    let (scope, name) = (claim.scope.clone(), claim.row.name.clone());
    let folder = index_folder(&scope, &name);
    let mut merge = Merge::new(rows, immediate_start(now));
    let mut after: Option<String> = None;
    loop {
        let request =
            ListRecords { kind: SOURCE_MEMBERS, id_prefix: &folder, after_id: after.as_deref(), limit: PAGE };
        let page = claim.store().list_records(request).await?;
        let mut writes = Vec::new();
        for record in &page {
            let (key, member) = SourceMember::read(&scope, &name, record)?;
            let state = states.of(runbooks, &scope, member.batch_id).await?;
            if member.is_late && state == BatchState::Ended {
                if !has_arrived(runbooks, &scope, &member, &key).await? {
                    writes.push(forget(&scope, &name, &key));
                    continue;
                }
                writes.push(SourceMember { is_late: false, ..member.clone() }.write(&scope, &name, &key));
            }
            merge.known(member.into_known(key), state);
        }
        match writes.is_empty() {
            true => claim.keep().await?,
            false => claim.commit(Part { message: None, writes }).await?,
        }
        if page.len() < PAGE {
            return Ok(merge.finish());
        }
        after = page.last().map(|record| record.id.clone());
    }
}

/// Whether a member that was sent to a batch became one before the batch ended.
async fn has_arrived(
    runbooks: &Runbooks,
    scope: &Scope,
    member: &SourceMember,
    key: &str,
) -> Result<bool, DriveError> {
    let row_key = RowKey::MemberKey(key.to_owned());
    let row = runbooks.row(scope, member.batch_id, &row_key).await;
    let row = row.map_err(|error| drive_error(error, row_key.table().name(), key))?;
    Ok(matches!(row, Some(Row::MemberKey(row)) if row.is_current || member.is_gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_keep_their_rhythm_and_are_not_made_up_for() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        for (due, now, next) in [(0, 7, 300), (0, 299, 300), (0, 300, 600), (0, 10_000, 10_300)] {
            assert_eq!(next_run(at(due), 300, at(now)), at(next), "{due} {now}");
        }
    }
}
