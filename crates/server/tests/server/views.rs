//! Views of the runbooks' tables in PostgreSQL.

use std::time::Duration;

use segno::clock::{self, SystemClock};
use segno::ids::SystemIds;
use segno::store::{Expect, RecordBatch, RecordWrite};
use segno_api::batch::{BatchStatus, RemoveMembers};
use segno_postgres::{QueryLimits, query};
use segno_server::settings::Authentication;
use segno_server::{Server, samples};

use crate::runbooks::{MOVE, by_hand, due, functions, local, until, yaml};
use crate::stand::{Ground, PATIENCE, Stand, listener};

const LIMITS: QueryLimits =
    QueryLimits { timeout: Duration::from_secs(30), max_rows: 1_000, max_bytes: 1_000_000 };

/// A server with views on a store in PostgreSQL.
struct Viewed {
    ground: Ground,
    url: String,
    views: String,
}

impl Viewed {
    /// None where no PostgreSQL runs: the gate has one.
    async fn new() -> Option<Self> {
        let (ground, url) = Ground::in_postgres().await?;
        let views = format!("views_{:x}", SystemIds::shared().new_seed());
        Some(Viewed { ground, url, views })
    }

    fn builder(&self) -> segno_server::ServerBuilder {
        let mut settings = local(Authentication::None);
        settings.store.url.clone_from(&self.url);
        settings.runbooks.views = Some(self.views.clone());
        settings.server.node = Some("viewed".to_owned());
        let builder = Server::builder(self.ground.store.clone(), settings);
        builder.registry(samples::registry()).functions(functions)
    }

    async fn stand(&self) -> Stand {
        Stand::begun(self.builder(), &self.ground).await
    }

    /// Rows of a query, cells separated by `|`; `@` is the schema of the views.
    async fn rows(&self, text: &str) -> Vec<String> {
        let found = query(&self.url, &text.replace('@', &self.views), LIMITS).await.unwrap();
        let text = |row: Vec<Option<String>>| {
            row.into_iter()
                .map(|cell| cell.unwrap_or_else(|| "null".to_owned()))
                .collect::<Vec<_>>()
                .join("|")
        };
        found.rows.into_iter().map(text).collect()
    }
}

#[tokio::test]
async fn the_tables_of_the_seed_can_be_selected_from() {
    let Some(viewed) = Viewed::new().await else { return };
    let stand = viewed.stand().await;
    let client = stand.client();
    let published = client.publish_runbook(&yaml(MOVE)).await.unwrap();
    assert_eq!(published.warnings, [""; 0]);
    let batch = client.create_batch(&due(&["ada", "bad", "Eve"])).await.unwrap().id;
    until(&client, batch, |found| found.batch.status == BatchStatus::Failed).await;
    let runbooks = "SELECT namespace, tenant, name, version, data_table_name, is_active FROM @.runbooks";
    assert_eq!(viewed.rows(runbooks).await, ["default|default|move|1|runbook_move_v1|t"]);
    let batches = "SELECT namespace, tenant, b.id, status, batch_start_time AT TIME ZONE 'UTC', runbook_version, is_manual FROM @.batches b";
    assert_eq!(
        viewed.rows(batches).await,
        [format!("default|default|{batch}|failed|2026-01-01 00:00:00|1|f")]
    );
    // A report joins them as the seed's tables are joined.
    let steps = "SELECT m.member_key, p.phase_name, s.step_name, s.status, s.error_message
                   FROM @.step_executions s JOIN @.phase_executions p ON p.id = s.phase_execution_id
                   JOIN @.batch_members m ON m.id = s.batch_member_id
                  WHERE m.batch_id = 1 ORDER BY m.id, p.position, s.step_index";
    let found = viewed.rows(steps).await;
    assert_eq!(found[0], "ada|prepare|create|succeeded|null");
    assert_eq!(found[1], "ada|cutover|switch|succeeded|null");
    assert!(
        found[2].starts_with("bad|prepare|create|failed|") && found[2].contains("no licence"),
        "{found:?}"
    );
    let data = "SELECT _tenant, _member_key, _batch_time AT TIME ZONE 'UTC', _is_current, \"Key\" FROM @.runbook_move_v1 ORDER BY _row_id";
    let found = viewed.rows(data).await;
    assert_eq!(found[0], "default|ada|2026-01-01 00:00:00|t|ada");
    assert_eq!(found.len(), 3);
    let open = client.create_batch(&by_hand(&["Mae", "Zoe"])).await.unwrap().id;
    client.remove_batch_members(open, &RemoveMembers { keys: vec!["Mae".to_owned()] }).await.unwrap();
    let removals = "SELECT m.member_key, m.removal_state, r.step_name, r.status FROM @.removal_executions r JOIN @.batch_members m ON m.id = r.batch_member_id";
    let ended = async { while viewed.rows(removals).await != ["Mae|succeeded|revert|succeeded"] {} };
    clock::timeout(&SystemClock, PATIENCE, ended).await.expect("the removal is shown");
    assert_eq!(viewed.rows("SELECT * FROM @.init_executions").await, [""; 0]);
    assert_eq!(viewed.rows("SELECT * FROM @.rollback_executions").await, [""; 0]);
}

#[tokio::test]
async fn versions_get_views_when_they_are_published_and_when_a_server_starts() {
    let Some(viewed) = Viewed::new().await else { return };
    let stand = viewed.stand().await;
    let client = stand.client();
    client.publish_runbook(&yaml(MOVE)).await.unwrap();
    let hostile = MOVE.replace("name: move", "name: Hostile.1").replace("{{Key}}", "{{_member_key}}");
    let hostile = hostile.replace("primary_key: Key", r#"primary_key: 'it''s "; DROP TABLE x; --'"#);
    assert_eq!(client.publish_runbook(&yaml(&hostile)).await.unwrap().warnings, [""; 0]);
    let column = r#"SELECT "it's ""; DROP TABLE x; --" FROM @.runbook_hostile_1_v1"#;
    assert_eq!(viewed.rows(column).await, [""; 0]);
    // Another tenant's runbook of the same name has columns of its own; both are in one view.
    let other = stand.client().scope("default", "other");
    other.publish_runbook(&yaml(&MOVE.replace("Key: \"{{Key}}\"", "Key: \"{{Office}}\""))).await.unwrap();
    let long = format!("name: {}", "Long.name-".repeat(12));
    let published = client.publish_runbook(&yaml(&MOVE.replace("name: move", &long))).await.unwrap();
    assert_eq!(published.warnings, [""; 0]);
    let columns = "SELECT column_name::text FROM information_schema.columns WHERE table_schema = '@' AND table_name = 'runbook_move_v1' ORDER BY ordinal_position";
    let named = "SELECT table_name::text FROM information_schema.views WHERE table_schema = '@' AND table_name LIKE 'runbook!_%' ESCAPE '!' ORDER BY 1";
    let (before, views) = (viewed.rows(columns).await, viewed.rows(named).await);
    assert_eq!(before[before.len() - 2..], ["Key", "Office"]);
    assert_eq!((views.len(), views[0].as_str()), (3, "runbook_hostile_1_v1"));
    assert!(views[1].starts_with("runbook_long_name_long_name_") && views[1].ends_with("_v1"), "{views:?}");
    // A record that cannot be read stands in nobody's way.
    let junk = |kind: &str, id: &str| RecordWrite::Put {
        kind: kind.to_owned(),
        id: id.to_owned(),
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        body: vec![0xff, 0].into(),
    };
    let writes =
        vec![junk("runbooks", "default/default/move/0000000002"), junk("batches", "default/default/junk")];
    let batch = RecordBatch { writes, ..RecordBatch::default() };
    viewed.ground.store.commit_records(batch).await.unwrap();
    assert_eq!(
        viewed.rows("SELECT namespace, tenant, id, is_manual FROM @.batches").await,
        ["default|default|null|null"]
    );
    stand.server.shutdown().await;
    // A start makes what is missing, and the same.
    let again = viewed.builder().start(listener().await).await.unwrap();
    assert_eq!((viewed.rows(columns).await, viewed.rows(named).await), (before, views));
    again.shutdown().await;
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_keeps_a_server_from_starting() {
    let Some(viewed) = Viewed::new().await else { return };
    let of_the_store = viewed.url.rsplit("schema=").next().unwrap().to_owned();
    let taken = Viewed { views: of_the_store, ..viewed };
    let error = taken.builder().start(listener().await).await.err().unwrap().to_string();
    assert!(error.starts_with("runbooks.views: schema") && error.contains("is that of the store"), "{error}");
}
