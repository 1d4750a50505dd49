//! The bytes of rows, to the letter. Stored rows are read forever: a change here needs a reason and a reader
//! of the old form.

use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::json;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("it is a time")
}

fn work() -> Work {
    Work {
        step_name: "start-mailbox-move".to_owned(),
        step_index: 1,
        worker_id: "cloud-01".to_owned(),
        function_name: "New-MoveRequest".to_owned(),
        params_json: r#"{"Identity":"a@contoso.com"}"#.to_owned(),
        status: WorkStatus::Polling,
        job_id: Some("step-1042-retry-1-poll-3".to_owned()),
        result_json: None,
        error_message: Some("busy".to_owned()),
        dispatched_at: Some(at("2025-03-10T00:00:05Z")),
        completed_at: None,
        is_poll_step: true,
        poll_interval_sec: Some(900),
        poll_timeout_sec: Some(86_400),
        poll_started_at: Some(at("2025-03-10T00:01:00Z")),
        last_polled_at: Some(at("2025-03-10T00:46:00Z")),
        poll_count: 3,
        retry_count: 1,
        retry_limit: 2,
        retry_interval_sec: 60,
        retry_after: None,
        call_state: Some(CallState::Waiting),
        unleased_since: Some(at("2025-03-10T00:46:00Z")),
        check_at: Some(at("2025-03-10T00:56:00Z")),
    }
}

/// A piece of work of which nothing is known yet.
fn fresh() -> Work {
    Work {
        status: WorkStatus::Pending,
        job_id: None,
        error_message: None,
        dispatched_at: None,
        is_poll_step: false,
        poll_interval_sec: None,
        poll_timeout_sec: None,
        poll_started_at: None,
        last_polled_at: None,
        poll_count: 0,
        retry_count: 0,
        retry_limit: 0,
        retry_interval_sec: 0,
        call_state: None,
        unleased_since: None,
        check_at: None,
        ..work()
    }
}

fn check(row: &Row, expected: &Expect) {
    let bytes = row.encode().expect("rows are JSON");
    let table = row.key().expect("it has a key").table();
    assert_eq!(&Row::decode(table, &bytes).expect("it is read back"), row);
    let value: serde_json::Value = serde_json::from_slice(&bytes).expect("it is JSON");
    assert!(value.is_object());
    expected.assert_eq(&String::from_utf8(bytes).expect("JSON is text"));
}

#[test]
fn a_step() {
    let row = StepRow {
        id: StepId(1_042),
        phase_execution_id: PhaseId(108),
        batch_member_id: MemberId(501),
        work: work(),
        rollback_state: None,
        rollback_run: None,
        rollback_error: None,
    };
    check(
        &Row::Step(row.clone()),
        &expect![[
            r#"{"id":1042,"phase_execution_id":108,"batch_member_id":501,"step_name":"start-mailbox-move","step_index":1,"worker_id":"cloud-01","function_name":"New-MoveRequest","params_json":"{\"Identity\":\"a@contoso.com\"}","status":"polling","job_id":"step-1042-retry-1-poll-3","error_message":"busy","dispatched_at":"2025-03-10T00:00:05Z","is_poll_step":true,"poll_interval_sec":900,"poll_timeout_sec":86400,"poll_started_at":"2025-03-10T00:01:00Z","last_polled_at":"2025-03-10T00:46:00Z","poll_count":3,"retry_count":1,"retry_limit":2,"retry_interval_sec":60,"call_state":"waiting","unleased_since":"2025-03-10T00:46:00Z","check_at":"2025-03-10T00:56:00Z"}"#
        ]],
    );
    let rolled_back = StepRow {
        work: Work {
            status: WorkStatus::RolledBack,
            completed_at: Some(at("2025-03-10T01:00:00Z")),
            ..fresh()
        },
        rollback_state: Some(SequenceState::Succeeded),
        rollback_run: Some(1),
        rollback_error: None,
        ..row
    };
    check(
        &Row::Step(rolled_back),
        &expect![[
            r#"{"id":1042,"phase_execution_id":108,"batch_member_id":501,"step_name":"start-mailbox-move","step_index":1,"worker_id":"cloud-01","function_name":"New-MoveRequest","params_json":"{\"Identity\":\"a@contoso.com\"}","status":"rolled_back","completed_at":"2025-03-10T01:00:00Z","is_poll_step":false,"poll_count":0,"rollback_state":"succeeded","rollback_run":1}"#
        ]],
    );
}

#[test]
fn an_init_step() {
    let row = InitRow {
        id: InitId(7),
        batch_id: BatchId(42),
        runbook_version: 3,
        work: fresh(),
        rollback_state: Some(SequenceState::Failed),
        rollback_run: Some(1),
        rollback_error: Some("step \"delete-user\" failed: no".to_owned()),
    };
    check(
        &Row::Init(row),
        &expect![[
            r#"{"id":7,"batch_id":42,"runbook_version":3,"step_name":"start-mailbox-move","step_index":1,"worker_id":"cloud-01","function_name":"New-MoveRequest","params_json":"{\"Identity\":\"a@contoso.com\"}","status":"pending","is_poll_step":false,"poll_count":0,"rollback_state":"failed","rollback_run":1,"rollback_error":"step \"delete-user\" failed: no"}"#
        ]],
    );
}

#[test]
fn rollback_and_removal_steps() {
    let rollback = RollbackRow {
        batch_id: BatchId(42),
        batch_member_id: Some(MemberId(501)),
        step_execution_id: Some(StepId(1_042)),
        init_execution_id: None,
        rollback_name: "undo-user".to_owned(),
        runbook_version: 3,
        run: 2,
        work: fresh(),
    };
    check(
        &Row::Rollback(rollback),
        &expect![[
            r#"{"batch_id":42,"batch_member_id":501,"step_execution_id":1042,"rollback_name":"undo-user","runbook_version":3,"run":2,"step_name":"start-mailbox-move","step_index":1,"worker_id":"cloud-01","function_name":"New-MoveRequest","params_json":"{\"Identity\":\"a@contoso.com\"}","status":"pending","is_poll_step":false,"poll_count":0}"#
        ]],
    );
    let removal = RemovalRow {
        batch_id: BatchId(42),
        batch_member_id: MemberId(501),
        runbook_version: 3,
        run: 1,
        work: fresh(),
    };
    check(
        &Row::Removal(removal),
        &expect![[
            r#"{"batch_id":42,"batch_member_id":501,"runbook_version":3,"run":1,"step_name":"start-mailbox-move","step_index":1,"worker_id":"cloud-01","function_name":"New-MoveRequest","params_json":"{\"Identity\":\"a@contoso.com\"}","status":"pending","is_poll_step":false,"poll_count":0}"#
        ]],
    );
}

#[test]
fn a_member_and_its_key() {
    let serde_json::Value::Object(data) = json!({"Upn": "a@contoso.com", "Aliases": ["x", "y"]}) else {
        unreachable!("it is an object")
    };
    let row = MemberRow {
        id: MemberId(501),
        batch_id: BatchId(42),
        member_key: "A@contoso.com".to_owned(),
        status: MemberStatus::Active,
        added_at: at("2025-03-01T00:00:00Z"),
        removed_at: None,
        add_dispatched_at: Some(at("2025-03-01T00:00:00Z")),
        remove_dispatched_at: None,
        ordinal: 0,
        data,
        worker_data: serde_json::Map::new(),
        failed_at: None,
        first_seen_at: at("2025-03-01T00:00:00Z"),
        last_seen_at: None,
        is_current: true,
        rollback_of: None,
        rollback_runs: 0,
        removal_state: None,
        removal_runs: 0,
        removal_steps: 0,
        removal_error: None,
        is_returning: false,
    };
    check(
        &Row::Member(row.clone()),
        &expect![[
            r#"{"id":501,"batch_id":42,"member_key":"A@contoso.com","status":"active","added_at":"2025-03-01T00:00:00Z","add_dispatched_at":"2025-03-01T00:00:00Z","ordinal":0,"data":{"Aliases":["x","y"],"Upn":"a@contoso.com"},"_first_seen_at":"2025-03-01T00:00:00Z","_is_current":true}"#
        ]],
    );
    let mut leaving = MemberRow {
        status: MemberStatus::Removed,
        removed_at: Some(at("2025-03-12T00:00:00Z")),
        remove_dispatched_at: Some(at("2025-03-12T00:00:00Z")),
        failed_at: Some(at("2025-03-11T00:00:00Z")),
        last_seen_at: Some(at("2025-03-12T00:00:00Z")),
        is_current: false,
        rollback_of: Some(StepId(1_042)),
        rollback_runs: 1,
        removal_state: Some(SequenceState::Waiting),
        removal_runs: 1,
        removal_steps: 2,
        removal_error: Some("step \"revert\" failed: no".to_owned()),
        is_returning: true,
        ..row
    };
    leaving.worker_data.insert("TargetId".to_owned(), json!("7"));
    check(
        &Row::Member(leaving),
        &expect![[
            r#"{"id":501,"batch_id":42,"member_key":"A@contoso.com","status":"removed","added_at":"2025-03-01T00:00:00Z","removed_at":"2025-03-12T00:00:00Z","add_dispatched_at":"2025-03-01T00:00:00Z","remove_dispatched_at":"2025-03-12T00:00:00Z","ordinal":0,"data":{"Aliases":["x","y"],"Upn":"a@contoso.com"},"worker_data":{"TargetId":"7"},"failed_at":"2025-03-11T00:00:00Z","_first_seen_at":"2025-03-01T00:00:00Z","_last_seen_at":"2025-03-12T00:00:00Z","_is_current":false,"rollback_of":1042,"rollback_runs":1,"removal_state":"waiting","removal_runs":1,"removal_steps":2,"removal_error":"step \"revert\" failed: no","is_returning":true}"#
        ]],
    );
    let key = MemberKeyRow {
        key: normal_key("A@contoso.com"),
        batch_member_id: MemberId(501),
        digest: "d1".to_owned(),
        is_current: true,
    };
    check(
        &Row::MemberKey(key),
        &expect![[r#"{"key":"a@contoso.com","batch_member_id":501,"digest":"d1","is_current":true}"#]],
    );
}

fn blocks(first: u64) -> Blocks {
    let mut blocks = Blocks::default();
    blocks.push(first);
    blocks
}

#[test]
fn a_batch() {
    let row = BatchRow {
        id: BatchId(42),
        runbook_id: RunbookId(3),
        batch_start_time: Some(at("2025-03-15T00:00:00Z")),
        status: BatchStatus::InitDispatched,
        detected_at: at("2025-03-01T00:00:00Z"),
        init_dispatched_at: Some(at("2025-03-01T00:00:01Z")),
        runbook_name: "contoso-mailbox-migration".to_owned(),
        runbook_version: 3,
        is_manual: false,
        is_sealed: true,
        completed_at: None,
        error_message: None,
        paused_at: None,
        pause_reason: None,
        blackout_until: None,
        ending: None,
        members: 150,
        member_blocks: blocks(501),
        member_counts: MemberCounts { active: 150, ..MemberCounts::default() },
        worker_data: serde_json::Map::new(),
        rollback_of: None,
        rollback_runs: 0,
        retry_cursor: None,
        list_cursor: None,
        unsent_pools: std::collections::BTreeSet::new(),
        parts: 0,
    };
    check(
        &Row::Batch(row.clone()),
        &expect![[
            r#"{"id":42,"runbook_id":3,"batch_start_time":"2025-03-15T00:00:00Z","status":"init_dispatched","detected_at":"2025-03-01T00:00:00Z","init_dispatched_at":"2025-03-01T00:00:01Z","runbook_name":"contoso-mailbox-migration","runbook_version":3,"is_sealed":true,"members":150,"member_blocks":[501],"member_counts":{"active":150,"removed":0,"failed":0,"cancelled":0,"leaving":0}}"#
        ]],
    );
    let mut busy = BatchRow {
        batch_start_time: None,
        status: BatchStatus::Cancelled,
        is_manual: true,
        completed_at: Some(at("2025-03-16T00:00:00Z")),
        error_message: Some("no longer needed".to_owned()),
        paused_at: Some(at("2025-03-02T00:00:00Z")),
        pause_reason: Some("holiday".to_owned()),
        blackout_until: Some(at("2025-03-02T06:00:00Z")),
        ending: Some(BatchStatus::Failed),
        rollback_of: Some(InitId(7)),
        rollback_runs: 1,
        retry_cursor: Some(RetryCursor { next: 1_024, end: 2_000, from: RetryFrom::Phase }),
        list_cursor: Some(ListCursor { message: "r1".to_owned(), done: 100 }),
        parts: 9,
        ..row
    };
    busy.worker_data.insert("BatchName".to_owned(), json!("wave-1"));
    check(
        &Row::Batch(busy),
        &expect![[
            r#"{"id":42,"runbook_id":3,"status":"cancelled","detected_at":"2025-03-01T00:00:00Z","init_dispatched_at":"2025-03-01T00:00:01Z","runbook_name":"contoso-mailbox-migration","runbook_version":3,"is_manual":true,"is_sealed":true,"completed_at":"2025-03-16T00:00:00Z","error_message":"no longer needed","paused_at":"2025-03-02T00:00:00Z","pause_reason":"holiday","blackout_until":"2025-03-02T06:00:00Z","ending":"failed","members":150,"member_blocks":[501],"member_counts":{"active":150,"removed":0,"failed":0,"cancelled":0,"leaving":0},"worker_data":{"BatchName":"wave-1"},"rollback_of":7,"rollback_runs":1,"retry_cursor":{"next":1024,"end":2000,"from":"phase"},"list_cursor":{"message":"r1","done":100},"parts":9}"#
        ]],
    );
}

#[test]
fn a_phase() {
    let row = PhaseRow {
        id: PhaseId(108),
        batch_id: BatchId(42),
        phase_name: "pre-notification".to_owned(),
        offset_minutes: 7_200,
        due_at: Some(at("2025-03-10T00:00:00Z")),
        runbook_version: 3,
        status: PhaseStatus::Pending,
        dispatched_at: None,
        completed_at: None,
        position: 0,
        steps: 2,
        reason: None,
        wake_at: Some(at("2025-03-09T23:59:00Z")),
        ending: None,
        preparing_at: None,
        created: 0,
        created_before: 0,
        is_closed: false,
        step_blocks: Blocks::default(),
        groups: Vec::new(),
        wave: 0,
        wave_at: None,
        released: 0,
        release_cursor: None,
        cancel_cursor: None,
        step_counts: StepCounts::default(),
        members_succeeded: 0,
        members_failed: 0,
        places_taken: 0,
        approval_requested_at: None,
        approved_at: None,
        approved_by: None,
        stopped_at: None,
        budget_base: 0,
    };
    check(
        &Row::Phase(row.clone()),
        &expect![[
            r#"{"id":108,"batch_id":42,"phase_name":"pre-notification","offset_minutes":7200,"due_at":"2025-03-10T00:00:00Z","runbook_version":3,"status":"pending","position":0,"steps":2,"wake_at":"2025-03-09T23:59:00Z","step_counts":{}}"#
        ]],
    );
    let busy = PhaseRow {
        status: PhaseStatus::Dispatched,
        dispatched_at: Some(at("2025-03-10T00:00:00Z")),
        reason: Some(PhaseReason::MembersFailed),
        wake_at: None,
        ending: Some(PhaseEnding { status: PhaseStatus::Superseded, reason: PhaseReason::NewerVersion }),
        preparing_at: Some(at("2025-03-09T23:59:00Z")),
        created: 4,
        created_before: 2,
        is_closed: true,
        step_blocks: blocks(1_042),
        groups: vec![
            Group { end: Some(2), members: 2, open: vec![0, 1], rolling_back: 1 },
            Group::new(None, 2),
        ],
        wave: 1,
        wave_at: Some(at("2025-03-10T02:00:00Z")),
        released: 1,
        release_cursor: Some(ReleaseCursor { next: 2, end: None, index: Some(1) }),
        cancel_cursor: Some(0),
        step_counts: StepCounts {
            pending: 1,
            dispatched: 2,
            succeeded: 3,
            failed: 4,
            polling: 5,
            poll_timeout: 6,
            rolled_back: 7,
            cancelled: 8,
            skipped: 9,
        },
        members_succeeded: 1,
        members_failed: 1,
        places_taken: 1,
        approval_requested_at: Some(at("2025-03-10T00:00:00Z")),
        approved_at: Some(at("2025-03-10T00:00:00Z")),
        approved_by: Some("anna".to_owned()),
        stopped_at: Some(at("2025-03-10T00:00:00Z")),
        budget_base: 1,
        ..row
    };
    check(
        &Row::Phase(busy),
        &expect![[
            r#"{"id":108,"batch_id":42,"phase_name":"pre-notification","offset_minutes":7200,"due_at":"2025-03-10T00:00:00Z","runbook_version":3,"status":"dispatched","dispatched_at":"2025-03-10T00:00:00Z","position":0,"steps":2,"reason":"members_failed","ending":{"status":"superseded","reason":"newer_version"},"preparing_at":"2025-03-09T23:59:00Z","created":4,"created_before":2,"is_closed":true,"step_blocks":[1042],"groups":[{"end":2,"members":2,"open":[0,1],"rolling_back":1},{"members":0,"open":[0,0],"rolling_back":0}],"wave":1,"wave_at":"2025-03-10T02:00:00Z","released":1,"release_cursor":{"next":2,"index":1},"cancel_cursor":0,"step_counts":{"pending":1,"dispatched":2,"succeeded":3,"failed":4,"polling":5,"poll_timeout":6,"rolled_back":7,"cancelled":8,"skipped":9},"members_succeeded":1,"members_failed":1,"places_taken":1,"approval_requested_at":"2025-03-10T00:00:00Z","approved_at":"2025-03-10T00:00:00Z","approved_by":"anna","stopped_at":"2025-03-10T00:00:00Z","budget_base":1}"#
        ]],
    );
}

#[test]
fn the_columns_of_the_seed_are_all_there() {
    // A column that is null is left out, so the rows above show each of them at least once.
    let step = serde_json::to_value(StepRow {
        id: StepId(1),
        phase_execution_id: PhaseId(1),
        batch_member_id: MemberId(1),
        work: Work {
            result_json: Some("{}".to_owned()),
            completed_at: Some(at("2025-03-10T01:00:00Z")),
            ..work()
        },
        rollback_state: None,
        rollback_run: None,
        rollback_error: None,
    });
    let step = step.expect("it is JSON");
    for column in [
        "id",
        "phase_execution_id",
        "batch_member_id",
        "step_name",
        "step_index",
        "worker_id",
        "function_name",
        "params_json",
        "status",
        "job_id",
        "result_json",
        "error_message",
        "dispatched_at",
        "completed_at",
        "is_poll_step",
        "poll_interval_sec",
        "poll_timeout_sec",
        "poll_started_at",
        "last_polled_at",
        "poll_count",
    ] {
        assert!(step.get(column).is_some(), "step_executions has no {column}");
    }
}

#[test]
fn states_are_spelled_as_in_the_seed() {
    let spelled =
        |values: Vec<serde_json::Value>| values.into_iter().map(|v| v.as_str().unwrap_or("").to_owned());
    let work = [
        WorkStatus::Pending,
        WorkStatus::Dispatched,
        WorkStatus::Succeeded,
        WorkStatus::Failed,
        WorkStatus::Polling,
        WorkStatus::PollTimeout,
        WorkStatus::RolledBack,
        WorkStatus::Cancelled,
    ];
    let work: Vec<String> = spelled(work.iter().map(|status| json!(status)).collect()).collect();
    let seed = [
        "pending",
        "dispatched",
        "succeeded",
        "failed",
        "polling",
        "poll_timeout",
        "rolled_back",
        "cancelled",
    ];
    assert_eq!(work, seed);
    let batch = [
        BatchStatus::Detected,
        BatchStatus::InitDispatched,
        BatchStatus::Active,
        BatchStatus::Completed,
        BatchStatus::Failed,
    ];
    let batch: Vec<String> = spelled(batch.iter().map(|status| json!(status)).collect()).collect();
    assert_eq!(batch, ["detected", "init_dispatched", "active", "completed", "failed"]);
    let phase = [
        PhaseStatus::Pending,
        PhaseStatus::Dispatched,
        PhaseStatus::Completed,
        PhaseStatus::Failed,
        PhaseStatus::Skipped,
        PhaseStatus::Superseded,
    ];
    let phase: Vec<String> = spelled(phase.iter().map(|status| json!(status)).collect()).collect();
    assert_eq!(phase, ["pending", "dispatched", "completed", "failed", "skipped", "superseded"]);
    let member = [MemberStatus::Active, MemberStatus::Removed, MemberStatus::Failed];
    let member: Vec<String> = spelled(member.iter().map(|status| json!(status)).collect()).collect();
    assert_eq!(member, ["active", "removed", "failed"]);
}
