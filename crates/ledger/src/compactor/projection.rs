//! What the compactor folds into: the tables of a scope in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use segno_actions::functions::Scope;

use crate::event::Envelope;
use crate::fold::{self, ChangedRun, FailedRun, State};
use crate::ids::Ulid;
use crate::tables::{Changes, Rows};

/// The active rows of a scope, folded from its events. Everything here is pure.
pub trait Projection: Send + Sync + Sized + 'static {
    /// The state that has these rows, after the event at the watermark.
    fn load(scope: &Scope, rows: Rows, watermark: Option<Ulid>) -> Self;
    /// Applies events, sorted by their ids. The result is the runs of events that arrived late, at
    /// or below the watermark: they were not applied, and each of these runs has to be rebuilt.
    fn fold(&mut self, events: &[Envelope]) -> BTreeSet<Arc<str>>;
    /// Makes the rows of a run anew from all its events, sorted by their ids: one of them arrived
    /// late.
    fn rebuild_run(&mut self, run_id: &str, events: &[Envelope]);
    /// The runs that have failed since changes were taken, and those with tasks that have.
    fn failed_runs(&self) -> Vec<FailedRun>;
    /// The runs that changed since changes were taken.
    fn changed_runs(&self) -> Vec<ChangedRun>;
    /// What changed since the last call.
    fn take_changes(&mut self) -> Changes;
    /// Runs that left the active rows and that these events may change: they have to be restored
    /// first.
    fn absent_runs(&self, events: &[Envelope]) -> BTreeSet<Arc<str>>;
    /// Whether a run is among the active ones.
    fn has_run(&self, run_id: &str) -> bool;
    /// Runs that ended, the first ones first.
    fn finished_runs(&self) -> Vec<Arc<str>>;
    /// How many runs ended.
    fn finished_count(&self) -> usize;
    /// Takes a run out that ended; nothing for one that has not. Its rows that were changes once
    /// are tombstones of the next changes.
    fn retire_run(&mut self, run_id: &str) -> Option<Rows>;
    /// Puts a run back that was taken out. It is not a change.
    fn restore_run(&mut self, rows: Rows);
}

impl Projection for State {
    fn load(scope: &Scope, rows: Rows, watermark: Option<Ulid>) -> Self {
        let scope = fold::Scope::new(scope.tenant.as_str(), scope.namespace.as_str());
        State::load(scope, rows, watermark)
    }

    fn fold(&mut self, events: &[Envelope]) -> BTreeSet<Arc<str>> {
        fold::fold(self, events).stragglers
    }

    fn rebuild_run(&mut self, run_id: &str, events: &[Envelope]) {
        fold::rebuild_run(self, run_id, events);
    }

    fn failed_runs(&self) -> Vec<FailedRun> {
        State::failed_runs(self)
    }

    fn changed_runs(&self) -> Vec<ChangedRun> {
        State::changed_runs(self)
    }

    fn take_changes(&mut self) -> Changes {
        State::take_changes(self)
    }

    fn absent_runs(&self, events: &[Envelope]) -> BTreeSet<Arc<str>> {
        State::absent_runs(self, events)
    }

    fn has_run(&self, run_id: &str) -> bool {
        self.run(run_id).is_some()
    }

    fn finished_runs(&self) -> Vec<Arc<str>> {
        State::finished_runs(self).map(|(_, run_id)| Arc::clone(run_id)).collect()
    }

    fn finished_count(&self) -> usize {
        self.finished_run_count()
    }

    fn retire_run(&mut self, run_id: &str) -> Option<Rows> {
        State::retire_run(self, run_id)
    }

    fn restore_run(&mut self, rows: Rows) {
        State::restore(self, rows);
    }
}
