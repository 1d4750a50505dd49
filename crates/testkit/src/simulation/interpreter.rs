//! The orchestration that does what a program says, and its activity.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use segno::clock::{self, Clock};
use segno::{
    Activity, ActivityContext, Context, Failure, Mailbox, Orchestration, Registry, Retry, Signal, join_all,
    race,
};
use serde::{Deserialize, Serialize};

use super::program::{Call, Ending, Loser, Program, Step, Trouble};

/// Interprets a program.
pub const PROGRAM: Orchestration<State, Vec<i64>> = Orchestration::new("program");
/// Waits for ever.
const WAITER: Orchestration<(), ()> = Orchestration::new("waiter");
/// Does what a call says.
const CALL: Activity<Call, i64> = Activity::new("call");
/// Hangs until it is cancelled.
const HANG: Activity<i64, i64> = Activity::new("hang");
/// What programs read their mailbox steps from.
pub const INBOX: Mailbox<i64> = Mailbox::new("inbox");
/// Nobody ever sends it.
const NEVER: Signal<i64> = Signal::new("never");

/// The status that asks the outside to cancel.
pub const CANCEL_ME: &str = "cancel me";
/// Longer than any winner of a race takes.
const FOR_AGES: Duration = Duration::from_secs(300 * 24 * 60 * 60);

/// The signal of a step.
pub fn signal(key: i64) -> Signal<i64> {
    Signal::named(format!("signal-{key}"))
}

/// The id of a child.
pub fn child_id(parent: &str, key: i64) -> String {
    format!("{parent}/{key}")
}

/// Input of an execution: the program and how far it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    /// The whole program.
    pub program: Program,
    /// Which of its executions this is, from 0.
    pub execution: usize,
    /// Results so far.
    pub results: Vec<i64>,
}

impl State {
    /// The beginning of a program.
    pub fn new(program: Program) -> Self {
        State { program, execution: 0, results: Vec::new() }
    }
}

/// What activities and inline steps did to the world outside, by the key of their call.
#[derive(Debug, Clone, Default)]
pub struct Effects {
    by_key: Arc<Mutex<BTreeMap<i64, Effect>>>,
}

/// What one call did.
#[derive(Debug, Clone, Default)]
pub struct Effect {
    /// How often it was begun.
    pub begun: u32,
    /// How often it was done to the end.
    pub done: u32,
    /// Idempotency keys that it was done under.
    pub idempotency_keys: BTreeSet<String>,
}

impl Effects {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, Effect>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been done so far.
    pub fn all(&self) -> BTreeMap<i64, Effect> {
        self.lock().clone()
    }

    /// Counts an attempt. The world outside remembers it, which the closure of a step cannot: a replay starts with a
    /// fresh one and does not call it for what is recorded.
    fn begin(&self, key: i64) -> u32 {
        let mut effects = self.lock();
        let effect = effects.entry(key).or_default();
        effect.begun += 1;
        effect.begun
    }

    fn apply(&self, key: i64, idempotency_key: Option<&str>, done: u32) {
        let mut effects = self.lock();
        let effect = effects.entry(key).or_default();
        effect.done += done;
        effect.idempotency_keys.extend(idempotency_key.map(str::to_owned));
    }
}

/// The code of a simulated world.
///
/// # Panics
/// Never: the names are fixed and good.
pub fn registry(clock: &Arc<dyn Clock>, effects: &Effects) -> Registry {
    let (steps, activities, clock) = (effects.clone(), effects.clone(), clock.clone());
    let step_clock = clock.clone();
    Registry::builder()
        .orchestration(PROGRAM, move |ctx, state| {
            let world = World { ctx, effects: steps.clone(), clock: step_clock.clone() };
            async move { world.execute(state).await }
        })
        .orchestration(WAITER, |ctx: Context, ()| async move { ctx.signal(NEVER).await.map(|_| ()) })
        .activity(CALL, move |ctx, call| {
            let (effects, clock) = (activities.clone(), clock.clone());
            async move { attempt(&ctx, &call, &effects, &*clock).await }
        })
        .activity(HANG, |ctx: ActivityContext, key| async move {
            ctx.cancelled().await;
            Ok(key)
        })
        .build()
        .expect("the names are fixed and good")
}

async fn attempt(
    ctx: &ActivityContext,
    call: &Call,
    effects: &Effects,
    clock: &dyn Clock,
) -> Result<i64, Failure> {
    effects.apply(call.key, Some(ctx.idempotency_key()), 0);
    match call.trouble {
        Trouble::Fails(times) if ctx.attempt() <= times => return Err(Failure::application("as scripted")),
        Trouble::HangsOnce if ctx.attempt() == 1 => std::future::pending().await,
        Trouble::Hangs => std::future::pending().await,
        _ => {}
    }
    if call.takes_ms > 0 {
        clock::sleep(clock, Duration::from_millis(call.takes_ms)).await;
    }
    effects.apply(call.key, None, 1);
    Ok(call.key)
}

#[derive(Clone)]
struct World {
    ctx: Context,
    effects: Effects,
    clock: Arc<dyn Clock>,
}

type Results = Pin<Box<dyn Future<Output = Result<Vec<i64>, Failure>> + Send>>;

impl World {
    async fn execute(self, mut state: State) -> Result<Vec<i64>, Failure> {
        let last = state.execution + 1 == state.program.executions.len();
        let steps = state.program.executions[state.execution].clone();
        state.results.extend(self.clone().sequence(steps).await?);
        if !last {
            state.execution += 1;
            return self.ctx.continue_as_new(state).await;
        }
        match state.program.ending {
            Ending::Complete => Ok(state.results),
            Ending::Fail => Err(Failure::application("the program says so")),
            Ending::Cancelled(key) => {
                self.ctx.set_status(&CANCEL_ME)?;
                let ended = self.ctx.signal(NEVER).await;
                let cleanup = World { ctx: self.ctx.shielded(), ..self };
                let call = Call { key, attempts: 3, trouble: Trouble::Fails(1), takes_ms: 5, session: None };
                cleanup.ctx.sleep(Duration::from_millis(10)).await?;
                cleanup.sequence(vec![Step::Activity(call.clone())]).await?;
                ended.map(|_| state.results)
            }
        }
    }

    fn sequence(self, steps: Vec<Step>) -> Results {
        Box::pin(async move {
            let mut results = Vec::new();
            for step in steps {
                results.extend(self.clone().step(step).await?);
            }
            Ok(results)
        })
    }

    async fn step(self, step: Step) -> Result<Vec<i64>, Failure> {
        let ctx = &self.ctx;
        match step {
            Step::Activity(call) => self.activity(call).await,
            Step::Inline(call) => self.inline(call).await,
            Step::Sleep(ms) => ctx.sleep(Duration::from_millis(ms)).await.map(|()| Vec::new()),
            Step::Signal(key) => ctx.signal(signal(key)).await.map(|value| vec![value]),
            Step::Mailbox => ctx.mailbox(INBOX).receive().await.map(|value| vec![value]),
            Step::Status(key) => {
                ctx.set_status(&key)?;
                ctx.set_label("step", key.to_string())?;
                Ok(Vec::new())
            }
            Step::Child { key, program } => {
                let id = child_id(ctx.instance_id(), key);
                or_cancelled(ctx, key, ctx.child(PROGRAM, State::new(*program)).id(id).await)
            }
            Step::Detached { key, program } => {
                let id = child_id(ctx.instance_id(), key);
                ctx.start_detached(PROGRAM, State::new(*program)).id(id).await.map(|_| Vec::new())
            }
            Step::Parallel(branches) => {
                let branches = branches.into_iter().map(|steps| self.clone().sequence(steps));
                let ended: Result<Vec<Vec<i64>>, Failure> = join_all(branches).await.into_iter().collect();
                Ok(ended?.concat())
            }
            Step::Race(winner, loser) => self.race(winner, loser).await,
        }
    }

    async fn activity(&self, call: Call) -> Result<Vec<i64>, Failure> {
        let (key, trouble) = (call.key, call.trouble);
        let retry = Retry::fixed(call.attempts, Duration::from_millis(200));
        let session = call.session;
        let mut scheduled = self.ctx.activity(CALL, call).retry(retry);
        if trouble == Trouble::HangsOnce {
            scheduled = scheduled.timeout(Duration::from_secs(2));
        }
        if trouble == Trouble::Hangs {
            scheduled = scheduled.deadline(Duration::from_secs(7));
        }
        if let Some(session) = session {
            scheduled = scheduled.session(format!("session-{session}"));
        }
        or_cancelled(&self.ctx, key, scheduled.await.map(|value| vec![value]))
    }

    async fn inline(&self, call: Call) -> Result<Vec<i64>, Failure> {
        let (effects, clock, key) = (self.effects.clone(), self.clock.clone(), call.key);
        let retry = Retry::fixed(call.attempts, Duration::from_millis(200));
        let step = self.ctx.run("inline", move || {
            let (effects, clock, call) = (effects.clone(), clock.clone(), call.clone());
            async move {
                // An attempt that was cut off by a crash is made again, so one that is to fail for good always fails.
                let begun = effects.begin(call.key);
                if matches!(call.trouble, Trouble::Fails(times) if times >= call.attempts || begun <= times) {
                    return Err(Failure::application("as scripted"));
                }
                if call.takes_ms > 0 {
                    clock::sleep(&*clock, Duration::from_millis(call.takes_ms)).await;
                }
                effects.apply(call.key, None, 1);
                Ok(call.key)
            }
        });
        or_cancelled(&self.ctx, key, step.retry(retry).await.map(|value| vec![value]))
    }

    async fn race(&self, winner: Vec<Step>, loser: Loser) -> Result<Vec<i64>, Failure> {
        let ctx = &self.ctx;
        let winner = self.clone().sequence(winner);
        race! {
            results = winner => results,
            lost = self.lose(loser) => lost.and_then(|()| Err(Failure::application(format!("{} lost a race", ctx.instance_id())))),
        }
    }

    async fn lose(&self, loser: Loser) -> Result<(), Failure> {
        let ctx = &self.ctx;
        match loser {
            Loser::Timer => ctx.sleep(FOR_AGES).await,
            Loser::Signal => ctx.signal(NEVER).await.map(|_| ()),
            Loser::Activity(key) => ctx.activity(HANG, key).await.map(|_| ()),
            Loser::Child(key) => ctx.child(WAITER, ()).id(child_id(ctx.instance_id(), key)).await,
        }
    }
}

/// A failure is a result of its own, except that a cancelled orchestration stops.
fn or_cancelled(ctx: &Context, key: i64, result: Result<Vec<i64>, Failure>) -> Result<Vec<i64>, Failure> {
    match result {
        Err(failure) if failure.is_cancelled() && ctx.is_cancelled() => Err(failure),
        Err(_) => Ok(vec![-key]),
        ok => ok,
    }
}
