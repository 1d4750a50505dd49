//! What folding an event costs: `cargo run --release -p segno-ledger --example fold_cost`.
//!
//! A closed loop of runs with tasks in layers and the four events of each task that succeeds; per
//! event: decoding, folding, taking changes, and the decisions of two controllers. Runs that ended
//! leave the state, as they do behind a compactor, so the lines of the output differ only if what
//! has left costs something.

use std::sync::Arc;

use jiff::Timestamp;
use segno::clock::{Clock, SystemClock};
use segno_ledger::controllers::{Dispatcher, Freshness, OrchestrationController, ReadyDispatch};
use segno_ledger::event::{
    Attempt, Envelope, EventData, Header, Outcome, PlanCreated, PlannedTask, RunTriggered, TaskFinished,
    TaskStarted, Trigger,
};
use segno_ledger::fold::{Scope, State, fold};
use segno_ledger::ids::Ulid;

/// Tasks of a run.
const TASKS: usize = 100;
/// Tasks of a layer; each depends on one task of the layer before.
const WIDTH: usize = 10;
/// Runs that are under way at a time.
const RUNS: usize = 100;
/// Events of a batch.
const BATCH: usize = 400;

struct Loop {
    state: State,
    header: Header,
    sequence: u128,
    queue: Vec<EventData>,
    begun: usize,
    finished_tasks: usize,
    cost: Cost,
}

/// Nanoseconds by what they were spent on, and events.
#[derive(Clone, Copy, Default)]
struct Cost {
    events: u64,
    decode_ns: u64,
    fold_ns: u64,
    changes_ns: u64,
    decide_ns: u64,
}

/// Processor time of this thread, so that a busy machine does not count; elapsed time where the
/// system does not say.
fn now_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let on_cpu = stat.and_then(|stat| stat.split(' ').next()?.parse().ok());
    on_cpu.unwrap_or_else(|| SystemClock.monotonic_ns())
}

/// Runs a part, and adds what it took.
fn timed<T>(spent_ns: &mut u64, part: impl FnOnce() -> T) -> T {
    let started = now_ns();
    let result = part();
    *spent_ns += now_ns() - started;
    result
}

impl Loop {
    fn begin_run(&mut self) {
        let run_id: Arc<str> = format!("01JRUN{:020}", self.begun).into();
        self.begun += 1;
        let tasks = (0..TASKS).map(|number| {
            let mut task = PlannedTask::new(format!("task_{number:03}"));
            if number >= WIDTH {
                task.depends_on = vec![format!("task_{:03}", number - WIDTH).into()];
            }
            task
        });
        let tasks = tasks.collect();
        let triggered = RunTriggered {
            run_id: Arc::clone(&run_id),
            plan_id: "bench@1".into(),
            trigger: Trigger::Manual { user_id: "bench".into() },
            root_assets: Vec::new(),
            run_key: None,
            labels: Default::default(),
            code_version: None,
            dag: None,
            params: None,
            parent_run_id: None,
        };
        self.queue.push(triggered.into());
        self.queue.push(PlanCreated { run_id, plan_id: "bench@1".into(), tasks }.into());
    }

    /// Folds what waits, and lets controllers and workers answer.
    fn turn(&mut self) {
        let waiting = std::mem::take(&mut self.queue);
        let envelopes: Vec<Envelope> = waiting
            .into_iter()
            .map(|event| {
                self.sequence += 1;
                let id = Ulid::at(1_705_340_000_000 + self.sequence as u64 / 8, self.sequence);
                Envelope::new(&self.header, id, event)
            })
            .collect();
        for batch in envelopes.chunks(BATCH) {
            let bytes = Envelope::encode_batch(batch);
            let decoded = timed(&mut self.cost.decode_ns, || Envelope::decode_batch(&bytes));
            let decoded = decoded.expect("it was just encoded");
            let report = timed(&mut self.cost.fold_ns, || fold(&mut self.state, &decoded));
            assert_eq!(report.applied, decoded.len());
            self.cost.events += decoded.len() as u64;
        }
        timed(&mut self.cost.changes_ns, || drop(self.state.take_changes()));
        let now = 1_705_340_000_000 + self.sequence as i64 / 8;
        let fresh = Freshness::current(now);
        let state = &self.state;
        let decided = timed(&mut self.cost.decide_ns, || {
            let mut execution = ReadyDispatch.execute(ReadyDispatch.reconcile(state, now, fresh));
            execution.outside = Dispatcher.execute(Dispatcher.reconcile(state, now, fresh)).outside;
            execution
        });
        for outside in decided.outside {
            let segno_ledger::controllers::Outside::Enqueue(enqueue) = outside else { continue };
            self.queue.push(enqueue.accepted("queue").into());
            let dispatch = enqueue.dispatch;
            let attempt = Attempt {
                run_id: dispatch.run_id,
                task_key: dispatch.task_key,
                attempt: dispatch.attempt,
                attempt_id: dispatch.attempt_id,
            };
            self.queue.push(TaskStarted { attempt: attempt.clone(), worker_id: "w".into() }.into());
            self.queue.push(succeeded(attempt).into());
            self.finished_tasks += 1;
        }
        self.queue.extend(decided.events.into_iter().flatten());
        let ended: Vec<Arc<str>> = self.state.finished_runs().map(|(_, run_id)| Arc::clone(run_id)).collect();
        for run_id in ended {
            self.state.retire_run(&run_id);
            self.begin_run();
        }
    }
}

fn succeeded(attempt: Attempt) -> TaskFinished {
    TaskFinished {
        attempt,
        worker_id: "w".into(),
        outcome: Outcome::Succeeded,
        materialization_id: None,
        error_message: None,
        output: None,
        error: None,
        metrics: None,
        cancelled_during_phase: None,
        partial_progress_json: None,
        asset_key: None,
        partition_key: None,
        code_version: None,
    }
}

fn main() {
    let scope = Scope::new("acme", "default");
    let header = Header {
        tenant_id: Arc::clone(&scope.tenant_id),
        workspace_id: Arc::clone(&scope.workspace_id),
        timestamp: Timestamp::UNIX_EPOCH,
    };
    let mut bench = Loop {
        state: State::new(scope),
        header,
        sequence: 0,
        queue: Vec::new(),
        begun: 0,
        finished_tasks: 0,
        cost: Cost::default(),
    };
    for _ in 0..RUNS {
        bench.begin_run();
    }
    println!("finished tasks   decode   fold   changes   decide   (ns per event)");
    for goal in [100_000, 500_000, 1_000_000] {
        while bench.finished_tasks < goal {
            bench.turn();
        }
        let Cost { events, decode_ns, fold_ns, changes_ns, decide_ns } = std::mem::take(&mut bench.cost);
        println!(
            "{:>14}   {:>6}   {:>4}   {:>7}   {:>6}",
            bench.finished_tasks,
            decode_ns / events,
            fold_ns / events,
            changes_ns / events,
            decide_ns / events,
        );
    }
}
