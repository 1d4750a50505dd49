//! Workers that call back: handed over, started, alive, completed; late, twice, and with tokens that are none.

use std::sync::Arc;

use segno::Payload;
use serde_json::{Value, json};

use super::world::{Reply, TOKEN_SECRET, World};
use crate::drive::{
    AttemptName, CallbackError, Callbacks, CompletedReport, HeartbeatReport, ReportedError, ReportedOutput,
    Request, Rerun, StartedReport, TaskToken, TaskTokens,
};
use crate::event::Outcome;
use crate::tables::{RunState, TaskState};

const OUTSIDE: &str = "
name: outside
tasks:
  - {key: load, function: work, completion: callback, heartbeat_timeout: 1m, input: {day: monday}, retry: {attempts: 3, initial_delay: 1s}}
  - {key: report, function: work, depends_on: [load], input: '{{ tasks.load.output.rows }}'}
";

/// The function takes the attempt over at once.
fn accepting() -> World {
    World::new(Arc::new(|_: &str, input: &Value| Reply::Done(json!({ "got": input }))))
}

/// The envelope of an attempt, once its function was called with it.
async fn envelope(world: &World, run_id: &str, attempt: u32) -> Value {
    let dispatch = format!("dispatch:{run_id}:load:{attempt}");
    world.until("the envelope", async || world.seen.lock().unwrap().inputs.contains_key(&dispatch)).await;
    world.seen.lock().unwrap().inputs[&dispatch].clone()
}

/// A worker with an envelope.
struct Worker {
    callbacks: Callbacks,
    token: TaskToken,
    task_id: String,
    name: AttemptName,
}

impl Worker {
    fn of(world: &World, envelope: &Value, name: &str) -> Worker {
        let text = |field: &str| envelope[field].as_str().unwrap().to_owned();
        let callbacks = world.ledger.callbacks(TaskTokens::new(TOKEN_SECRET));
        let token = callbacks.token(&text("taskToken")).unwrap();
        let attempt = u32::try_from(envelope["attempt"].as_u64().unwrap()).unwrap();
        let name = AttemptName { attempt, attempt_id: text("attemptId"), worker_id: name.to_owned() };
        Worker { callbacks, token, task_id: text("taskId"), name }
    }

    async fn start(&self) -> Result<bool, CallbackError> {
        let report = StartedReport { name: self.name.clone() };
        self.callbacks.started(&self.token, &self.task_id, report).await.map(|done| done.visible)
    }

    async fn beat(&self) -> Result<bool, CallbackError> {
        let report = HeartbeatReport { name: self.name.clone(), progress_pct: Some(40), message: None };
        self.callbacks.heartbeat(&self.token, &self.task_id, report).await.map(|alive| alive.should_cancel)
    }

    async fn complete(&self, outcome: Outcome) -> Result<bool, CallbackError> {
        let error = (outcome == Outcome::Failed)
            .then(|| ReportedError { message: "no network".to_owned(), ..ReportedError::default() });
        let value = (outcome == Outcome::Succeeded).then(|| json!({ "rows": 7 }));
        let report = CompletedReport {
            name: self.name.clone(),
            outcome,
            output: value.map(|value| ReportedOutput {
                value: Some(Payload::encode(&value).unwrap()),
                ..ReportedOutput::default()
            }),
            error,
            metrics: None,
            cancelled_during_phase: None,
            partial_progress: None,
        };
        self.callbacks.completed(&self.token, &self.task_id, report).await.map(|done| done.visible)
    }
}

fn code<T: std::fmt::Debug>(refused: Result<T, CallbackError>) -> &'static str {
    refused.unwrap_err().code()
}

#[test]
fn an_attempt_is_handed_over_started_and_completed_and_repeats_change_nothing() {
    segno_testkit::run(async {
        let world = accepting();
        let _process = world.process("a").await;
        world.publish(OUTSIDE).await;
        let run_id = world.start("outside").await;
        let envelope = envelope(&world, &run_id, 1).await;
        assert_eq!(
            (&envelope["payload"], &envelope["taskKey"]),
            (&json!({ "day": "monday" }), &json!("load"))
        );
        assert_eq!((&envelope["tenantId"], &envelope["workspaceId"]), (&json!("acme"), &json!("eu")));
        assert_eq!(envelope["callbackBaseUrl"], "http://segno.test");
        world.pass(45).await;
        assert_eq!(world.task(&run_id, "load").await.state, TaskState::Dispatched, "the return ends nothing");
        let worker = Worker::of(&world, &envelope, "w1");
        for _ in 0..2 {
            worker.start().await.unwrap();
        }
        world.until("it runs", async || world.task(&run_id, "load").await.state == TaskState::Running).await;
        assert_eq!(code(Worker::of(&world, &envelope, "w2").start().await), "attempt-already-started");
        for _ in 0..5 {
            world.pass(40).await;
            assert!(!worker.beat().await.unwrap());
        }
        assert_eq!(world.task(&run_id, "load").await.attempt, 1, "heartbeats keep it");
        for _ in 0..2 {
            assert!(worker.complete(Outcome::Succeeded).await.unwrap());
        }
        assert_eq!(code(worker.complete(Outcome::Failed).await), "task-already-terminal");
        assert_eq!(code(worker.beat().await), "task-already-terminal");
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Succeeded);
        assert!(worker.complete(Outcome::Succeeded).await.unwrap(), "also when the run has ended");
        let load = world.task(&run_id, "load").await;
        assert_eq!((load.worker_id.as_deref(), load.output.as_deref()), (Some("w1"), Some(r#"{"rows":7}"#)));
        let report = format!("dispatch:{run_id}:report:1");
        assert_eq!(world.seen.lock().unwrap().inputs[&report], 7, "downstream tasks read the value");
        assert_eq!(world.seen.lock().unwrap().begun[&format!("dispatch:{run_id}:load:1")], 1);
    });
}

#[test]
fn a_silent_attempt_is_replaced_and_its_worker_is_refused() {
    segno_testkit::run(async {
        let world = accepting();
        let _process = world.process("a").await;
        world.publish(OUTSIDE).await;
        let run_id = world.start("outside").await;
        let first = Worker::of(&world, &envelope(&world, &run_id, 1).await, "w1");
        first.start().await.unwrap();
        let second = Worker::of(&world, &envelope(&world, &run_id, 2).await, "w1");
        let refused = first.beat().await.unwrap_err();
        assert_eq!(refused.code(), "attempt-mismatch");
        assert!(
            refused.to_string().starts_with("attempt 1 is over, and the task has moved on to attempt 2"),
            "{refused}"
        );
        assert_eq!(code(first.complete(Outcome::Succeeded).await), "attempt-mismatch");
        // A token of one attempt cannot end another, whatever the body says.
        let forged = Worker {
            name: second.name.clone(),
            ..Worker::of(&world, &envelope(&world, &run_id, 1).await, "w")
        };
        let refused = forged.complete(Outcome::Succeeded).await.unwrap_err();
        assert_eq!(refused.code(), "attempt-mismatch");
        assert!(
            refused.to_string().starts_with("the report names attempt 2, and its token is for attempt 1"),
            "{refused}"
        );
        assert!(second.complete(Outcome::Failed).await.unwrap());
        assert!(second.complete(Outcome::Failed).await.unwrap(), "a repeat");
        let refused = second.complete(Outcome::Succeeded).await;
        assert!(["attempt-already-completed", "attempt-mismatch"].contains(&code(refused)));
        let third = Worker::of(&world, &envelope(&world, &run_id, 3).await, "w1");
        assert!(third.complete(Outcome::Succeeded).await.unwrap(), "without a start of its own");
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Succeeded);
        world.check_attempts();
    });
}

#[test]
fn an_attempt_that_no_worker_starts_is_replaced_after_half_an_hour() {
    segno_testkit::run(async {
        let world = accepting();
        let _process = world.process("a").await;
        world.publish(OUTSIDE).await;
        let run_id = world.start("outside").await;
        envelope(&world, &run_id, 1).await;
        world.pass(29 * 60).await;
        assert_eq!(world.task(&run_id, "load").await.attempt, 1);
        world.until("the next attempt", async || world.task(&run_id, "load").await.attempt == 2).await;
        let load = world.task(&run_id, "load").await;
        assert!(
            load.error_message.as_deref().is_none_or(|error| error.contains("no worker has reported")),
            "{load:?}"
        );
        assert!(world.clock.now_ms() < super::world::START_MS + 45 * 60 * 1_000);
    });
}

#[test]
fn a_cancelled_run_tells_its_worker_and_ends_with_its_report() {
    segno_testkit::run(async {
        let world = accepting();
        let _process = world.process("a").await;
        world.publish(OUTSIDE).await;
        let run_id = world.start("outside").await;
        let worker = Worker::of(&world, &envelope(&world, &run_id, 1).await, "w1");
        worker.start().await.unwrap();
        world.until("it runs", async || world.task(&run_id, "load").await.state == TaskState::Running).await;
        let by = Request { reason: Some("wrong day".to_owned()), ..Request::default() };
        world.ledger.runs().cancel(&world.scope, &run_id, by).await.unwrap();
        assert!(worker.beat().await.unwrap(), "it should cancel");
        assert!(worker.complete(Outcome::Cancelled).await.unwrap());
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Cancelled);
    });
}

#[test]
fn a_task_that_was_cancelled_before_its_start_is_terminal_for_its_worker() {
    segno_testkit::run(async {
        let world = accepting();
        let _process = world.process("a").await;
        world.publish(OUTSIDE).await;
        let run_id = world.start("outside").await;
        let worker = Worker::of(&world, &envelope(&world, &run_id, 1).await, "w1");
        world.ledger.runs().cancel(&world.scope, &run_id, Request::default()).await.unwrap();
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Cancelled);
        for refused in [worker.start().await, worker.beat().await, worker.complete(Outcome::Succeeded).await]
        {
            let refused = refused.unwrap_err();
            assert_eq!(refused.code(), "task-already-terminal");
            assert!(refused.to_string().starts_with("the task is CANCELLED already"), "{refused}");
        }
    });
}

#[test]
fn tokens_expire_and_are_for_one_task_of_one_tenant() {
    segno_testkit::run(async {
        let world = accepting();
        let _process = world.process("a").await;
        world.publish(&OUTSIDE.replace("1m", "10h")).await;
        let (run_id, other_id) = (world.start("outside").await, world.start("outside").await);
        let worker = Worker::of(&world, &envelope(&world, &run_id, 1).await, "w1");
        let other = Worker::of(&world, &envelope(&world, &other_id, 1).await, "w1");
        let swapped = Worker {
            task_id: other.task_id.clone(),
            ..Worker::of(&world, &envelope(&world, &run_id, 1).await, "w1")
        };
        assert_eq!(code(swapped.start().await), "invalid-task-token");
        let foreign = TaskTokens::new(b"another store").sign(&worker.token);
        assert_eq!(code(worker.callbacks.token(&foreign)), "invalid-task-token");
        // The same names in another tenant are another task.
        let token = TaskToken { tenant: "other".to_owned(), ..worker.token.clone() };
        let elsewhere = Worker { token, ..Worker::of(&world, &envelope(&world, &run_id, 1).await, "w1") };
        assert_eq!(code(elsewhere.start().await), "unknown-task");
        worker.start().await.unwrap();
        let report = HeartbeatReport { name: worker.name.clone(), progress_pct: None, message: None };
        world.pass(50 * 60).await;
        let alive = worker.callbacks.heartbeat(&worker.token, &worker.task_id, report).await.unwrap();
        world.pass(20 * 60).await;
        assert_eq!(code(worker.complete(Outcome::Succeeded).await), "task-expired");
        let token = worker.callbacks.token(&alive.token).unwrap();
        let renewed = Worker { token, ..Worker::of(&world, &envelope(&world, &run_id, 1).await, "w1") };
        assert!(renewed.complete(Outcome::Succeeded).await.unwrap());
    });
}

#[test]
fn a_report_to_another_process_ends_the_attempt_that_a_dead_one_has_handed_over() {
    segno_testkit::run(async {
        let world = accepting();
        let process = world.process("a").await;
        world.publish(OUTSIDE).await;
        let run_id = world.start("outside").await;
        let worker = Worker::of(&world, &envelope(&world, &run_id, 1).await, "w1");
        drop(process);
        worker.start().await.unwrap();
        assert!(!worker.complete(Outcome::Succeeded).await.unwrap(), "no node folds it");
        let _process = world.process("b").await;
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Succeeded);
        assert!(worker.complete(Outcome::Succeeded).await.unwrap(), "a repeat finds what it has done");
        assert_eq!(world.seen.lock().unwrap().begun[&format!("dispatch:{run_id}:load:1")], 1);
    });
}

#[test]
fn reports_with_values_beyond_their_limits_are_refused_and_change_nothing() {
    segno_testkit::run(async {
        let world = accepting();
        let _process = world.process("a").await;
        world.publish(OUTSIDE).await;
        let run_id = world.start("outside").await;
        let worker = Worker::of(&world, &envelope(&world, &run_id, 1).await, "w1");
        let usual = CompletedReport {
            name: worker.name.clone(),
            outcome: Outcome::Succeeded,
            output: None,
            error: None,
            metrics: None,
            cancelled_during_phase: None,
            partial_progress: None,
        };
        let large = |output: ReportedOutput| CompletedReport { output: Some(output), ..usual.clone() };
        let name = |worker_id: &str| AttemptName { worker_id: worker_id.to_owned(), ..worker.name.clone() };
        for (report, field) in [
            (
                large(ReportedOutput {
                    value: Payload::encode(&"x".repeat(70_000)).ok(),
                    ..ReportedOutput::default()
                }),
                "output.value",
            ),
            (
                // No reader of the tables could take it for a number; a worker in this process may try.
                large(ReportedOutput {
                    value: serde_json::from_str("[1e400]").ok(),
                    ..ReportedOutput::default()
                }),
                "output.value",
            ),
            (
                large(ReportedOutput { output_path: Some("x".repeat(2_000)), ..ReportedOutput::default() }),
                "output.outputPath",
            ),
            (
                large(ReportedOutput { row_count: Some(-1), ..ReportedOutput::default() }),
                "output.rowCount: is -1;",
            ),
            (
                large(ReportedOutput { byte_size: Some(i64::MIN), ..ReportedOutput::default() }),
                "output.byteSize",
            ),
            (
                large(ReportedOutput { delta_version: Some(-2), ..ReportedOutput::default() }),
                "output.deltaVersion",
            ),
            (
                CompletedReport {
                    metrics: Some(json!({ "ioReadBytes": 1, "cpuTimeMs": -5 })),
                    ..usual.clone()
                },
                "metrics.cpuTimeMs: is -5;",
            ),
            (CompletedReport { metrics: Some("x".repeat(20_000).into()), ..usual.clone() }, "metrics"),
            (CompletedReport { error: Some(ReportedError::default()), ..usual.clone() }, "error"),
            (CompletedReport { outcome: Outcome::Failed, ..usual.clone() }, "error"),
            (CompletedReport { name: name(""), ..usual.clone() }, "workerId"),
            (CompletedReport { name: name("a\nb"), ..usual.clone() }, "workerId"),
        ] {
            let refused =
                worker.callbacks.completed(&worker.token, &worker.task_id, report).await.unwrap_err();
            assert!(refused.to_string().starts_with(field), "{refused}");
            assert_eq!(refused.code(), "invalid-request");
        }
        let report = HeartbeatReport { name: worker.name.clone(), progress_pct: Some(101), message: None };
        let refused = worker.callbacks.heartbeat(&worker.token, &worker.task_id, report).await;
        assert_eq!(code(refused), "invalid-request");
        assert_eq!(world.task(&run_id, "load").await.state, TaskState::Dispatched);
    });
}

#[test]
fn numbers_of_an_output_keep_their_digits_in_the_log_the_tables_and_a_rerun() {
    segno_testkit::run(async {
        let world = accepting();
        let _process = world.process("a").await;
        world.publish(OUTSIDE).await;
        let run_id = world.start("outside").await;
        let worker = Worker::of(&world, &envelope(&world, &run_id, 1).await, "w1");
        worker.start().await.unwrap();
        let text = r#"{"rows":123456789012345678901234567890,"price":1.10,"tiny":1E-30}"#;
        let report = CompletedReport {
            name: worker.name.clone(),
            outcome: Outcome::Succeeded,
            output: Some(ReportedOutput {
                value: Payload::from_json(text).ok(),
                // One event with the end and the visibility.
                visibility: Some(crate::event::VisibilityState::Visible),
                ..ReportedOutput::default()
            }),
            error: None,
            metrics: None,
            cancelled_during_phase: None,
            partial_progress: Payload::from_json("[0.10]").ok(),
        };
        worker.callbacks.completed(&worker.token, &worker.task_id, report).await.unwrap();
        assert_eq!(world.until_ended(&run_id).await.state, RunState::Succeeded);
        assert_eq!(world.task(&run_id, "load").await.output.as_deref(), Some(text));
        let only = Rerun::Tasks { tasks: vec!["report".to_owned()], downstream: false };
        let again = world.ledger.runs().rerun(&world.scope, &run_id, only, Request::default()).await.unwrap();
        assert_eq!(world.until_ended(&again.run_id).await.state, RunState::Succeeded);
        assert_eq!(world.task(&again.run_id, "load").await.output.as_deref(), Some(text));
    });
}
