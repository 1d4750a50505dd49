//! A process with a node and a scheduler dies at each of its commits, before it and after it. Another one takes over, and
//! every occurrence is fired once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::store::{ListRecords, Store};
use segno::{Client, Payload, Runtime};
use segno_actions::action::{Action, ActionDb, ActionTrigger, OnRestart};
use segno_actions::functions::{Functions, HumanDuration, Scope};
use segno_actions::recurring::{Decision, NewRecurringAction, RecurringActionTemplate, RecurringActions};
use segno_actions::schedule::{ScheduleSpec, Zones};
use segno_actions::scheduler::Scheduler;
use segno_actions::{Listed, OrchestrationName};
use segno_testkit::clock::VirtualClock;
use segno_testkit::faults::{self, Fault, FaultStore};
use segno_testkit::seeded::SeededIds;
use serde_json::json;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::support::{Calls, START_MS, functions, registry};

/// A node and a scheduler on one store.
struct Process {
    functions: Functions,
    _runtime: Runtime,
    scheduler: JoinHandle<()>,
}

impl Process {
    async fn start(store: Arc<dyn Store>, clock: Arc<VirtualClock>, calls: &Calls) -> Process {
        let functions = functions(store.clone(), clock.clone(), calls);
        let registry = registry(&functions);
        let builder = Runtime::builder(store.clone()).registry(registry).clock(clock.clone());
        let runtime = builder.ids(SeededIds::shared(1)).start().await.unwrap();
        let scheduler = Scheduler::builder(store, functions.clone())
            .clock(clock)
            .ids(SeededIds::shared(2))
            .zones(Arc::new(Zones::bundled()))
            .build()
            .unwrap();
        let scheduler = tokio::spawn(scheduler.run(std::future::pending()));
        Process { functions, _runtime: runtime, scheduler }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.scheduler.abort();
    }
}

/// What a run came to: how each occurrence and action ended, and each instance there is.
#[derive(Debug, PartialEq)]
struct Outcome {
    occurrences: Vec<String>,
    /// Executions, failures, runs that go on, and ends that wait.
    counts: (u64, u64, usize, usize),
    actions: Vec<String>,
    instances: Vec<String>,
}

async fn outcome(store: &Arc<dyn Store>, book: &RecurringActions, id: &str) -> Outcome {
    let scope = Scope::default();
    let (history, unreadable) = Listed::split(book.history(&scope, id, None, 100).await.unwrap());
    assert!(unreadable.is_empty(), "{unreadable:?}");
    let actions = ActionDb::new(store.clone()).list_all().await.unwrap();
    let page = Client::new(store.clone()).list(segno::store::InstanceQuery::default()).await.unwrap();
    let mut instances: Vec<String> =
        page.instances.iter().map(|instance| format!("{} {}", instance.id, instance.status)).collect();
    instances.sort();
    let mut shown: Vec<String> =
        actions.iter().map(|action| format!("{} {}", action.trigger.at(), action.status.name())).collect();
    shown.sort();
    let recurring = book.get(&scope, id).await.unwrap();
    let ends = ListRecords { kind: "segno.recurring-end", id_prefix: "", after_id: None, limit: 100 };
    let counts = (
        recurring.execution_count,
        recurring.failure_count,
        recurring.progress.running.len(),
        store.list_records(ends).await.unwrap().len(),
    );
    // When it was noticed that there will be no more depends on when it was looked at.
    let fired = history.iter().filter(|entry| entry.decision != Decision::Disabled);
    let occurrences = fired.map(|entry| format!("{} {:?} {:?}", entry.time, entry.decision, entry.outcome));
    Outcome { occurrences: occurrences.collect(), counts, actions: shown, instances }
}

/// Runs for a while with a crash at a commit, and says what came out and how many commits there were.
fn run(crash: Option<(u64, Fault)>) -> (Outcome, u64) {
    segno_testkit::run(async {
        let clock = VirtualClock::auto();
        clock.set_ms(START_MS);
        let store: Arc<dyn Store> = MemoryStore::with_clock(clock.clone());
        let calls = Calls::default();
        let faulty = FaultStore::new(store.clone(), clock.clone(), faults::script(crash));
        let mut process = Process::start(faulty.clone(), clock.clone(), &calls).await;
        let book =
            RecurringActions::new(store.clone(), process.functions.clone(), Arc::new(Zones::bundled()))
                .clock(clock.clone())
                .ids(SeededIds::shared(3));
        let template = RecurringActionTemplate {
            provider: "note".to_owned(),
            orchestration: None,
            action_type: "test".to_owned(),
            payload: segno::Payload::encode(&json!({})).unwrap(),
            metadata: BTreeMap::new(),
            dedup_key: Some("{{execution_time}}".to_owned()),
        };
        let every = ScheduleSpec::every(HumanDuration::from_secs(60));
        let mut new = NewRecurringAction::new(every, template);
        new.policy.max_executions = Some(3);
        let action = book.create(&Scope::default(), new).await.unwrap();
        let now = jiff::Timestamp::from_millisecond(i64::try_from(START_MS).unwrap()).unwrap();
        let next_tick_at = now + jiff::SignedDuration::from_secs(90);
        let trigger = ActionTrigger::Scheduled { next_tick_at };
        let one_shot = Action {
            recurrence: Some(Duration::from_secs(600)),
            on_restart: OnRestart::Resume,
            ..Action::new(Uuid::from_u128(1), "test", "note", trigger, now)
        };
        ActionDb::new(store.clone()).clock(clock.clone()).insert(&one_shot).await.unwrap();
        let trigger = ActionTrigger::Scheduled { next_tick_at };
        let started = Action::new(Uuid::from_u128(2), "test", "", trigger, now);
        let started = started.starting(OrchestrationName::new("stages").unwrap());
        let started =
            Action { tool_input: Payload::encode(&json!({ "seconds": 20, "more": 1 })).unwrap(), ..started };
        ActionDb::new(store.clone()).clock(clock.clone()).insert(&started).await.unwrap();
        let end = segno::clock::sleep_until(&*clock, START_MS + 300_000);
        tokio::pin!(end);
        tokio::select! {
            () = &mut end => {}
            () = faulty.died() => {
                process = Process::start(store.clone(), clock.clone(), &calls).await;
                end.await;
            }
        }
        drop(process);
        (outcome(&store, &book, &action.id).await, faulty.commits())
    })
}

#[test]
fn a_process_that_dies_at_any_commit_loses_nothing_and_fires_nothing_twice() {
    let (expected, commits) = run(None);
    assert_eq!((expected.occurrences.len(), expected.actions.len(), expected.instances.len()), (3, 3, 5));
    assert!(expected.occurrences.iter().all(|line| line.ends_with("Fired Some(Completed)")), "{expected:?}");
    assert!(commits > 10, "{commits}");
    for number in 1..=commits {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            assert_eq!(run(Some((number, fault))).0, expected, "{fault:?} at commit {number} of {commits}");
        }
    }
}
