//! Batches while they run and afterwards: live events, reports.

use std::collections::BTreeSet;

use segno_api::batch::{BatchAction, BatchDetails, BatchStatus, CreateBatch, NoticeState};
use segno_api::change::{BatchChange, FollowChanges, RowKind};
use segno_api::client::{EventStream, StreamEvent};
use segno_api::key::Role;
use segno_server::Server;
use segno_server::settings::{Authentication, Role as NodeRole};

use crate::runbooks::{MOVE, apply, by_hand, due, ended, functions, local, sealed, stand, yaml};
use crate::stand::{Ground, PATIENCE, Stand, settings};

async fn next(stream: &mut EventStream) -> StreamEvent {
    let event = segno::clock::timeout(&segno::clock::SystemClock, PATIENCE, stream.next()).await;
    event.unwrap().unwrap().unwrap()
}

async fn listen(client: &segno_api::Client, filter: &FollowChanges) -> EventStream {
    let mut stream = client.changes(filter, None).await.unwrap();
    assert_eq!(next(&mut stream).await.name, "listening");
    stream
}

fn of_batch(batch: u64) -> FollowChanges {
    FollowChanges { batch: Some(batch), ..FollowChanges::default() }
}

async fn next_change(stream: &mut EventStream) -> (String, BatchChange) {
    let event = next(stream).await;
    assert_eq!(event.name, "batch", "{event:?}");
    (event.id, serde_json::from_str(&event.data).unwrap())
}

/// Changes until the batch has ended.
async fn until_ended(stream: &mut EventStream) -> Vec<BatchChange> {
    let mut heard = Vec::new();
    loop {
        let (_, change) = next_change(stream).await;
        let status = change.status;
        heard.push(change);
        if matches!(status, BatchStatus::Completed | BatchStatus::Failed | BatchStatus::Cancelled) {
            return heard;
        }
    }
}

#[tokio::test]
async fn the_life_of_a_batch_is_on_the_event_stream() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let mut stream = listen(&client, &of_batch(1)).await;
    client.create_batch(&due(&["ada", "bad"])).await.unwrap();
    let heard = until_ended(&mut stream).await;
    assert_eq!(heard.last().unwrap().status, BatchStatus::Failed);
    assert!(heard.iter().all(|change| change.batch == 1 && change.runbook == "move"));
    let rows: BTreeSet<(RowKind, String)> =
        heard.iter().flat_map(|change| &change.rows).map(|row| (row.kind, row.status.clone())).collect();
    for (kind, status) in [
        (RowKind::Batch, "active"),
        (RowKind::Batch, "failed"),
        (RowKind::Phase, "dispatched"),
        (RowKind::Phase, "failed"),
        (RowKind::Phase, "completed"),
        (RowKind::Member, "active"),
        (RowKind::Member, "failed"),
        (RowKind::Step, "dispatched"),
        (RowKind::Step, "succeeded"),
        (RowKind::Step, "failed"),
    ] {
        assert!(rows.contains(&(kind, status.to_owned())), "{kind:?} {status}: {rows:?}");
    }
    // Steps have their place, and a state is told once.
    let ids = client.batch_members(1, None).await.unwrap().members;
    let steps: Vec<_> =
        heard.iter().flat_map(|change| &change.rows).filter(|row| row.kind == RowKind::Step).collect();
    assert!(
        steps.iter().all(|row| row.phase.is_some() && ids.iter().any(|member| row.member == Some(member.id)))
    );
    let told: BTreeSet<_> = steps.iter().map(|row| (row.id, row.status.clone())).collect();
    assert_eq!(told.len(), steps.len(), "{steps:?}");
}

#[tokio::test]
async fn a_listener_of_a_batch_resumes_and_hears_nothing_else() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let first = client.create_batch(&by_hand(&["ada"])).await.unwrap();
    sealed(&client, &first).await;
    let mut stream = listen(&client, &of_batch(first.id)).await;
    apply(&client, first.id, BatchAction::PauseBatch { reason: None }).await;
    let (id, paused) = next_change(&mut stream).await;
    assert_eq!(paused.rows[0].held.as_deref(), Some("paused"), "{paused:?}");
    drop(stream);
    // What happens while it is away, also to another batch and to instances.
    client.create_batch(&due(&["eve"])).await.unwrap();
    ended(&client, 2).await;
    apply(&client, first.id, BatchAction::ResumeBatch {}).await;
    let mut stream = client.changes(&of_batch(first.id), Some(&id)).await.unwrap();
    assert_eq!(next(&mut stream).await.name, "listening");
    let (_, resumed) = next_change(&mut stream).await;
    assert_eq!(
        (resumed.batch, resumed.rows[0].kind, &resumed.rows[0].held),
        (first.id, RowKind::Batch, &None)
    );
    // A filter of instances has no batches, and cannot be combined with one of a batch.
    let both = FollowChanges { prefix: Some("x".to_owned()), ..of_batch(1) };
    let refused = client.changes(&both, None).await.err().unwrap();
    assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-request")));
}

#[tokio::test]
async fn a_tenant_hears_nothing_of_batches_of_another() {
    let ground = Ground::new().await;
    let builder = Server::builder(ground.store.clone(), local(Authentication::Keys));
    let stand = Stand::begun(builder.functions(functions), &ground).await;
    let eu = stand.client_with(Role::Operator, "shop", "eu").await.scope("shop", "eu");
    let lab = stand.client_with(Role::Operator, "lab", "x").await.scope("lab", "x");
    eu.publish_runbook(&yaml(MOVE)).await.unwrap();
    lab.publish_runbook(&yaml(&MOVE.replace("name: move", "name: theirs"))).await.unwrap();
    let mut stream = listen(&eu, &of_batch(1)).await;
    // Ids of batches are those of the tenant, so the other one has the same.
    let theirs = CreateBatch { runbook: "theirs".to_owned(), ..due(&["theirs"]) };
    lab.create_batch(&theirs).await.unwrap();
    ended(&lab, 1).await;
    let ours = eu.create_batch(&by_hand(&["ours"])).await.unwrap();
    sealed(&eu, &ours).await;
    let (_, change) = next_change(&mut stream).await;
    assert_eq!((change.batch, change.runbook.as_str()), (1, "move"), "{change:?}");
}

#[tokio::test]
async fn changes_of_batches_are_relayed_between_nodes() {
    let ground = Ground::new().await;
    let mut only_api = settings(Authentication::None);
    only_api.server.roles = [NodeRole::Api].into();
    let front = Stand::on(only_api, &ground).await;
    let other = ground.of_another_node().await;
    let builder = Server::builder(other.store.clone(), local(Authentication::None));
    let back = Stand::begun(builder.functions(functions), &other).await;
    let client = back.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let mut stream = listen(&front.client(), &FollowChanges::default()).await;
    // The other node needs a moment to notice that a listener is there.
    let work = async {
        loop {
            let batch = client.create_batch(&due(&["ada"])).await.unwrap();
            ended(&client, batch.id).await;
        }
    };
    let heard = async {
        loop {
            let event = next(&mut stream).await;
            if event.name == "batch" {
                return serde_json::from_str::<BatchChange>(&event.data).unwrap();
            }
        }
    };
    let change = tokio::select! {
        change = heard => change,
        () = work => unreachable!("it has no end"),
    };
    assert_eq!(change.runbook, "move");
}

#[tokio::test]
async fn a_batch_is_deleted_after_its_end() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let open = client.create_batch(&by_hand(&["ada"])).await.unwrap();
    let refused = client.delete_batch(open.id).await.unwrap_err();
    assert_eq!((refused.status(), refused.code()), (Some(409), Some("batch-request-refused")), "{refused}");
    apply(&client, open.id, BatchAction::CancelBatch { reason: None }).await;
    client.delete_batch(open.id).await.unwrap();
    for unknown in [
        client.batch(open.id).await.unwrap_err(),
        client.delete_batch(open.id).await.unwrap_err(),
        client.request_of_batch(open.id, &BatchAction::Advance {}).await.unwrap_err(),
    ] {
        assert_eq!((unknown.status(), unknown.code()), (Some(404), Some("unknown-batch")), "{unknown}");
    }
    assert!(client.batches(&Default::default()).await.unwrap().batches.is_empty());
}

#[tokio::test]
async fn a_batch_shows_the_notices_that_its_runbook_sends() {
    let stand = stand().await;
    let client = stand.client();
    let telling = format!("{MOVE}notify: {{function: switch, on: [phase_failed]}}\n");
    client.publish_runbook(&yaml(&telling)).await.unwrap();
    client.create_batch(&due(&["ada", "bad"])).await.unwrap();
    ended(&client, 1).await;
    let delivered = |batch: &BatchDetails| batch.notices.iter().any(|notice| notice.ended_at.is_some());
    let batch = crate::runbooks::until(&client, 1, delivered).await;
    let [notice] = &batch.notices[..] else { panic!("{:?}", batch.notices) };
    assert_eq!((notice.event.as_str(), notice.phase_name.as_str()), ("phase_failed", "prepare"));
    assert_eq!((notice.function_name.as_str(), notice.state), ("switch", NoticeState::Delivered));
    let call = client.instance(&notice.instance, PATIENCE).await.unwrap();
    assert_eq!(call.function.as_deref(), Some("switch"));
}

pub async fn report(client: &segno_api::Client, batch: u64) -> String {
    let mut download = client.batch_report(batch).await.unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = download.next().await.unwrap() {
        bytes.extend(piece);
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_report_has_a_line_for_each_member_and_step() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let mut batch = due(&["ada", "bad"]);
    batch.members_csv = Some("Key\nada\nbad\n=1+1\n\"say \"\"hi\"\", you\"\n".to_owned());
    client.create_batch(&batch).await.unwrap();
    ended(&client, 1).await;
    let text = report(&client, 1).await;
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines[0].split(',').next(), Some("member_key"));
    assert_eq!(lines.len(), 1 + 4 + 3 + 1, "a failed member has no second step: {text}");
    assert!(lines[1].starts_with("ada,1,active,prepare,create,1,succeeded,1,0,"), "{text}");
    assert!(lines[2].starts_with("ada,1,active,cutover,switch,"), "{text}");
    assert!(lines[3].starts_with("bad,2,failed,prepare,create,2,failed,1,0,"), "{text}");
    assert!(lines[3].contains("no licence"), "{text}");
    assert!(lines[4].starts_with("'=1+1,3,active,"), "{text}");
    assert!(lines[6].starts_with("\"say \"\"hi\"\", you\",4,active,"), "{text}");
    let unknown = client.batch_report(9).await.err().unwrap();
    assert_eq!((unknown.status(), unknown.code()), (Some(404), Some("unknown-batch")));
}

#[tokio::test]
async fn a_report_of_many_members_is_sent_in_parts_and_has_all_of_them() {
    let stand = stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let keys: Vec<String> = (0..1_100).map(|number| format!("m{number:04}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let batch = client.create_batch(&by_hand(&keys)).await.unwrap();
    let all = |batch: &BatchDetails| batch.batch.member_counts.active == 1_100;
    crate::runbooks::until(&client, batch.id, all).await;
    let text = report(&client, batch.id).await;
    let found: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(found, keys, "in order, across blocks of ids");
}
