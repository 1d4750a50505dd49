//! Each controller by example.

use std::sync::Arc;

use jiff::Timestamp;
use segno_actions::schedule::Zones;

use crate::controllers::{
    Action, AntiEntropy, Backfills, Dispatcher, Enqueue, Execution, Freshness, Heartbeat,
    OrchestrationController, Outside, Partitions, ReadyDispatch, Report, Retry, RunBridge, Schedules,
    SensorDefinition, Sensors, Snapshot, Timers, bridged,
};
use crate::event::{
    Attempt, BackfillCreated, BackfillStateChanged, Envelope, EventData, Header, Outcome, PartitionSelector,
    PlanCreated, PlannedTask, PoolDefined, RunCancelRequested, RunTriggered, ScheduleDefinitionUpserted,
    TaskFinished, TaskStarted, TickStatus, TimerRequested, Trigger,
};
use crate::fold::{Scope, State, fold};
use crate::ids::{TimerName, TimerPurpose, Ulid, attempt_id, dispatch_id};
use crate::tables::{BackfillRow, BackfillState, RunState, TaskState, TimerType};

const MINUTE_MS: i64 = 60_000;
const SECRET: &[u8] = b"test-secret";

/// A scope with a clock.
pub(super) struct World {
    pub(super) state: State,
    pub(super) now: i64,
    sequence: u128,
}

impl World {
    fn new() -> Self {
        World { state: State::new(Scope::new("acme", "default")), now: 1_705_340_000_000, sequence: 0 }
    }

    pub(super) fn with(tasks: Vec<PlannedTask>) -> Self {
        let mut world = World::new();
        let run_id: Arc<str> = "run1".into();
        assert!(world.send(RunTriggered {
            run_id: Arc::clone(&run_id),
            plan_id: "p@1".into(),
            trigger: Trigger::Manual { user_id: "ada".into() },
            root_assets: Vec::new(),
            run_key: None,
            labels: Default::default(),
            code_version: None,
            dag: None,
            params: None,
            parent_run_id: None,
        }));
        assert!(world.send(PlanCreated { run_id, plan_id: "p@1".into(), tasks }));
        world
    }

    fn send(&mut self, event: impl Into<EventData>) -> bool {
        self.sequence += 1;
        let Scope { tenant_id, workspace_id } = self.state.scope().clone();
        let header = Header { tenant_id, workspace_id, timestamp: Timestamp::UNIX_EPOCH };
        let id = Ulid::at(self.now as u64, self.sequence);
        fold(&mut self.state, &[Envelope::new(&header, id, event)]).applied == 1
    }

    pub(super) fn run(&self, controller: &dyn OrchestrationController) -> Execution {
        let snapshot = Snapshot { state: &self.state, freshness: Freshness::current(self.now) };
        controller.run(&snapshot, self.now)
    }

    /// Runs a controller and folds what it appends.
    pub(super) fn apply(&mut self, controller: &dyn OrchestrationController) -> usize {
        let events: Vec<EventData> = self.run(controller).events.into_iter().flatten().collect();
        events.into_iter().filter(|event| self.send(event.clone())).count()
    }

    fn attempt(&self, task_key: &str, attempt: u32) -> Attempt {
        Attempt {
            run_id: "run1".into(),
            task_key: task_key.into(),
            attempt,
            attempt_id: attempt_id(&dispatch_id("run1", task_key, attempt)).into(),
        }
    }

    pub(super) fn start(&mut self, task_key: &str, attempt: u32) {
        let attempt = self.attempt(task_key, attempt);
        assert!(self.send(TaskStarted { attempt, worker_id: "w1".into() }));
    }

    pub(super) fn finish(&mut self, task_key: &str, attempt: u32, outcome: Outcome) {
        let attempt = self.attempt(task_key, attempt);
        assert!(self.send(TaskFinished {
            attempt,
            worker_id: "w1".into(),
            outcome,
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
        }));
    }

    pub(super) fn state_of(&self, task_key: &str) -> TaskState {
        self.state.task("run1", task_key).unwrap().state
    }
}

fn task(key: &str) -> PlannedTask {
    PlannedTask::new(key)
}

fn types(execution: &Execution) -> Vec<&'static str> {
    execution.events.iter().flatten().map(EventData::event_type).collect()
}

#[test]
fn controllers_append_intents_and_acknowledgements_only() {
    // Everything that the controllers of this crate append, over many lives, and nothing that the
    // fold derives.
    let allowed = ["DispatchRequested", "TimerFired", "TaskFinished"];
    let mut world = World::with(vec![task("a"), PlannedTask { heartbeat_timeout_sec: 10, ..task("b") }]);
    let mut seen = std::collections::BTreeSet::new();
    for step in 0..20 {
        world.now += MINUTE_MS;
        for controller in
            [&ReadyDispatch as &dyn OrchestrationController, &Retry, &Heartbeat, &AntiEntropy, &Timers]
        {
            seen.extend(types(&world.run(controller)));
            world.apply(controller);
        }
        if step == 2 {
            world.start("b", 1);
        }
    }
    assert!(seen.iter().all(|event_type| allowed.contains(event_type)), "{seen:?}");
    assert!(seen.contains("DispatchRequested") && seen.contains("TaskFinished"));
}

#[test]
fn ready_tasks_are_dispatched_to_their_queue_as_far_as_pools_have_slots() {
    let pooled = |key: &str| PlannedTask { pool: Some("db".into()), ..task(key) };
    let mut world = World::with(vec![
        PlannedTask { tag: Some("gpu".into()), ..task("a") },
        pooled("b"),
        pooled("c"),
        pooled("d"),
    ]);
    let (pool, requested_by) = ("db".into(), "ada".into());
    assert!(world.send(PoolDefined { pool, slots: 2, request_id: "1".into(), requested_by }));
    assert_eq!(world.apply(&ReadyDispatch), 3);
    assert_eq!(world.apply(&ReadyDispatch), 0);
    let queues: Vec<String> =
        world.state.pending_dispatches().map(|row| row.worker_queue.to_string()).collect();
    assert_eq!(queues.iter().filter(|queue| *queue == "gpu").count(), 1);
    assert_eq!(queues.iter().filter(|queue| *queue == "default-queue").count(), 2);
}

#[test]
fn a_due_retry_has_the_slot_before_a_ready_task() {
    let pooled = |key: &str| PlannedTask { pool: Some("db".into()), ..task(key) };
    let mut world = World::with(vec![pooled("a"), pooled("b")]);
    world.apply(&ReadyDispatch);
    world.start("a", 1);
    world.finish("a", 1, Outcome::Failed);
    assert_eq!(world.run(&Retry).events.len(), 0, "not yet");
    world.now += MINUTE_MS;
    assert_eq!(world.run(&ReadyDispatch).events.len(), 0, "the slot is for the retry");
    assert_eq!(world.apply(&Retry), 1);
    assert_eq!(world.state_of("a"), TaskState::Dispatched);
    assert_eq!(world.state.task("run1", "a").unwrap().attempt, 2);
}

#[test]
fn pending_dispatches_are_started_until_they_are_acknowledged() {
    let mut world = World::with(vec![task("a")]);
    world.apply(&ReadyDispatch);
    let started = world.run(&Dispatcher).outside;
    assert_eq!(started, world.run(&Dispatcher).outside, "it is stateless");
    let [Outside::Enqueue(enqueue)] = started.as_slice() else { panic!("{started:?}") };
    assert_eq!(&*enqueue.dispatch.dispatch_id, "dispatch:run1:a:1");
    assert!(enqueue.queue_name().starts_with("d_"));
    assert!(world.send(enqueue.accepted(enqueue.queue_name())));
    assert!(world.run(&Dispatcher).outside.is_empty());
}

#[test]
fn a_stuck_dispatch_is_repaired_once_per_time_in_its_own_queue() {
    let mut world = World::with(vec![PlannedTask { tag: Some("gpu".into()), ..task("a") }]);
    world.apply(&ReadyDispatch);
    let acknowledge = |world: &mut World, outside: Vec<Outside>| {
        let [Outside::Enqueue(enqueue)] = outside.as_slice() else { panic!("{outside:?}") };
        assert_eq!(&*enqueue.dispatch.worker_queue, "gpu");
        let Enqueue { repair, .. } = *enqueue;
        assert!(world.send(enqueue.accepted("queue")));
        repair
    };
    let outside = world.run(&Dispatcher).outside;
    assert_eq!(acknowledge(&mut world, outside), 0);
    for expected in 1..=3 {
        world.now += 9 * MINUTE_MS;
        assert!(world.run(&AntiEntropy).outside.is_empty());
        world.now += MINUTE_MS;
        let outside = world.run(&AntiEntropy).outside;
        assert_eq!(acknowledge(&mut world, outside), expected);
        assert!(world.run(&AntiEntropy).outside.is_empty(), "its age was refreshed");
    }
}

#[test]
fn an_attempt_without_any_heartbeat_is_ended_too() {
    let mut world = World::with(vec![PlannedTask { heartbeat_timeout_sec: 60, ..task("a") }]);
    world.apply(&ReadyDispatch);
    world.start("a", 1);
    world.now += 89_000;
    assert!(world.run(&Heartbeat).events.is_empty());
    world.now += 1_000;
    assert_eq!(world.apply(&Heartbeat), 1);
    assert_eq!(world.state_of("a"), TaskState::RetryWait);
    let row = world.state.task("run1", "a").unwrap();
    assert_eq!(row.error_category.as_deref(), Some("TIMEOUT"));
    assert!(row.error_message.as_deref().unwrap().contains("90 s before"), "{row:?}");
}

#[test]
fn an_attempt_that_takes_longer_than_it_may_is_ended_although_it_is_alive() {
    let quick = PlannedTask { timeout_seconds: Some(60), heartbeat_timeout_sec: 0, ..task("a") };
    let mut world = World::with(vec![quick, PlannedTask { heartbeat_timeout_sec: 0, ..task("b") }]);
    world.apply(&ReadyDispatch);
    world.start("a", 1);
    world.start("b", 1);
    world.now += 90_000;
    assert_eq!(world.apply(&Heartbeat), 1);
    world.now += 1_000 * MINUTE_MS;
    assert_eq!(world.apply(&Heartbeat), 0, "b has neither time-out");
}

#[test]
fn tables_that_are_old_hold_controllers_back_and_idle_ones_do_not() {
    let mut world = World::with(vec![PlannedTask { heartbeat_timeout_sec: 60, ..task("a") }]);
    world.apply(&ReadyDispatch);
    world.start("a", 1);
    world.now += 10 * MINUTE_MS;
    let run = |controller: &dyn OrchestrationController, complete_ago, tail_ago| {
        let freshness =
            Freshness { complete_at: world.now - complete_ago, tail_checked_at: world.now - tail_ago };
        controller.run(&Snapshot { state: &world.state, freshness }, world.now)
    };
    let stale = run(&Heartbeat, 31_000, 31_000);
    assert_eq!(stale.reports, [Report::Stale { controller: "heartbeat", lag_ms: 31_000 }]);
    assert!(stale.events.is_empty());
    let tail_only = run(&Heartbeat, 31_000, 0);
    assert!(tail_only.events.is_empty(), "a sign of life may be below the watermark");
    assert_eq!(tail_only.reports.len(), 1);
    assert_eq!(run(&Heartbeat, 29_000, 0).events.len(), 1);
    let suppressed = run(&AntiEntropy, 6 * MINUTE_MS, 0);
    assert!(suppressed.events.is_empty());
    assert!(matches!(suppressed.reports.as_slice(), [Report::Suppressed { .. }]), "{suppressed:?}");
    let ended = run(&AntiEntropy, MINUTE_MS, MINUTE_MS);
    assert_eq!(types(&ended), ["TaskFinished"]);
}

#[test]
fn retries_of_a_cancelled_run_are_left_alone() {
    let mut world = World::with(vec![task("a")]);
    world.apply(&ReadyDispatch);
    world.start("a", 1);
    world.finish("a", 1, Outcome::Failed);
    let (run_id, requested_by) = ("run1".into(), "ada".into());
    assert!(world.send(RunCancelRequested { run_id, reason: None, requested_by, generation: 0 }));
    world.now += 60 * MINUTE_MS;
    for controller in [&Retry as &dyn OrchestrationController, &AntiEntropy, &ReadyDispatch] {
        assert_eq!(world.run(controller), Execution::default(), "{}", controller.name());
    }
    assert_eq!(world.state.run("run1").unwrap().state, RunState::Cancelled);
}

#[test]
fn timers_are_set_and_fire_once() {
    let mut world = World::with(vec![task("a")]);
    world.apply(&ReadyDispatch);
    world.start("a", 1);
    world.finish("a", 1, Outcome::Failed);
    let fire_at = Timestamp::from_millisecond(world.now + MINUTE_MS).unwrap();
    let (run_id, task_key) = ("run1".to_owned(), "a".to_owned());
    let name = TimerName::Attempt {
        purpose: TimerPurpose::Retry,
        run_id,
        task_key,
        attempt: 1,
        epoch_s: fire_at.as_second(),
    };
    assert!(world.send(TimerRequested {
        timer_id: name.to_string().into(),
        timer_type: TimerType::Retry,
        run_id: Some("run1".into()),
        task_key: Some("a".into()),
        attempt: Some(1),
        fire_at,
        payload: None,
    }));
    let outside = world.run(&Timers).outside;
    let [Outside::CreateTimer(creation)] = outside.as_slice() else { panic!("{outside:?}") };
    assert!(world.send(creation.accepted(creation.queue_name())));
    assert_eq!(world.run(&Timers), Execution::default());
    world.now += MINUTE_MS;
    assert_eq!(world.apply(&Timers), 1);
    assert_eq!(world.run(&Timers), Execution::default(), "a fired timer is not handled in every pass");
}

fn schedules() -> Schedules {
    Schedules::new(Arc::new(Zones::bundled()), SECRET)
}

fn hourly(max_catchup_ticks: u32, enabled: bool, cron: &str) -> ScheduleDefinitionUpserted {
    ScheduleDefinitionUpserted {
        schedule_id: "hourly".into(),
        cron_expression: cron.into(),
        timezone: "UTC".into(),
        catchup_window_minutes: 0,
        asset_selection: vec!["sales".into()],
        code_version: None,
        max_catchup_ticks,
        enabled,
        spec: None,
    }
}

#[test]
fn a_schedule_of_intervals_ticks_and_one_without_times_has_ended() {
    use segno_actions::functions::HumanDuration;
    use segno_actions::schedule::ScheduleSpec;
    let with = |spec| ScheduleDefinitionUpserted { spec: Some(spec), ..hourly(10, true, "") };
    let mut world = World::new();
    assert!(world.send(with(ScheduleSpec::every(HumanDuration::from_secs(15 * 60)))));
    world.now += 60 * MINUTE_MS;
    assert_eq!(world.run(&schedules()).events.len(), 4);
    assert!(world.send(with(ScheduleSpec::default())));
    assert_eq!(world.run(&schedules()), Execution::default());
}

#[test]
fn schedule_controller_bounded_catchup_emits_only_recent_ticks() {
    let mut world = World::new();
    assert!(world.send(hourly(3, true, "0 * * * *")));
    assert_eq!(world.run(&schedules()), Execution::default(), "a new schedule makes up for nothing");
    world.now += 600 * MINUTE_MS;
    let execution = world.run(&schedules());
    assert_eq!(execution.events.len(), 3);
    let hours: Vec<i64> = execution
        .events
        .iter()
        .map(|events| match &events[..] {
            [EventData::ScheduleTicked(tick), EventData::RunRequested(request)] => {
                assert_eq!(tick.run_key.as_ref(), Some(&request.run_key));
                assert!(request.run_id.starts_with("run_"));
                (world.now - tick.scheduled_for.as_millisecond()) / (60 * MINUTE_MS)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(hours, [2, 1, 0], "the most recent ones, oldest first");
    assert_eq!(world.apply(&schedules()), 6);
    assert_eq!(world.run(&schedules()), Execution::default());
    assert_eq!(world.state.requested_runs().count(), 3);
}

#[test]
fn a_disabled_schedule_ticks_without_runs_and_an_unreadable_one_fails_once() {
    let mut world = World::new();
    assert!(world.send(hourly(1, false, "0 * * * *")));
    world.now += 60 * MINUTE_MS;
    let execution = world.run(&schedules());
    let [EventData::ScheduleTicked(tick)] = &execution.events[0][..] else { panic!("{execution:?}") };
    assert_eq!(tick.status, TickStatus::Skipped { reason: "paused".into() });
    assert_eq!(world.apply(&schedules()), 1);

    assert!(world.send(hourly(1, true, "61 * * * *")));
    assert_eq!(world.apply(&schedules()), 1);
    world.now += 600 * MINUTE_MS;
    assert_eq!(world.run(&schedules()), Execution::default(), "once per definition");
    assert!(world.send(hourly(1, true, "62 * * * *")));
    assert_eq!(world.apply(&schedules()), 1);
}

struct Days;

impl Partitions for Days {
    fn slice(&self, backfill: &BackfillRow, from: u32, count: u32) -> Result<Vec<Arc<str>>, String> {
        match backfill.partition_selector.contains("unknown") {
            true => Err("no such partitions".to_owned()),
            false => Ok((from..from + count).map(|day| format!("day{day}").into()).collect()),
        }
    }
}

fn backfill(selector: PartitionSelector) -> BackfillCreated {
    BackfillCreated {
        backfill_id: "b".into(),
        client_request_id: "1".into(),
        asset_selection: vec!["sales".into()],
        code_version: None,
        partition_selector: selector,
        total_partitions: 5,
        chunk_size: 2,
        max_concurrent_runs: 2,
        parent_backfill_id: None,
        dag: Some("daily".into()),
        params: None,
    }
}

fn range(start: &str) -> PartitionSelector {
    PartitionSelector::Range { start: start.into(), end: "day4".into() }
}

/// Begins all requested runs, each with one task.
fn bridge(world: &mut World) {
    for outside in world.run(&RunBridge).outside {
        let Outside::PlanRun(request) = outside else { panic!("{outside:?}") };
        for event in bridged(&request, &"daily@1".into(), vec![task("a")]) {
            assert!(world.send(event));
        }
    }
    assert_eq!(world.run(&RunBridge), Execution::default(), "a bridged run is not planned again");
}

/// Ends one run of a backfill.
fn end_one(world: &mut World, outcome: Outcome) {
    let open = world.state.runs().find(|run| !run.state.is_final()).unwrap();
    let run_id = Arc::clone(&open.run_id);
    world.apply(&ReadyDispatch);
    let task = world.state.task(&run_id, "a").unwrap().clone();
    let attempt =
        Attempt { run_id, task_key: "a".into(), attempt: task.attempt, attempt_id: task.attempt_id.unwrap() };
    assert!(world.send(TaskStarted { attempt: attempt.clone(), worker_id: "w1".into() }));
    let error = crate::event::TaskError {
        category: None,
        message: "broken".into(),
        stack_trace: None,
        retryable: Some(false),
    };
    assert!(world.send(TaskFinished {
        attempt,
        worker_id: "w1".into(),
        outcome,
        materialization_id: None,
        error_message: None,
        output: None,
        error: (outcome == Outcome::Failed).then_some(error),
        metrics: None,
        cancelled_during_phase: None,
        partial_progress_json: None,
        asset_key: None,
        partition_key: None,
        code_version: None,
    }));
}

#[test]
fn a_backfill_plans_chunks_while_there_is_room_and_ends_with_its_runs() {
    for (outcome, expected) in
        [(Outcome::Succeeded, BackfillState::Succeeded), (Outcome::Failed, BackfillState::Failed)]
    {
        let backfills = Backfills::new(Arc::new(Days), SECRET);
        let mut world = World::new();
        assert!(world.send(backfill(range("day0"))));
        assert_eq!(types(&world.run(&backfills)), ["BackfillChunkPlanned", "RunRequested"].repeat(2));
        world.apply(&backfills);
        assert_eq!(world.run(&backfills), Execution::default(), "two at a time");
        bridge(&mut world);
        end_one(&mut world, outcome);
        assert_eq!(world.apply(&backfills), 2);
        let last = world.state.chunk("b:2").unwrap();
        assert_eq!(&*last.partition_keys, r#"["day4"]"#, "the last chunk is shorter");
        bridge(&mut world);
        end_one(&mut world, Outcome::Succeeded);
        end_one(&mut world, Outcome::Succeeded);
        assert_eq!(world.apply(&backfills), 1);
        assert_eq!(world.state.backfill("b").unwrap().state, expected);
        assert_eq!(world.run(&backfills), Execution::default());
    }
}

#[test]
fn a_backfill_can_be_paused_cancelled_and_is_not_stuck_if_nothing_resolves_it() {
    let change = |from_state, to_state, state_version| BackfillStateChanged {
        backfill_id: "b".into(),
        from_state,
        to_state,
        state_version,
        changed_by: None,
    };
    let backfills = Backfills::new(Arc::new(Days), SECRET);
    let mut world = World::new();
    assert!(world.send(backfill(range("day0"))));
    world.apply(&backfills);
    bridge(&mut world);
    assert!(world.send(change(BackfillState::Running, BackfillState::Paused, 2)));
    end_one(&mut world, Outcome::Succeeded);
    assert_eq!(world.run(&backfills), Execution::default(), "paused");
    assert!(world.send(change(BackfillState::Paused, BackfillState::Cancelled, 3)));
    assert_eq!(types(&world.run(&backfills)), ["RunCancelRequested"]);
    assert_eq!(world.apply(&backfills), 1);
    assert_eq!(world.run(&backfills), Execution::default());

    let mut world = World::new();
    assert!(world.send(backfill(range("unknown"))));
    assert_eq!(world.apply(&backfills), 1);
    assert_eq!(world.state.backfill("b").unwrap().state, BackfillState::Failed);

    let keys = ["x", "y", "z", "u", "v"].map(Arc::from).to_vec();
    let mut world = World::new();
    assert!(world.send(backfill(PartitionSelector::Explicit { keys })));
    world.apply(&backfills);
    assert_eq!(&*world.state.chunk("b:1").unwrap().partition_keys, r#"["z","u"]"#);
}

#[test]
fn sensors_are_polled_at_most_once_per_interval_and_while_they_are_active() {
    let sensor = |interval_ms, is_active| {
        Sensors::new(vec![SensorDefinition { sensor_id: "files".into(), interval_ms, is_active }])
    };
    let mut world = World::new();
    assert!(world.run(&sensor(60_000, false)).outside.is_empty());
    let outside = world.run(&sensor(60_000, true)).outside;
    let [Outside::EvaluateSensor(poll)] = outside.as_slice() else { panic!("{outside:?}") };
    assert_eq!((poll.expected_state_version, poll.poll_epoch % 60), (0, 0));
    assert!(world.send(crate::event::SensorEvaluated {
        sensor_id: "files".into(),
        eval_id: "e1".into(),
        cursor_before: None,
        cursor_after: Some("c".into()),
        expected_state_version: Some(0),
        trigger_source: crate::event::EvalSource::Poll { poll_epoch: poll.poll_epoch },
        run_requests: Vec::new(),
        status: crate::event::EvalStatus::NoNewData,
    }));
    world.now += 29_000;
    assert!(world.run(&sensor(1, true)).outside.is_empty(), "never more often than every 30 s");
    world.now += 1_000;
    let outside = world.run(&sensor(1, true)).outside;
    let [Outside::EvaluateSensor(poll)] = outside.as_slice() else { panic!("{outside:?}") };
    assert_eq!((poll.cursor.as_deref(), poll.expected_state_version), (Some("c"), 1));
}

#[test]
fn test_controller_never_reads_ledger() {
    // A controller has a state and nothing else; a state that was loaded from rows decides like the
    // one that folded them.
    let mut world = World::with(vec![task("a"), task("b")]);
    world.apply(&ReadyDispatch);
    world.start("a", 1);
    world.finish("a", 1, Outcome::Failed);
    world.now += 20 * MINUTE_MS;
    let scope = world.state.scope().clone();
    let cold = State::load(scope, world.state.rows(), world.state.watermark());
    let freshness = Freshness::current(world.now);
    let mut decided = 0;
    for controller in [&ReadyDispatch as &dyn OrchestrationController, &Dispatcher, &Retry, &AntiEntropy] {
        let warm: Vec<Action> = controller.reconcile(&world.state, world.now, freshness);
        assert_eq!(controller.reconcile(&cold, world.now, freshness), warm);
        decided += warm.len();
    }
    assert!(decided >= 3, "{decided}");
}
