//! Views over records: what they show, whatever the bodies have, and what they refuse.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only the tests themselves")]

mod support;

use segno::store::{Expect, RecordBatch, RecordWrite, Records};
use segno_postgres::{
    ColumnType, PostgresOptions, PostgresStore, View, ViewColumn, ViewCondition, ViewError, ViewValue,
    create_views,
};
use support::{Schema, url};
use tokio_postgres::Client;

/// A store, and a schema for views of its own.
struct Ground {
    schema: Schema,
    url: String,
    views: String,
}

impl Ground {
    async fn take() -> Self {
        let schema = Schema::take().await;
        let base = url();
        let join = if base.contains('?') { '&' } else { '?' };
        let (url, views) = (format!("{base}{join}schema={}", schema.name), format!("{}_views", schema.name));
        schema.client.batch_execute(&format!("DROP SCHEMA IF EXISTS {views} CASCADE")).await.unwrap();
        Ground { schema, url, views }
    }

    fn client(&self) -> &Client {
        &self.schema.client
    }

    async fn store(&self) -> std::sync::Arc<PostgresStore> {
        PostgresStore::open_with(PostgresOptions::from_url(&self.url).unwrap()).await.unwrap()
    }

    async fn put(&self, rows: &[(&str, &str, &[u8])]) {
        let write = |(kind, id, body): &(&str, &str, &[u8])| RecordWrite::Put {
            kind: (*kind).to_owned(),
            id: (*id).to_owned(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: None,
            body: body.to_vec().into(),
        };
        let store = self.store().await;
        let batch = RecordBatch { writes: rows.iter().map(write).collect(), ..RecordBatch::default() };
        store.commit_records(batch).await.unwrap();
    }

    async fn create(&self, views: &[View]) -> Result<usize, ViewError> {
        create_views(&self.url, &self.views, views).await
    }

    /// Rows of a query on the views, each as text.
    async fn rows(&self, query: &str) -> Vec<String> {
        let query = query.replace("@", &self.views);
        let text = format!("SELECT row_to_json(r)::text FROM ({query}) r");
        let rows = self.client().query(&text, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

fn column(name: &str, path: &[&str], kind: ColumnType) -> ViewColumn {
    let path = path.iter().map(|part| (*part).to_owned()).collect();
    ViewColumn { name: name.to_owned(), value: ViewValue::Body(path), kind, absent: None }
}

fn things() -> View {
    let tenant = ViewColumn { value: ViewValue::IdPart(2), ..column("tenant", &[], ColumnType::Text) };
    View {
        name: "things".to_owned(),
        kind: "thing".to_owned(),
        parent: None,
        columns: vec![
            tenant,
            column("id", &["id"], ColumnType::Integer),
            column("name", &["name"], ColumnType::Text),
            ViewColumn {
                absent: Some("false".to_owned()),
                ..column("is_done", &["is_done"], ColumnType::Boolean)
            },
            column("at", &["at"], ColumnType::Time),
            column("inner", &["a", "b"], ColumnType::Json),
        ],
        conditions: Vec::new(),
    }
}

#[tokio::test]
async fn a_body_that_is_wrong_fails_nobody() {
    let ground = Ground::take().await;
    ground
        .put(&[
            (
                "thing",
                "n/t/1",
                br#"{"id":1,"name":"it's","is_done":true,"at":"2026-03-15T06:00:00.25Z","a":{"b":[1]}}"#,
            ),
            ("thing", "n/t/2", b"\xff\x00 no JSON"),
            ("thing", "n/t/3", br#"{"id":"x","name":{"n":1},"is_done":7,"at":"2026-02-31T06:00:00Z"}"#),
            (
                "thing",
                "n/t/4",
                br#"{"id":123456789012345678901234567890,"name":"a\u0000\\u0000b","at":"yesterday"}"#,
            ),
            ("thing", "n/t/5", b"[]"),
            ("other", "n/t/6", b"{}"),
        ])
        .await;
    assert_eq!(ground.create(&[things()]).await.unwrap(), 1);
    ground.client().batch_execute("SET TIME ZONE 'Europe/Berlin'").await.unwrap();
    let rows = ground
        .rows("SELECT * FROM @.things ORDER BY id NULLS LAST, name COLLATE \"C\", is_done NULLS FIRST")
        .await;
    assert_eq!(
        rows,
        [
            r#"{"tenant":"t","id":1,"name":"it's","is_done":true,"at":"2026-03-15T07:00:00.25+01:00","inner":[1]}"#,
            "{\"tenant\":\"t\",\"id\":null,\"name\":\"a\u{fffd}\\\\u0000b\",\"is_done\":false,\"at\":null,\"inner\":null}",
            r#"{"tenant":"t","id":null,"name":"{\"n\": 1}","is_done":false,"at":null,"inner":null}"#,
            r#"{"tenant":"t","id":null,"name":null,"is_done":null,"at":null,"inner":null}"#,
            r#"{"tenant":"t","id":null,"name":null,"is_done":false,"at":null,"inner":null}"#,
        ]
    );
}

#[tokio::test]
async fn records_show_values_of_the_record_that_they_belong_to() {
    let ground = Ground::take().await;
    ground
        .put(&[
            ("parent", "n/t/1", br#"{"name":"a"}"#),
            ("parent", "n/t/10", br#"{"name":"b"}"#),
            ("thing", "n/t/1/7", br#"{"id":7}"#),
            ("thing", "n/t/10/8", br#"{"id":8}"#),
            ("thing", "n/t/2/9", br#"{"id":9}"#),
        ])
        .await;
    let name = ViewValue::Parent(vec!["name".to_owned()]);
    let mut view = View { parent: Some("parent".to_owned()), ..things() };
    view.columns = vec![
        column("id", &["id"], ColumnType::Integer),
        ViewColumn { value: name.clone(), ..column("parent_name", &[], ColumnType::Text) },
    ];
    ground.create(&[view.clone()]).await.unwrap();
    let all = ground.rows("SELECT * FROM @.things ORDER BY id").await;
    assert_eq!(all, [r#"{"id":7,"parent_name":"a"}"#, r#"{"id":8,"parent_name":"b"}"#]);
    view.conditions =
        vec![ViewCondition { value: name, one_of: vec!["b".to_owned(), "'); DROP".to_owned()] }];
    ground.create(&[view]).await.unwrap();
    assert_eq!(ground.rows("SELECT * FROM @.things").await, [r#"{"id":8,"parent_name":"b"}"#]);
}

#[tokio::test]
async fn hostile_names_are_only_names() {
    let ground = Ground::take().await;
    let hostile = r#"a"b'; DROP SCHEMA x; -- \"#;
    ground.put(&[("it's", "n/t/1", br#"{"a\"b'; DROP SCHEMA x; -- \\":"here"}"#)]).await;
    let mut view = View { name: hostile.to_owned(), kind: "it's".to_owned(), ..things() };
    let long = "ü".repeat(60);
    view.columns = vec![
        column(hostile, &[hostile], ColumnType::Text),
        column(hostile, &[hostile], ColumnType::Text),
        column(&long, &[&long], ColumnType::Text),
        column(&long, &[&long], ColumnType::Text),
    ];
    assert_eq!(ground.create(&[view.clone()]).await.unwrap(), 1);
    let quoted = hostile.replace('"', "\"\"");
    let rows =
        ground.rows(&format!("SELECT \"{quoted}\" AS x, \"{quoted}_2\" AS y FROM @.\"{quoted}\"")).await;
    assert_eq!(rows, [r#"{"x":"here","y":"here"}"#]);
    view.name = "x".repeat(64);
    let error = ground.create(&[view]).await.unwrap_err().to_string();
    assert!(error.contains("1 to 63 bytes"), "{error}");
}

#[tokio::test]
async fn what_is_as_it_should_be_is_left_alone() {
    let ground = Ground::take().await;
    ground.store().await;
    let mut view = things();
    assert_eq!(ground.create(&[view.clone()]).await.unwrap(), 1);
    // A reader does not keep a start waiting.
    ground.client().batch_execute(&format!("BEGIN; SELECT * FROM {}.things", ground.views)).await.unwrap();
    assert_eq!(ground.create(&[view.clone()]).await.unwrap(), 0);
    ground.client().batch_execute("COMMIT").await.unwrap();
    // A view that has to be replaced is not waited for without end.
    ground.client().batch_execute(&format!("BEGIN; SELECT * FROM {}.things", ground.views)).await.unwrap();
    view.columns.push(column("extra", &["extra"], ColumnType::Text));
    let error = ground.create(&[view.clone()]).await.unwrap_err();
    assert!(matches!(&error, ViewError::Busy { name, .. } if name == "things"), "{error}");
    assert!(error.leaves_older_views());
    ground.client().batch_execute("COMMIT").await.unwrap();
    // One more column at the end keeps grants and views of others.
    ground
        .client()
        .batch_execute(&format!("CREATE VIEW {0}.mine AS SELECT id FROM {0}.things", ground.views))
        .await
        .unwrap();
    view.columns.push(column("more", &["more"], ColumnType::Text));
    assert_eq!(ground.create(&[view.clone()]).await.unwrap(), 1);
    // Other columns do not.
    view.columns.remove(1);
    let error = ground.create(&[view.clone()]).await.unwrap_err();
    assert!(matches!(&error, ViewError::InUse { name, .. } if name == "things"), "{error}");
    assert!(error.to_string().contains("mine"), "{error}");
    ground.client().batch_execute(&format!("DROP VIEW {}.mine", ground.views)).await.unwrap();
    assert_eq!(ground.create(&[view.clone()]).await.unwrap(), 1);
    assert_eq!(ground.rows("SELECT more FROM @.things").await.len(), 0);
    // Nodes that start at once.
    view.columns.push(column("yet_more", &["more"], ColumnType::Text));
    let views = [view];
    let (a, b, c) = tokio::join!(ground.create(&views), ground.create(&views), ground.create(&views));
    assert_eq!(a.unwrap() + b.unwrap() + c.unwrap(), 1);
}

#[tokio::test]
async fn what_others_have_made_is_not_replaced() {
    let ground = Ground::take().await;
    ground.store().await;
    let views = &ground.views;
    ground
        .client()
        .batch_execute(&format!("CREATE SCHEMA {views}; CREATE VIEW {views}.things AS SELECT 1 AS id"))
        .await
        .unwrap();
    let mut other = things();
    other.name = "other".to_owned();
    let error = ground.create(&[other, things()]).await.unwrap_err();
    assert!(matches!(&error, ViewError::Taken { name, .. } if name == "things"), "{error}");
    let made = ground.client().query_one("SELECT to_regclass($1)::text", &[&format!("{views}.other")]).await;
    assert_eq!(made.unwrap().get::<_, Option<String>>(0), None, "all or none");
    let error = create_views(&ground.url, &ground.schema.name, &[things()]).await.unwrap_err().to_string();
    assert!(error.contains("is that of the store"), "{error}");
}

#[tokio::test]
async fn a_role_without_rights_is_told_what_to_do() {
    let ground = Ground::take().await;
    ground.store().await;
    let (views, role) = (&ground.views, format!("{}_guest", ground.schema.name));
    let set_up = format!(
        "DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {0} TO {role};
         GRANT SELECT ON {0}.records TO {role}",
        ground.schema.name
    );
    ground.client().batch_execute(&set_up).await.unwrap();
    let mut url = ground.url.clone();
    let (start, end) = (url.find("://").unwrap() + 3, url.find('@').unwrap());
    url.replace_range(start..end, &role);
    let error = create_views(&url, views, &[things()]).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ViewError::Denied { .. }), "{text}");
    assert!(text.contains(&format!("CREATE SCHEMA {views} AUTHORIZATION {role}")), "{text}");
    // What the advice says is enough.
    ground.client().batch_execute(&format!("CREATE SCHEMA {views} AUTHORIZATION {role}")).await.unwrap();
    assert_eq!(create_views(&url, views, &[things()]).await.unwrap(), 1);
    ground
        .client()
        .batch_execute(&format!("DROP SCHEMA {views} CASCADE; DROP OWNED BY {role}; DROP ROLE {role}"))
        .await
        .unwrap();
}
