//! The archive over HTTP: what retention moves is shown as before, queries see it once, erasure, and an object store that is away.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock as _, SystemClock};
use segno::runtime::{Archive as _, ArchiveBatch};
use segno::store::{Expect, ListRecords, Record, RecordBatch, RecordWrite};
use segno_actions::functions::FunctionsBuilder;
use segno_api::ClientError;
use segno_api::action::{Action, CreateAction, OnRestart};
use segno_api::archive::ArchivedGroup;
use segno_api::client::{Client, PageRequest};
use segno_api::instance::{OnConflict, StartInstance};
use segno_api::key::Role;
use segno_api::recurring::{RecurringFields, RunRecurring};
use segno_api::sql::SqlQuery;
use segno_ledger::archive::ArchiveStore;
use segno_ledger::objects::Stores;
use segno_server::settings::{Authentication, Settings};
use segno_server::{Server, samples};
use segno_testkit::clock::VirtualClock;

use crate::stand::{Ground, PATIENCE, Stand, greet, settings};

/// A server whose retention removes everything that has ended, once its clock has gone on.
pub struct Archiving {
    pub stand: Stand,
    pub clock: Arc<VirtualClock>,
    objects: Stores,
    pub client: Client,
}

pub fn archiving(mode: Authentication) -> Settings {
    let mut settings = settings(mode);
    settings.archive.enabled = true;
    settings.retention.finished_count = Some(0);
    settings
}

impl Archiving {
    async fn open() -> Self {
        Self::with(archiving(Authentication::None)).await
    }

    async fn with(settings: Settings) -> Self {
        Self::with_functions(settings, samples::functions).await
    }

    pub async fn with_functions(
        settings: Settings,
        functions: fn(FunctionsBuilder) -> FunctionsBuilder,
    ) -> Self {
        let clock = VirtualClock::new();
        let ground = Ground::on_clock(clock.clone());
        let objects = Stores::in_memory();
        let builder = Server::builder(ground.store.clone(), settings).clock(clock.clone());
        let builder = builder.ledger(objects.clone()).registry(samples::registry());
        let stand = Stand::begun(builder.functions(functions), &ground).await;
        let client = stand.client();
        Archiving { stand, clock, objects, client }
    }

    /// Starts instances, one second apart, and waits for their ends.
    async fn run(&self, ids: &[&str]) {
        for id in ids {
            self.clock.advance(Duration::from_secs(1));
            self.client.start(&greet(id, r#"{"name":"Ada"}"#), None, Duration::ZERO).await.unwrap();
            self.until(async || {
                self.client.instance(id, Duration::ZERO).await.unwrap().completed_at.is_some()
            })
            .await;
        }
    }

    /// Lets retention work until everything that has ended is archived.
    async fn archived(&self, ids: &[&str]) {
        let store = self.stand.server.client().store().clone();
        self.until(async || {
            self.clock.advance(Duration::from_secs(61));
            for id in ids {
                if store.get_instance_info(&format!("default/default/{id}")).await.is_ok() {
                    return false;
                }
            }
            true
        })
        .await;
    }

    pub async fn until(&self, is_so: impl AsyncFn() -> bool) {
        let wait = async {
            while !is_so().await {
                crate::stand::look_again().await;
            }
        };
        segno::clock::timeout(&SystemClock, PATIENCE, wait).await.expect("it does not happen");
    }

    /// The archive as another process has it.
    fn archive(&self) -> ArchiveStore {
        let store = self.stand.server.client().store().clone();
        ArchiveStore::new(self.objects.ledger.clone(), store, self.clock.clone())
    }

    pub async fn rows(&self, text: &str) -> Vec<String> {
        let query = SqlQuery { query: Some(text.to_owned()), ..SqlQuery::default() };
        let answer = self.client.sql(&query).await.unwrap_or_else(|error| panic!("{text}: {error}"));
        let row =
            |row: &Vec<segno_api::Json>| row.iter().map(|cell| cell.text()).collect::<Vec<_>>().join(" ");
        answer.rows.iter().map(row).collect()
    }
}

pub fn code(outcome: Result<impl std::fmt::Debug, ClientError>) -> String {
    match outcome {
        Err(ClientError::Problem(problem)) => problem.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_retention_moves_is_shown_as_before_and_says_so() {
    let world = Archiving::open().await;
    let client = &world.client;
    world.run(&["a/b", "other"]).await;
    let live = client.instance("a/b", Duration::ZERO).await.unwrap();
    let history = client.history("a/b", None, 0).await.unwrap();
    let executions = client.executions("a/b", PageRequest::default()).await.unwrap();
    assert!(!live.archived && !history.archived);
    world.archived(&["a/b", "other"]).await;
    let moved = client.instance("a/b", Duration::ZERO).await.unwrap();
    assert!(moved.archived);
    assert_eq!(segno_api::instance::Instance { archived: false, ..moved }, live);
    let events = client.history("a/b", None, 0).await.unwrap();
    assert!(events.archived);
    assert_eq!(segno_api::history::History { archived: false, ..events }, history);
    assert_eq!(client.executions("a/b", PageRequest::default()).await.unwrap(), executions);
    assert_eq!(code(client.instance("never", Duration::ZERO).await), "not-found");
    assert_eq!(code(client.history("never", Some(1), 0).await), "not-found");
    assert_eq!(code(client.history("a/b", Some(2), 0).await), "not-found");
    let summary = client.archive().await.unwrap();
    let kinds: Vec<&str> = summary.kinds.iter().map(|kind| kind.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "actions",
            "audit",
            "batches",
            "events",
            "instances",
            "members",
            "phases",
            "recurring_history",
            "steps",
        ]
    );
    let is_there = |kind: &&segno_api::archive::ArchivedKind| ["events", "instances"].contains(&&*kind.kind);
    let there: Vec<_> = summary.kinds.iter().filter(is_there).collect();
    assert!(there.iter().all(|kind| kind.files > 0 && kind.oldest_day.is_some()));
}

#[tokio::test]
async fn what_needs_the_store_says_that_an_instance_is_archived() {
    let world = Archiving::open().await;
    world.run(&["a/b"]).await;
    let ended = world.client.instance("a/b", Duration::ZERO).await.unwrap().completed_at.unwrap();
    world.archived(&["a/b"]).await;
    let http = crate::stand::http();
    let (get, post, delete) = (reqwest::Method::GET, reqwest::Method::POST, reqwest::Method::DELETE);
    let message = r#"{"name":"wave","data":null}"#;
    for (method, verb, body) in [
        (&get, "/tree", ""),
        (&get, "/explain", ""),
        (&get, "/status", ""),
        (&get, "/events", ""),
        (&get, "/logs", ""),
        (&post, "/raise", message),
        (&post, "/enqueue", message),
        (&post, "/cancel", "{}"),
        (&post, "/pause", "{}"),
        (&post, "/resume", "{}"),
        (&post, "/retry", "{}"),
        (&post, "/restart", "{}"),
        (&post, "/restart", r#"{"force":true}"#),
        (&post, "/restart", r#"{"new_id":"copy"}"#),
        (&delete, "", ""),
    ] {
        for (id, status, code) in [("a%2Fb", 410, "instance-archived"), ("never", 404, "not-found")] {
            let url = world.stand.url(&format!("/v1/instances/{id}{verb}"));
            let call = http.request(method.clone(), url).header("content-type", "application/json");
            let answer = call.body(body).send().await.unwrap();
            let found = answer.status().as_u16();
            let problem: segno_api::Problem = answer.json().await.unwrap();
            assert_eq!((found, problem.code.as_str()), (status, code), "{method} {verb} {id}: {problem:?}");
            let told = problem.detail.contains(&format!("\"a/b\" ended at {ended} and is archived"));
            assert_eq!(told, status == 410, "{method} {verb}: {problem:?}");
        }
    }
    // It can still be read, and its id can be used again.
    assert!(world.client.instance("a/b", Duration::ZERO).await.unwrap().archived);
    world.run(&["a/b"]).await;
    assert!(!world.client.instance("a/b", Duration::ZERO).await.unwrap().archived);
    world.client.tree("a/b", PageRequest::default()).await.unwrap();
}

#[tokio::test]
async fn queries_answer_the_same_before_and_after_retention() {
    const QUERIES: [&str; 12] = [
        "SELECT id, status, result, labels, duration_ms FROM instances ORDER BY id",
        "SELECT id FROM instances ORDER BY created_at DESC LIMIT 3",
        "SELECT id FROM instances ORDER BY created_at",
        "SELECT status, count(*) FROM instances GROUP BY status ORDER BY status",
        "SELECT count(*) FROM instances WHERE status = 'completed'",
        "SELECT count(*) FROM instances WHERE status = 'failed' AND orchestration = 'greet'",
        "SELECT id FROM instances WHERE id = 'i2' OR id LIKE 'j%' ORDER BY id",
        "SELECT count(*) FROM instances WHERE created_at < (SELECT max(created_at) FROM instances)",
        "SELECT count(*) FROM instances WHERE completed_at >= '2023-11-14' AND completed_at < '2023-11-15'",
        "SELECT instance, id, kind, name, source, data FROM events ORDER BY 1, 2",
        "SELECT kind, count(*) FROM events WHERE instance = 'i1' GROUP BY 1 ORDER BY 1",
        "SELECT i.id, e.kind FROM instances i JOIN events e ON e.instance = i.id WHERE e.id = 1 ORDER BY 1",
    ];
    let world = Archiving::open().await;
    world.run(&["i1", "i2", "j1"]).await;
    let mut before = Vec::new();
    for query in QUERIES {
        before.push(world.rows(query).await);
    }
    assert_eq!(before[0].len(), 3);
    world.archived(&["i1", "i2", "j1"]).await;
    for (query, before) in QUERIES.iter().zip(&before) {
        assert_eq!(world.rows(query).await, *before, "{query}");
    }
    assert_eq!(world.rows("SELECT sum(archived), count(*) FROM instances").await, ["3 3"]);
    // Live ones come between: newest first over both.
    world.run(&["k1", "k2"]).await;
    let newest = world.rows("SELECT id FROM instances ORDER BY created_at DESC LIMIT 4").await;
    assert_eq!(newest, ["\"k2\"", "\"k1\"", "\"j1\"", "\"i2\""]);
    let all = world.rows("SELECT archived, count(*) FROM instances GROUP BY 1 ORDER BY 1").await;
    assert_eq!(all, ["0 2", "1 3"]);
    let events =
        world.rows("SELECT archived, count(DISTINCT instance) FROM events GROUP BY 1 ORDER BY 1").await;
    assert_eq!(events, ["0 2", "1 3"]);
}

/// Records of some kinds that are in the store.
pub async fn live(world: &Archiving, kinds: &[&str]) -> Vec<Record> {
    let mut found = Vec::new();
    for kind in kinds {
        let request = ListRecords { kind, limit: 1_000, ..ListRecords::default() };
        found.extend(world.stand.server.client().store().list_records(request).await.unwrap());
    }
    found
}

/// Puts records back as a node leaves them that is killed after it has archived them.
pub async fn put_back(world: &Archiving, records: Vec<Record>) {
    let put = |record: Record| RecordWrite::Put {
        kind: record.kind,
        id: record.id,
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        body: record.body,
    };
    let writes = records.into_iter().map(put).collect();
    let batch = RecordBatch { writes, ..RecordBatch::default() };
    world.stand.server.client().store().commit_records(batch).await.unwrap();
}

#[tokio::test]
async fn actions_histories_and_the_audit_log_answer_the_same_after_their_time() {
    const QUERIES: [&str; 8] = [
        "SELECT id, label, function, input, trigger, due_at, status, result, created_at, updated_at, instance FROM actions \
         ORDER BY id",
        "SELECT status, count(*) FROM actions GROUP BY status ORDER BY status",
        "SELECT result FROM actions WHERE status = 'completed' ORDER BY result",
        "SELECT recurring, time, decided_at, decision, manual, outcome, instance, ended_at FROM recurring_history",
        "SELECT id, at, key, operation, path, status, request_id FROM audit WHERE operation NOT LIKE '%sql%' ORDER BY id",
        "SELECT operation FROM audit WHERE operation NOT LIKE '%sql%' ORDER BY at DESC LIMIT 2",
        "SELECT count(*) FROM audit WHERE at < '2023-01-01'",
        "SELECT count(*) FROM audit WHERE key = 'none'",
    ];
    let mut settings = archiving(Authentication::None);
    settings.actions.keep_finished_days = 1;
    settings.actions.keep_history_days = 1;
    settings.auth.audit_days = 1;
    let world = Archiving::with(settings).await;
    let client = &world.client;
    let call = |input: &str| CreateAction {
        namespace: None,
        tenant: None,
        label: None,
        tool_name: Some("greet".to_owned()),
        orchestration: None,
        tool_input: Some(segno_api::Json::from_text(input.to_owned()).unwrap()),
        next_tick_at: None,
        recurrence_secs: None,
        on_restart: OnRestart::Resume,
    };
    let done = client.create_action(&call("\"Ada\"")).await.unwrap().id;
    client.create_action(&call("[1.50]")).await.unwrap();
    let fields = RecurringFields {
        cron_expr: Some("0 0 1 1 *".to_owned()),
        function: Some("greet".to_owned()),
        input: Some(segno_api::Json::from_text("\"Ada\"".to_owned()).unwrap()),
        ..RecurringFields::default()
    };
    let recurring = client.create_recurring(&fields).await.unwrap().recurring_id;
    client.run_recurring(&recurring, &RunRecurring::default()).await.unwrap();
    world
        .until(async || {
            world.clock.advance(Duration::from_secs(1));
            let open = "SELECT count(*) FROM actions WHERE status NOT IN ('completed', 'failed')";
            let ended = "SELECT count(*) FROM recurring_history WHERE outcome = 'completed'";
            world.rows(open).await == ["0"] && world.rows(ended).await == ["1"]
        })
        .await;
    let shown = client.action(&done).await.unwrap();
    assert!(!shown.archived);
    let mut before = Vec::new();
    for query in QUERIES {
        before.push(world.rows(query).await);
    }
    assert_eq!((before[0].len(), before[3].len()), (2, 1));
    assert!(before[4].len() >= 4, "{:?}", before[4]);
    let kinds = ["segno.action", "segno.action-order", "segno.recurring-history", "segno.audit"];
    let records = live(&world, &kinds).await;
    world.clock.advance(Duration::from_secs(25 * 60 * 60));
    world
        .until(async || {
            world.clock.advance(Duration::from_secs(61));
            live(&world, &kinds).await.is_empty()
        })
        .await;
    // A connection may be closed in the time that has passed.
    world.until(async || world.client.ready().await.is_ok()).await;
    // What is in both places is one row, and the live one.
    put_back(&world, records).await;
    for (query, before) in QUERIES.iter().zip(&before) {
        assert_eq!(world.rows(query).await, *before, "in both places: {query}");
    }
    for table in ["actions", "recurring_history", "audit"] {
        let query = format!("SELECT count(*) FROM {table} WHERE archived = 1");
        assert_eq!(world.rows(&query).await, ["0"], "{table}");
    }
    assert!(!client.action(&done).await.unwrap().archived);
    for record in live(&world, &kinds).await {
        let write = RecordWrite::Delete { kind: record.kind, id: record.id, expect: Expect::Anything };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        world.stand.server.client().store().commit_records(batch).await.unwrap();
    }
    let moved = client.action(&done).await.unwrap();
    assert!(moved.archived);
    assert_eq!(Action { archived: false, ..moved }, shown);
    for (query, before) in QUERIES.iter().zip(&before) {
        assert_eq!(world.rows(query).await, *before, "{query}");
    }
    for table in ["actions", "recurring_history"] {
        let query = format!("SELECT min(archived), count(*) FROM {table} WHERE archived = 1");
        assert!(world.rows(&query).await[0].starts_with("1 "), "{table}");
    }
    // One more of each comes before those of the archive.
    let next = client.create_action(&call("\"Eve\"")).await.unwrap().id;
    let newest = world
        .rows("SELECT archived FROM audit WHERE operation NOT LIKE '%sql%' ORDER BY at DESC LIMIT 2")
        .await;
    assert_eq!(newest, ["0", "1"]);
    let both = world.rows("SELECT archived, count(*) FROM actions GROUP BY 1 ORDER BY 1").await;
    assert_eq!(both, ["0 1", "1 2"]);
    assert!(!client.action(&next).await.unwrap().archived);
    assert_eq!(client.erase_archived(ArchivedGroup::Actions, &done).await.unwrap().rows, 1);
    assert_eq!(code(client.action(&done).await), "unknown-action");
    assert_eq!(client.erase_archived(ArchivedGroup::Recurring, &recurring).await.unwrap().rows, 1);
    assert_eq!(world.rows("SELECT count(*) FROM recurring_history").await, ["0"]);
}

/// A node that dies between the write of the archive and the deletion leaves rows in both places.
#[tokio::test]
async fn a_row_in_both_places_is_one_row_and_the_live_one_wins() {
    let mut settings = archiving(Authentication::None);
    settings.retention.finished_count = None;
    let world = Archiving::with(settings).await;
    world.run(&["again", "still"]).await;
    let client = world.stand.server.client();
    let mut instances = Vec::new();
    for id in ["again", "still"] {
        instances.push(client.instance(&format!("default/default/{id}")).await.unwrap());
    }
    let histories = Vec::new();
    world.archive().store(ArchiveBatch { histories, instances }).await.unwrap();
    assert_eq!(
        world.rows("SELECT id, archived FROM instances ORDER BY id").await,
        ["\"again\" 0", "\"still\" 0"]
    );
    // It begins again, and fails this time.
    let request = StartInstance { on_conflict: OnConflict::Replace, ..greet("again", "7") };
    world.client.start(&request, None, Duration::ZERO).await.unwrap();
    world
        .until(async || world.rows("SELECT status FROM instances WHERE id = 'again'").await == ["\"failed\""])
        .await;
    for (query, expected) in [
        ("SELECT id FROM instances WHERE status = 'completed'", vec!["\"still\""]),
        ("SELECT id FROM instances WHERE status = 'failed'", vec!["\"again\""]),
        ("SELECT id, status FROM instances WHERE id = 'again'", vec!["\"again\" \"failed\""]),
        ("SELECT count(*) FROM instances", vec!["2"]),
    ] {
        assert_eq!(world.rows(query).await, expected, "{query}");
    }
    assert!(!world.client.instance("again", Duration::ZERO).await.unwrap().archived);
}

#[tokio::test]
async fn erasure_is_by_id_and_by_tenant_and_needs_the_right_to_it() {
    let world = Archiving::with(archiving(Authentication::Keys)).await;
    world.run(&["a", "b", "c"]).await;
    world.archived(&["a", "b", "c"]).await;
    let viewer = world.stand.client_with(Role::Viewer, "default", "default").await;
    let operator = world.stand.client_with(Role::Operator, "default", "default").await;
    let elsewhere = world.stand.client_with(Role::Admin, "default", "other").await.scope("default", "other");
    assert_eq!(code(viewer.erase_instance("a").await), "forbidden");
    assert_eq!(elsewhere.erase_instance("a").await.unwrap().rows, 0);
    // An administrator of a tenant erases the archive of that one, but for the log of what its keys did.
    let of_tenant = elsewhere.erase_archive().await.unwrap();
    assert_eq!((of_tenant.files, of_tenant.kept), (0, vec![ArchivedGroup::Audit]));
    assert_eq!(
        code(world.stand.client_with(Role::Admin, "default", "other").await.erase_archive().await),
        "forbidden"
    );
    assert_eq!(code(operator.erase_archive().await), "forbidden");
    assert_eq!(code(operator.erase_archived(ArchivedGroup::Audit, "x").await), "forbidden");
    assert_eq!(code(elsewhere.erase_archived(ArchivedGroup::Audit, "x").await), "forbidden");
    assert_eq!(world.client.erase_archived(ArchivedGroup::Audit, "x").await.unwrap().rows, 0);
    let erased = operator.erase_instance("a").await.unwrap();
    assert!(erased.rows > 1 && erased.files == 2, "{erased:?}");
    assert_eq!(code(operator.instance("a", Duration::ZERO).await), "not-found");
    assert_eq!(world.rows("SELECT id FROM instances ORDER BY id").await, ["\"b\"", "\"c\""]);
    assert_eq!(world.rows("SELECT count(*) FROM events WHERE instance = 'a'").await, ["0"]);
    let own = world.stand.client_with(Role::Admin, "default", "default").await;
    assert!(own.erase_archive().await.unwrap().files >= 2);
    assert_eq!(world.client.erase_archive().await.unwrap().kept, []);
    assert_eq!(world.rows("SELECT count(*) FROM instances").await, ["0"]);
    assert_eq!(world.client.archive().await.unwrap().kinds[0].files, 0);
}

#[tokio::test]
async fn nothing_is_deleted_and_nothing_is_denied_while_the_object_store_is_away() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("archive");
    let mut settings = archiving(Authentication::None);
    settings.archive.url = Some(format!("file:{}", place.display()));
    let world = Archiving::with(settings).await;
    assert!(world.client.ready().await.unwrap().warnings.is_empty());
    world.run(&["first"]).await;
    world.archived(&["first"]).await;
    let aside = directory.path().join("aside");
    std::fs::rename(&place, &aside).unwrap();
    std::fs::write(&place, "no directory").unwrap();
    world.run(&["second"]).await;
    world
        .until(async || {
            world.clock.advance(Duration::from_secs(61));
            // A connection may be closed in the time that has passed.
            world.client.ready().await.is_ok_and(|health| !health.warnings.is_empty())
        })
        .await;
    assert!(!world.client.instance("second", Duration::ZERO).await.unwrap().archived);
    std::fs::remove_file(&place).unwrap();
    std::fs::rename(&aside, &place).unwrap();
    world.archived(&["second"]).await;
    world
        .until(async || {
            world.clock.advance(Duration::from_secs(61));
            world.client.ready().await.is_ok_and(|health| health.warnings.is_empty())
        })
        .await;
    assert_eq!(world.rows("SELECT count(*) FROM instances").await, ["2"]);
    assert!(world.clock.now_ms() > 0);
}

#[tokio::test]
async fn a_server_without_an_archive_says_so() {
    let stand = Stand::open().await;
    let client = stand.client();
    assert!(!client.archive().await.unwrap().enabled);
    assert_eq!(code(client.erase_instance("a").await), "not-found");
    assert_eq!(code(client.erase_archive().await), "not-found");
}
