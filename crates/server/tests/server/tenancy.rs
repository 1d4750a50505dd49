//! A walk over every operation of the served document by a caller of one tenant with the ids, names and bodies of another:
//! nothing of the other tenant is read, changed or revealed.
//!
//! Every request is sent twice: with what the other tenant has, and with what no tenant has. The two answers must be the
//! same. An operation that the walk does not know fails it: add it to `requests`, with every field that takes an id or name.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Method;
use segno::clock::SystemClock;
use segno::store::{Expect, ListRecords, RecordBatch, RecordWrite};
use segno_api::Client;
use segno_api::client::{Expected, ListPayloads};
use segno_api::dag::PublishDag;
use segno_api::invocation::Invoke;
use segno_api::key::Role;
use segno_api::pool::PausePool;
use segno_api::recurring::RunRecurring;
use segno_api::saved::{Save, SavedKind};
use segno_api::work::{FetchWork, Heartbeat, HeartbeatAction};
use segno_ledger::ids::CallbackTask;
use segno_runbook::bus::{
    Bus as _, DeadLetterReason, Message, RecordBus, Settlement, SubscriptionName, SubscriptionSettings,
};
use serde_json::{Value, json};

use crate::stand::{PATIENCE, Stand, greet, json_of};

/// Text that is in the other tenant's data and in no request: in no answer either.
const SECRET: &str = "for-the-shop-only";

/// Kinds of records that a tenant has, each under ids that begin with its namespace and tenant.
const KINDS: &[&str] = &[
    "batch_members",
    "batches",
    "bus_dead_letters",
    "bus_messages",
    "bus_sent",
    "bus_subscriptions",
    "dag_heads",
    "dag_versions",
    "phase_executions",
    "runbook_batches",
    "runbook_counters",
    "runbook_heads",
    "runbook_inbox",
    "runbook_queries",
    "runbook_requests",
    "runbook_source_batches",
    "runbook_source_members",
    "runbooks",
    "segno.action",
    "segno.action-run",
    "segno.action-dedup",
    "segno.audit",
    "segno.dead-letter",
    "segno.dead-letter-body",
    "segno.function",
    "segno.function-log",
    "segno.hook",
    "segno.hook-body",
    "segno.hook-event",
    "segno.hook-key",
    "segno.hook-payload",
    "segno.pool",
    "segno.pool-resumed",
    "segno.pool-state",
    "segno.recurring",
    "segno.recurring-count",
    "segno.recurring-end",
    "segno.recurring-history",
    "segno.recurring-name",
    "segno.recurring-run",
    "segno.saved",
];

/// What a tenant has, by what it is called in requests.
struct Names {
    namespace: &'static str,
    tenant: &'static str,
    instance: String,
    call: String,
    action: String,
    recurring: String,
    hook: String,
    payload: String,
    function: String,
    pool: String,
    lease: String,
    key: String,
    dead_letter: String,
    recurring_name: String,
    runbook: String,
    batch: String,
    member: String,
    phase: String,
    request: String,
    bus_message: String,
    bus_letter: String,
    bus_lock: String,
    dag: String,
    run: String,
    task: String,
    asset: String,
    backfill: String,
}

impl Names {
    fn texts(&self) -> [&str; 27] {
        [
            self.namespace,
            self.tenant,
            &self.instance,
            &self.call,
            &self.action,
            &self.recurring,
            &self.hook,
            &self.payload,
            &self.function,
            &self.pool,
            &self.lease,
            &self.key,
            &self.dead_letter,
            &self.recurring_name,
            &self.runbook,
            &self.batch,
            &self.member,
            &self.phase,
            &self.request,
            &self.bus_message,
            &self.bus_letter,
            &self.bus_lock,
            &self.dag,
            &self.run,
            &self.task,
            &self.asset,
            &self.backfill,
        ]
    }

    /// Names as they are, and with tricks that would lead from one tenant to another if ids were joined carelessly.
    fn ids(&self, id: &str) -> Vec<String> {
        let (namespace, tenant) = (self.namespace, self.tenant);
        vec![
            id.to_owned(),
            format!("{namespace}/{tenant}/{id}"),
            format!("../{tenant}/{id}"),
            format!("../../{namespace}/{tenant}/{id}"),
            format!("/{namespace}/{tenant}/{id}"),
        ]
    }
}

/// What no tenant has. Everything is as long as its counterpart and sorts like it.
fn absent(names: &Names) -> Names {
    let other = |text: &str| text.replace("b-", "b_");
    let higher = |text: &str| (text.parse::<u64>().unwrap() + 1_000_000_000).to_string();
    let uuid = |text: &str| text.replace(|c: char| c.is_ascii_hexdigit(), "0");
    // As long, of the same time, and of no run.
    let other_id = |text: &str| format!("{}zzzz", &text[..text.len() - 4]);
    Names {
        namespace: "b_shop",
        tenant: "b_eu",
        instance: other(&names.instance),
        call: other(&names.call),
        action: uuid(&names.action),
        recurring: uuid(&names.recurring),
        hook: other(&names.hook),
        payload: uuid(&names.payload),
        function: other(&names.function),
        pool: other(&names.pool),
        lease: names.lease.chars().rev().collect(),
        key: uuid(&names.key),
        dead_letter: uuid(&names.dead_letter),
        recurring_name: other(&names.recurring_name),
        runbook: other(&names.runbook),
        batch: higher(&names.batch),
        member: higher(&names.member),
        phase: higher(&names.phase),
        request: other(&names.request),
        bus_message: other(&names.bus_message),
        bus_letter: uuid(&names.bus_letter),
        bus_lock: uuid(&names.bus_lock),
        dag: other(&names.dag),
        run: other_id(&names.run),
        task: other(&names.task),
        asset: other(&names.asset),
        backfill: other_id(&names.backfill),
    }
}

/// Runbook of a tenant, with steps of its pool.
fn runbook(name: &str, pool: &str, description: &str) -> String {
    format!(
        "name: {name}\ndescription: {description}\ndata_source: {{type: manual, primary_key: Key}}\nphases:\n  \
         - {{name: first, offset: T-0, steps: [{{name: one, worker_id: {pool}, function: New-X}}]}}\n"
    )
}

/// Ids of batches, members and phases begin here in the other tenant, so that no other number in an answer is one of them.
const FIRST_ROW: u64 = 7_700_000_001;

/// A runbook, and a batch of it that is advanced by hand: its id, and those of its member and its phase.
async fn furnish_batch(stand: &Stand, client: &Client) -> [String; 3] {
    let store = stand.server.client().store();
    let tables = ["batches", "batch_members", "phase_executions"];
    let writes = tables.into_iter().enumerate().map(|(number, table)| RecordWrite::Put {
        kind: "runbook_counters".to_owned(),
        id: format!("b-shop/b-eu/{table}"),
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        body: (FIRST_ROW + 10_000 * number as u64).to_string().into(),
    });
    let counters = RecordBatch { writes: writes.collect(), ..RecordBatch::default() };
    store.commit_records(counters).await.unwrap();
    let published = json!({ "yaml_content": runbook("b-runbook", "b-pool", SECRET) });
    client.publish_runbook(&serde_json::from_value(published).unwrap()).await.unwrap();
    let held = json!({
        "name": "b-runbook",
        "pending_removal": {
            "set": 1, "count": 1, "of": 1, "batches": 1, "at": "2026-01-01T00:00:00Z",
            "sample": [{ "batch_id": FIRST_ROW, "key": SECRET }],
        },
    });
    let writes = vec![RecordWrite::Put {
        kind: "runbook_queries".to_owned(),
        id: "b-shop/b-eu/b-runbook".to_owned(),
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        body: held.to_string().into(),
    }];
    store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
    let batch = json!({ "runbook": "b-runbook", "members": [{ "Key": SECRET }] });
    let batch = client.create_batch(&serde_json::from_value(batch).unwrap()).await.unwrap().id;
    let is_sealed = async {
        while !client.batch(batch).await.unwrap().batch.is_sealed {
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, is_sealed).await.expect("members are not stored");
    let member = client.batch_members(batch, None).await.unwrap().members[0].id;
    let phase = client.batch(batch).await.unwrap().phases[0].id;
    assert!(batch >= FIRST_ROW && member >= FIRST_ROW && phase >= FIRST_ROW, "{batch} {member} {phase}");
    [batch, member, phase].map(|id| id.to_string())
}

/// A DAG of a tenant, whose runs have a partition.
fn dag(name: &str, task: &str, asset: &str, description: &str) -> String {
    format!(
        "name: {name}\ndescription: {description}\npartitions: {{days: {{window: daily, first: 2026-01-01}}}}\n\
         partitioned_by: days\nassets: {{{asset}: {{partitions: days}}}}\ntasks:\n  \
         - {{key: {task}, function: echo, input: {description}, asset: {asset}}}\n"
    )
}

/// A DAG with a run and a backfill: the ids of the two.
async fn furnish_dag(client: &Client) -> [String; 2] {
    let document = dag("b-dag", "b-task", "b-asset", SECRET);
    client.publish_dag(&PublishDag { document }).await.unwrap();
    let wanted = json!({ "dag": "b-dag", "partition": "2026-01-01", "labels": { "secret": SECRET } });
    let run = client.start_run(&serde_json::from_value(wanted).unwrap(), None).await.unwrap().id;
    let ended = async {
        while !client.run(&run).await.is_ok_and(|details| details.run.status.is_final()) {
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, ended).await.expect("the run does not end");
    client.pause_dag("b-dag").await.unwrap();
    let wanted = json!({ "dag": "b-dag", "partitions": "2026-01-02..2026-01-03" });
    let backfill = client.create_backfill(&serde_json::from_value(wanted).unwrap()).await.unwrap().id;
    [run, backfill]
}

/// A subscription named like the pool, with a dead letter and a locked message: its id, and the lock.
async fn furnish_bus(stand: &Stand) -> [String; 2] {
    let store = stand.server.client().store().clone();
    let scope = segno_actions::functions::Scope::new("b-shop", "b-eu").unwrap();
    let bus = RecordBus::new(store, SystemClock::shared(), segno::ids::SystemIds::shared(), scope);
    let from = SubscriptionName::new("jobs", "b-pool").unwrap();
    let settings = SubscriptionSettings { lock: Duration::from_secs(3_600), ..Default::default() };
    bus.subscribe(&from, &settings).await.unwrap();
    let messages = ["b-message", "b-message-2"].map(|id| Message::json(id, SECRET));
    bus.send(&from.topic, messages.to_vec()).await.unwrap();
    let mut locked = bus.receive(&from, 2, Duration::ZERO).await.unwrap();
    let dead = Settlement::DeadLetter(DeadLetterReason::new("Rejected", SECRET));
    bus.settle(&from, &locked.remove(0).lock, dead).await.unwrap();
    let (letters, _) = segno_actions::Listed::split(bus.dead_letters(&from, None, 1).await.unwrap());
    [letters[0].id.clone(), locked[0].lock.clone()]
}

/// The path of an operation on the subscription of the pool.
fn of_bus(path: &str, names: &Names) -> String {
    path.replace("{topic}", "jobs").replace("{subscription}", &names.pool)
}

/// A tenant with one of everything.
async fn furnish(stand: &Stand, client: &Client) -> Names {
    let secret = json!({ "name": SECRET, "wait": true });
    client.start(&greet("b-instance", &secret.to_string()), None, Duration::ZERO).await.unwrap();
    client.custom_status("b-instance", 0, PATIENCE).await.unwrap();
    let remote = json_of(&json!({ "executor": "remote", "description": SECRET }));
    client.put_function("b-function", &remote, Expected::Absent).await.unwrap();
    let mut call = Invoke::new("b-function", json_of(&json!(SECRET)));
    call.key = Some("b-call".to_owned());
    let call = client.invoke(&call, Duration::ZERO).await.unwrap().id;
    let fetch =
        FetchWork { wait_ms: 60_000, lease_ms: 600_000, ..FetchWork::new("b-worker", ["b-function"]) };
    let lease = client.fetch_work(&fetch).await.unwrap().items.remove(0).lease;
    client.fetch_work(&FetchWork::of_pool("b-worker", "b-pool", [SECRET])).await.unwrap();
    let pause = PausePool { reason: Some(SECRET.to_owned()) };
    client.pause_pool("b-pool", &pause).await.unwrap();
    let action = json!({ "tool_name": "echo", "tool_input": SECRET, "next_tick_at": "2999-01-01T00:00:00Z" });
    let action = client.create_action(&serde_json::from_value(action).unwrap()).await.unwrap().id;
    let recurring =
        json!({ "name": "b-recurring", "cron_expr": "0 0 1 1 *", "function": "echo", "input": SECRET });
    let recurring = client.create_recurring(&serde_json::from_value(recurring).unwrap()).await.unwrap();
    let hook = json!({ "verification": "none", "store_only": true, "description": SECRET });
    client.put_hook("b-hook", &json_of(&hook), Expected::Absent).await.unwrap();
    let posted = crate::stand::http().post(stand.url("/v1/hooks/b-shop/b-hook?tenant=b-eu")).body(SECRET);
    let payload: Value = posted.send().await.unwrap().json().await.unwrap();
    let run = RunRecurring { key: Some("b-run".to_owned()) };
    let run = client.run_recurring("b-recurring", &run).await.unwrap();
    client.instance(&run.instance.unwrap(), PATIENCE).await.unwrap();
    stand.send_junk("b-shop/b-eu/b-instance", SECRET).await;
    let letters = stand.until_dead_letters(client, 1).await;
    let keys = stand.client().keys(None).await.unwrap().keys;
    let key = keys.into_iter().find(|key| key.grants[0].tenant == "b-eu").unwrap().id;
    let saved = Save { kind: SavedKind::View, page: None, text: SECRET.to_owned() };
    client.save("b-function", &saved, None).await.unwrap();
    let [batch, member, phase] = furnish_batch(stand, client).await;
    let [bus_letter, bus_lock] = furnish_bus(stand).await;
    let [run, backfill] = furnish_dag(client).await;
    Names {
        namespace: "b-shop",
        tenant: "b-eu",
        instance: "b-instance".to_owned(),
        call,
        action,
        recurring: recurring.recurring_id,
        hook: "b-hook".to_owned(),
        payload: payload["id"].as_str().unwrap().to_owned(),
        function: "b-function".to_owned(),
        pool: "b-pool".to_owned(),
        lease,
        key,
        dead_letter: letters[0].id.clone(),
        recurring_name: "b-recurring".to_owned(),
        runbook: "b-runbook".to_owned(),
        batch,
        member,
        phase,
        request: "seal".to_owned(),
        bus_message: "b-message".to_owned(),
        bus_letter,
        bus_lock,
        dag: "b-dag".to_owned(),
        run,
        task: "b-task".to_owned(),
        asset: "b-asset".to_owned(),
        backfill,
    }
}

/// All that is stored of a tenant, as far as it does not change by itself.
async fn state(stand: &Stand, client: &Client, names: &Names) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    let store = stand.server.client().store();
    for kind in KINDS {
        let request = ListRecords { kind, id_prefix: "b-shop/b-eu/", after_id: None, limit: 1_000 };
        for record in store.list_records(request).await.unwrap() {
            let body = String::from_utf8_lossy(&record.body).into_owned();
            state.insert(
                format!("{kind} {}", record.id),
                format!("{} {:?} {body}", record.version, record.due_at_ms),
            );
        }
    }
    for instance in client.instances(&Default::default()).await.unwrap().instances {
        let history = client.history(&instance.id, None, 0).await.unwrap();
        state.insert(format!("instance {}", instance.id), format!("{instance:?} {history:?}"));
    }
    let payloads = client.hook_payloads(&names.hook, &ListPayloads::default()).await.unwrap();
    state.insert("payloads".to_owned(), format!("{payloads:?}"));
    state.insert("workers".to_owned(), format!("{:?}", client.workers(None).await.unwrap()));
    let keys = stand.client().keys(None).await.unwrap().keys;
    let keys: Vec<_> = keys.iter().map(|key| (&key.id, &key.name, &key.grants)).collect();
    state.insert("keys".to_owned(), format!("{keys:?}"));
    state
}

/// A request of the walk.
#[derive(Debug, Clone)]
struct Sent {
    path: String,
    query: String,
    headers: Vec<(&'static str, String)>,
    body: Option<Value>,
}

fn plain(path: impl Into<String>) -> Sent {
    Sent { path: path.into(), query: String::new(), headers: Vec::new(), body: None }
}

impl Sent {
    fn query(self, query: impl Into<String>) -> Self {
        Sent { query: query.into(), ..self }
    }

    fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn body(self, body: Value) -> Self {
        Sent { body: Some(body), ..self }
    }
}

/// Everything but letters, digits and `-_.~` escaped.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Requests for an operation with names in every place that takes one. Those that make something come with the operation
/// that a caller may use to make it under a name of its own.
fn requests(operation: &str, names: &Names) -> Vec<Sent> {
    let path = operation.split_once(' ').map_or("", |(_, path)| path);
    let with = |parameter: &str, values: Vec<String>| -> Vec<Sent> {
        let path = |value: &String| path.replace(parameter, &escaped(value));
        values.iter().map(|value| plain(path(value))).collect()
    };
    let of_instance = || {
        let values = names.ids(&names.instance).into_iter().chain(names.ids(&names.call)).collect();
        with("{id}", values)
    };
    let all = |sent: Vec<Sent>, change: &dyn Fn(Sent) -> Sent| -> Vec<Sent> {
        sent.into_iter().map(change).collect()
    };
    let of_hook = |payload: &str| {
        // The namespace of the path is the scope: the caller's own here; the other one is asked for below.
        let path = path.replace("{namespace}", "lab").replace("{id}", payload);
        vec![plain(path.replace("{route}", &names.hook))]
    };
    let cursor = |id: &str| escaped(&base64(&format!("1 {id}")));
    match operation {
        "get /healthz" | "get /readyz" | "get /metrics" | "get /v1/system" | "get /v1/queues"
        | "get /v1/nodes" | "get /v1/store" | "get /v1/settings" => {
            vec![plain(path)]
        }
        "get /v1/instances" => {
            let mut sent = Vec::new();
            for id in names.ids(&names.instance) {
                for parameter in ["prefix", "parent"] {
                    sent.push(plain(path).query(format!("{parameter}={}", escaped(&id))));
                }
                sent.push(plain(path).query(format!("cursor={}", cursor(&id))));
            }
            sent.push(plain(path).query(format!("function={}", names.function)));
            sent
        }
        "get /v1/events" => {
            let prefixes = names.ids(&names.instance);
            prefixes.iter().map(|id| plain(path).query(format!("prefix={}", escaped(id)))).collect()
        }
        "get /v1/instances/{id}" => all(of_instance(), &|sent| sent.query("wait_ms=1")),
        "get /v1/instances/{id}/history" => {
            let first = all(of_instance(), &|sent| sent.query("execution=1"));
            of_instance().into_iter().chain(first).collect()
        }
        "get /v1/instances/{id}/status" => all(of_instance(), &|sent| sent.query("after=0&wait_ms=1")),
        "get /v1/instances/{id}/executions" | "get /v1/instances/{id}/explain" => of_instance(),
        "get /v1/instances/{id}/tree" => {
            let own = plain(path.replace("{id}", "own"));
            let behind = names.ids(&names.instance).into_iter();
            let behind = behind.map(|id| own.clone().query(format!("cursor={}", base64(&id))));
            of_instance().into_iter().chain(behind).collect()
        }
        "get /v1/instances/{id}/events"
        | "get /v1/instances/{id}/logs"
        | "post /v1/instances/{id}/resume" => of_instance(),
        "delete /v1/archive/{of}/{id}" => {
            all(of_instance(), &|sent| Sent { path: sent.path.replace("{of}", "instances"), ..sent })
        }
        "get /v1/archive" | "delete /v1/archive" => vec![plain(path)],
        "delete /v1/instances/{id}" => all(of_instance(), &|sent| sent.query("force=true")),
        "post /v1/instances/{id}/cancel"
        | "post /v1/instances/{id}/pause"
        | "post /v1/instances/{id}/retry" => {
            all(of_instance(), &|sent| sent.body(json!({ "reason": "walk" })))
        }
        "post /v1/instances/{id}/raise" | "post /v1/instances/{id}/enqueue" => {
            all(of_instance(), &|sent| sent.body(json!({ "name": "wave", "data": null, "id": "walk" })))
        }
        "post /v1/instances/{id}/restart" => {
            let forced = all(of_instance(), &|sent| sent.body(json!({ "force": true, "input": 1 })));
            let own = plain(path.replace("{id}", "own"));
            let under = names.ids(&names.instance).into_iter();
            let under = under.map(|id| own.clone().body(json!({ "new_id": id, "force": true })));
            forced.into_iter().chain(under).collect()
        }
        "post /v1/instances/bulk" => {
            let mut sent = Vec::new();
            for id in names.ids(&names.instance) {
                for action in ["cancel", "pause", "resume", "delete", "restart", "retry"] {
                    let filter = json!({ "prefix": id });
                    sent.push(plain(path).body(json!({ "action": action, "force": true, "filter": filter })));
                    sent.push(plain(path).body(json!({ "action": action, "force": true, "ids": [id] })));
                }
                let cursor = base64(&format!("1 {id}"));
                let body = json!({ "action": "cancel", "filter": { "prefix": "" }, "cursor": cursor });
                sent.push(plain(path).body(body));
            }
            sent
        }
        "post /v1/instances" => {
            let ids = names.ids(&names.instance).into_iter().chain(names.ids(&names.call));
            let mut sent: Vec<Sent> = Vec::new();
            for id in ids {
                for on_conflict in ["use_existing", "reject", "replace"] {
                    let input = json!({ "name": "Ada" });
                    let body = json!({ "orchestration": "greet", "id": id, "input": input, "on_conflict": on_conflict });
                    sent.push(plain(path).body(body));
                }
            }
            let input = json!({
                "namespace": names.namespace, "tenant": names.tenant, "function": names.function, "input": 1,
                "route": { "remote": {} },
                "retry": { "max": 1, "first": 0, "factor": 1.0, "cap": 0, "jitter": 0.0 },
                "settle": { "kind": "action", "id": names.action, "keep_ms": 1 },
            });
            sent.push(plain(path).body(json!({ "orchestration": "invoke", "input": input })));
            sent
        }
        "post /v1/invocations" => vec![
            plain(path).body(json!({ "function": names.function, "input": 1 })),
            plain(path).body(json!({ "function": "New-X", "pool": names.pool, "input": 1 })),
            plain(path).query("wait_ms=60000").body(
                json!({ "function": "echo", "key": names.call.trim_start_matches("invoke:"), "input": 2 }),
            ),
        ],
        "get /v1/functions" => {
            vec![plain(path), plain(path).query(format!("cursor={}", base64(&names.function)))]
        }
        "get /v1/functions/{name}" => with("{name}", names.ids(&names.function)),
        "delete /v1/functions/{name}" => {
            let deleted = with("{name}", names.ids(&names.function));
            deleted
                .iter()
                .cloned()
                .chain(all(deleted.clone(), &|sent| sent.header("if-match", "\"1\"")))
                .collect()
        }
        "put /v1/functions/{name}" => {
            let declared = all(with("{name}", names.ids(&names.function)), &|sent| {
                sent.body(json!({ "executor": "remote" }))
            });
            let replaced = all(declared.clone(), &|sent| sent.header("if-match", "\"1\""));
            let created = all(declared, &|sent| sent.header("if-none-match", "*"));
            replaced.into_iter().chain(created).collect()
        }
        "get /v1/hooks" => vec![plain(path), plain(path).query(format!("cursor={}", base64(&names.hook)))],
        "get /v1/hooks/events" => vec![plain(path), plain(path).query(format!("cursor={}", names.payload))],
        "post /v1/hooks/{namespace}/{route}/test" => {
            all(of_hook(""), &|sent| sent.body(json!({ "body": "x" })))
        }
        "get /v1/hooks/{namespace}/{route}/events" | "get /v1/hooks/{namespace}/{route}" => of_hook(""),
        "delete /v1/hooks/{namespace}/{route}" => of_hook(""),
        "patch /v1/hooks/{namespace}/{route}" => {
            all(of_hook(""), &|sent| sent.body(json!({ "enabled": false })))
        }
        "put /v1/hooks/{namespace}/{route}" => {
            let declared = json!({ "verification": "none", "function": names.function });
            let stored = json!({ "verification": "none", "store_only": true });
            let replaced = all(of_hook(""), &|sent| sent.header("if-match", "\"1\"").body(stored.clone()));
            let created = all(of_hook(""), &|sent| sent.header("if-none-match", "*").body(declared.clone()));
            replaced.into_iter().chain(created).collect()
        }
        "post /v1/hooks/{namespace}/{route}" => all(of_hook(""), &|sent| sent.body(json!({ "from": "lab" }))),
        "get /v1/hooks/{namespace}/{route}/payloads" => {
            let next = all(of_hook(""), &|sent| sent.query(format!("cursor={}", names.payload)));
            of_hook("").into_iter().chain(next).collect()
        }
        "get /v1/hooks/{namespace}/{route}/payloads/{id}"
        | "delete /v1/hooks/{namespace}/{route}/payloads/{id}"
        | "post /v1/hooks/{namespace}/{route}/payloads/{id}/replay" => of_hook(&names.payload),
        "get /v1/actions" => vec![plain(path), plain(path).query(format!("cursor={}", names.action))],
        "get /v1/actions/{id}"
        | "delete /v1/actions/{id}"
        | "post /v1/actions/{id}/cancel"
        | "post /v1/actions/{id}/run" => with("{id}", names.ids(&names.action)),
        "patch /v1/actions/{id}" => all(with("{id}", names.ids(&names.action)), &|sent| {
            sent.body(json!({ "next_tick_at": "2999-01-02T00:00:00Z" }))
        }),
        "post /v1/actions" => vec![
            plain(path).body(json!({ "tool_name": names.function })),
            plain(path)
                .body(json!({ "tool_name": "echo", "namespace": names.namespace, "tenant": names.tenant })),
            plain(path).body(json!({ "tool_name": "echo", "tenant": names.tenant })),
        ],
        "get /v1/recurring" => vec![plain(path), plain(path).query(format!("cursor={}", names.recurring))],
        "get /v1/recurring/{id}" | "delete /v1/recurring/{id}" | "post /v1/recurring/{id}/resume" => {
            let named = names.ids(&names.recurring_name);
            with("{id}", names.ids(&names.recurring).into_iter().chain(named).collect())
        }
        "post /v1/recurring/{id}/run" => {
            all(with("{id}", names.ids(&names.recurring)), &|sent| sent.body(json!({ "key": "b-run" })))
        }
        "get /v1/dead-letters" => vec![
            plain(path),
            plain(path).query(format!("cursor={}", names.dead_letter)),
            plain(path).query(format!("instance={}", names.instance)),
        ],
        "get /v1/dead-letters/{id}"
        | "delete /v1/dead-letters/{id}"
        | "post /v1/dead-letters/{id}/resubmit" => with("{id}", names.ids(&names.dead_letter)),
        "get /v1/recurring/{id}/history" | "get /v1/recurring/{id}/preview" => {
            with("{id}", names.ids(&names.recurring))
        }
        "get /v1/recurring/{id}/explain" => {
            all(with("{id}", names.ids(&names.recurring)), &|sent| sent.query("time=2999-01-01T00:00:00Z"))
        }
        "put /v1/recurring/{id}" => {
            let named = json!({ "name": "x", "namespace": names.namespace, "tenant": names.tenant });
            let changed = with("{id}", names.ids(&names.recurring));
            let other = all(changed.clone(), &|sent| sent.body(named.clone()));
            all(changed, &|sent| sent.body(json!({ "name": "x" }))).into_iter().chain(other).collect()
        }
        "post /v1/recurring/{id}/pause" => {
            all(with("{id}", names.ids(&names.recurring)), &|sent| sent.body(json!({ "note": "walk" })))
        }
        "post /v1/recurring/{id}/backfill" => all(with("{id}", names.ids(&names.recurring)), &|sent| {
            sent.body(json!({ "start": "2020-01-01T00:00:00Z", "end": "2024-01-01T00:00:00Z" }))
        }),
        "post /v1/recurring" | "post /v1/recurring/preview" => {
            let fields = json!({ "cron_expr": "0 0 1 1 *", "function": names.function, "input": 1 });
            let mut other = fields.clone();
            other["namespace"] = json!(names.namespace);
            other["tenant"] = json!(names.tenant);
            vec![plain(path).body(fields), plain(path).body(other)]
        }
        "post /v1/work/fetch" => {
            let functions = json!([names.function]);
            vec![
                plain(path).body(json!({ "worker": "walk", "functions": functions, "wait_ms": 0 })),
                plain(path).body(json!({ "worker": "walk", "pool": names.pool, "wait_ms": 0 })),
            ]
        }
        "get /v1/pools" => vec![plain(path), plain(path).query(format!("cursor={}", base64(&names.pool)))],
        "get /v1/pools/{name}" | "delete /v1/pools/{name}" | "post /v1/pools/{name}/resume" => {
            with("{name}", names.ids(&names.pool))
        }
        "post /v1/bus/{topic}/messages" => {
            let message = json!({ "message_id": names.bus_message, "body": "x" });
            vec![plain("/v1/bus/jobs/messages").body(json!({ "messages": [message] }))]
        }
        "post /v1/bus/{topic}/{subscription}/receive" => {
            vec![plain(of_bus(path, names)).body(json!({ "max_messages": 10 }))]
        }
        "post /v1/bus/{topic}/{subscription}/settle" => {
            vec![plain(of_bus(path, names)).body(json!({ "lock": names.bus_lock, "outcome": "complete" }))]
        }
        "post /v1/bus/{topic}/{subscription}/renew" => {
            vec![plain(of_bus(path, names)).body(json!({ "lock": names.bus_lock }))]
        }
        "get /v1/bus" => {
            vec![plain(path), plain(path).query(format!("cursor=jobs%2F{}", names.pool))]
        }
        "get /v1/bus/{topic}/{subscription}" => vec![plain(of_bus(path, names))],
        "get /v1/bus/{topic}/{subscription}/messages" | "get /v1/bus/{topic}/{subscription}/dead-letters" => {
            let path = of_bus(path, names);
            vec![plain(path.clone()), plain(path).query(format!("cursor={}", names.bus_letter))]
        }
        "post /v1/bus/{topic}/{subscription}/dead-letters/{id}/resubmit"
        | "delete /v1/bus/{topic}/{subscription}/dead-letters/{id}" => {
            vec![plain(of_bus(path, names).replace("{id}", &names.bus_letter))]
        }
        "post /v1/pools/{name}/pause" => {
            all(with("{name}", names.ids(&names.pool)), &|sent| sent.body(json!({ "reason": "walk" })))
        }
        "post /v1/work/heartbeat" => {
            vec![plain(path).body(json!({ "lease": names.lease, "extend_ms": 30_000, "progress": "x" }))]
        }
        "post /v1/work/complete" => vec![plain(path).body(json!({ "lease": names.lease, "result": "x" }))],
        "post /v1/work/fail" => {
            vec![plain(path).body(json!({ "lease": names.lease, "message": "x", "category": "application" }))]
        }
        "post /v1/work/release" => vec![plain(path).body(json!({ "lease": names.lease }))],
        "post /v1/work/exchange" => {
            // Exchanges are numbered for each worker.
            let worker = format!("walk-{}", names.tenant);
            let answers = json!([
                { "heartbeat": { "lease": names.lease, "extend_ms": 30_000, "progress": "x" } },
                { "fail": { "lease": names.lease, "message": "x" } },
                { "release": { "lease": names.lease } },
                { "complete": { "lease": names.lease, "result": "x" } },
            ]);
            let functions = json!([names.function]);
            vec![
                plain(path).body(json!({ "worker": worker, "number": 1, "answers": answers })),
                plain(path)
                    .body(json!({ "worker": worker, "number": 2, "functions": functions, "max_items": 1 })),
                plain(path)
                    .body(json!({ "worker": worker, "number": 3, "pool": names.pool, "max_items": 1 })),
            ]
        }
        "get /v1/workers" => vec![plain(path), plain(path).query("cursor=b-worker%40n")],
        "get /v1/sql" => vec![plain(path)],
        "post /v1/sql" => queries(names).into_iter().map(|body| plain(path).body(body)).collect(),
        "get /v1/audit" => vec![plain(path), plain(path).query(format!("resource={}", names.instance))],
        "get /v1/problems" | "get /v1/stats" | "get /v1/timers" => vec![plain(path)],
        "get /v1/orchestrations" => {
            vec![plain(path), plain(path).query(format!("cursor={}", base64(&names.function)))]
        }
        "get /v1/orchestrations/{name}" => with("{name}", vec!["greet".to_owned(), names.function.clone()]),
        "get /v1/counts" => vec![
            plain(path),
            plain(path).query(format!("by=function&function={}", names.function)),
            plain(path).query(format!("prefix={}", escaped(&names.instance))),
        ],
        "get /v1/search" => {
            let texts = names.texts();
            texts.iter().map(|text| plain(path).query(format!("q={}&limit=20", escaped(text)))).collect()
        }
        "get /v1/saved" => {
            vec![plain(path), plain(path).query(format!("cursor={}", base64(&names.function)))]
        }
        "get /v1/saved/{name}" => with("{name}", names.ids(&names.function)),
        "delete /v1/saved/{name}" => {
            let deleted = with("{name}", names.ids(&names.function));
            let of_version = all(deleted.clone(), &|sent| sent.header("if-match", "\"1\""));
            of_version.into_iter().chain(deleted).collect()
        }
        "put /v1/saved/{name}" => all(with("{name}", names.ids(&names.function)), &|sent| {
            sent.header("if-match", "\"1\"").body(json!({ "kind": "view", "text": "walk" }))
        }),
        "get /v1/keys" => vec![plain(path), plain(path).query(format!("cursor={}", names.key))],
        "post /v1/keys" => {
            let grant = json!({ "namespace": names.namespace, "tenant": names.tenant });
            vec![plain(path).body(json!({ "name": "walk", "role": "admin", "grants": [grant] }))]
        }
        "get /v1/me" => vec![plain(path)],
        "get /v1/sessions" => {
            let cursor = format!("cursor={}-0123456789abcdef", names.key);
            vec![plain(path), plain(path).query(cursor)]
        }
        "post /v1/sessions" => vec![plain(path).body(json!({ "key": format!("segno_{}_x", names.key) }))],
        "delete /v1/sessions/{id}" => with("{id}", vec![format!("{}-0123456789abcdef", names.key)]),
        "delete /v1/keys/{id}" => with("{id}", vec![names.key.clone()]),
        other => requests_of_runbooks(other, path, names),
    }
}

/// Queries by the ids and names of a tenant: as text, and as the store has them.
fn queries(names: &Names) -> Vec<Value> {
    let stored = |id: &str| format!("{}/{}/{id}", names.namespace, names.tenant);
    let mut queries = Vec::new();
    for (table, column, id) in [
        ("instances", "id", &names.instance),
        ("instances", "parent", &names.instance),
        ("instances", "function", &names.function),
        ("events", "instance", &names.instance),
        ("actions", "id", &names.action),
        ("recurring", "id", &names.recurring),
        ("recurring_history", "recurring", &names.recurring),
        ("batches", "runbook", &names.runbook),
    ] {
        for id in [id.clone(), stored(id), format!("../{}/{id}", names.tenant)] {
            queries
                .push(format!("SELECT count(*), max(\"{column}\") FROM {table} WHERE \"{column}\" = '{id}'"));
        }
    }
    for table in ["batches", "members", "phases", "steps"] {
        let column = if table == "batches" { "id" } else { "batch" };
        queries.push(format!("SELECT count(*) FROM {table} WHERE {column} = {}", names.batch));
    }
    let (namespace, tenant) = (names.namespace, names.tenant);
    queries
        .push(format!("SELECT * FROM all_instances WHERE namespace = '{namespace}' AND tenant = '{tenant}'"));
    queries.push(format!(
        "SELECT count(*) FROM all_instances WHERE tenant = '{tenant}' OR namespace = '{namespace}'"
    ));
    for table in ["hooks", "queues", "workers", "audit"] {
        queries.push(format!("SELECT * FROM {table}"));
    }
    queries.into_iter().map(|query| json!({ "query": query, "format": "csv" })).collect()
}

/// Those of runbooks and batches.
fn requests_of_runbooks(operation: &str, path: &str, names: &Names) -> Vec<Sent> {
    let of_batch = |path: &str| -> Vec<Sent> {
        let path = path.replace("{member}", &names.member).replace("{key}", &names.request);
        names.ids(&names.batch).iter().map(|id| plain(path.replace("{id}", &escaped(id)))).collect()
    };
    let with_body = |body: Value| of_batch(path).into_iter().map(|sent| sent.body(body.clone())).collect();
    let of_runbook = |body: Value| -> Vec<Sent> {
        let ids = names.ids(&names.runbook);
        let sent = |name: &String| plain(path.replace("{name}", &escaped(name))).body(body.clone());
        ids.iter().map(sent).collect()
    };
    match operation {
        "get /v1/runbooks" => {
            vec![plain(path), plain(path).query(format!("cursor={}", base64(&names.runbook)))]
        }
        "put /v1/runbooks/{name}/automation" => of_runbook(json!({ "enabled": true })),
        "post /v1/runbooks/{name}/removal/approve" | "post /v1/runbooks/{name}/removal/reject" => {
            of_runbook(json!({ "set": 1 }))
        }
        "post /v1/runbooks/{name}/preview" => {
            let text = runbook(&names.runbook, &names.pool, "walk");
            let previews = [json!({}), json!({ "yaml_content": text })];
            previews.into_iter().flat_map::<Vec<Sent>, _>(of_runbook).collect()
        }
        "post /v1/runbooks/{name}/plan" => {
            of_runbook(json!({ "yaml_content": runbook(&names.runbook, &names.pool, "walk") }))
        }
        "get /v1/runbooks/{name}"
        | "delete /v1/runbooks/{name}"
        | "delete /v1/runbooks/{name}/versions/{version}"
        | "get /v1/runbooks/{name}/automation"
        | "get /v1/runbooks/{name}/versions"
        | "get /v1/runbooks/{name}/versions/{version}" => {
            let path = path.replace("{version}", "1");
            let ids = names.ids(&names.runbook);
            ids.iter().map(|name| plain(path.replace("{name}", &escaped(name)))).collect()
        }
        "post /v1/runbooks" => {
            vec![plain(path).body(json!({ "yaml_content": runbook(&names.runbook, &names.pool, "walk") }))]
        }
        "get /v1/batches" => vec![
            plain(path),
            plain(path).query(format!("cursor={}", names.batch)),
            plain(path).query(format!("runbook={}", names.runbook)),
            plain(path)
                .query(format!("runbook={}", escaped(&format!("../{}/{}", names.tenant, names.runbook)))),
        ],
        "post /v1/batches" => {
            let ids = names.ids(&names.runbook);
            let body = |name: &String| json!({ "runbook": name, "members": [{ "Key": "walk" }] });
            ids.iter().map(|name| plain(path).body(body(name))).collect()
        }
        "get /v1/batches/{id}"
        | "delete /v1/batches/{id}"
        | "get /v1/batches/{id}/report"
        | "get /v1/batches/{id}/members"
        | "get /v1/batches/{id}/members/{member}"
        | "get /v1/batches/{id}/requests/{key}" => of_batch(path),
        "get /v1/batches/{id}/explain" => {
            let row = format!("row=phase-{}", names.phase);
            let rows = of_batch(path).into_iter().map(|sent| sent.query(row.clone()));
            of_batch(path).into_iter().chain(rows).collect()
        }
        "post /v1/batches/{id}/members" => with_body(json!({ "members": [{ "Key": "walk" }] })),
        "post /v1/batches/{id}/members/remove" => with_body(json!({ "keys": [names.runbook] })),
        "post /v1/batches/{id}/requests" => {
            let skip =
                json!({ "action": "skip_phase", "phase_execution_id": names.phase.parse::<u64>().unwrap() });
            let cancel = json!({ "action": "cancel_batch", "reason": "walk" });
            [skip, cancel].into_iter().flat_map::<Vec<Sent>, _>(with_body).collect()
        }
        other => requests_of_dags(other, path, names),
    }
}

/// Those of DAGs, runs and backfills.
fn requests_of_dags(operation: &str, path: &str, names: &Names) -> Vec<Sent> {
    let with = |parameter: &str, id: &str| -> Vec<Sent> {
        let path = path.replace("{version}", "1").replace("{task}", &names.task);
        names.ids(id).iter().map(|id| plain(path.replace(parameter, &escaped(id)))).collect()
    };
    let of_run = |body: Value| -> Vec<Sent> {
        with("{id}", &names.run).into_iter().map(|sent| sent.body(body.clone())).collect()
    };
    let partition = "2026-01-04";
    match operation {
        "get /v1/dags" => vec![plain(path), plain(path).query(format!("cursor={}", base64(&names.dag)))],
        "post /v1/dags" => {
            let document = dag(&names.dag, &names.task, &names.asset, "walk");
            vec![plain(path).body(json!({ "document": document }))]
        }
        "get /v1/dags/{name}"
        | "delete /v1/dags/{name}"
        | "get /v1/dags/{name}/versions"
        | "get /v1/dags/{name}/versions/{version}"
        | "post /v1/dags/{name}/pause"
        | "post /v1/dags/{name}/resume" => with("{name}", &names.dag),
        "get /v1/assets" => vec![plain(path), plain(path).query(format!("cursor={}", names.asset))],
        "get /v1/assets/{asset}/partitions" | "get /v1/assets/{asset}" => with("{asset}", &names.asset),
        "get /v1/assets/{asset}/lineage" => {
            let of_partition = with("{asset}", &names.asset).into_iter();
            let of_partition = of_partition.map(|sent| sent.query(format!("partition={partition}")));
            with("{asset}", &names.asset).into_iter().chain(of_partition).collect()
        }
        "post /api/v1/tasks/{task}/started"
        | "post /api/v1/tasks/{task}/heartbeat"
        | "post /api/v1/tasks/{task}/completed" => {
            let run = CallbackTask { run_id: names.run.clone(), task_key: names.task.clone() };
            let body = json!({ "attempt": 1, "attemptId": "att_1", "workerId": "w", "outcome": "SUCCEEDED" });
            vec![plain(path.replace("{task}", &run.to_string())).body(body)]
        }
        "get /v1/runs" => {
            let cursor = format!("cursor={}", escaped(&format!("9999999999999:{}", names.run)));
            let of_dag = plain(path).query(format!("dag={}", names.dag));
            let labelled = plain(path).query(format!("label=secret%3D{}", names.dag));
            vec![plain(path), plain(path).query(cursor), of_dag, labelled]
        }
        "post /v1/runs" => {
            let body = |name: &String| json!({ "dag": name, "partition": partition });
            names.ids(&names.dag).iter().map(|name| plain(path).body(body(name))).collect()
        }
        "get /v1/runs/{id}"
        | "get /v1/runs/{id}/tasks"
        | "get /v1/runs/{id}/tasks/{task}"
        | "get /v1/runs/{id}/tasks/{task}/output"
        | "get /v1/runs/{id}/tasks/{task}/logs"
        | "post /v1/runs/{id}/pause"
        | "post /v1/runs/{id}/resume" => with("{id}", &names.run),
        "post /v1/runs/{id}/cancel" => of_run(json!({ "reason": "walk" })),
        "post /v1/runs/{id}/rerun" => of_run(json!({ "from": "subset", "tasks": [names.task] })),
        "post /v1/runs/{id}/clear" => of_run(json!({ "tasks": [names.task] })),
        "post /v1/runs/{id}/tasks/{task}/mark" => of_run(json!({ "status": "failed" })),
        "get /v1/backfills" => {
            vec![plain(path), plain(path).query(format!("cursor=9999999999999:{}", names.backfill))]
        }
        "post /v1/backfills" => {
            let body = |name: &String| json!({ "dag": name, "partitions": partition });
            names.ids(&names.dag).iter().map(|name| plain(path).body(body(name))).collect()
        }
        "get /v1/backfills/{id}"
        | "get /v1/backfills/{id}/chunks"
        | "post /v1/backfills/{id}/pause"
        | "post /v1/backfills/{id}/resume"
        | "post /v1/backfills/{id}/retry"
        | "post /v1/backfills/{id}/cancel" => with("{id}", &names.backfill),
        unknown => panic!("the walk does not know {unknown}: add it to `requests`"),
    }
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
}

/// Operations that make things under names that the caller chooses. They come last: what they make is the caller's own.
fn makes_something(operation: &str) -> bool {
    let making = [
        "post /v1/instances",
        "post /v1/invocations",
        "put /v1/functions/{name}",
        "post /v1/runbooks",
        "post /v1/dags",
    ];
    making.contains(&operation) || operation == "put /v1/hooks/{namespace}/{route}"
}

/// A caller of one tenant.
struct Caller<'a> {
    stand: &'a Stand,
    http: reqwest::Client,
    key: String,
}

impl Caller<'_> {
    /// Status and body of an answer, without what differs from one request to the next. Of a stream, its beginning.
    async fn send(&self, operation: &str, sent: &Sent, scope: (&str, &str)) -> String {
        let (method, template) = operation.split_once(' ').unwrap();
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let scope = match template.contains("{namespace}") {
            true => format!("tenant={}", scope.1),
            false => format!("namespace={}&tenant={}", scope.0, scope.1),
        };
        let of_a_tenant =
            !["/healthz", "/readyz", "/metrics", "/v1/system", "/v1/queues"].contains(&template);
        let of_a_key = ["/v1/keys", "/v1/sessions", "/v1/me"].iter().any(|path| template.starts_with(path));
        let scope = if of_a_tenant && !of_a_key { scope } else { String::new() };
        let url = self.stand.url(&format!("{}?{scope}&{}", sent.path, sent.query));
        let mut call = self.http.request(method, url).bearer_auth(&self.key);
        for (name, value) in &sent.headers {
            call = call.header(*name, value);
        }
        if let Some(body) = &sent.body {
            call = call.json(body);
        }
        let mut answer = call.send().await.unwrap();
        let status = answer.status().as_u16();
        let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        let text = match is_stream {
            true => String::from_utf8(answer.chunk().await.unwrap().unwrap().to_vec()).unwrap(),
            false => answer.text().await.unwrap(),
        };
        assert!(!text.contains(SECRET), "{operation} {sent:?} reveals {text}");
        format!("{status} {}", normal(&text))
    }
}

/// A text without times, numbers, UUIDs and ids of requests.
fn normal(text: &str) -> String {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("request_id");
                fields.values_mut().for_each(walk);
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            Value::Number(_) => *value = json!(0),
            Value::String(text) if text.parse::<uuid::Uuid>().is_ok() => *value = json!("uuid"),
            Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => *value = json!("time"),
            _ => {}
        }
    }
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) => {
            walk(&mut value);
            value.to_string()
        }
        // A stream begins with its place, which has a number and the name of the node.
        Err(_) => text.lines().filter(|line| !line.starts_with("id:")).collect(),
    }
}

/// An answer with the names of one set in place of the other's.
fn renamed(answer: &str, from: &Names, to: &Names) -> String {
    let mut answer = answer.to_owned();
    for (from, to) in from.texts().into_iter().zip(to.texts()) {
        for (from, to) in [(from.to_owned(), to.to_owned()), (escaped(from), escaped(to))] {
            answer = answer.replace(&from, &to);
        }
    }
    answer
}

/// Every operation of the document, what makes something last.
async fn operations(stand: &Stand) -> Vec<String> {
    let document: Value =
        crate::stand::http().get(stand.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        found.extend(item.as_object().unwrap().keys().map(|method| format!("{method} {path}")));
    }
    found.sort_by_key(|operation| (makes_something(operation), operation.clone()));
    assert!(found.len() > 60, "{found:?}");
    found
}

#[tokio::test]
async fn no_operation_reaches_what_another_tenant_has() {
    let stand = Stand::with_keys().await;
    let shop = stand.client_with(Role::Admin, "b-shop", "b-eu").await.scope("b-shop", "b-eu");
    let theirs = furnish(&stand, &shop).await;
    let nobodys = absent(&theirs);
    let lab_key = stand.key(Role::Admin, "lab", "us").await;
    let lab = Client::new(&stand.url("")).unwrap().key(lab_key.clone()).scope("lab", "us");
    lab.start(&greet("own", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    let before = state(&stand, &shop, &theirs).await;
    let caller = Caller { stand: &stand, http: crate::stand::http(), key: lab_key };
    for operation in operations(&stand).await {
        let pairs = requests(&operation, &theirs).into_iter().zip(requests(&operation, &nobodys));
        for (with_theirs, with_nobodys) in pairs {
            let got = caller.send(&operation, &with_theirs, ("lab", "us")).await;
            let expected = caller.send(&operation, &with_nobodys, ("lab", "us")).await;
            assert_eq!(renamed(&got, &theirs, &nobodys), expected, "{operation} {with_theirs:?}");
            // The other tenant by its name is as forbidden as one that there is not. Anybody may post to a route of webhooks.
            if operation != "post /v1/hooks/{namespace}/{route}" {
                let (mut with_theirs, mut with_nobodys) = (with_theirs, with_nobodys);
                with_theirs.path = with_theirs.path.replace("/hooks/lab/", "/hooks/b-shop/");
                with_nobodys.path = with_nobodys.path.replace("/hooks/lab/", "/hooks/b_shop/");
                let got = caller.send(&operation, &with_theirs, ("b-shop", "b-eu")).await;
                let expected = caller.send(&operation, &with_nobodys, ("b_shop", "b_eu")).await;
                assert_eq!(renamed(&got, &theirs, &nobodys), expected, "{operation} {with_theirs:?}");
                let is_public = ["get /healthz", "get /readyz"].contains(&operation.as_str())
                    // About the caller's own key.
                    || operation.contains("/v1/me")
                    // Nothing but a task token is of use there.
                    || (operation.contains("/api/v1/tasks/") && got.starts_with("401 "))
                    || operation.contains("/v1/sessions");
                assert!(
                    is_public || got.starts_with("403 ") || got.starts_with("400 "),
                    "{operation}: {got}"
                );
            }
        }
    }
    let after = state(&stand, &shop, &theirs).await;
    for (what, was) in &before {
        assert_eq!(after.get(what), Some(was), "{what} was changed");
    }
    assert_eq!(before.len(), after.len(), "{:?}", after.keys());
    let beat = Heartbeat { lease: theirs.lease.clone(), extend_ms: 30_000, progress: None };
    assert_eq!(shop.heartbeat_work(&beat).await.unwrap().action, HeartbeatAction::Continue);
}

#[tokio::test]
async fn a_stream_of_changes_has_those_of_its_tenant_only() {
    let stand = Stand::with_keys().await;
    let shop = stand.client_with(Role::Operator, "shop", "eu").await.scope("shop", "eu");
    let lab = stand.client_with(Role::Operator, "lab", "us").await.scope("lab", "us");
    let mut changes = lab.changes(&Default::default(), None).await.unwrap();
    assert_eq!(changes.next().await.unwrap().unwrap().name, "listening");
    shop.start(&greet("theirs", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    lab.start(&greet("own", r#"{"name":"Ada"}"#), None, PATIENCE).await.unwrap();
    loop {
        let change: Value = serde_json::from_str(&changes.next().await.unwrap().unwrap().data).unwrap();
        assert_eq!(change["id"], "own");
        if change["change"] == "completed" {
            break;
        }
    }
}
