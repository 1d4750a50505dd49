//! The JSON of messages: the seed's examples to the letter, workers' results in either letter case, and what waits
//! in inboxes.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use crate::rows::{BatchId, InitId, MemberId, PhaseId, RetryFrom, RunbookId, StepId};

/// The examples of the seed, with the spaces taken out.
const SEED: [&str; 5] = [
    r#"{"messageType":"batch-init","runbookName":"contoso-mailbox-migration","runbookVersion":3,"batchId":42,"batchStartTime":"2025-03-15T00:00:00Z","memberCount":150}"#,
    r#"{"messageType":"phase-due","runbookName":"contoso-mailbox-migration","runbookVersion":3,"batchId":42,"phaseExecutionId":108,"phaseName":"pre-notification","offsetMinutes":7200,"dueAt":"2025-03-10T00:00:00Z","memberIds":[501,502,503,504]}"#,
    r#"{"messageType":"member-added","runbookName":"contoso-mailbox-migration","runbookVersion":3,"batchId":42,"batchMemberId":505,"memberKey":"newuser@contoso.com"}"#,
    r#"{"messageType":"member-removed","runbookName":"contoso-mailbox-migration","runbookVersion":3,"batchId":42,"batchMemberId":503,"memberKey":"removeduser@contoso.com"}"#,
    r#"{"messageType":"poll-check","runbookName":"contoso-mailbox-migration","runbookVersion":3,"batchId":42,"stepExecutionId":1042,"stepName":"start-mailbox-move","pollCount":5}"#,
];

/// Messages that the shipped system added.
const SHIPPED: [&str; 3] = [
    r#"{"messageType":"poll-check","runbookName":"r","runbookVersion":3,"batchId":42,"stepExecutionId":7,"stepName":"open","pollCount":1,"isInitStep":true}"#,
    r#"{"messageType":"retry-check","stepExecutionId":1042,"isInitStep":false,"runbookName":"r","runbookVersion":3,"batchId":42}"#,
    r#"{"messageType":"dispatch-timeout","stepExecutionId":1042,"isInitStep":false,"runbookName":"r","runbookVersion":3,"batchId":42,"stepName":"s","dispatchedAt":"2025-03-10T00:00:00Z"}"#,
];

/// The names of an object, all with a capital letter.
fn in_pascal_case(text: &str) -> String {
    let Value::Object(fields) = serde_json::from_str(text).expect("it is JSON") else {
        unreachable!("it is an object")
    };
    let pascal = |name: String| name[..1].to_uppercase() + &name[1..];
    Value::Object(fields.into_iter().map(|(name, value)| (pascal(name), value)).collect()).to_string()
}

#[test]
fn the_messages_of_the_seed_are_written_and_read_to_the_letter() {
    for text in SEED.into_iter().chain(SHIPPED) {
        let message = EventMessage::read(text.as_bytes()).expect("it is a message");
        assert_eq!(serde_json::to_string(&message).expect("it is JSON"), text);
        assert!(text.contains(&format!(r#""messageType":"{}""#, message.message_type())));
        assert_eq!(message.batch_id(), BatchId(42));
        let other_case =
            EventMessage::read(in_pascal_case(text).as_bytes()).expect("either letter case is read");
        assert_eq!(other_case, message);
    }
}

#[test]
fn what_is_no_message_is_refused() {
    for text in ["", "[]", r#"{"messageType":"batch-gone"}"#, r#"{"messageType":"batch-init","batchId":42}"#]
    {
        assert!(EventMessage::read(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn a_job_is_what_workers_know() {
    let job = JobMessage {
        job_id: "step-1042".to_owned(),
        batch_id: BatchId(42),
        worker_id: "cloud-01".to_owned(),
        function_name: "New-EntraUser".to_owned(),
        parameters: serde_json::value::RawValue::from_string(r#"{"UserPrincipalName":"a@b"}"#.to_owned())
            .expect("it is JSON"),
        correlation_data: CorrelationData {
            step_execution_id: Some(StepId(1_042)),
            init_execution_id: None,
            is_init_step: false,
            runbook_name: "wave-mailbox-move".to_owned(),
            runbook_version: 3,
        },
    };
    let expected = r#"{"jobId":"step-1042","batchId":42,"workerId":"cloud-01","functionName":"New-EntraUser","parameters":{"UserPrincipalName":"a@b"},"correlationData":{"stepExecutionId":1042,"initExecutionId":null,"isInitStep":false,"runbookName":"wave-mailbox-move","runbookVersion":3}}"#;
    assert_eq!(serde_json::to_string(&job).expect("it is JSON"), expected);
}

fn result(job_id: &str, correlation_data: Value) -> Value {
    json!({
        "jobId": job_id, "batchId": 42, "workerId": "cloud-01", "functionName": "New-EntraUser",
        "status": "success", "resultType": "Object", "result": {"complete": true, "data": {"Id": "7"}},
        "error": null, "durationMs": 1234, "timestamp": "2025-03-10T00:00:00Z",
        "correlationData": correlation_data,
    })
}

fn read(value: &Value) -> ResultMessage {
    ResultMessage::read(value.to_string().as_bytes()).expect("it is a result")
}

#[test]
fn results_are_read_in_either_letter_case() {
    let of_step =
        json!({"stepExecutionId": 1042, "isInitStep": false, "runbookName": "r", "runbookVersion": 3});
    let small = read(&result("step-1042", of_step));
    let pascal = json!({
        "JobId": "step-1042", "BatchId": 42, "WorkerId": "cloud-01", "FunctionName": "New-EntraUser",
        "Status": "Success", "ResultType": "Object", "Result": {"Complete": true, "Data": {"Id": "7"}},
        "Error": null, "DurationMs": 1234, "Timestamp": "2025-03-10T00:00:00Z",
        "CorrelationData": {"StepExecutionId": 1042, "IsInitStep": false, "RunbookName": "r", "RunbookVersion": 3},
    });
    let pascal = read(&pascal);
    assert_eq!(small.outcome(), Outcome::Completed { result: json!({"Id": "7"}) });
    assert_eq!(pascal.outcome(), small.outcome());
    assert_eq!(pascal.reference(), small.reference());
    assert_eq!(small.reference(), Ok(WorkReference::Step(StepId(1_042))));
}

#[test]
fn failures_say_why_and_whether_they_were_throttled() {
    for (status, error, outcome) in [
        ("failure", json!({"message": "no", "type": "E"}), Outcome::failed("E: no")),
        ("Failure", json!({"Message": "no"}), Outcome::failed("no")),
        ("failure", json!({"type": "E"}), Outcome::failed("E")),
        ("failure", json!(null), Outcome::failed("the worker reported status \"failure\" without an error")),
        ("odd", json!(null), Outcome::failed("the worker reported status \"odd\" without an error")),
        (
            "failure",
            json!({"message": "429", "isThrottled": true}),
            Outcome::Failed { message: "429".to_owned(), throttled: true },
        ),
    ] {
        let message = read(&json!({"jobId": "step-1", "status": status, "error": error}));
        assert_eq!(message.outcome(), outcome, "{status} {error}");
    }
}

#[test]
fn a_result_names_its_row_or_says_why_not() {
    let step = json!({"stepExecutionId": 1042, "initExecutionId": null, "isInitStep": false});
    let init = json!({"stepExecutionId": null, "initExecutionId": 7, "isInitStep": true});
    for (job_id, data, reference) in [
        ("step-1042", step.clone(), Ok(WorkReference::Step(StepId(1_042)))),
        ("step-1042-retry-1-poll-3", step, Ok(WorkReference::Step(StepId(1_042)))),
        ("init-7", init, Ok(WorkReference::Init(InitId(7)))),
        ("step-1042", Value::Null, Err(ResultProblem::MissingCorrelationData)),
        ("step-1042", json!({}), Err(ResultProblem::InvalidCorrelationData)),
        (
            "init-7",
            json!({"isInitStep": true, "stepExecutionId": 7}),
            Err(ResultProblem::InvalidCorrelationData),
        ),
        ("rollback-42-501-undo-user-0", Value::Null, Ok(WorkReference::Rollback(Some(MemberId(501))))),
        ("rollback-42-batch-undo-0-run-2", Value::Null, Ok(WorkReference::Rollback(None))),
        ("removed-501-1", Value::Null, Ok(WorkReference::Removal(MemberId(501), 1))),
        ("removed-501-1-run-2-poll-3", Value::Null, Ok(WorkReference::Removal(MemberId(501), 1))),
        ("removed-x-1", Value::Null, Err(ResultProblem::MissingCorrelationData)),
    ] {
        assert_eq!(read(&result(job_id, data)).reference(), reference, "{job_id}");
    }
    for (job_id, reference) in [
        ("step-1042-poll-1", Some(WorkReference::Step(StepId(1_042)))),
        ("init-7-retry-2", Some(WorkReference::Init(InitId(7)))),
        ("step", None),
        ("other-1", None),
        ("step-x", None),
    ] {
        assert_eq!(WorkReference::of_job_id(job_id), reference, "{job_id}");
    }
}

fn check(message: &Message, expected: &Expect) {
    let text = serde_json::to_string(message).expect("it is JSON");
    assert_eq!(&serde_json::from_str::<Message>(&text).expect("it is read back"), message);
    expected.assert_eq(&text);
}

fn request(action: Action) -> Message {
    Message::Request(Request { key: "r1".to_owned(), by: Some("anna".to_owned()), action })
}

#[test]
fn what_waits_in_inboxes() {
    let step = WorkReference::Step(StepId(1_042));
    let outcome = Outcome::Completed { result: json!({"Id": "7"}) };
    let result =
        CallResult { job_id: "step-1042".to_owned(), work: step, outcome: outcome.clone(), pool: None };
    check(
        &Message::Result(result),
        &expect![[
            r#"{"result":{"jobId":"step-1042","work":{"step":1042},"outcome":{"state":"completed","result":{"Id":"7"}}}}"#
        ]],
    );
    let throttled = Outcome::Failed { message: "429".to_owned(), throttled: true };
    for (work, outcome, expected) in [
        (
            WorkReference::Init(InitId(7)),
            Outcome::InProgress,
            expect![[r#"{"result":{"jobId":"j","work":{"init":7},"outcome":{"state":"in_progress"}}}"#]],
        ),
        (
            WorkReference::Rollback(Some(MemberId(501))),
            Outcome::failed("no"),
            expect![[
                r#"{"result":{"jobId":"j","work":{"rollback":501},"outcome":{"state":"failed","message":"no"}}}"#
            ]],
        ),
        (
            WorkReference::Rollback(None),
            throttled,
            expect![[
                r#"{"result":{"jobId":"j","work":{"rollback":null},"outcome":{"state":"failed","message":"429","throttled":true}}}"#
            ]],
        ),
    ] {
        check(&Message::Result(CallResult { job_id: "j".to_owned(), work, outcome, pool: None }), &expected);
    }
    let pool = Some("cloud-01".to_owned());
    let over_bus = CallResult { job_id: "j".to_owned(), work: step, outcome: Outcome::InProgress, pool };
    check(
        &Message::Result(over_bus),
        &expect![[
            r#"{"result":{"jobId":"j","work":{"step":1042},"outcome":{"state":"in_progress"},"pool":"cloud-01"}}"#
        ]],
    );
    for (seen, expected) in [
        (
            CallSeen::Ended { outcome },
            expect![[
                r#"{"call":{"jobId":"removed-501-1","work":{"removal":[501,1]},"seen":{"state":"ended","outcome":{"state":"completed","result":{"Id":"7"}}}}}"#
            ]],
        ),
        (
            CallSeen::Missing,
            expect![[
                r#"{"call":{"jobId":"removed-501-1","work":{"removal":[501,1]},"seen":{"state":"missing"}}}"#
            ]],
        ),
        (
            CallSeen::Leased,
            expect![[
                r#"{"call":{"jobId":"removed-501-1","work":{"removal":[501,1]},"seen":{"state":"leased"}}}"#
            ]],
        ),
        (
            CallSeen::Waiting,
            expect![[
                r#"{"call":{"jobId":"removed-501-1","work":{"removal":[501,1]},"seen":{"state":"waiting"}}}"#
            ]],
        ),
    ] {
        let work = WorkReference::Removal(MemberId(501), 1);
        check(&Message::Call(CallReport { job_id: "removed-501-1".to_owned(), work, seen }), &expected);
    }
    let event = EventMessage::read(SEED[4].as_bytes()).expect("it is a message");
    check(
        &Message::Event(event),
        &expect![[
            r#"{"event":{"messageType":"poll-check","runbookName":"contoso-mailbox-migration","runbookVersion":3,"batchId":42,"stepExecutionId":1042,"stepName":"start-mailbox-move","pollCount":5}}"#
        ]],
    );
}

#[test]
fn requests() {
    let Value::Object(data) = json!({"Upn": "a@contoso.com"}) else { unreachable!("it is an object") };
    let entry = MemberEntry { key: "a@contoso.com".to_owned(), data, digest: "d1".to_owned() };
    let phase_execution_id = PhaseId(108);
    let batch_member_id = MemberId(501);
    let step_execution_id = StepId(1_042);
    let start: jiff::Timestamp = "2025-03-15T00:00:00Z".parse().expect("it is a time");
    let create = Action::CreateBatch {
        batch_id: BatchId(42),
        runbook_id: RunbookId(3),
        runbook_name: "r".to_owned(),
        runbook_version: 3,
        batch_start_time: Some(start),
    };
    let publish = Action::PublishVersion {
        runbook_id: RunbookId(4),
        runbook_version: 4,
        overdue_behavior: OverdueBehavior::Ignore,
        rerun_init: true,
    };
    let all = [
        create,
        Action::PutMembers { members: vec![entry] },
        Action::RemoveMembers { keys: vec!["a@contoso.com".to_owned()] },
        Action::Seal,
        Action::Advance,
        Action::ApprovePhase { phase_execution_id },
        Action::RejectPhase { phase_execution_id },
        Action::PauseBatch { reason: Some("holiday".to_owned()) },
        Action::ResumeBatch,
        Action::ResumePhase { phase_execution_id },
        Action::ResumeMember { batch_member_id },
        Action::CancelBatch { reason: None },
        Action::CancelPhase { phase_execution_id },
        Action::CancelMember { batch_member_id },
        Action::CancelStep { step_execution_id },
        Action::SkipPhase { phase_execution_id },
        Action::SkipStep { step_execution_id },
        Action::RetryMembers { batch_member_ids: Some(vec![batch_member_id]), from: RetryFrom::Phase },
        Action::RetryMembers { batch_member_ids: None, from: RetryFrom::Step },
        Action::RetryInit,
        Action::RetryRollback { step_execution_id },
        Action::RetryInitRollback { init_execution_id: InitId(7) },
        Action::RetryRemoval { batch_member_id },
        Action::Reschedule { batch_start_time: start },
        publish,
    ];
    let mut text = String::new();
    for action in all {
        let name = action.name();
        let message = request(action);
        let json = serde_json::to_string(&message).expect("it is JSON");
        assert!(json.contains(&format!(r#""action":"{name}""#)), "{json}");
        assert_eq!(serde_json::from_str::<Message>(&json).expect("it is read back"), message);
        text.push_str(&json);
        text.push('\n');
    }
    expect![[r#"
        {"request":{"key":"r1","by":"anna","action":"create-batch","batchId":42,"runbookId":3,"runbookName":"r","runbookVersion":3,"batchStartTime":"2025-03-15T00:00:00Z"}}
        {"request":{"key":"r1","by":"anna","action":"put-members","members":[{"key":"a@contoso.com","data":{"Upn":"a@contoso.com"},"digest":"d1"}]}}
        {"request":{"key":"r1","by":"anna","action":"remove-members","keys":["a@contoso.com"]}}
        {"request":{"key":"r1","by":"anna","action":"seal"}}
        {"request":{"key":"r1","by":"anna","action":"advance"}}
        {"request":{"key":"r1","by":"anna","action":"approve-phase","phaseExecutionId":108}}
        {"request":{"key":"r1","by":"anna","action":"reject-phase","phaseExecutionId":108}}
        {"request":{"key":"r1","by":"anna","action":"pause-batch","reason":"holiday"}}
        {"request":{"key":"r1","by":"anna","action":"resume-batch"}}
        {"request":{"key":"r1","by":"anna","action":"resume-phase","phaseExecutionId":108}}
        {"request":{"key":"r1","by":"anna","action":"resume-member","batchMemberId":501}}
        {"request":{"key":"r1","by":"anna","action":"cancel-batch"}}
        {"request":{"key":"r1","by":"anna","action":"cancel-phase","phaseExecutionId":108}}
        {"request":{"key":"r1","by":"anna","action":"cancel-member","batchMemberId":501}}
        {"request":{"key":"r1","by":"anna","action":"cancel-step","stepExecutionId":1042}}
        {"request":{"key":"r1","by":"anna","action":"skip-phase","phaseExecutionId":108}}
        {"request":{"key":"r1","by":"anna","action":"skip-step","stepExecutionId":1042}}
        {"request":{"key":"r1","by":"anna","action":"retry-members","batchMemberIds":[501],"from":"phase"}}
        {"request":{"key":"r1","by":"anna","action":"retry-members","from":"step"}}
        {"request":{"key":"r1","by":"anna","action":"retry-init"}}
        {"request":{"key":"r1","by":"anna","action":"retry-rollback","stepExecutionId":1042}}
        {"request":{"key":"r1","by":"anna","action":"retry-init-rollback","initExecutionId":7}}
        {"request":{"key":"r1","by":"anna","action":"retry-removal","batchMemberId":501}}
        {"request":{"key":"r1","by":"anna","action":"reschedule","batchStartTime":"2025-03-15T00:00:00Z"}}
        {"request":{"key":"r1","by":"anna","action":"publish-version","runbookId":4,"runbookVersion":4,"overdueBehavior":"ignore","rerunInit":true}}
    "#]].assert_eq(&text);
}
