//! Every block of a store, overwritten in turn: a server on it answers every `GET` of its document
//! with what can be read or with a problem that names the damage, lists everything that can be
//! read, and lets in every key that can be read. One that takes no writes, as on a full disk, answers all of them.
//!
//! `SEGNO_DAMAGED_BLOCKS` is how many blocks are damaged, one after the other; 0 is all.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use segno::clock::{SystemClock, timeout};
use segno::store::Store;
use segno::{Context, Failure, Orchestration};
use segno_api::Client;
use segno_api::client::Expected;
use segno_api::instance::{OnConflict, StartInstance};
use segno_api::key::{CreateKey, Grant, Role};
use segno_api::work::FetchWork;
use segno_ledger::objects::Stores;
use segno_server::settings::{Authentication, Settings};
use segno_server::{Server, samples};
use segno_testkit::faults::{FaultStore, no_faults};
use serde_json::{Value, json};

use crate::dags::DagRuns;
use crate::runbooks;
use crate::stand::{Ground, PATIENCE, Stand, json_of};

const BLOCK: usize = 4_096;

/// Blocks that are damaged when `SEGNO_DAMAGED_BLOCKS` does not say.
const USUAL_BLOCKS: usize = 6;

/// Of each sort of thing: enough for blocks of their own.
const ROWS: usize = 16;

/// Longest time that an answer may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

/// A parent that has as many children as its input tells.
const FAMILY: Orchestration<Family, usize> = Orchestration::new("family");

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Family {
    children: usize,
    text: String,
}

async fn family(ctx: Context, family: Family) -> Result<usize, Failure> {
    for _ in 0..family.children {
        ctx.child(FAMILY, Family { children: 0, text: family.text.clone() }).await?;
    }
    Ok(family.children)
}

/// So long that a block has room for few of it.
fn text(number: usize) -> String {
    format!("{number:03} ").repeat(150)
}

fn of_sweep() -> Settings {
    runbooks::local(Authentication::Keys)
}

async fn stand(ground: &Ground) -> Stand {
    stand_on(ground.store.clone(), ground).await
}

async fn stand_on(store: Arc<dyn Store>, ground: &Ground) -> Stand {
    let builder = Server::builder(store, of_sweep());
    let registry = samples::registry().orchestration(FAMILY, family);
    Stand::begun(builder.registry(registry).functions(runbooks::functions), ground).await
}

/// What was stored, by what it is called in paths.
struct Stored {
    files: Vec<(String, Vec<u8>)>,
    keys: Vec<String>,
    action: String,
    recurring: String,
    payload: String,
    dead_letter: String,
    batch: u64,
    member: u64,
    ledger: Stores,
    runs: DagRuns,
}

async fn stored() -> Stored {
    let ground = Ground::embedded().await;
    let stand = stand(&ground).await;
    let client = stand.client();
    let start = StartInstance {
        orchestration: "family".to_owned(),
        version: None,
        id: Some("family".to_owned()),
        input: json_of(&Family { children: ROWS, text: text(0) }),
        labels: BTreeMap::new(),
        start_at: None,
        on_conflict: OnConflict::Reject,
    };
    client.start(&start, None, PATIENCE).await.unwrap();
    let mut keys = vec![stand.admin_key.clone()];
    for _ in 0..3 * ROWS {
        keys.push(stand.key(Role::Admin, "*", "*").await);
    }
    let batch = furnish_batch(&client).await;
    let mut ids = (String::new(), String::new(), String::new());
    for number in 0..ROWS {
        ids = furnish(&stand, &client, number).await;
    }
    crate::outcomes::bus_of(&stand).await;
    let runs = crate::dags::furnish(&stand).await;
    let dead_letter = stand.until_dead_letters(&client, ROWS).await[0].id.clone();
    let member = client.batch_members(batch, None).await.unwrap().members[ROWS / 2].id;
    stand.shutdown().await;
    let ledger = ground.ledger.clone();
    let files = ground.closed().await;
    let (action, recurring, payload) = ids;
    Stored { files, keys, action, recurring, payload, dead_letter, batch, member, ledger, runs }
}

/// One of everything that has a number. Returns ids of the action, the recurring action and the
/// payload.
async fn furnish(stand: &Stand, client: &Client, number: usize) -> (String, String, String) {
    let (name, text) = (format!("n{number:03}"), text(number));
    let action = json!({ "tool_name": "echo", "tool_input": text, "next_tick_at": "2999-01-01T00:00:00Z" });
    let action = client.create_action(&serde_json::from_value(action).unwrap()).await.unwrap().id;
    let recurring = json!({ "name": name, "cron_expr": "0 0 1 1 *", "function": "echo", "input": text });
    let recurring = client.create_recurring(&serde_json::from_value(recurring).unwrap()).await.unwrap();
    let dag = format!("name: {name}\ndescription: '{text}'\ntasks: [{{key: a, function: echo}}]\n");
    crate::dags::publish(client, &dag).await;
    let remote = json_of(&json!({ "executor": "remote", "description": text }));
    client.put_function(&name, &remote, Expected::Absent).await.unwrap();
    let hook = json!({ "verification": "none", "store_only": true, "description": text });
    client.put_hook(&name, &json_of(&hook), Expected::Absent).await.unwrap();
    let posted = crate::stand::http().post(stand.url("/v1/hooks/default/n000")).body(text.clone());
    let payload: Value = posted.send().await.unwrap().json().await.unwrap();
    let saved = json!({ "kind": "query", "text": text });
    client.save(&name, &serde_json::from_value(saved).unwrap(), None).await.unwrap();
    let functions = (0..40).map(|function| format!("Function-{number}-{function}"));
    let worker = format!("worker-{number}");
    client.fetch_work(&FetchWork::of_pool(worker, name.as_str(), functions)).await.unwrap();
    stand.send_junk("default/default/family", &text).await;
    stand.keep_log("family", number as u32 + 1).await;
    (action, recurring.recurring_id, payload["id"].as_str().unwrap().to_owned())
}

/// Runbooks, and a batch that has run to its end.
async fn furnish_batch(client: &Client) -> u64 {
    for number in 0..ROWS {
        let yaml = runbooks::MOVE.replace("name: move", &format!("name: move-{number:03}"));
        let yaml = yaml.replace("Move mailboxes", &text(number));
        client.publish_runbook(&runbooks::yaml(&yaml)).await.unwrap();
    }
    client.publish_runbook(&runbooks::yaml(runbooks::MOVE)).await.unwrap();
    let keys: Vec<String> = (0..ROWS).map(|number| format!("{number:03}-{}", "x".repeat(200))).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let batch = client.create_batch(&runbooks::due(&keys)).await.unwrap().id;
    runbooks::ended(client, batch).await;
    batch
}

/// A list, the name of its rows, and where one row is read by its id.
struct List {
    path: String,
    rows: &'static str,
    id: &'static str,
    one: Option<String>,
}

impl Stored {
    fn lists(&self) -> Vec<List> {
        let list = |path: &str, rows, id, one: Option<&str>| List {
            path: self.filled(path),
            rows,
            id,
            one: one.map(|one| self.filled(one)),
        };
        vec![
            list("/v1/instances", "instances", "id", Some("/v1/instances/ROW")),
            list("/v1/instances/{id}/tree", "nodes", "id", Some("/v1/instances/ROW")),
            list("/v1/instances/{id}/logs", "logs", "attempt", None),
            list("/v1/actions", "actions", "id", Some("/v1/actions/ROW")),
            list("/v1/recurring", "recurring_actions", "id", Some("/v1/recurring/ROW")),
            list("/v1/functions", "functions", "name", Some("/v1/functions/ROW")),
            list("/v1/hooks", "hooks", "name", Some("/v1/hooks/default/ROW")),
            list(
                "/v1/hooks/{namespace}/{route}/payloads",
                "payloads",
                "id",
                Some("/v1/hooks/default/n000/payloads/ROW"),
            ),
            list("/v1/pools", "pools", "name", Some("/v1/pools/ROW")),
            list("/v1/dead-letters", "dead_letters", "id", Some("/v1/dead-letters/ROW")),
            list("/v1/runbooks", "runbooks", "name", Some("/v1/runbooks/ROW")),
            list("/v1/batches", "batches", "id", Some("/v1/batches/ROW")),
            list("/v1/batches/{id}/members", "members", "id", Some("/v1/batches/{id}/members/ROW")),
            list("/v1/saved", "saved", "name", Some("/v1/saved/ROW")),
            list("/v1/dags", "dags", "name", Some("/v1/dags/ROW")),
            list("/v1/keys", "keys", "id", None),
            list("/v1/audit", "entries", "id", None),
        ]
    }

    /// A path of the document with what is stored.
    fn filled(&self, path: &str) -> String {
        let id = |path: &str| -> String {
            match path.split('/').nth(2).unwrap_or_default() {
                "instances" => "family".to_owned(),
                "actions" => self.action.clone(),
                "recurring" => self.recurring.clone(),
                "hooks" => self.payload.clone(),
                "dead-letters" => self.dead_letter.clone(),
                "batches" => self.batch.to_string(),
                "runs" => self.runs.run.clone(),
                "backfills" => self.runs.backfill.clone(),
                other => panic!("{other} has no id in this sweep: add one"),
            }
        };
        let name = match path.split('/').nth(2).unwrap_or_default() {
            "runbooks" => "move",
            "orchestrations" => "greet",
            _ => "n003",
        };
        let mut filled = path.to_owned();
        if path.contains("{id}") {
            filled = filled.replace("{id}", &id(path));
        }
        let filled = filled.replace("{member}", &self.member.to_string()).replace("{name}", name);
        let filled = filled.replace("{namespace}", "default").replace("{route}", "n000");
        let filled = filled.replace("{version}", "1").replace("{key}", "seal");
        let filled = filled.replace("{asset}", "sales").replace("{task}", "b");
        let filled = filled.replace("{topic}", "jobs").replace("{subscription}", "w");
        assert!(!filled.contains('{'), "{filled} has a parameter that this sweep does not know: add it");
        match path {
            "/v1/recurring/{id}/explain" => format!("{filled}?time=2026-01-01T00:00:00Z"),
            "/v1/search" => format!("{filled}?q=n"),
            _ => filled,
        }
    }

    /// A store with a damaged block, if it can be opened.
    async fn damaged(&self, block: Option<usize>) -> Option<Ground> {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in &self.files {
            let mut content = content.clone();
            if let Some(block) = block.filter(|_| name == "state.redb") {
                content[block * BLOCK..(block + 1) * BLOCK].fill(0xa5);
            }
            std::fs::write(directory.path().join(name), content).unwrap();
        }
        match Ground::opened(directory).await {
            Ok(mut ground) => {
                ground.ledger = self.ledger.clone();
                Some(ground)
            }
            Err(error) => {
                assert!(error.to_string().contains("state.redb"), "block {block:?}: {error}");
                None
            }
        }
    }

    fn blocks(&self) -> usize {
        let state = self.files.iter().find(|(name, _)| name == "state.redb").unwrap();
        state.1.len() / BLOCK
    }
}

/// A caller of a server.
struct Caller<'a> {
    stand: &'a Stand,
    http: reqwest::Client,
    key: String,
}

/// An answer: its status, its kind, and its text; of a stream, its beginning.
struct Answer {
    status: u16,
    kind: String,
    text: String,
}

impl Caller<'_> {
    async fn get(&self, path: &str) -> Answer {
        let answered = async {
            let call = self.http.get(self.stand.url(path)).bearer_auth(&self.key);
            let mut answer = call.send().await.unwrap_or_else(|error| panic!("{path}: {error}"));
            let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
            let (status, kind) = (answer.status().as_u16(), kind.unwrap_or_default());
            let text = match kind.starts_with("text/event-stream") {
                true => {
                    String::from_utf8(answer.chunk().await.unwrap().unwrap_or_default().to_vec()).unwrap()
                }
                false => answer.text().await.unwrap_or_else(|error| panic!("{path}: {error}")),
            };
            Answer { status, kind, text }
        };
        let answer = timeout(&SystemClock, ANSWERED_WITHIN, answered).await;
        answer.unwrap_or_else(|| panic!("{path} is not answered within {ANSWERED_WITHIN:?}"))
    }

    /// An answer that is a success, or names the damage.
    async fn checked(&self, path: &str) -> Answer {
        let answer = self.get(path).await;
        if answer.status != 200 {
            check_problem(path, &answer);
        }
        answer
    }

    /// All rows of a list, page by page, and whether it says that others are missing.
    async fn listed(&self, list: &List) -> Listed {
        let mut listed = Listed::default();
        let mut cursor = String::new();
        for _ in 0..100 {
            let answer = self.checked(&format!("{}?limit=7{cursor}", list.path)).await;
            if answer.status != 200 {
                listed.is_refused = true;
                return listed;
            }
            let page: Value = serde_json::from_str(&answer.text).unwrap();
            let rows = page[list.rows].as_array().unwrap_or_else(|| panic!("{}: {page}", list.path));
            for row in rows {
                let id = row[list.id].as_str().map_or_else(|| row[list.id].to_string(), str::to_owned);
                assert!(listed.rows.insert(id), "{}: a row is listed twice: {row}", list.path);
            }
            for row in page["unreadable"].as_array().into_iter().flatten() {
                let reason = row["reason"].as_str().unwrap();
                assert!(reason.contains("of state.redb fails its checksum"), "{}: {row}", list.path);
                listed.unreadable.insert(row["id"].as_str().unwrap().to_owned());
            }
            let Some(next) = page["next_cursor"].as_str() else { return listed };
            let next = next.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
            cursor = format!("&cursor={next}");
        }
        panic!("{} has no end", list.path)
    }
}

#[derive(Debug, Default, PartialEq)]
struct Listed {
    rows: BTreeSet<String>,
    unreadable: BTreeSet<String>,
    is_refused: bool,
}

/// A problem says that the store is damaged, where, and what to do.
fn check_problem(path: &str, answer: &Answer) {
    let Answer { status, kind, text } = answer;
    assert_eq!(kind, "application/problem+json", "{path}: {status} {text}");
    let problem: Value = serde_json::from_str(text).unwrap();
    let code = problem["code"].as_str().unwrap();
    assert!(["stored-data-unreadable", "store-damaged"].contains(&code), "{path}: {text}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("of state.redb fails its checksum"), "{path}: {text}");
    assert!(detail.contains("(at byte ") && detail.contains("segno store check"), "{path}: {text}");
}

/// Paths of the document that are read.
async fn paths(stand: &Stand) -> Vec<String> {
    let document: Value =
        crate::stand::http().get(stand.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    let paths = document["paths"].as_object().unwrap().iter();
    // Figures are not collected in tests.
    let is_read = |path: &str, item: &Value| item.get("get").is_some() && path != "/metrics";
    let found: Vec<String> =
        paths.filter(|(path, item)| is_read(path, item)).map(|(path, _)| path.clone()).collect();
    assert!(found.len() > 40, "{found:?}");
    found
}

/// A caller with the first key that is let in, and how many are not. The others are refused because of the damage, or let
/// in as well.
async fn let_in<'a>(stand: &'a Stand, stored: &Stored) -> (Option<Caller<'a>>, usize) {
    let http = crate::stand::http();
    let (mut caller, mut refused) = (None, 0);
    for key in &stored.keys {
        let one = Caller { stand, http: http.clone(), key: key.clone() };
        if one.checked("/v1/queues").await.status == 200 {
            caller.get_or_insert(one);
        } else {
            refused += 1;
        }
    }
    for key in ["segno_0000000000000000_x", "segno_8888888888888888_x", "segno_ffffffffffffffff_x"] {
        let made_up = Caller { stand, http: http.clone(), key: key.to_owned() };
        let answer = made_up.get("/v1/queues").await;
        assert_ne!(answer.status, 200, "{key} is let in");
        if answer.status != 401 {
            check_problem("/v1/queues", &answer);
        }
    }
    (caller, refused)
}

/// Makes a key on a store with damaged keys: it is stored beside the damage, and works.
async fn make_key(caller: &Caller<'_>) {
    let client = Client::new(&caller.stand.url("")).unwrap().key(caller.key.clone());
    let grant = Grant { namespace: "*".to_owned(), tenant: "*".to_owned() };
    let request =
        CreateKey { name: "new".to_owned(), role: Role::Admin, grants: vec![grant], expires_at: None };
    let key = client.create_key(&request).await.unwrap().secret;
    let new = Caller { stand: caller.stand, http: caller.http.clone(), key };
    assert_eq!(new.get("/v1/queues").await.status, 200);
}

/// How much of a damaged store is served.
#[derive(Debug, Default)]
struct Sweep {
    refused_stores: usize,
    refused_keys: usize,
    refused_answers: usize,
    missing_rows: usize,
}

impl Sweep {
    async fn block(&mut self, stored: &Stored, whole: &[Listed], block: usize) {
        let Some(ground) = stored.damaged(Some(block)).await else {
            self.refused_stores += 1;
            return;
        };
        let stand = stand(&ground).await;
        let (caller, refused_keys) = let_in(&stand, stored).await;
        self.refused_keys += refused_keys;
        match caller {
            Some(caller) => {
                if refused_keys > 0 {
                    make_key(&caller).await;
                }
                for (list, whole) in stored.lists().iter().zip(whole) {
                    self.list(&caller, list, whole).await;
                }
                for path in paths(&stand).await {
                    let answer = caller.checked(&stored.filled(&path)).await;
                    self.refused_answers += usize::from(answer.status != 200);
                }
            }
            None => println!("block {block}: no key can be read"),
        }
        stand.shutdown().await;
    }

    /// Rows that are missing cannot be read by their ids either, and the list says that they are
    /// missing.
    async fn list(&mut self, caller: &Caller<'_>, list: &List, whole: &Listed) {
        let listed = caller.listed(list).await;
        let missing: Vec<&String> =
            whole.rows.difference(&listed.rows).filter(|id| !listed.unreadable.contains(*id)).collect();
        self.missing_rows += missing.len();
        if listed.is_refused {
            // The row that the list is of may be on the block; no other list depends on one row.
            assert!(list.path.starts_with("/v1/instances/"), "{} is refused", list.path);
            return;
        }
        if missing.is_empty() {
            return;
        }
        assert!(listed.unreadable.contains(""), "{}: {missing:?} are missing: {listed:?}", list.path);
        for id in missing {
            let Some(one) = &list.one else { continue };
            let answer = caller.checked(&one.replace("ROW", id)).await;
            assert_ne!(answer.status, 200, "{}: {id} can be read and is not listed: {listed:?}", list.path);
        }
    }
}

/// Which blocks are damaged, evenly spread.
fn sample(blocks: usize) -> Vec<usize> {
    let wanted = std::env::var("SEGNO_DAMAGED_BLOCKS").ok().and_then(|value| value.parse().ok());
    let wanted = match wanted.unwrap_or(USUAL_BLOCKS) {
        0 => blocks,
        wanted => wanted.min(blocks),
    };
    (0..wanted).map(|number| number * blocks / wanted).collect()
}

#[tokio::test]
async fn whatever_block_is_damaged_all_else_is_served_and_the_loss_is_named() {
    let stored = stored().await;
    let ground = stored.damaged(None).await.unwrap();
    let undamaged = stand(&ground).await;
    let caller = let_in(&undamaged, &stored).await.0.unwrap();
    let mut whole = Vec::new();
    for list in stored.lists() {
        let listed = caller.listed(&list).await;
        assert!(listed.unreadable.is_empty() && !listed.is_refused, "{}: {listed:?}", list.path);
        assert!(listed.rows.len() >= ROWS || list.rows == "batches", "{}: {listed:?}", list.path);
        whole.push(listed);
    }
    let mut refused = Vec::new();
    for path in paths(&undamaged).await {
        let answer = caller.get(&stored.filled(&path)).await;
        refused.extend((answer.status != 200).then(|| format!("{path}: {}", answer.text)));
    }
    assert!(refused.is_empty(), "{refused:#?}");
    undamaged.shutdown().await;
    let (mut sweep, mut failed) = (Sweep::default(), Vec::new());
    for block in sample(stored.blocks()) {
        // All blocks with something wrong are named, not only the first.
        let swept = AssertUnwindSafe(sweep.block(&stored, &whole, block)).catch_unwind().await;
        failed.extend(swept.is_err().then_some(block));
    }
    println!("{sweep:?} of {} blocks", stored.blocks());
    assert!(failed.is_empty(), "blocks {failed:?}");
    assert!(sweep.missing_rows > 0 && sweep.refused_answers > 0, "no damage was met: {sweep:?}");
}

#[tokio::test]
async fn everything_is_read_while_the_store_takes_no_writes() {
    let stored = stored().await;
    let ground = stored.damaged(None).await.unwrap();
    let store = FaultStore::new(ground.store.clone(), Arc::new(SystemClock), no_faults());
    let stand = stand_on(store.clone(), &ground).await;
    let caller = let_in(&stand, &stored).await.0.unwrap();
    let client = Client::new(&stand.url("")).unwrap().key(caller.key.clone());
    // A batch that waits, so that it is explained what for.
    let batch = client.create_batch(&runbooks::by_hand(&["late"])).await.unwrap().id;
    store.fill_up();
    let mut refused = Vec::new();
    let paths = paths(&stand).await.into_iter().filter(|path| path != "/readyz");
    let mut paths: Vec<String> = paths.map(|path| stored.filled(&path)).collect();
    paths.extend([
        format!("/v1/batches/{batch}"),
        format!("/v1/batches/{batch}/explain"),
        "/v1/recurring/n003".to_owned(),
    ]);
    for path in paths {
        let answer = caller.get(&path).await;
        refused.extend((answer.status != 200).then(|| format!("{path}: {}", answer.text)));
    }
    assert!(refused.is_empty(), "{refused:#?}");
    for list in stored.lists() {
        let listed = caller.listed(&list).await;
        assert!(listed.rows.len() >= ROWS || list.rows == "batches", "{}: {listed:?}", list.path);
    }
    stand.shutdown().await;
}
