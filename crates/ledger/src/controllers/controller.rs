//! The trait of controllers: the seed's `read_state → reconcile → execute`, with a pure middle.

use super::action::{Action, Execution, Report};
use super::freshness::Freshness;
use crate::fold::State;

/// The tables that a manifest references, decoded, and how current they are. Controllers have
/// nothing else: a cached and a newly read snapshot of one manifest decide alike.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The decoded tables.
    pub state: &'a State,
    /// How current they are.
    pub freshness: Freshness,
}

/// A controller of the orchestration domain.
pub trait OrchestrationController {
    /// Its name, as reports and metrics have it.
    fn name(&self) -> &'static str;

    /// The lag up to which it acts, in milliseconds; none if every action is right at any lag.
    fn lag_limit_ms(&self) -> Option<i64>;

    /// The state that it decides from: what the manifest references, and never the log.
    fn read_state<'a>(&self, snapshot: &Snapshot<'a>) -> &'a State {
        snapshot.state
    }

    /// What has to be done. It is pure: the same state, time and freshness give the same actions.
    fn reconcile(&self, state: &State, now: i64, freshness: Freshness) -> Vec<Action>;

    /// Sorts actions by what has to be done about them.
    fn execute(&self, actions: Vec<Action>) -> Execution {
        let mut execution = Execution::default();
        for action in actions {
            match action {
                Action::Append(events) => execution.events.push(events),
                Action::Outside(outside) => execution.outside.push(outside),
                Action::Report(report) => execution.reports.push(report),
            }
        }
        execution
    }

    /// All three steps, behind the lag guard.
    fn run(&self, snapshot: &Snapshot<'_>, now: i64) -> Execution {
        let freshness = snapshot.freshness;
        if self.lag_limit_ms().is_some_and(|limit_ms| !freshness.allows_intents(now, limit_ms)) {
            let lag_ms = freshness.lag_ms(now);
            return self.execute(vec![Action::Report(Report::Stale { controller: self.name(), lag_ms })]);
        }
        let state = self.read_state(snapshot);
        self.execute(self.reconcile(state, now, freshness))
    }
}
