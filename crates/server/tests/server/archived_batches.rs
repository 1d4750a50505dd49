//! Batches of runbooks that are archived: shown as before, and once.

use std::time::Duration;

use segno::store::{Expect, RecordBatch, RecordWrite};
use segno_api::archive::ArchivedGroup;
use segno_api::batch::{Batch, BatchDetails, BatchStatus, CreateBatch};
use segno_api::client::PageRequest;
use segno_runbook::rows::Table;
use segno_server::settings::Authentication;

use crate::archive::{Archiving, archiving, code, live, put_back};
use crate::runbooks::{MOVE, due, functions, local, yaml};

/// The records of what is shown of a batch, and their index.
const KINDS: [&str; 5] = [
    Table::Batches.name(),
    Table::BatchMembers.name(),
    Table::PhaseExecutions.name(),
    Table::StepExecutions.name(),
    "runbook_batches",
];

const QUERIES: [&str; 9] = [
    "SELECT id, runbook, status, detected_at, completed_at, members_active, members_failed FROM batches",
    "SELECT batch, id, key, status, added_at, failed_at, data, worker_data FROM members ORDER BY id",
    "SELECT batch, id, name, due_at, status, steps, step_counts FROM phases ORDER BY id",
    "SELECT batch, member, phase, id, name, pool, function, params, status, result, error_message FROM steps \
     ORDER BY phase, id",
    "SELECT status, count(*) FROM steps GROUP BY status ORDER BY status",
    "SELECT count(*) FROM batches WHERE runbook = 'move'",
    "SELECT count(*) FROM batches WHERE runbook = 'other'",
    "SELECT count(*) FROM members WHERE batch = (SELECT min(id) FROM batches)",
    "SELECT count(*) FROM members WHERE batch = 999",
];

#[tokio::test]
async fn a_batch_answers_the_same_after_its_time() {
    let mut settings = archiving(Authentication::None);
    settings.pools = local(Authentication::None).pools;
    settings.runbooks.retention_hours = Some(1);
    let world = Archiving::with_functions(settings, functions).await;
    let client = &world.client;
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let start = "2023-01-01T00:00:00Z".parse().unwrap();
    let request = CreateBatch { batch_start_time: Some(start), ..due(&["Ada", "bad", "Eve"]) };
    let id = client.create_batch(&request).await.unwrap().id;
    world
        .until(async || {
            world.clock.advance(Duration::from_secs(1));
            let status = client.batch(id).await.unwrap().batch.status;
            matches!(status, BatchStatus::Completed | BatchStatus::Failed)
        })
        .await;
    let shown = client.batch(id).await.unwrap();
    let members = client.batch_members(id, PageRequest::default()).await.unwrap();
    assert_eq!((shown.phases.len(), members.members.len()), (2, 3));
    let first = client.batch_member(id, members.members[0].id).await.unwrap();
    assert_eq!(first.steps.len(), 2);
    let mut before = Vec::new();
    for query in QUERIES {
        before.push(world.rows(query).await);
    }
    let records = live(&world, &KINDS).await;
    world.clock.advance(Duration::from_secs(2 * 60 * 60));
    world
        .until(async || {
            world.clock.advance(Duration::from_secs(61));
            live(&world, &KINDS).await.is_empty()
        })
        .await;
    // A connection may be closed in the time that has passed.
    world.until(async || world.client.ready().await.is_ok()).await;

    let moved = client.batch(id).await.unwrap();
    assert!(moved.batch.archived && moved.explanation.why.contains("archive"));
    let as_live = BatchDetails {
        batch: Batch { archived: false, ..moved.batch },
        explanation: shown.explanation.clone(),
        ..moved
    };
    assert_eq!(as_live, shown);
    assert_eq!(client.batch_members(id, PageRequest::default()).await.unwrap(), members);
    let page = PageRequest { limit: Some(2), cursor: None };
    assert_eq!(client.batch_members(id, page).await.unwrap().members, members.members[..2]);
    assert_eq!(client.batch_member(id, first.member.id).await.unwrap(), first);
    assert_eq!(client.batch_member_of_key(id, "ADA").await.unwrap(), Some(first.member.clone()));
    assert_eq!(client.batch_member_of_key(id, "none").await.unwrap(), None);
    assert_eq!(code(client.batch_member(id, 999_999).await), "not-found");
    assert_eq!(code(client.batch(id + 999).await), "unknown-batch");
    assert_eq!(code(client.batch_members(id + 999, PageRequest::default()).await), "unknown-batch");
    for (query, before) in QUERIES.iter().zip(&before) {
        assert_eq!(world.rows(query).await, *before, "{query}");
    }
    let archived = async |table: &str| {
        world.rows(&format!("SELECT sum(archived) = count(*), sum(archived) FROM {table}")).await
    };
    for table in ["batches", "members", "phases", "steps"] {
        assert!(archived(table).await[0].starts_with("1 "), "{table}");
    }

    // A node that is killed before the deletion leaves it in both places.
    put_back(&world, records).await;
    for (query, before) in QUERIES.iter().zip(&before) {
        assert_eq!(world.rows(query).await, *before, "in both places: {query}");
    }
    for table in ["batches", "members", "phases", "steps"] {
        assert_eq!(archived(table).await, ["0 0"], "{table}");
    }
    assert!(!client.batch(id).await.unwrap().batch.archived);
    for record in live(&world, &KINDS).await {
        let write = RecordWrite::Delete { kind: record.kind, id: record.id, expect: Expect::Anything };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        world.stand.server.client().store().commit_records(batch).await.unwrap();
    }

    let erased = client.erase_archived(ArchivedGroup::Batches, &id.to_string()).await.unwrap();
    assert!(erased.rows > 6, "{erased:?}");
    assert_eq!(code(client.batch(id).await), "unknown-batch");
    assert_eq!(world.rows("SELECT count(*) FROM steps").await, ["0"]);
}
