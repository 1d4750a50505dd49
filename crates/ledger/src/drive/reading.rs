//! Reading runs: lists by DAG, state, time and label, newest first; a run with its tasks, and why each of them waits.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use segno_actions::functions::Scope;

use super::corrections::labels_of;
use super::error::LedgerError;
use super::limits::MAX_PAGE;
use super::place::{OUTBOX, first_events_of, outbox_id};
use super::runs::Runs;
use crate::fold::{NO_LIMIT, runs_pool};
use crate::ids::Ulid;
use crate::log::day_of;
use crate::snapshot::{Days, Filter, PageOf, Snapshot};
use crate::tables::{DepRow, PoolRow, RunRow, RunState, TaskRow, TaskState};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Which runs are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Of this DAG.
    pub dag: Option<String>,
    /// In one of these states; in any of them if there are none.
    pub states: Vec<RunState>,
    /// With this label.
    pub label: Option<(String, String)>,
    /// Triggered at this time or later, in Unix milliseconds.
    pub since_ms: Option<i64>,
    /// Triggered before this time, in Unix milliseconds.
    pub until_ms: Option<i64>,
    /// After the run with this cursor.
    pub after: Option<String>,
    /// At most this many.
    pub limit: usize,
}

/// Runs, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<RunRow>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// A run with its tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct RunDetail {
    /// The run.
    pub run: RunRow,
    /// Its tasks, by key.
    pub tasks: Vec<TaskRow>,
    /// What depends on what.
    pub edges: Vec<DepRow>,
    /// Why each task that has not ended waits.
    pub waits: Vec<TaskWait>,
}

/// Which tasks of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskQuery {
    /// Only this task.
    pub key: Option<String>,
    /// In one of these states; in any of them if there are none.
    pub states: Vec<TaskState>,
    /// After the task with this key.
    pub after: Option<String>,
    /// At most this many.
    pub limit: usize,
}

/// Why a task waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskWait {
    /// The task.
    pub task_key: Arc<str>,
    /// Why.
    pub reason: WaitReason,
    /// The stored time at which something happens by itself, in Unix milliseconds.
    pub due_ms: Option<i64>,
}

/// Why a task waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitReason {
    /// Upstream tasks have not ended.
    Upstream(Vec<Arc<str>>),
    /// The run is paused.
    Paused,
    /// So many runs of its DAG are under way, which is their limit.
    RunSlot(u32),
    /// It waits for a slot of its pool, or is dispatched in a moment.
    Slot(Option<Arc<str>>),
    /// It was dispatched; no worker has started it.
    Worker,
    /// It runs.
    Runs,
    /// The last attempt failed; the next one has to wait.
    Retry,
    /// Its list is made, or the tasks that it added run.
    Items,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitReason::Upstream(tasks) => {
                let shown: Vec<&str> = tasks.iter().take(5).map(AsRef::as_ref).collect();
                write!(f, "waits for {}", shown.join(", "))?;
                if tasks.len() > shown.len() {
                    write!(f, " and {} more", tasks.len() - shown.len())?;
                }
                Ok(())
            }
            WaitReason::Paused => f.write_str("the run is paused; resume it"),
            WaitReason::Slot(Some(pool)) => write!(f, "waits for a slot of pool {pool}"),
            WaitReason::Slot(None) => f.write_str("is dispatched in a moment"),
            WaitReason::Worker => f.write_str("dispatched; waits for a worker"),
            WaitReason::RunSlot(runs) => {
                write!(f, "waits until another run of the DAG ends: {runs} may be under way at a time")
            }
            WaitReason::Runs => f.write_str("runs"),
            WaitReason::Retry => f.write_str("waits for its next attempt"),
            WaitReason::Items => f.write_str("waits for the tasks of its list"),
        }
    }
}

/// The place of a run in lists: newest first.
type Place = (i64, Arc<str>);

impl Runs {
    /// Runs by DAG, state, time and label, newest first.
    ///
    /// # Errors
    /// `invalid-run` for a cursor that is none, `ledger-unavailable`, `stored-data-unreadable`.
    pub async fn list(&self, scope: &Scope, query: &RunQuery) -> Result<RunPage, LedgerError> {
        let Some(snapshot) = self.ledger.snapshot(scope).await? else { return Ok(RunPage::default()) };
        let after = query.after.as_deref().map(read_cursor).transpose()?;
        let limit = query.limit.clamp(1, MAX_PAGE);
        let fits =
            |run: &RunRow| query.fits(run) && after.as_ref().is_none_or(|after| place_of(run) < *after);
        let mut found: BTreeMap<Place, RunRow> = BTreeMap::new();
        let rows = |days| Filter { days, key: Vec::new() };
        let active = snapshot.rows::<RunRow>(&rows(Days::None)).await?;
        found.extend(active.into_iter().filter(&fits).map(|run| (place_of(&run), run)));
        // Day partitions have runs that have ended, and no others.
        let may_be_past = query.states.is_empty() || query.states.iter().any(|state| state.is_final());
        let days = snapshot.days().filter(|_| may_be_past);
        let mut days: Vec<String> = days.map(str::to_owned).collect();
        days.sort();
        let latest = after.as_ref().map(|(at, _)| *at).into_iter().chain(query.until_ms).min();
        for day in days.into_iter().rev() {
            let begins_ms = begin_of(&day);
            if latest.is_some_and(|latest| begins_ms > latest) {
                continue;
            }
            let is_full = found.keys().rev().nth(limit).is_some_and(|(at, _)| *at >= begins_ms + DAY_MS);
            if is_full || query.since_ms.is_some_and(|since| begins_ms + DAY_MS <= since) {
                break;
            }
            let of_day = snapshot.rows::<RunRow>(&rows(Days::Range(day.clone(), day))).await?;
            found.extend(of_day.into_iter().filter(&fits).map(|run| (place_of(&run), run)));
        }
        let mut newest = found.into_values().rev();
        let runs: Vec<RunRow> = newest.by_ref().take(limit).collect();
        let next = newest.next().and(runs.last()).map(|last| cursor(&place_of(last)));
        Ok(RunPage { runs, next })
    }

    /// A run with its tasks, and why each of them waits.
    ///
    /// # Errors
    /// `unknown-run`, `ledger-unavailable`, `stored-data-unreadable`.
    pub async fn show(&self, scope: &Scope, run_id: &str) -> Result<RunDetail, LedgerError> {
        let mut detail = self.rows_of(scope, run_id).await?;
        self.explain(scope, &mut detail).await?;
        Ok(detail)
    }

    /// Some tasks of a run, by key, with what they depend on and why they wait. Only the part of the tables is read that has them.
    ///
    /// # Errors
    /// `unknown-run`, `ledger-unavailable`, `stored-data-unreadable`.
    pub async fn tasks(
        &self,
        scope: &Scope,
        run_id: &str,
        query: &TaskQuery,
    ) -> Result<RunDetail, LedgerError> {
        let Some(snapshot) = self.ledger.snapshot(scope).await? else {
            return Err(self.not_shown(scope, run_id).await);
        };
        let key = vec![run_id.into()];
        let (mut days, mut run) = (Days::None, snapshot.row::<RunRow>(&key, Days::None).await?);
        if run.is_none() {
            days = days_of(&snapshot, run_id);
            run = snapshot.row::<RunRow>(&key, days.clone()).await?;
        }
        let Some(run) = run else { return Err(self.not_shown(scope, run_id).await) };
        let filter = Filter { days, key };
        let page =
            PageOf { filter: &filter, after: query.after.as_deref(), limit: query.limit.min(MAX_PAGE) };
        let is_wanted = |task: &TaskRow| query.states.is_empty() || query.states.contains(&task.state);
        let tasks: Vec<TaskRow> = match &query.key {
            Some(key) => {
                let key = [run_id.into(), key.as_str().into()];
                snapshot.row::<TaskRow>(&key, filter.days.clone()).await?.into_iter().collect()
            }
            None => snapshot.page::<TaskRow>(page, is_wanted).await?,
        };
        let mut edges = snapshot.rows::<DepRow>(&filter).await?;
        let shown: HashSet<&str> = tasks.iter().map(|task| &*task.task_key).collect();
        edges.retain(|edge| shown.contains(&*edge.downstream_task_key));
        let mut detail = RunDetail { run, tasks, edges, waits: Vec::new() };
        self.explain(scope, &mut detail).await?;
        Ok(detail)
    }

    /// Adds why tasks wait.
    async fn explain(&self, scope: &Scope, detail: &mut RunDetail) -> Result<(), LedgerError> {
        detail.waits = waits(detail);
        let is_ready = |wait: &TaskWait| matches!(wait.reason, WaitReason::Slot(_) | WaitReason::Items);
        if !detail.waits.iter().any(is_ready) || detail.tasks.iter().any(|task| task.attempt > 0) {
            return Ok(());
        }
        let Some(runs) = self.full_slots(scope, &detail.run).await? else { return Ok(()) };
        for wait in detail.waits.iter_mut().filter(|wait| is_ready(wait)) {
            wait.reason = WaitReason::RunSlot(runs);
        }
        Ok(())
    }

    /// How many runs of a DAG may be under way, if that many others are that were triggered before this one.
    async fn full_slots(&self, scope: &Scope, run: &RunRow) -> Result<Option<u32>, LedgerError> {
        let (Some(dag), Some(snapshot)) = (&run.dag, self.ledger.snapshot(scope).await?) else {
            return Ok(None);
        };
        let pool = snapshot.row::<PoolRow>(&[runs_pool(dag).into()], Days::None).await?;
        let Some(slots) = pool.map(|pool| pool.slots).filter(|slots| *slots != NO_LIMIT) else {
            return Ok(None);
        };
        let open = snapshot.rows::<RunRow>(&Filter { days: Days::None, key: Vec::new() }).await?;
        let is_before = |other: &&RunRow| {
            other.dag.as_ref() == Some(dag) && !other.state.is_final() && place_of(other) < place_of(run)
        };
        let before = open.iter().filter(is_before).count();
        Ok((before >= slots as usize).then_some(slots))
    }

    /// The row of a run.
    pub(super) async fn run_row(&self, scope: &Scope, run_id: &str) -> Result<RunRow, LedgerError> {
        let Some(snapshot) = self.ledger.snapshot(scope).await? else {
            return Err(self.not_shown(scope, run_id).await);
        };
        let key = [run_id.into()];
        if let Some(run) = snapshot.row::<RunRow>(&key, Days::None).await? {
            return Ok(run);
        }
        match snapshot.row::<RunRow>(&key, days_of(&snapshot, run_id)).await? {
            Some(run) => Ok(run),
            None => Err(self.not_shown(scope, run_id).await),
        }
    }

    /// The row of a task of a run.
    pub(super) async fn task_row(
        &self,
        scope: &Scope,
        run_id: &str,
        task_key: &str,
    ) -> Result<Option<TaskRow>, LedgerError> {
        let Some(snapshot) = self.ledger.snapshot(scope).await? else { return Ok(None) };
        let key = [run_id.into(), task_key.into()];
        if let Some(task) = snapshot.row::<TaskRow>(&key, Days::None).await? {
            return Ok(Some(task));
        }
        Ok(snapshot.row::<TaskRow>(&key, days_of(&snapshot, run_id)).await?)
    }

    /// Why a run is not in the tables: it waits in the outbox, or there is none.
    async fn not_shown(&self, scope: &Scope, run_id: &str) -> LedgerError {
        let waiting = outbox_id(scope, &first_events_of(run_id));
        match self.ledger.store().get_record(OUTBOX, &waiting).await {
            Ok(None) => self.unknown(scope, run_id).await,
            Ok(Some(_)) => LedgerError::NotVisible(run_id.to_owned()),
            Err(error) => error.into(),
        }
    }

    /// There is no run, or retention has removed it: the time in its id shows which.
    async fn unknown(&self, scope: &Scope, run_id: &str) -> LedgerError {
        let snapshot = self.ledger.snapshot(scope).await.ok().flatten();
        let through = snapshot.and_then(|snapshot| snapshot.manifest().expired_through.clone());
        let drawn = ulid_of(run_id).map(|id| day_of(id.time_ms()));
        match (through, drawn) {
            (Some(through), Some(drawn)) if drawn <= through => {
                LedgerError::RunRemoved { run: run_id.to_owned(), through }
            }
            _ => LedgerError::UnknownRun(run_id.to_owned()),
        }
    }

    /// The rows of a run, without explanations.
    pub(super) async fn rows_of(&self, scope: &Scope, run_id: &str) -> Result<RunDetail, LedgerError> {
        let Some(snapshot) = self.ledger.snapshot(scope).await? else {
            return Err(self.not_shown(scope, run_id).await);
        };
        let mut rows = snapshot.run(run_id, Days::None).await?;
        if rows.runs.is_empty() {
            rows = snapshot.run(run_id, days_of(&snapshot, run_id)).await?;
        }
        let Some(run) = rows.runs.pop() else { return Err(self.not_shown(scope, run_id).await) };
        Ok(RunDetail { run, tasks: rows.tasks, edges: rows.dep_satisfaction, waits: Vec::new() })
    }
}

impl RunQuery {
    fn fits(&self, run: &RunRow) -> bool {
        let has_label = |(key, value): &(String, String)| {
            labels_of(run).get(key.as_str()).is_some_and(|found| **found == **value)
        };
        self.dag.as_deref().is_none_or(|dag| run.dag.as_deref() == Some(dag))
            && (self.states.is_empty() || self.states.contains(&run.state))
            && self.since_ms.is_none_or(|since| run.triggered_at >= since)
            && self.until_ms.is_none_or(|until| run.triggered_at < until)
            && self.label.as_ref().is_none_or(has_label)
    }
}

/// Why each task that has not ended waits.
fn waits(detail: &RunDetail) -> Vec<TaskWait> {
    let mut open: BTreeMap<&str, Vec<Arc<str>>> = BTreeMap::new();
    for edge in detail.edges.iter().filter(|edge| edge.resolution.is_none()) {
        open.entry(&edge.downstream_task_key).or_default().push(Arc::clone(&edge.upstream_task_key));
    }
    let wait = |task: &TaskRow| {
        let upstream = || open.get(&*task.task_key).cloned().unwrap_or_default();
        let (reason, due_ms) = match task.state {
            state if state.is_final() => return None,
            TaskState::Planned | TaskState::Blocked if task.added_count.is_some() => {
                (WaitReason::Items, None)
            }
            TaskState::Planned | TaskState::Blocked => (WaitReason::Upstream(upstream()), None),
            TaskState::Ready if detail.run.paused => (WaitReason::Paused, None),
            TaskState::Ready if task.for_each.is_some() => (WaitReason::Items, None),
            TaskState::Ready => (WaitReason::Slot(task.pool.clone()), None),
            TaskState::Dispatched => (WaitReason::Worker, None),
            TaskState::RetryWait if detail.run.paused => (WaitReason::Paused, None),
            TaskState::RetryWait => (WaitReason::Retry, task.retry_not_before),
            _ => (WaitReason::Runs, crate::fold::lost_at(task)),
        };
        Some(TaskWait { task_key: Arc::clone(&task.task_key), reason, due_ms })
    };
    detail.tasks.iter().filter_map(wait).collect()
}

/// The days whose partition may have a run: that of the time in its id, or all.
pub(super) fn days_of(snapshot: &Snapshot, run_id: &str) -> Days {
    match ulid_of(run_id) {
        // A run is triggered a moment after its id was drawn.
        Some(id) => Days::Range(day_of(id.time_ms()), day_of(id.time_ms().saturating_add(DAY_MS))),
        None if snapshot.days().next().is_some() => Days::All,
        None => Days::None,
    }
}

/// The ULID in the id of a run that has no key.
fn ulid_of(run_id: &str) -> Option<Ulid> {
    run_id.strip_prefix("run_")?.to_uppercase().parse().ok()
}

fn place_of(run: &RunRow) -> Place {
    (run.triggered_at, Arc::clone(&run.run_id))
}

fn cursor((at, run_id): &Place) -> String {
    format!("{at}:{run_id}")
}

fn read_cursor(text: &str) -> Result<Place, LedgerError> {
    let read = || Some((text.split_once(':')?.0.parse().ok()?, text.split_once(':')?.1.into()));
    read().ok_or_else(|| LedgerError::invalid("after", "it is no cursor; pass the one of the page before"))
}

/// The first moment of a day, in Unix milliseconds.
fn begin_of(day: &str) -> i64 {
    format!("{day}T00:00:00Z").parse::<Timestamp>().map_or(i64::MIN / 2, Timestamp::as_millisecond)
}
