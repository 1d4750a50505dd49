//! Data sources over real sockets, files and functions.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests and their helpers")]

mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use segno::clock::SystemClock;
use segno::store::Store;
use segno::store::memory::MemoryStore;
use segno::{ActivityContext, Client, Failure, Registry, Runtime};
use segno_actions::functions::{Functions, Scope, Secret, SecretReference, SettingValue, StoredPolicy};
use segno_actions::pools::{Pools, Room, RoomCalls};
use segno_runbook::definition::{BatchTime, DataSource, SourceKind};
use segno_runbook::limits::SOURCE_TIMEOUT;
use segno_runbook::source::{Query, SourceError, Sources, SqlLimits, SqlReader, SqlRows};
use serde_json::{Value, json};
use server::Server;

/// A database that knows one query.
struct Database;

#[async_trait]
impl SqlReader for Database {
    async fn rows(&self, url: &Secret, query: &str, limits: SqlLimits) -> Result<SqlRows, SourceError> {
        assert_eq!(url.expose(), "postgres://migration");
        assert!(limits.max_rows > 0);
        let row = |values: [Option<&str>; 2]| values.map(|value| value.map(str::to_owned)).to_vec();
        let rows = match query {
            "all" => vec![row([Some("a"), Some("x")]), row([Some("b"), None])],
            "none" => Vec::new(),
            "twice" => vec![row([Some("a"), None]), row([Some("A"), None])],
            other => panic!("{other}"),
        };
        Ok(SqlRows { columns: vec!["Id".to_owned(), "Upn".to_owned()], rows })
    }
}

struct World {
    sources: Sources,
    scope: Scope,
    directory: tempfile::TempDir,
    /// Runs functions while the world lives.
    _runtime: Runtime,
}

async fn list(_: ActivityContext, input: Value) -> Result<Value, Failure> {
    match input["kind"].as_str() {
        Some("rows") => Ok(json!([{"Id": 1, "Upn": "a"}, {"Id": 2}])),
        Some("text") => Ok(json!("no rows")),
        _ => Err(Failure::application("the directory is away").non_retryable()),
    }
}

impl World {
    /// A tenant `eu/acme` whose secrets and files are below a directory.
    async fn new(private_addresses: bool) -> World {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().join("eu/acme");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("db"), "postgres://migration\n").unwrap();
        std::fs::write(own.join("members.csv"), "Id,Upn\na,x\n").unwrap();
        std::fs::write(directory.path().join("foreign.csv"), "Id\nsecret\n").unwrap();
        let store: Arc<dyn Store> = MemoryStore::new();
        let policy = StoredPolicy {
            private_addresses,
            secret_directory: Some(directory.path().to_owned()),
            ..StoredPolicy::default()
        };
        let functions =
            Functions::builder(store.clone()).stored_policy(policy).rust("list", list).build().unwrap();
        let registry = functions.register(Registry::builder()).build().unwrap();
        let runtime = Runtime::builder(store.clone()).registry(registry).start().await.unwrap();
        let pools = Pools::new(store.clone(), BTreeMap::new()).unwrap();
        let calls = RoomCalls::new(Room::RUNBOOK, &functions, pools, Client::new(store));
        let csv_directory = Some(directory.path().to_owned());
        let clock = SystemClock::shared();
        let sources = Sources::new(functions, calls, clock, Arc::new(Database), csv_directory);
        World { sources, scope: Scope::new("eu", "acme").unwrap(), directory, _runtime: runtime }
    }

    /// Runs a query: keys and data, or the error.
    async fn rows(&self, kind: SourceKind, required: &[&str]) -> Result<Vec<Value>, String> {
        let source = DataSource {
            kind,
            primary_key: "Id".to_owned(),
            batch_time: BatchTime::Immediate,
            multi_valued_columns: Vec::new(),
            interval_sec: 300,
            max_removed_percent: 20,
        };
        self.sources.check(&self.scope, &source).map_err(|error| error.to_string())?;
        let required: BTreeSet<String> = required.iter().map(|name| (*name).to_owned()).collect();
        let key = format!("query-{:?}", source.kind).chars().take(100).collect::<String>();
        let query = Query {
            scope: &self.scope,
            source: &source,
            required: &required,
            key: &key,
            timeout: SOURCE_TIMEOUT,
        };
        let rows = self.sources.rows(query).await.map_err(|error| error.to_string())?;
        Ok(rows.rows.into_iter().map(|row| json!([row.key, row.columns])).collect())
    }

    fn own(&self, name: &str) -> PathBuf {
        self.directory.path().join("eu/acme").join(name)
    }

    fn sql(&self, query: &str) -> SourceKind {
        SourceKind::Sql { connection: SecretReference::File(self.own("db")), query: query.to_owned() }
    }
}

fn http(url: String, rows: Option<&str>, next_page: Option<&str>) -> SourceKind {
    let headers = BTreeMap::from([("x-key".to_owned(), SettingValue::Text("k1".to_owned()))]);
    SourceKind::Http { url, headers, rows: rows.map(str::to_owned), next_page: next_page.map(str::to_owned) }
}

#[tokio::test]
async fn a_query_of_a_database_gives_rows() {
    let world = World::new(false).await;
    let rows = world.rows(world.sql("all"), &["Upn"]).await.unwrap();
    assert_eq!(rows, [json!(["a", {"Id": "a", "Upn": "x"}]), json!(["b", {"Id": "b", "Upn": null}])]);
    assert_eq!(world.rows(world.sql("none"), &["Upn"]).await.unwrap(), Vec::<Value>::new());
    let missing = world.rows(world.sql("none"), &["Home", "Id"]).await.unwrap_err();
    assert_eq!(missing, "the column \"Home\" is missing [invalid-members]");
    let twice = world.rows(world.sql("twice"), &[]).await.unwrap_err();
    assert!(twice.starts_with("row 2, Id: the key \"A\" is already on row 1"), "{twice}");
}

#[tokio::test]
async fn secrets_and_files_of_others_stay_out_of_reach() {
    let world = World::new(false).await;
    let etc =
        SourceKind::Sql { connection: SecretReference::File("/etc/passwd".into()), query: String::new() };
    let error = world.rows(etc, &[]).await.unwrap_err();
    assert!(error.contains("may not read the file /etc/passwd"), "{error}");
    for location in [
        world.directory.path().join("foreign.csv"),
        world.own("../../foreign.csv"),
        world.directory.path().join("eu/acme-2/members.csv"),
        PathBuf::from("/etc/passwd"),
    ] {
        let kind = SourceKind::Csv { location: location.display().to_string() };
        let error = world.rows(kind, &[]).await.unwrap_err();
        assert!(error.contains("files of this tenant are below"), "{error}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_does_not_lead_out_of_the_directory() {
    let world = World::new(false).await;
    std::os::unix::fs::symlink(world.directory.path().join("foreign.csv"), world.own("link.csv")).unwrap();
    let kind = SourceKind::Csv { location: world.own("link.csv").display().to_string() };
    let error = world.rows(kind, &[]).await.unwrap_err();
    assert!(error.contains("files of this tenant are below"), "{error}");
}

#[tokio::test]
async fn a_file_of_values_gives_rows() {
    let world = World::new(false).await;
    let at = |name: &str| SourceKind::Csv { location: world.own(name).display().to_string() };
    let rows = world.rows(at("members.csv"), &[]).await.unwrap();
    assert_eq!(rows, [json!(["a", {"Id": "a", "Upn": "x"}])]);
    std::fs::write(world.own("other.csv"), "Upn\nx\n").unwrap();
    let missing = world.rows(at("other.csv"), &["Id", "Upn"]).await.unwrap_err();
    assert_eq!(missing.matches("the column \"Id\" is missing").count(), 1, "{missing}");
    let error = world.rows(at("none.csv"), &[]).await.unwrap_err();
    assert!(error.starts_with("the csv source failed: ") && error.contains("none.csv"), "{error}");
}

#[tokio::test]
async fn pages_are_read_to_the_last_from_one_host() {
    let world = World::new(true).await;
    let server = Server::start(&[
        ("/one", r#"{"items": [{"Id": 1, "Upn": "a"}], "next": "/two?page=2"}"#),
        ("/two?page=2", r#"{"items": [{"Id": 2, "Tags": ["p", "q"]}], "next": null}"#),
        ("/plain", r#"[{"Id": "only"}]"#),
        ("/empty", "[]"),
        ("/away", r#"{"items": [], "next": "https://example.org/evil"}"#),
        ("/loop", r#"{"items": [], "next": "/loop"}"#),
        ("/object", r#"{"rows": 7}"#),
        ("/broken", "[{"),
        ("/order", r#"[{"$serde_json::private::RawValue": "[1]"}]"#),
        ("/large", r#"[{"Id": 123456789012345678901234567890}]"#),
    ])
    .await;
    let paged = |path: &str| http(server.url(path), Some("/items"), Some("/next"));
    let rows = world.rows(paged("/one"), &["Tags"]).await.unwrap();
    assert_eq!(
        rows,
        [
            json!(["1", {"Id": "1", "Upn": "a", "Tags": null}]),
            json!(["2", {"Id": "2", "Upn": null, "Tags": ["p", "q"]}]),
        ]
    );
    assert!(server.requests().iter().all(|request| request.contains("x-key: k1")));
    assert_eq!(world.rows(http(server.url("/plain"), None, None), &[]).await.unwrap().len(), 1);
    assert_eq!(world.rows(http(server.url("/empty"), None, None), &["Upn"]).await.unwrap().len(), 0);
    for (kind, problem) in [
        (paged("/away"), "page 1: the next page https://example.org/evil is on another host"),
        (paged("/loop"), "page 2: it was read before"),
        (paged("/object"), "page 1: there is nothing at /items"),
        (http(server.url("/object"), None, None), "page 1: the rows are not an array"),
        (http(server.url("/broken"), None, None), "page 1: "),
        (http(server.url("/order"), None, None), "page 1: "),
        (http(server.url("/none"), None, None), "404"),
    ] {
        let error = world.rows(kind, &[]).await.unwrap_err();
        assert!(error.starts_with("the http source failed: ") && error.contains(problem), "{error}");
    }
    let error = world.rows(http(server.url("/large"), None, None), &[]).await.unwrap_err();
    assert!(error.starts_with("row 1, Id: ") && error.ends_with("[invalid-members]"), "{error}");
    let csv = SourceKind::Csv { location: server.url("/plain") };
    let error = world.rows(csv, &[]).await.unwrap_err();
    assert!(error.contains("the column \"Id\" is missing"), "{error}");
}

#[tokio::test]
async fn private_addresses_are_not_queried_unless_stored_functions_may_call_them() {
    let world = World::new(false).await;
    let error = world.rows(http("http://127.0.0.1:1/".to_owned(), None, None), &[]).await.unwrap_err();
    assert!(error.contains("is not a public address"), "{error}");
    assert!(
        error.contains("stored_functions.private_addresses") && !error.contains("allow_hosts"),
        "{error}"
    );
}

#[tokio::test]
async fn a_function_gives_rows() {
    let world = World::new(false).await;
    let call = |function: &str, kind: &str| SourceKind::Function {
        function: function.to_owned(),
        input: json!({ "kind": kind }),
    };
    let rows = world.rows(call("list", "rows"), &[]).await.unwrap();
    assert_eq!(rows, [json!(["1", {"Id": "1", "Upn": "a"}]), json!(["2", {"Id": "2", "Upn": null}])]);
    for (kind, problem) in [
        (call("list", "text"), "list must return an array of rows; it returned a text"),
        (call("list", "error"), "the directory is away"),
        (call("nosuch", "rows"), "nosuch"),
    ] {
        let error = world.rows(kind, &[]).await.unwrap_err();
        assert!(error.starts_with("the function source failed: ") && error.contains(problem), "{error}");
    }
}
