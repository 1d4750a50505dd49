//! What is told of batches and versions: what publishing does to open batches, deleted versions,
//! failed removals.

use segno_api::batch::{BatchAction, BatchDetails, MemberStatus, RemoveMembers};
use segno_api::runbook::PhaseMoves;

use crate::batch_live::report;
use crate::runbooks::{MOVE, apply, by_hand, due, ended, sealed, stand, until, yaml};

/// [`MOVE`] with an approval before its second phase.
fn with_approval() -> String {
    MOVE.replace("name: cutover\n    offset: T-0", "name: cutover\n    offset: T-0\n    approval: true")
}

#[tokio::test]
async fn publishing_tells_what_it_does_to_open_batches_and_a_plan_tells_it_before() {
    let stand = stand().await;
    let client = stand.client();
    let first = client.publish_runbook(&yaml(&with_approval())).await.unwrap();
    assert_eq!(first.moves, None);
    let batch = client.create_batch(&due(&["ada", "eve"])).await.unwrap().id;
    until(&client, batch, |batch| batch.phases[1].approval_requested_at.is_some()).await;
    client.create_batch(&by_hand(&["zoe"])).await.unwrap();
    let changed = yaml(&with_approval().replace("Move mailboxes", "Move them again"));
    let plan = client.plan_publishing("move", &changed).await.unwrap();
    assert_eq!((plan.version, plan.is_new), (2, true));
    let moves = &plan.moves;
    assert_eq!((moves.batches, moves.members, moves.staying), (1, 2, 1));
    let prepare =
        PhaseMoves { phase_name: "prepare".to_owned(), runs_again: 1, members: 2, ..PhaseMoves::default() };
    assert_eq!(moves.phases, [prepare]);
    assert_eq!(client.runbook("move").await.unwrap().active_version, 1, "nothing was published");
    let other = client.plan_publishing("other", &changed).await.unwrap_err();
    assert_eq!((other.status(), other.code()), (Some(400), Some("invalid-request")));
    let published = client.publish_runbook(&changed).await.unwrap();
    assert_eq!((published.version, published.moves.as_ref()), (2, Some(&plan.moves)));
    let again = client.publish_runbook(&changed).await.unwrap();
    assert_eq!((again.version, again.moves), (2, None));
}

#[tokio::test]
async fn a_runbook_is_deleted_when_no_batch_uses_it() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let batch = client.create_batch(&due(&["ada"])).await.unwrap().id;
    ended(&client, batch).await;
    client.publish_runbook(&yaml(&with_approval())).await.unwrap();
    for refused in [
        client.delete_runbook_version("move", 1).await.unwrap_err(),
        client.delete_runbook_version("move", 2).await.unwrap_err(),
        client.delete_runbook("move").await.unwrap_err(),
    ] {
        assert_eq!((refused.status(), refused.code()), (Some(409), Some("runbook-in-use")), "{refused}");
    }
    client.delete_batch(batch).await.unwrap();
    client.delete_runbook_version("move", 1).await.unwrap();
    let gone = client.delete_runbook_version("move", 1).await.unwrap_err();
    assert_eq!((gone.status(), gone.code()), (Some(404), Some("unknown-runbook")));
    client.delete_runbook("move").await.unwrap();
    let gone = client.delete_runbook("move").await.unwrap_err();
    assert_eq!((gone.status(), gone.code()), (Some(404), Some("unknown-runbook")));
    assert!(client.runbooks(None).await.unwrap().runbooks.is_empty());
}

#[tokio::test]
async fn a_failed_removal_and_a_failed_rollback_are_shown_with_their_errors() {
    let stand = stand().await;
    let client = stand.client();
    // `Create` fails for the key `bad` until its call is a retry of the member.
    let text = MOVE.replace("name: create,", "name: create, on_failure: undo,").replace(
        "name: revert, worker_id: here, function: Switch, params: {User:",
        "name: revert, worker_id: here, function: Create, params: {Key:",
    ) + "rollbacks:\n  undo:\n    - {name: again, worker_id: here, function: Create, params: {Key: \"{{Key}}\"}}\n";
    client.publish_runbook(&yaml(&text)).await.unwrap();
    let batch = client.create_batch(&by_hand(&["bad", "good"])).await.unwrap();
    sealed(&client, &batch).await;
    apply(&client, batch.id, BatchAction::Advance {}).await;
    let has_failed = |batch: &BatchDetails| batch.phases[0].completed_at.is_some();
    let shown = until(&client, batch.id, has_failed).await;
    assert_eq!(shown.phases[0].reason.as_deref(), Some("members_failed"));
    let members = client.batch_members(batch.id, None).await.unwrap().members;
    let bad = members.iter().find(|member| member.member_key == "bad").unwrap();
    assert_eq!((bad.status, bad.is_current), (MemberStatus::Failed, true));
    assert_eq!(bad.last_seen_at, bad.first_seen_at, "people have added it once");
    let step = client.batch_member(batch.id, bad.id).await.unwrap().steps.remove(0);
    assert_eq!(step.rollback_state.as_deref(), Some("failed"));
    assert!(step.rollback_error.as_ref().unwrap().contains("step \"again\" failed: "), "{step:?}");
    let why = client.explain_batch(batch.id, Some(&format!("member-{}", bad.id))).await.unwrap().why;
    assert!(why.contains("no licence") && why.contains("`retry_rollback`"), "{why}");
    client.remove_batch_members(batch.id, &RemoveMembers { keys: vec!["bad".to_owned()] }).await.unwrap();
    let gone = loop {
        let shown = client.batch_member(batch.id, bad.id).await.unwrap().member;
        if shown.removal_state.as_deref() == Some("failed") {
            break shown;
        }
        segno::clock::sleep(&segno::clock::SystemClock, std::time::Duration::from_millis(5)).await;
    };
    assert!(gone.removal_error.as_ref().unwrap().contains("step \"revert\" failed: "), "{gone:?}");
    assert!(!gone.is_current && gone.last_seen_at >= gone.first_seen_at);
    let why = client.explain_batch(batch.id, Some(&format!("member-{}", bad.id))).await.unwrap().why;
    assert!(why.contains("its removal steps have failed") && why.contains("`retry_removal`"), "{why}");
    let text = report(&client, batch.id).await;
    let line = text.lines().find(|line| line.starts_with("bad,") && line.contains(",create,")).unwrap();
    assert!(line.contains(",failed,\"step \"\"again\"\" failed: "), "{line}");
    assert!(
        line.contains(",failed,members_failed,") && line.contains("\"step \"\"revert\"\" failed: "),
        "{line}"
    );
}
