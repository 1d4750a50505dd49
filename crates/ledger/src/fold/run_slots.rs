//! How many runs of a DAG are under way at a time. A run holds a slot of its DAG from its first attempt to its end; the slots
//! that are free go to the runs that were triggered first. All of it follows from rows, so any split of a log, and a state that
//! was loaded, admit the same runs.
//!
//! The slots of a DAG are a pool with a reserved name: names that users choose have no colon.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::live_run::LiveRun;
use super::shared::{Name, Shared};
use super::state::State;

/// Slots of a pool that limits nothing.
pub const NO_LIMIT: u32 = u32::MAX;

/// The pool that holds the slots of runs of a DAG.
pub fn runs_pool(dag: &str) -> String {
    format!("runs:{dag}")
}

/// The pool that lets backfills of a DAG start runs, unless it has no slots.
pub fn backfills_pool(dag: &str) -> String {
    format!("backfills:{dag}")
}

/// The DAG of a pool that holds the slots of its runs.
pub(super) fn dag_of_pool(pool: &str) -> Option<&str> {
    pool.strip_prefix("runs:")
}

/// What a run has of the slots of its DAG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Slot {
    /// It has no DAG, or has ended.
    #[default]
    None,
    /// It has attempts, and holds a slot.
    Begun,
    /// It has no attempt yet; it was triggered at this time.
    Unbegun(i64),
}

/// The open runs of a DAG.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenRuns {
    begun: u32,
    /// In the order in which they are admitted.
    unbegun: BTreeSet<(i64, Name)>,
    /// Those of them that are kept waiting.
    held: HashSet<Name>,
}

impl LiveRun {
    /// What the run has of the slots of its DAG now.
    fn slot_now(&mut self) -> Slot {
        let Some(row) = self.row.as_ref().filter(|row| row.dag.is_some() && !row.state.is_final()) else {
            return Slot::None;
        };
        self.has_begun = self.has_begun || self.tasks.iter().any(|task| task.row.attempt > 0);
        if self.has_begun { Slot::Begun } else { Slot::Unbegun(row.triggered_at) }
    }
}

impl Shared {
    /// A run may hold another slot than before. Returns its DAG if it does.
    pub(super) fn follow_slot(&mut self, run: &mut LiveRun) -> Option<Name> {
        let now = run.slot_now();
        self.move_slot(run, now)
    }

    /// A run leaves the state.
    pub(super) fn leave_slot(&mut self, run: &mut LiveRun) -> Option<Name> {
        self.move_slot(run, Slot::None)
    }

    fn move_slot(&mut self, run: &mut LiveRun, to: Slot) -> Option<Name> {
        let from = std::mem::replace(&mut run.slot, to);
        if from == to {
            return None;
        }
        let dag = run.row.as_ref()?.dag.clone()?;
        let runs = self.open_runs.entry(Arc::clone(&dag)).or_default();
        match from {
            Slot::None => {}
            Slot::Begun => runs.begun -= 1,
            Slot::Unbegun(at) => {
                runs.unbegun.remove(&(at, Arc::clone(&run.run_id)));
            }
        }
        match to {
            Slot::None => {}
            Slot::Begun => runs.begun += 1,
            Slot::Unbegun(at) => {
                runs.unbegun.insert((at, Arc::clone(&run.run_id)));
            }
        }
        if !matches!(to, Slot::Unbegun(_)) {
            runs.held.remove(&run.run_id);
            if std::mem::take(&mut run.is_held) {
                run.move_all();
            }
        }
        if runs.begun == 0 && runs.unbegun.is_empty() {
            self.open_runs.remove(&dag);
        }
        Some(dag)
    }

    /// Which runs of a DAG are held otherwise than before.
    fn readmit(&mut self, dag: &Name) -> Vec<Name> {
        let slots = self.pools.get(runs_pool(dag).as_str()).map_or(NO_LIMIT, |row| row.slots);
        let Some(runs) = self.open_runs.get_mut(dag) else { return Vec::new() };
        if slots == NO_LIMIT && runs.held.is_empty() {
            return Vec::new();
        }
        let free = slots.saturating_sub(runs.begun) as usize;
        let held: HashSet<Name> =
            runs.unbegun.iter().skip(free).map(|(_, run_id)| Arc::clone(run_id)).collect();
        let changed = held.symmetric_difference(&runs.held).cloned().collect();
        runs.held = held;
        changed
    }
}

impl State {
    /// Gives the free slots of a DAG to its runs.
    pub(super) fn admit_runs(&mut self, dag: &Name) {
        for run_id in self.shared.readmit(dag) {
            let Some(run) = self.runs.get_mut(&run_id) else { continue };
            run.is_held = !run.is_held;
            run.move_all();
            run.settle_places(&mut self.shared);
        }
    }

    /// Whether a run waits for other runs of its DAG to end.
    pub fn is_held(&self, run_id: &str) -> bool {
        self.runs.get(run_id).is_some_and(|run| run.is_held)
    }
}
