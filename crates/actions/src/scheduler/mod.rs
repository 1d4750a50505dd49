//! The loop that fires what is due.
//!
//! | file | what |
//! |---|---|
//! | `lane.rs` | waiting for the records of one kind, and handing them out; other rooms register theirs |
//! | `backlog.rs` | what is postponed because too many inputs of its tenant wait to be checked |
//! | `fire_action.rs` | an action whose time has come |
//! | `check_action.rs` | an action that runs and has not told how it ended |
//! | `fire_recurring.rs` | a recurring action that somebody has to look at |
//! | `fold_ends.rs` | ends of runs, taken into their recurring action |
//! | `sweep.rs` | a look at all recurring actions, now and then |
//!
//! Every node runs one. They need no leader and no claims: firing is one commit that says that the action runs, advances
//! what recurs, and starts the call, on condition that the record is as it was read. Who comes second changes nothing and
//! moves on; who dies before the commit has done nothing, and who dies after it has done all.

mod backlog;
mod check_action;
mod fire_action;
mod fire_recurring;
mod fold_ends;
mod lane;
mod sweep;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use jiff::Timestamp;
use segno::Client;
use segno::clock::{Clock, SystemClock};
use segno::ids::{IdSource, SystemIds};
use segno::store::{RecordBatch, Store};

use crate::action::{ACTION_KIND, ACTION_RUN_KIND, ActionDb, ActionError, StoredAction};
use crate::ended::Ended;
use crate::functions::{Functions, Scope};
use crate::options::ActionOptions;
use crate::recurring::RECURRING_KIND;
use crate::recurring::run_end::RUN_END_KIND;
use crate::schedule::Zones;
use crate::telemetry::{self, CurrentTrace};
use lane::LaneLimits;

pub use lane::{DueHandler, Handled, Lane, LaneError, MAX_LANE_PAGE};

/// 2^64 over the golden ratio: multiples of it spread evenly, however many there are.
const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;

/// Record kinds of the lanes of this crate, with the names that metrics have for them.
const OWN_LANES: [(&str, &str); 4] = [
    (ACTION_KIND, "action"),
    (ACTION_RUN_KIND, "check"),
    (RECURRING_KIND, "recurring"),
    (RUN_END_KIND, "recurring_end"),
];

/// Parts of a scheduler.
pub struct SchedulerBuilder {
    scheduler: Scheduler,
    ids: Arc<dyn IdSource>,
}

impl SchedulerBuilder {
    /// Another clock, for measuring and for pauses. What is due is for the store's clock to say.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.scheduler.clock = clock;
        self
    }

    /// Another source of ids.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Another zone database than the newest one of this machine.
    #[must_use]
    pub fn zones(mut self, zones: Arc<Zones>) -> Self {
        self.scheduler.zones = zones;
        self
    }

    /// Settings.
    #[must_use]
    pub fn options(mut self, options: ActionOptions) -> Self {
        self.scheduler.options = options;
        self
    }

    /// What tells the W3C traceparent of the current span. Each call that is fired begins a trace of its own then.
    #[must_use]
    pub fn current_trace(mut self, current: Option<CurrentTrace>) -> Self {
        self.scheduler.current_trace = current;
        self
    }

    /// Has the due records of another room handled by the loop of this node.
    #[must_use]
    pub fn lane(mut self, lane: Lane) -> Self {
        self.scheduler.lanes.push(lane);
        self
    }

    /// Finishes the scheduler.
    ///
    /// # Errors
    /// `invalid-action` when two lanes have the same record kind or name.
    pub fn build(mut self) -> Result<Scheduler, ActionError> {
        let rooms = self.scheduler.lanes.iter().map(|lane| (lane.limits.kind, lane.limits.name));
        let (mut kinds, mut names) = (BTreeSet::new(), BTreeSet::new());
        for (kind, name) in OWN_LANES.into_iter().chain(rooms) {
            if !kinds.insert(kind) || !names.insert(name) {
                let problem = format!("{name:?} of records {kind:?} is registered twice; register it once");
                return Err(ActionError::invalid("lane", problem));
            }
        }
        self.scheduler.places = AtomicU64::new(self.ids.new_seed());
        self.scheduler.client = Client::builder(self.scheduler.store.clone()).ids(self.ids).build();
        Ok(self.scheduler)
    }
}

/// Fires what is due.
pub struct Scheduler {
    store: Arc<dyn Store>,
    client: Client,
    functions: Functions,
    clock: Arc<dyn Clock>,
    zones: Arc<Zones>,
    options: ActionOptions,
    current_trace: Option<CurrentTrace>,
    lanes: Vec<Lane>,
    /// Where in pages of due records this node begins.
    places: AtomicU64,
}

impl Scheduler {
    /// Prepares a scheduler on a store; it calls these functions.
    pub fn builder(store: Arc<dyn Store>, functions: Functions) -> SchedulerBuilder {
        let scheduler = Scheduler {
            client: Client::new(store.clone()),
            store,
            functions: functions.for_scheduler(),
            clock: SystemClock::shared(),
            zones: Arc::new(Zones::newest()),
            options: ActionOptions::default(),
            current_trace: None,
            lanes: Vec::new(),
            places: AtomicU64::default(),
        };
        SchedulerBuilder { scheduler, ids: SystemIds::shared() }
    }

    /// Runs until told to stop. Stopping at any moment is safe: what was not committed was not done.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let work = async {
            let [actions, runs, recurring, ends] = OWN_LANES.map(|(kind, name)| LaneLimits::new(kind, name));
            let rooms: FuturesUnordered<_> = self.lanes.iter().map(|lane| self.watch_room(lane)).collect();
            tokio::join!(
                self.watch(actions, |record, now_ms| self.fire_action(record, now_ms)),
                self.watch(runs, |record, now_ms| self.check_action(record, now_ms)),
                async {
                    if self.options.fires_recurring {
                        let fire = |record, now_ms| self.fire_recurring(record, now_ms);
                        tokio::join!(self.watch(recurring, fire), self.sweep_for_ever());
                    }
                },
                // Runs end whether or not this node fires: they may have been made by hand.
                self.watch(ends.one_per_folder(), |record, now_ms| self.fold_ends(record, now_ms)),
                rooms.collect::<()>(),
            )
        };
        tokio::select! {
            biased;
            () = stop => {}
            _ = work => {}
        }
    }

    async fn watch_room(&self, lane: &Lane) {
        self.watch(lane.limits, |record, now_ms| lane.handler.handle(record, now_ms)).await;
    }

    /// Where this node begins in a page of so many due records. Nodes that begin at different places do not race for each
    /// record, and with another place for each page two nodes do not stay side by side.
    fn place_in(&self, page: usize) -> usize {
        let place = self.places.fetch_add(GOLDEN_RATIO, Ordering::Relaxed);
        usize::try_from((u128::from(place) * page as u128) >> 64).unwrap_or_default()
    }

    /// The actions of a scope.
    fn actions(&self, scope: &Scope) -> ActionDb {
        ActionDb::new(self.store.clone())
            .scope(scope.clone())
            .clock(self.clock.clone())
            .keep_finished(self.options.finished())
    }

    /// Writes an action over the version that was read.
    async fn replace(&self, stored: &StoredAction, batch: RecordBatch) -> Result<Handled, ActionError> {
        Ok(handled(self.actions(&stored.scope).replace(stored, batch).await?))
    }

    /// Ends an action of the version that was read.
    async fn finish(
        &self,
        stored: StoredAction,
        ended: Ended,
        now: Timestamp,
    ) -> Result<Handled, ActionError> {
        let (actions, status) = (self.actions(&stored.scope), ended.into_status());
        let outcome = status.name();
        let finished = handled(actions.finish(stored, status, now, RecordBatch::default()).await?);
        if finished == Handled::Done {
            metrics::counter!(telemetry::ACTIONS_ENDED, "outcome" => outcome).increment(1);
        }
        Ok(finished)
    }
}

fn handled(committed: bool) -> Handled {
    if committed { Handled::Done } else { Handled::Lost }
}

/// How late it is for something that was due at a time, in seconds.
fn lateness_seconds(due_ms: u64, now_ms: u64) -> f64 {
    std::time::Duration::from_millis(now_ms.saturating_sub(due_ms)).as_secs_f64()
}
