//! Runbooks and batches over HTTP, with functions that the node runs itself.

use std::time::Duration;

use segno::clock::{self, SystemClock};
use segno::store::{Expect, RecordBatch, RecordWrite};
use segno::{ActivityContext, Failure};
use segno_actions::functions::FunctionsBuilder;
use segno_api::Client;
use segno_api::batch::{
    Batch, BatchAction, BatchDetails, BatchStatus, CreateBatch, MemberStatus, PhaseStatus, PutMembers,
    RemoveMembers, RequestState, RetryFrom, StepStatus,
};
use segno_api::client::{ListBatches, ListMembers, PageRequest};
use segno_api::runbook::{OverdueBehavior, PublishRunbook};
use segno_server::Server;
use segno_server::samples;
use segno_server::settings::{Authentication, Settings};
use serde_json::{Value, json};

use crate::stand::{Ground, PATIENCE, Stand, settings};

/// Two phases of one step each, and a step for members that leave.
pub const MOVE: &str = r#"
name: move
description: Move mailboxes
data_source: {type: manual, primary_key: Key}
phases:
  - name: prepare
    offset: T-0
    steps:
      - {name: create, worker_id: here, function: Create, params: {Key: "{{Key}}"}, output_params: {UserId: Id}}
  - name: cutover
    offset: T-0
    steps:
      - {name: switch, worker_id: here, function: Switch, params: {User: "{{UserId}}"}}
on_member_removed:
  - {name: revert, worker_id: here, function: Switch, params: {User: "{{Key}}"}}
"#;

/// Fails for the key `bad` until its call is a retry of the member.
async fn create(ctx: ActivityContext, input: Value) -> Result<Value, Failure> {
    match input["Key"].as_str() {
        Some("bad") if !ctx.instance_id().contains("retry") => {
            Err(Failure::application("no licence").non_retryable())
        }
        key => Ok(json!({ "Id": format!("user-{}", key.unwrap_or_default()) })),
    }
}

async fn switch(_ctx: ActivityContext, input: Value) -> Result<Value, Failure> {
    Ok(input)
}

/// The functions of [`MOVE`].
pub fn functions(functions: FunctionsBuilder) -> FunctionsBuilder {
    samples::functions(functions).rust("create", create).rust("switch", switch)
}

/// Settings with the pool of [`MOVE`].
pub fn local(mode: Authentication) -> Settings {
    let mut settings = settings(mode);
    let pools = json!({ "here": { "transport": "local", "functions": ["Create", "Switch"] } });
    settings.pools = serde_json::from_value(pools).unwrap();
    settings
}

/// A server with the functions of [`MOVE`].
pub async fn stand() -> Stand {
    let ground = Ground::new().await;
    let builder = Server::builder(ground.store.clone(), local(Authentication::None));
    Stand::begun(builder.registry(samples::registry()).functions(functions), &ground).await
}

/// A runbook to publish, with the default options.
pub fn yaml(text: &str) -> PublishRunbook {
    PublishRunbook {
        yaml_content: text.to_owned(),
        overdue_behavior: OverdueBehavior::Rerun,
        rerun_init: false,
    }
}

/// A batch of [`MOVE`] that is advanced by hand.
pub fn by_hand(keys: &[&str]) -> CreateBatch {
    let members = keys.iter().map(|key| json!({ "Key": key }).as_object().unwrap().clone());
    CreateBatch {
        runbook: "move".to_owned(),
        version: None,
        batch_start_time: None,
        members_csv: None,
        members: members.collect(),
    }
}

/// A batch of [`MOVE`] whose phases are due at once.
pub fn due(keys: &[&str]) -> CreateBatch {
    let csv = keys.iter().fold("Key\n".to_owned(), |csv, key| csv + key + "\n");
    let start = "2026-01-01T00:00:00Z".parse().unwrap();
    CreateBatch { batch_start_time: Some(start), members_csv: Some(csv), members: Vec::new(), ..by_hand(&[]) }
}

/// Waits until a batch is as wanted.
pub async fn until(client: &Client, batch: u64, wanted: impl Fn(&BatchDetails) -> bool) -> BatchDetails {
    let seen = async {
        loop {
            let batch = client.batch(batch).await.unwrap();
            if wanted(&batch) {
                return batch;
            }
            clock::sleep(&SystemClock, Duration::from_millis(5)).await;
        }
    };
    match clock::timeout(&SystemClock, PATIENCE, seen).await {
        Some(batch) => batch,
        None => panic!("it stays as it is: {:#?}", client.batch(batch).await.unwrap()),
    }
}

/// Waits for the end of a batch.
pub async fn ended(client: &Client, batch: u64) -> BatchDetails {
    let is_ended =
        |batch: &BatchDetails| !matches!(batch.batch.status, BatchStatus::Detected | BatchStatus::Active);
    until(client, batch, is_ended).await
}

/// Waits until a batch has its members.
pub async fn sealed(client: &Client, batch: &Batch) {
    until(client, batch.id, |batch| batch.batch.is_sealed && batch.batch.member_counts.active > 0).await;
}

/// A request that is applied; the batch after it.
pub async fn apply(client: &Client, batch: u64, action: BatchAction) -> BatchDetails {
    let request = client.request_of_batch(batch, &action).await.unwrap();
    assert_eq!(request.state, RequestState::Applied, "{request:?}");
    client.batch(batch).await.unwrap()
}

async fn refused(client: &Client, batch: u64, action: BatchAction, words: &str) {
    let refused = client.request_of_batch(batch, &action).await.unwrap_err();
    let told = (refused.status(), refused.code());
    assert_eq!(told, (Some(409), Some("batch-request-refused")), "{action:?}: {refused}");
    assert!(refused.to_string().contains(words), "{action:?}: {refused}");
}

#[tokio::test]
async fn a_runbook_is_published_in_versions() {
    let stand = stand().await;
    let client = stand.client();
    let first = client.publish_runbook(&yaml(MOVE)).await.unwrap();
    assert_eq!((first.name.as_str(), first.version, first.is_active), ("move", 1, true));
    assert_eq!(first.yaml_content.as_deref(), Some(MOVE));
    let same = client.publish_runbook(&yaml(MOVE)).await.unwrap();
    assert_eq!(same.version, 1, "publishing the active version again changes nothing");
    let changed = MOVE.replace("Move mailboxes", "Move them");
    let options = PublishRunbook { overdue_behavior: OverdueBehavior::Ignore, ..yaml(&changed) };
    let second = client.publish_runbook(&options).await.unwrap();
    assert_eq!((second.version, second.overdue_behavior), (2, OverdueBehavior::Ignore));
    client.publish_runbook(&yaml(&MOVE.replace("name: move", "name: other"))).await.unwrap();
    let names: Vec<String> =
        client.runbooks(None).await.unwrap().runbooks.into_iter().map(|runbook| runbook.name).collect();
    assert_eq!(names, ["move", "other"]);
    let runbook = client.runbook("move").await.unwrap();
    assert_eq!((runbook.active_version, runbook.description.as_deref()), (2, Some("Move them")));
    let versions = client.runbook_versions("move", None).await.unwrap().versions;
    let shown: Vec<_> = versions.iter().map(|row| (row.version, row.is_active)).collect();
    assert_eq!(shown, [(1, false), (2, true)]);
    assert!(versions.iter().all(|version| version.yaml_content.is_none()));
    let text = client.runbook_version("move", 1).await.unwrap().yaml_content;
    assert_eq!(text.as_deref(), Some(MOVE));
    for unknown in [
        client.runbook("none").await.unwrap_err(),
        client.runbook_versions("none", None).await.unwrap_err(),
        client.runbook_version("move", 3).await.unwrap_err(),
    ] {
        assert_eq!((unknown.status(), unknown.code()), (Some(404), Some("unknown-runbook")), "{unknown}");
    }
}

#[tokio::test]
async fn a_text_that_is_no_runbook_is_refused_with_all_its_problems() {
    let stand = stand().await;
    let wrong = MOVE.replacen("T-0", "T+1d", 1).replace("function: Switch", "function: \"a b\"");
    let body = json!({ "yaml_content": wrong });
    let answer = crate::stand::http().post(stand.url("/v1/runbooks")).json(&body).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "invalid-runbook");
    let errors = problem["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 3, "{problem}");
    for (error, words) in errors.iter().zip(["phases[0].offset", "phases[1].steps[0]", "on_member_removed"]) {
        assert_eq!(error["field"], "yaml_content");
        let detail = error["detail"].as_str().unwrap();
        assert!(detail.starts_with("line ") && detail.contains(words), "{detail}");
    }
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.starts_with("3 errors: line "), "the list is told once: {detail}");
    assert!(!detail.contains('\n'), "{detail}");
    assert!(stand.client().runbooks(None).await.unwrap().runbooks.is_empty());
}

#[tokio::test]
async fn a_batch_from_a_csv_runs_to_its_end() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let batch = client.create_batch(&due(&["ada", "bad", "eve"])).await.unwrap();
    assert_eq!((batch.id, batch.runbook_name.as_str(), batch.runbook_version), (1, "move", 1));
    let batch = ended(&client, 1).await;
    assert_eq!(batch.batch.status, BatchStatus::Failed, "{batch:#?}");
    let counts = batch.batch.member_counts;
    assert_eq!((counts.active, counts.failed), (2, 1));
    let phases: Vec<_> = batch.phases.iter().map(|phase| (&*phase.phase_name, phase.status)).collect();
    assert_eq!(phases, [("prepare", PhaseStatus::Failed), ("cutover", PhaseStatus::Completed)]);
    assert_eq!(batch.phases[0].step_counts, [("failed".to_owned(), 1), ("succeeded".to_owned(), 2)].into());
    let members = client.batch_members(1, None).await.unwrap().members;
    let shown: Vec<_> = members.iter().map(|member| (&*member.member_key, member.status)).collect();
    let active = MemberStatus::Active;
    assert_eq!(shown, [("ada", active), ("bad", MemberStatus::Failed), ("eve", active)]);
    let ada = client.batch_member(1, members[0].id).await.unwrap();
    assert_eq!(ada.member.worker_data["UserId"], "user-ada");
    let steps: Vec<_> = ada.steps.iter().map(|step| (&*step.step_name, step.status)).collect();
    assert_eq!(steps, [("create", StepStatus::Succeeded), ("switch", StepStatus::Succeeded)]);
    assert_eq!(ada.steps[1].params_json, r#"{"User":"user-ada"}"#);
    let bad = client.batch_member(1, members[1].id).await.unwrap();
    assert_eq!(bad.steps[0].status, StepStatus::Failed);
    assert!(bad.steps[0].error_message.as_deref().unwrap().contains("no licence"), "{bad:?}");
    // The failed member only is tried again, and then the batch has no failed phase.
    let retry = BatchAction::RetryMembers { batch_member_ids: None, from: RetryFrom::Step };
    apply(&client, 1, retry.clone()).await;
    let completed = |batch: &BatchDetails| batch.batch.status == BatchStatus::Completed;
    let batch = until(&client, 1, completed).await;
    assert_eq!(batch.batch.member_counts.active, 3);
    let pause = BatchAction::PauseBatch { reason: None };
    refused(&client, 1, pause, "ended").await;
    let listed = client.batches(&ListBatches::default()).await.unwrap().batches;
    assert_eq!(listed, [batch.batch]);
}

#[tokio::test]
async fn a_batch_of_objects_is_advanced_paused_and_cancelled_by_requests() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let batch = client.create_batch(&by_hand(&["ada", "eve"])).await.unwrap();
    sealed(&client, &batch).await;
    let why = client.explain_batch(batch.id, None).await.unwrap();
    let first = client.batch(batch.id).await.unwrap().phases[0].id;
    assert_eq!(why.released_by, Some(format!("by phase {first}")), "{why:?}");
    let why = client.explain_batch(batch.id, Some(&format!("phase-{first}"))).await.unwrap();
    assert!(why.released_by.as_deref().unwrap().contains("advance"), "{why:?}");
    let advance = || BatchAction::Advance {};
    apply(&client, batch.id, advance()).await;
    let prepared = |batch: &BatchDetails| batch.phases[0].status == PhaseStatus::Completed;
    let shown = until(&client, batch.id, prepared).await;
    assert_eq!(shown.phases[1].status, PhaseStatus::Pending, "each phase is advanced by itself");
    let row = format!("phase-{}", shown.phases[1].id);
    let why = client.explain_batch(batch.id, Some(&row)).await.unwrap();
    assert!(why.released_by.as_deref().unwrap().contains("advance"), "{why:?}");
    let resume = BatchAction::ResumeBatch {};
    let pause = BatchAction::PauseBatch { reason: Some("lunch".to_owned()) };
    let paused = apply(&client, batch.id, pause).await;
    assert_eq!(paused.batch.pause_reason.as_deref(), Some("lunch"));
    let resumed = apply(&client, batch.id, resume).await;
    assert_eq!(resumed.batch.paused_at, None);
    let cancelled =
        apply(&client, batch.id, BatchAction::CancelBatch { reason: Some("no".to_owned()) }).await;
    assert_eq!(cancelled.batch.status, BatchStatus::Cancelled);
    refused(&client, batch.id, advance(), "ended").await;
}

#[tokio::test]
async fn a_batch_goes_on_at_once_after_a_crash() {
    let ground = Ground::embedded().await;
    let stand = without_workers(&ground).await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    // No worker fetches, so its call stays open, and the node holds the batch.
    let batch = client.create_batch(&due(&["ada"])).await.unwrap();
    until(&client, batch.id, |batch| batch.phases[0].step_counts.contains_key("dispatched")).await;
    let next = ground.after_a_crash().await;
    drop(stand);
    let stand = without_workers(&next).await;
    let paused =
        stand.client().request_of_batch(batch.id, &BatchAction::PauseBatch { reason: None }).await.unwrap();
    assert_eq!(paused.state, RequestState::Applied, "the lease of the dead process is void: {paused:?}");
}

#[tokio::test]
async fn requests_that_apply_to_nothing_are_refused_and_change_nothing() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let batch = client.create_batch(&due(&["ada", "bad"])).await.unwrap();
    let before = ended(&client, batch.id).await;
    let members = client.batch_members(batch.id, None).await.unwrap().members;
    let retry =
        |id: u64| BatchAction::RetryMembers { batch_member_ids: Some(vec![id]), from: RetryFrom::Step };
    refused(&client, batch.id, retry(members[0].id), "has not failed: it is active").await;
    for (action, words) in [
        (retry(99_999), "no member 99999"),
        (BatchAction::SkipPhase { phase_execution_id: 99_999 }, "no phase 99999"),
        (BatchAction::SkipStep { step_execution_id: 99_999 }, "no step 99999"),
        (BatchAction::RetryInitRollback { init_execution_id: 99_999 }, "no init step 99999"),
    ] {
        let missing = client.request_of_batch(batch.id, &action).await.unwrap_err();
        assert_eq!((missing.status(), missing.code()), (Some(404), Some("not-found")), "{missing}");
        assert!(missing.to_string().contains(words), "{missing}");
    }
    assert_eq!(client.batch(batch.id).await.unwrap(), before);
}

#[tokio::test]
async fn batches_and_members_are_listed_by_state() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let waits = client.create_batch(&by_hand(&["cyd"])).await.unwrap();
    let failed = client.create_batch(&due(&["ada", "bad", "eve"])).await.unwrap();
    sealed(&client, &waits).await;
    ended(&client, failed.id).await;
    let keys = async |status: &[MemberStatus], limit| {
        let page = PageRequest { limit, cursor: None };
        let list = ListMembers { status: status.to_vec(), page };
        let page = client.batch_members(failed.id, list).await.unwrap();
        (page.members.into_iter().map(|member| member.member_key).collect::<Vec<_>>(), page.next_cursor)
    };
    assert_eq!(keys(&[MemberStatus::Failed], None).await, (vec!["bad".to_owned()], None));
    assert_eq!(keys(&[MemberStatus::Cancelled], None).await, (vec![], None));
    let (first, next) = keys(&[MemberStatus::Active, MemberStatus::Failed], Some(1)).await;
    assert_eq!((first, next.is_some()), (vec!["ada".to_owned()], true));
    let ids = async |status: BatchStatus| {
        let list = ListBatches { status: vec![status], ..ListBatches::default() };
        let found = client.batches(&list).await.unwrap().batches;
        found.into_iter().map(|batch| batch.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(BatchStatus::Failed).await, [failed.id]);
    assert_eq!(ids(BatchStatus::Cancelled).await, [0_u64; 0]);
    let path = format!("/v1/batches/{}/members?status=failed,nosuch", failed.id);
    let answer = crate::stand::http().get(stand.url(&path)).send().await.unwrap();
    assert_eq!(answer.status(), 400);
}

#[tokio::test]
async fn a_paused_batch_tells_so_and_a_cancelled_one_is_not_paused() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let batch = client.create_batch(&by_hand(&["ada"])).await.unwrap();
    sealed(&client, &batch).await;
    let pause = BatchAction::PauseBatch { reason: Some("lunch".to_owned()) };
    let paused = apply(&client, batch.id, pause).await;
    assert_eq!(paused.explanation.why, "the batch is paused: lunch");
    assert_eq!(paused.explanation.released_by.as_deref(), Some("by the request `resume_batch`"));
    let cancelled = apply(&client, batch.id, BatchAction::CancelBatch { reason: None }).await;
    assert_eq!((cancelled.batch.status, cancelled.batch.paused_at), (BatchStatus::Cancelled, None));
}

/// A server whose pool `here` is for workers, of which there are none.
async fn without_workers(ground: &Ground) -> Stand {
    let mut settings = local(Authentication::None);
    settings.pools = serde_json::from_value(json!({ "here": { "functions": ["*"] } })).unwrap();
    let builder = Server::builder(ground.store.clone(), settings);
    Stand::begun(builder.registry(samples::registry()).functions(functions), ground).await
}

#[tokio::test]
async fn a_step_of_a_pool_without_workers_tells_so() {
    let ground = Ground::new().await;
    let stand = without_workers(&ground).await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let batch = client.create_batch(&due(&["ada"])).await.unwrap().id;
    let is_dispatched = |batch: &BatchDetails| batch.phases[0].step_counts.contains_key("dispatched");
    let shown = until(&client, batch, is_dispatched).await;
    let member = client.batch_members(batch, None).await.unwrap().members[0].id;
    let step = client.batch_member(batch, member).await.unwrap().steps[0].id;
    let none = "waits for a worker: pool \"here\" has none";
    for row in [None, Some(format!("phase-{}", shown.phases[0].id)), Some(format!("step-{step}"))] {
        let why = client.explain_batch(batch, row.as_deref()).await.unwrap().why;
        assert!(why.ends_with(none), "{row:?}: {why}");
    }
    client
        .pause_pool("here", &segno_api::pool::PausePool { reason: Some("lunch".to_owned()) })
        .await
        .unwrap();
    let why = client.explain_batch(batch, Some(&format!("step-{step}"))).await.unwrap().why;
    assert_eq!(why, "it waits for pool \"here\", which is paused: lunch");
}

#[tokio::test]
async fn publishing_warns_of_pools_and_functions_that_are_not_known() {
    let stand = stand().await;
    let text = MOVE
        .replacen("worker_id: here, function: Switch", "worker_id: there, function: Switch", 1)
        .replacen("function: Create", "function: Make", 1);
    let published = stand.client().publish_runbook(&yaml(&text)).await.unwrap();
    let [function, pool] = &published.warnings[..] else { panic!("{:?}", published.warnings) };
    assert!(function.contains("phases[0].steps[0].function: ") && function.contains("Make"), "{function}");
    assert!(pool.contains("phases[1].steps[0].worker_id: no pool \"there\" is known"), "{pool}");
    assert!(pool.starts_with("line "), "{pool}");
    let known = stand.client().publish_runbook(&yaml(MOVE)).await.unwrap();
    assert_eq!(known.warnings, Vec::<String>::new());
}

#[tokio::test]
async fn calls_of_a_batch_are_steered_by_its_requests_only() {
    let ground = Ground::new().await;
    let stand = without_workers(&ground).await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let batch = client.create_batch(&due(&["ada"])).await.unwrap().id;
    let is_dispatched = |batch: &BatchDetails| batch.phases[0].step_counts.contains_key("dispatched");
    until(&client, batch, is_dispatched).await;
    let member = client.batch_members(batch, None).await.unwrap().members[0].id;
    let job = client.batch_member(batch, member).await.unwrap().steps[0].job_id.clone().unwrap();
    let id = format!("runbook:{job}");
    let before = client.instance(&id, Duration::ZERO).await.unwrap();
    let http = crate::stand::http();
    let path = |verb: &str| stand.url(&format!("/v1/instances/{id}{verb}"));
    let reason = json!({ "reason": "no" });
    for (call, request) in [
        (http.post(path("/cancel")).json(&reason), "`cancel_step` with step_execution_id"),
        (http.post(path("/pause")).json(&reason), "`pause_batch`"),
        (http.post(path("/resume")).json(&json!({})), "`resume_batch`"),
        (http.post(path("/restart")).json(&json!({})), "`retry_members`"),
        (http.delete(path("?force=true")), "kept"),
    ] {
        let answer = call.send().await.unwrap();
        let status = answer.status();
        let problem: Value = answer.json().await.unwrap();
        assert_eq!((status.as_u16(), &problem["code"]), (400, &json!("reserved-id")), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(request), "{problem}");
    }
    for action in ["cancel", "pause", "delete"] {
        let body = json!({ "action": action, "filter": { "prefix": "runbook:" }, "force": true });
        let answer = http.post(stand.url("/v1/instances/bulk")).json(&body).send().await.unwrap();
        let result: Value = answer.json().await.unwrap();
        assert_eq!((&result["matched"], &result["changed"]), (&json!(1), &json!(0)), "{action}: {result}");
    }
    assert_eq!(client.instance(&id, Duration::ZERO).await.unwrap(), before);
}

#[tokio::test]
async fn wrong_times_ids_and_fields_are_told_with_their_form() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let batch = client.create_batch(&by_hand(&["ada"])).await.unwrap().id;
    let http = crate::stand::http();
    let create =
        |start: &str| json!({ "runbook": "move", "batch_start_time": start, "members": [{ "Key": "a" }] });
    let requests = format!("/v1/batches/{batch}/requests");
    let move_to = |start: &str| json!({ "action": "reschedule", "batch_start_time": start });
    for (path, body, code, words) in [
        (
            "/v1/batches",
            create("soon"),
            "invalid-request",
            "batch_start_time: \"soon\" is not a time; write RFC 3339",
        ),
        ("/v1/batches", create("0001-01-01T00:00:00Z"), "invalid-batch", "is before 2000-01-01"),
        ("/v1/batches", create("2999-01-01T00:00:00Z"), "invalid-batch", "a hundred years from now"),
        (&requests, move_to("0001-01-01T00:00:00Z"), "invalid-batch", "is before 2000-01-01"),
        (
            &requests,
            move_to("soon"),
            "invalid-request",
            "batch_start_time: \"soon\" is not a time; write RFC 3339",
        ),
        (&requests, json!({ "action": "advance", "phase": 1 }), "invalid-request", "unknown field `phase`"),
        (&requests, json!({ "action": "resume_batch", "x": 1 }), "invalid-request", "unknown field `x`"),
        (&requests, json!({ "action": "retry_init", "x": 1 }), "invalid-request", "unknown field `x`"),
        (
            &requests,
            json!({ "action": "skip_step", "step_execution_id": "a" }),
            "invalid-request",
            "step_execution_id: invalid type: string \"a\", expected a whole number",
        ),
        (
            "/v1/batches/first/requests",
            json!({ "action": "advance" }),
            "invalid-request",
            "\"first\" is not a whole number",
        ),
    ] {
        let answer = http.post(stand.url(path)).json(&body).send().await.unwrap();
        assert_eq!(answer.status(), 400, "{body}");
        let problem: Value = answer.json().await.unwrap();
        assert_eq!(problem["code"], code, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(words), "{problem}");
    }
    let ids: Vec<u64> = (0..501).collect();
    let many = BatchAction::RetryMembers { batch_member_ids: Some(ids), from: RetryFrom::Step };
    let refused = client.request_of_batch(batch, &many).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-batch")), "{refused}");
}

#[tokio::test]
async fn members_leave_and_come_late() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let batch = client.create_batch(&by_hand(&["ada", "eve"])).await.unwrap();
    sealed(&client, &batch).await;
    apply(&client, batch.id, BatchAction::Advance {}).await;
    until(&client, batch.id, |batch| batch.phases[0].status == PhaseStatus::Completed).await;
    let late = PutMembers { members_csv: Some("Key\nzoe\n".to_owned()), members: Vec::new() };
    let request = client.put_batch_members(batch.id, &late).await.unwrap();
    assert_eq!((request.state, request.action.as_str()), (RequestState::Applied, "put_members"));
    let receipt = client.batch_request(batch.id, &request.key).await.unwrap();
    assert_eq!(receipt, request);
    let gone = RemoveMembers { keys: vec!["ADA".to_owned()] };
    let request = client.remove_batch_members(batch.id, &gone).await.unwrap();
    assert_eq!(request.state, RequestState::Applied);
    let counted = |batch: &BatchDetails| batch.batch.member_counts.removed == 1;
    let shown = until(&client, batch.id, counted).await;
    assert_eq!(shown.batch.member_counts.active, 2);
    let caught_up = |batch: &BatchDetails| batch.phases[0].members_succeeded == 3;
    until(&client, batch.id, caught_up).await;
    for (problem, code) in [
        (client.put_batch_members(batch.id, &PutMembers::default()).await.unwrap_err(), "invalid-request"),
        (
            client.remove_batch_members(batch.id, &RemoveMembers { keys: Vec::new() }).await.unwrap_err(),
            "invalid-request",
        ),
    ] {
        assert_eq!((problem.status(), problem.code()), (Some(400), Some(code)), "{problem}");
    }
}

#[tokio::test]
async fn a_request_with_the_same_key_is_made_once() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let http = crate::stand::http();
    let post = async |path: &str, key: &str, body: Value| -> (u16, Value) {
        let call = http.post(stand.url(path)).header("idempotency-key", key).json(&body);
        let answer = call.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    };
    let body = |key: &str| json!({ "runbook": "move", "members": [{ "Key": key }] });
    let first = post("/v1/batches", "k-1", body("ada")).await;
    assert_eq!((first.0, &first.1["id"]), (201, &json!(1)), "{}", first.1);
    assert_eq!(post("/v1/batches", "k-1", body("ada")).await, first);
    let (status, problem) = post("/v1/batches", "k-1", body("eve")).await;
    assert_eq!((status, &problem["code"]), (422, &json!("idempotency-mismatch")), "{problem}");
    assert_eq!(client.batches(&ListBatches::default()).await.unwrap().batches.len(), 1);
    sealed(&client, &serde_json::from_value(first.1).unwrap()).await;
    let advance = json!({ "action": "advance" });
    let applied = post("/v1/batches/1/requests", "k-2", advance.clone()).await;
    assert_eq!((applied.0, &applied.1["state"]), (200, &json!("applied")), "{}", applied.1);
    until(&client, 1, |batch| batch.phases[0].status == PhaseStatus::Completed).await;
    assert_eq!(post("/v1/batches/1/requests", "k-2", advance).await, applied);
    let batch = client.batch(1).await.unwrap();
    assert_eq!(batch.phases[1].status, PhaseStatus::Pending, "it was advanced once");
}

#[tokio::test]
async fn what_there_is_not_and_what_makes_no_sense_is_refused() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let pause = BatchAction::PauseBatch { reason: None };
    let one = PutMembers { members_csv: Some("Key\na\n".to_owned()), members: Vec::new() };
    for unknown in [
        client.batch(7).await.unwrap_err(),
        client.explain_batch(7, None).await.unwrap_err(),
        client.batch_members(7, None).await.unwrap_err(),
        client.batch_member(7, 1).await.unwrap_err(),
        client.put_batch_members(7, &one).await.unwrap_err(),
        client.remove_batch_members(7, &RemoveMembers { keys: vec!["a".to_owned()] }).await.unwrap_err(),
        client.request_of_batch(7, &pause).await.unwrap_err(),
    ] {
        assert_eq!((unknown.status(), unknown.code()), (Some(404), Some("unknown-batch")), "{unknown}");
    }
    let nothing = CreateBatch { runbook: "none".to_owned(), ..by_hand(&["a"]) };
    let both = CreateBatch { members_csv: Some("Key\na\n".to_owned()), ..by_hand(&["a"]) };
    let no_column = CreateBatch { members_csv: Some("Name\na\n".to_owned()), ..by_hand(&[]) };
    for (request, status, code) in [
        (nothing, 404, "unknown-runbook"),
        (CreateBatch { version: Some(9), ..by_hand(&["a"]) }, 404, "unknown-runbook"),
        (by_hand(&[]), 400, "invalid-batch"),
        (both, 400, "invalid-request"),
        (no_column, 400, "invalid-members"),
        (by_hand(&["a", "A"]), 400, "invalid-members"),
    ] {
        let refused = client.create_batch(&request).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(status), Some(code)), "{refused}");
    }
    assert!(client.batches(&ListBatches::default()).await.unwrap().batches.is_empty());
    let batch = client.create_batch(&by_hand(&["a"])).await.unwrap().id;
    for row in ["step-99", "member-99", "phase-99", "init-99"] {
        let missing = client.explain_batch(batch, Some(row)).await.unwrap_err();
        assert_eq!((missing.status(), missing.code()), (Some(404), Some("not-found")), "{row}: {missing}");
    }
    let wrong = client.explain_batch(batch, Some("stair-1")).await.unwrap_err();
    assert_eq!((wrong.status(), wrong.code()), (Some(400), Some("invalid-request")), "{wrong}");
    let missing = client.batch_member(batch, 99).await.unwrap_err();
    assert_eq!((missing.status(), missing.code()), (Some(404), Some("not-found")), "{missing}");
    let missing = client.batch_request(batch, "none").await.unwrap_err();
    assert_eq!((missing.status(), missing.code()), (Some(404), Some("not-found")), "{missing}");
}

#[tokio::test]
async fn batches_are_listed_by_runbook_newest_first() {
    let stand = stand().await;
    let client = stand.client();
    let ids = |list: Vec<Batch>| list.iter().map(|batch| batch.id).collect::<Vec<_>>();
    for name in ["move", "other"] {
        client.publish_runbook(&yaml(&MOVE.replace("name: move", &format!("name: {name}")))).await.unwrap();
    }
    for name in ["move", "other", "move"] {
        let batch = CreateBatch { runbook: name.to_owned(), ..by_hand(&["a"]) };
        client.create_batch(&batch).await.unwrap();
    }
    let all = client.batches(&ListBatches::default()).await.unwrap();
    assert_eq!(ids(all.batches), [3, 2, 1]);
    let mut of_move = ListBatches { runbook: Some("move".to_owned()), ..ListBatches::default() };
    of_move.page.limit = Some(1);
    let page = client.batches(&of_move).await.unwrap();
    assert_eq!(ids(page.batches), [3]);
    of_move.page.cursor = page.next_cursor;
    let page = client.batches(&of_move).await.unwrap();
    assert_eq!((ids(page.batches), page.next_cursor), (vec![1], None));
}

#[tokio::test]
async fn members_have_a_limit_of_size_of_their_own() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let filler = "x".repeat(20_000);
    let rows: String = (0..100).map(|number| format!("key-{number},{filler}\n")).collect();
    let csv = format!("Key,Note\n{rows}");
    let large = CreateBatch { members_csv: Some(csv.clone()), ..by_hand(&[]) };
    // With a key, the body is read before it gets to its route.
    let batch = client.clone().retry_for(PATIENCE).create_batch(&large).await.unwrap();
    let is_sealed = |batch: &BatchDetails| batch.batch.is_sealed && batch.batch.member_counts.active == 100;
    until(&client, batch.id, is_sealed).await;
    let same = PutMembers { members_csv: Some(csv), members: Vec::new() };
    client.put_batch_members(batch.id, &same).await.unwrap();
    let comments = format!("# {}\n", "\"".repeat(97)).repeat(10_000);
    client.publish_runbook(&yaml(&format!("{MOVE}{comments}"))).await.unwrap();
    let mib = 1024 * 1024;
    let small_door = format!(r#"{{"yaml_content":"{}"}}"#, "x".repeat(3 * mib));
    let too_large = format!(r#"{{"runbook":"move","members_csv":"{}"}}"#, "x".repeat(24 * mib));
    for (path, body) in [
        ("/v1/runbooks", small_door),
        ("/v1/batches", too_large.clone()),
        ("/v1/batches/1/members", too_large),
    ] {
        let call = crate::stand::http().post(stand.url(path)).header("content-type", "application/json");
        let answer = call.body(body).send().await.unwrap();
        assert_eq!(answer.status(), 413, "{path}");
        let problem: Value = answer.json().await.unwrap();
        assert_eq!(problem["code"], "body-too-large", "{path}");
    }
}

#[tokio::test]
async fn rows_that_cannot_be_read_are_listed_as_such_and_stop_no_page() {
    let ground = Ground::new().await;
    let builder = Server::builder(ground.store.clone(), local(Authentication::None));
    let stand = Stand::begun(builder.registry(samples::registry()).functions(functions), &ground).await;
    let client = stand.client();
    for text in [MOVE.to_owned(), MOVE.replace("Move", "Shift"), MOVE.replace("name: move", "name: other")] {
        client.publish_runbook(&yaml(&text)).await.unwrap();
    }
    for _ in 0..3 {
        let batch = client.create_batch(&by_hand(&["a", "b", "c"])).await.unwrap();
        sealed(&client, &batch).await;
    }
    let second_member = client.batch_members(1, None).await.unwrap().members[1].id;
    let damaged = [
        ("runbook_heads", "default/default/nobody".to_owned()),
        ("runbooks", format!("default/default/move/{:010}", 1)),
        ("batches", format!("default/default/{:020}", 2)),
        ("runbook_batches", format!("default/default/move/{:020}", u64::MAX - 3)),
        ("batch_members", format!("default/default/{:020}/{second_member:020}", 1)),
    ];
    let writes = damaged.into_iter().map(|(kind, id)| RecordWrite::Put {
        kind: kind.to_owned(),
        id,
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: "junk".into(),
    });
    let damage = RecordBatch { writes: writes.collect(), ..RecordBatch::default() };
    ground.store.commit_records(damage).await.unwrap();
    let member = second_member.to_string();
    for (path, rows, unreadable) in [
        ("/v1/runbooks", 2, vec!["nobody"]),
        ("/v1/runbooks/move/versions", 1, vec!["1"]),
        ("/v1/batches", 2, vec!["2"]),
        ("/v1/batches?runbook=move", 1, vec!["3", "2"]),
        ("/v1/batches/1/members", 2, vec![member.as_str()]),
    ] {
        let (mut found, mut broken, mut cursor) = (0, Vec::new(), String::new());
        loop {
            let separator = if path.contains('?') { '&' } else { '?' };
            let url = stand.url(&format!("{path}{separator}limit=1{cursor}"));
            let answer = crate::stand::http().get(url).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
            let page: Value = answer.json().await.unwrap();
            let ids = page["unreadable"].as_array().into_iter().flatten();
            broken.extend(ids.map(|row| row["id"].as_str().unwrap().to_owned()));
            let lists = page.as_object().unwrap().iter().filter(|(name, _)| *name != "unreadable");
            found += lists.filter_map(|(_, rows)| rows.as_array()).map(Vec::len).sum::<usize>();
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
            assert!(found + broken.len() <= 3, "{path} never ends: {page}");
        }
        assert_eq!((found, broken), (rows, unreadable.into_iter().map(str::to_owned).collect()), "{path}");
    }
}

#[tokio::test]
async fn a_reason_has_a_limit() {
    let stand = Stand::open().await;
    let reason = Some("x".repeat(4 * 1024 + 1));
    for action in [BatchAction::PauseBatch { reason: reason.clone() }, BatchAction::CancelBatch { reason }] {
        let refused = stand.client().request_of_batch(1, &action).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-request")));
        assert!(refused.to_string().contains("reason"), "{refused}");
    }
}

#[tokio::test]
async fn members_have_one_limit_in_both_forms() {
    let stand = Stand::open().await;
    let client = stand.client();
    let yaml_content = "name: r\ndata_source: {type: manual, primary_key: Id}\nphases:\n  - {name: p, offset: T-0, steps: [{name: s, worker_id: w, function: f}]}\n".to_owned();
    let publish =
        PublishRunbook { yaml_content, overdue_behavior: OverdueBehavior::Rerun, rerun_init: false };
    client.publish_runbook(&publish).await.unwrap();
    let new = |members_csv: Option<String>, members: Vec<serde_json::Map<String, Value>>| CreateBatch {
        runbook: "r".to_owned(),
        version: None,
        batch_start_time: None,
        members_csv,
        members,
    };
    let object = |number: usize| json!({ "Id": number.to_string() }).as_object().cloned().unwrap();
    let objects = new(None, (0..50_001).map(object).collect());
    let csv: String =
        std::iter::once("Id\n".to_owned()).chain((0..50_001).map(|row| format!("{row}\n"))).collect();
    for request in [objects, new(Some(csv), Vec::new())] {
        let refused = client.create_batch(&request).await.unwrap_err();
        assert_eq!(refused.status(), Some(400));
        assert!(refused.to_string().contains("50000") || refused.to_string().contains("50001"), "{refused}");
    }
}
