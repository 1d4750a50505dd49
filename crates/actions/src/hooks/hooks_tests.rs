//! Routes on a store in virtual time: what is taken is kept whole and called once, what is refused leaves little.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::Clock;
use segno::store::memory::MemoryStore;
use segno::store::{ListRecords, Records, Store};
use segno::{ActivityContext, Failure};
use segno_testkit::clock::VirtualClock;
use segno_testkit::faults::{Fault, FaultStore, script};
use segno_testkit::seeded::SeededIds;
use serde_json::{Value, json};
use uuid::Uuid;

use super::records::{BODY, EVENT, KEY, PAYLOAD};
use super::*;
use crate::action::{ACTION_KIND, Action, ActionDb, ActionStatus, ActionTrigger};
use crate::functions::{Function, Functions, Scope, StoredPolicy};
use crate::listed::Listed;

/// When these tests take place.
const NOW_MS: u64 = 1_770_732_000_000;

struct World {
    clock: Arc<VirtualClock>,
    memory: Arc<MemoryStore>,
    hooks: Hooks,
    db: ActionDb,
    scope: Scope,
    secrets: tempfile::TempDir,
}

impl World {
    fn new(settings: HookSettings) -> World {
        let clock = VirtualClock::new();
        clock.set_ms(NOW_MS);
        let memory = MemoryStore::with_clock(clock.clone());
        Self::on(clock, memory.clone(), memory, settings)
    }

    /// A world whose hooks see another store than the one that is looked at afterwards.
    fn on(
        clock: Arc<VirtualClock>,
        memory: Arc<MemoryStore>,
        store: Arc<dyn Store>,
        settings: HookSettings,
    ) -> World {
        let secrets = tempfile::tempdir().unwrap();
        let policy =
            StoredPolicy { secret_directory: Some(secrets.path().to_owned()), ..StoredPolicy::default() };
        let functions = Functions::builder(memory.clone())
            .rust("deploy", |_: ActivityContext, input: Value| async move { Ok::<_, Failure>(input) })
            .rust("count", |_: ActivityContext, input: Value| async move { Ok::<_, Failure>(input) })
            .declare("count".parse().unwrap(), counting())
            .stored_policy(policy)
            .build()
            .unwrap();
        let sources = (clock.clone() as Arc<dyn Clock>, SeededIds::shared(7) as Arc<_>);
        let hooks = Hooks::with_sources(store, functions, settings, sources);
        let db = ActionDb::new(memory.clone()).clock(clock.clone());
        World { clock, memory, hooks, db, scope: Scope::default(), secrets }
    }

    /// Declares a route with these settings.
    async fn declare(&self, name: &str, settings: Value) -> Route {
        let mut declaration = json!({ "function": "deploy", "verification": "none" });
        for (name, value) in settings.as_object().unwrap() {
            declaration[name] = value.clone();
        }
        let hook: Hook = serde_json::from_value(declaration).unwrap();
        self.hooks.create(&self.scope, &name.parse().unwrap(), &hook).await.unwrap();
        self.hooks.find(&self.scope, &name.parse().unwrap()).await.unwrap()
    }

    async fn receive(&self, route: &Route, body: impl Into<Bytes>) -> Result<Accepted, Refused> {
        let headers: Headers =
            [("Content-Type", "application/json"), ("X-Event", "push"), ("X-Id", "d1")].into_iter().collect();
        let params = [("env".to_owned(), "prod".to_owned())].into();
        self.hooks.receive(route, Incoming { headers, params, body: body.into() }).await
    }

    async fn count(&self, kind: &str) -> usize {
        let request = ListRecords { kind, id_prefix: "", after_id: None, limit: 10_000 };
        self.memory.list_records(request).await.unwrap().len()
    }

    async fn outcomes(&self) -> Vec<Outcome> {
        let events =
            self.hooks.events(&self.scope, &ListEvents { limit: 1_000, ..ListEvents::default() }).await;
        Listed::split(events.unwrap()).0.into_iter().map(|event| event.outcome).collect()
    }
}

/// A function that takes whole numbers.
fn counting() -> Function {
    let declaration = json!({ "executor": "rust", "input_schema": { "type": "integer" } });
    serde_json::from_value(declaration).unwrap()
}

#[tokio::test]
async fn an_input_that_is_always_the_same_must_fit_the_function() {
    let world = World::new(HookSettings::default());
    let declare = async |input: Value| {
        let hook = json!({ "function": "count", "verification": "none", "input": input });
        let hook: Hook = serde_json::from_value(hook).unwrap();
        world.hooks.check(&world.scope, &hook).await.map_err(|error| error.code().to_owned())
    };
    assert_eq!(declare(json!(7)).await, Ok(()));
    assert_eq!(declare(json!("seven")).await, Err("invalid-input".to_owned()));
    assert_eq!(declare(json!("{{payload.n}}")).await, Ok(()), "what a payload brings is not known yet");
}

fn outcome_name(accepted: Result<Accepted, Refused>) -> &'static str {
    accepted.unwrap().outcome.name()
}

#[tokio::test]
async fn what_comes_in_is_kept_byte_for_byte_and_becomes_an_action() {
    let world = World::new(HookSettings::default());
    let input = json!({ "ref": "{{payload.ref}}", "event": "{{headers.x-event}}", "env": "{{params.env}}" });
    let route = world.declare("git", json!({ "input": input, "headers": ["x-id"] })).await;
    let body = &b"{\"ref\": \"main\", \"odd\": \"\\u0000\"}\r\n"[..];
    let accepted = world.receive(&route, body).await.unwrap();
    let action = world.db.get(accepted.id).await.unwrap();
    assert_eq!(
        action.tool_input.decode::<Value>().unwrap(),
        json!({ "ref": "main", "event": "push", "env": "prod" })
    );
    assert_eq!(action.status, ActionStatus::Pending);
    let due = world.db.range_due(action.created_at).await.unwrap();
    assert_eq!(due, std::slice::from_ref(&action));
    let Action { trigger: ActionTrigger::Webhook { raw_payload, .. }, .. } = action else {
        panic!("{action:?}")
    };
    assert_eq!(raw_payload, body);
    let (payload, kept) = world.hooks.payload(&world.scope, &route.name, accepted.id).await.unwrap();
    assert_eq!(kept, body);
    assert_eq!(payload.outcome, accepted.outcome);
    assert_eq!(payload.headers.keys().collect::<Vec<_>>(), ["content-type", "x-event", "x-id"]);
    assert_eq!(world.outcomes().await, [accepted.outcome]);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept_and_can_be_passed_on() {
    let world = World::new(HookSettings::default());
    let route = world.declare("bin", json!({ "input": "{{payload_base64}}" })).await;
    let body = vec![0, 159, 146, 150, 255];
    let accepted = world.receive(&route, body.clone()).await.unwrap();
    assert_eq!(world.db.get(accepted.id).await.unwrap().tool_input.as_str(), r#""AJ+Slv8=""#);
    assert_eq!(world.hooks.payload(&world.scope, &route.name, accepted.id).await.unwrap().1, body);
}

#[tokio::test]
async fn a_payload_that_no_call_can_be_made_of_is_kept_and_replayed_when_the_template_is_right() {
    let world = World::new(HookSettings::default());
    let route = world.declare("git", json!({ "input": "{{payload.missing}}" })).await;
    let accepted = world.receive(&route, r#"{"a":1}"#).await.unwrap();
    let Outcome::DispatchError { reason } = &accepted.outcome else { panic!("{accepted:?}") };
    assert!(reason.starts_with("input: column 3: payload.missing cannot be resolved"), "{reason}");
    assert_eq!(world.count(ACTION_KIND).await, 0);
    let (scope, again) = (&world.scope, Uuid::from_u128(1));
    let error = world.hooks.replay(scope, &route.name, accepted.id, again).await.unwrap_err();
    assert_eq!(error.code(), "template-failed");
    let right = Hook { input: serde_json::from_value(json!("{{payload.a}}")).unwrap(), ..route.hook.clone() };
    world.hooks.replace(scope, &route.name, &right, route.version).await.unwrap();
    for _ in 0..2 {
        // The second is the same replay, sent again.
        let replayed = world.hooks.replay(scope, &route.name, accepted.id, again).await.unwrap();
        assert_eq!(replayed.outcome.name(), "replayed");
    }
    assert_eq!(world.db.get(again).await.unwrap().tool_input.as_str(), "1");
    assert_eq!(world.count(ACTION_KIND).await, 1);
    world.hooks.replay(scope, &route.name, accepted.id, Uuid::from_u128(2)).await.unwrap();
    let (payload, _) = world.hooks.payload(scope, &route.name, accepted.id).await.unwrap();
    assert_eq!(payload.actions, [Uuid::from_u128(1), Uuid::from_u128(2)]);
    let names: Vec<&str> = world.outcomes().await.iter().map(Outcome::name).collect();
    assert_eq!(names, ["replayed", "replayed", "dispatch_error"]);
}

#[tokio::test]
async fn a_key_is_called_once_within_its_window() {
    let world = World::new(HookSettings::default());
    let route = world.declare("git", json!({ "dedup": { "header": "x-id", "window": "1h" } })).await;
    let first = world.receive(&route, "1").await.unwrap();
    let second = world.receive(&route, "2").await.unwrap();
    assert_eq!((second.id, second.outcome.name()), (first.id, "deduplicated"));
    assert_eq!(
        (world.count(ACTION_KIND).await, world.count(PAYLOAD).await, world.count(EVENT).await),
        (1, 1, 2)
    );
    world.clock.advance(Duration::from_secs(60 * 60 + 1));
    assert_eq!(outcome_name(world.receive(&route, "3").await), "routed");
    let other = world.declare("other", json!({ "dedup": { "header": "x-id" } })).await;
    assert_eq!(outcome_name(world.receive(&other, "4").await), "routed");
}

#[tokio::test]
async fn many_at_once_with_one_key_are_one_call() {
    let world = World::new(HookSettings::default());
    let route = world.declare("git", json!({ "dedup": { "key": "{{payload}}" } })).await;
    let mut sent = tokio::task::JoinSet::new();
    for number in 0..50 {
        let (hooks, route) = (world.hooks.clone(), route.clone());
        let body = Bytes::from((number % 5).to_string());
        sent.spawn(async move { hooks.receive(&route, Incoming { body, ..Incoming::default() }).await });
    }
    let accepted = sent.join_all().await;
    let routed = accepted.into_iter().filter(|one| one.as_ref().unwrap().outcome.name() == "routed").count();
    assert_eq!((routed, world.count(ACTION_KIND).await, world.count(KEY).await), (5, 5, 5));
}

#[tokio::test]
async fn what_is_filtered_or_only_stored_calls_nothing_and_is_kept() {
    let world = World::new(HookSettings::default());
    let filtered = world.declare("filtered", json!({ "filter": "payload.action == 'opened'" })).await;
    assert_eq!(outcome_name(world.receive(&filtered, r#"{"action":"closed"}"#).await), "filtered");
    let stored = world.declare("stored", json!({ "store_only": true })).await;
    let accepted = world.receive(&stored, "anything").await.unwrap();
    assert_eq!(accepted.outcome, Outcome::Stored);
    assert_eq!((world.count(ACTION_KIND).await, world.count(BODY).await), (0, 2));
    // Whoever replays has decided.
    let newest = ListPayloads { limit: 1, ..ListPayloads::default() };
    let page = world.hooks.payloads(&world.scope, &filtered.name, &newest).await;
    let id = Listed::split(page.unwrap().payloads).0[0].id;
    world.hooks.replay(&world.scope, &filtered.name, id, Uuid::from_u128(9)).await.unwrap();
    assert_eq!(world.count(ACTION_KIND).await, 1);
}

#[tokio::test]
async fn what_is_refused_leaves_a_bounded_number_of_events_and_nothing_else() {
    let world = World::new(HookSettings { max_body_bytes: 100, ..HookSettings::default() });
    let path = world.secrets.path().join("default/default");
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("key"), "canary-secret").unwrap();
    let secrets = json!([{ "file": path.join("key") }]);
    let shared = json!({ "type": "shared_secret", "secrets": secrets });
    let settings = json!({ "verification": shared, "content_types": ["application/json"] });
    let route = world.declare("shut", settings).await;
    for _ in 0..1_000 {
        let refused = world.receive(&route, "{}").await.unwrap_err();
        assert_eq!(refused.reason(), "missing_signature");
        assert!(!refused.to_string().contains("canary"));
    }
    assert_eq!(world.receive(&route, vec![b' '; 101]).await.unwrap_err().reason(), "too_large");
    let typed = world.hooks.admit(&route, None, Some("text/plain")).unwrap_err();
    assert_eq!(typed.reason(), "wrong_type");
    assert_eq!(world.count(EVENT).await, 0);
    world.hooks.write_events().await.unwrap();
    let mut counts: Vec<(String, u64)> = Vec::new();
    for outcome in world.outcomes().await {
        let Outcome::Refused { reason, count } = outcome else { panic!("{outcome:?}") };
        counts.push((reason, count));
    }
    counts.sort();
    let expected = [("missing_signature", 1_000), ("too_large", 1), ("wrong_type", 1)];
    assert_eq!(counts, expected.map(|(reason, count)| (reason.to_owned(), count)));
    assert_eq!((world.count(PAYLOAD).await, world.count(ACTION_KIND).await), (0, 0));
    std::fs::remove_file(path.join("key")).unwrap();
    let headers: Headers =
        [("Content-Type", "application/json"), ("X-Webhook-Secret", "any")].into_iter().collect();
    let incoming = Incoming { headers, body: Bytes::from_static(b"{}"), ..Incoming::default() };
    let refused = world.hooks.receive(&route, incoming).await.unwrap_err();
    assert_eq!(refused.reason(), "secret_unavailable");
    let disabled = world.declare("disabled", json!({ "enabled": false })).await;
    assert_eq!(world.receive(&disabled, "{}").await.unwrap_err().reason(), "disabled");
}

#[tokio::test]
async fn webhook_event_ring_buffer_evicts_oldest_at_501() {
    let world = World::new(HookSettings::default());
    let route = world.declare("git", json!({ "store_only": true })).await;
    for _ in 0..520 {
        world.receive(&route, "{}").await.unwrap();
        world.clock.advance(Duration::from_millis(1));
    }
    let elsewhere = Scope::new("a", "b").unwrap();
    let other = world.hooks.events(&elsewhere, &ListEvents { limit: 9, ..ListEvents::default() }).await;
    assert_eq!(other.unwrap(), []);
    assert_eq!(world.count(EVENT).await, 520);
    world.hooks.write_events().await.unwrap();
    assert_eq!(world.count(EVENT).await, 500);
    let events =
        world.hooks.events(&world.scope, &ListEvents { limit: 1_000, ..Default::default() }).await.unwrap();
    let events = Listed::split(events).0;
    assert!(events.is_sorted_by_key(|event| std::cmp::Reverse(event.seq)), "seq is in the order of time");
    assert_eq!(events[0].at.as_millisecond(), i64::try_from(NOW_MS + 519).unwrap());
    assert_eq!(events[499].at.as_millisecond(), i64::try_from(NOW_MS + 20).unwrap());
    let rest = ListEvents { after: Some(events[400].id), limit: 50, route: Some(&route.name) };
    assert_eq!(Listed::split(world.hooks.events(&world.scope, &rest).await.unwrap()).0, events[401..451]);
}

#[tokio::test]
async fn query_webhooks_by_time_newest_first_with_pages() {
    let world = World::new(HookSettings::default());
    let route = world.declare("git", json!({ "store_only": true })).await;
    let mut ids = Vec::new();
    for number in 0..10 {
        ids.insert(0, world.receive(&route, number.to_string()).await.unwrap().id);
        world.clock.advance(Duration::from_secs(1));
    }
    let at = |second: u64| Some(crate::moment::timestamp(NOW_MS + second * 1_000));
    for (since, until, expected) in [
        (None, None, &ids[..]),
        (at(3), None, &ids[..7]),
        (None, at(3), &ids[6..]),
        (at(3), at(5), &ids[4..7]),
        (at(11), None, &[]),
    ] {
        let mut found = Vec::new();
        let mut request = ListPayloads { since, until, after: None, limit: 3 };
        loop {
            let page = world.hooks.payloads(&world.scope, &route.name, &request).await.unwrap();
            found.extend(Listed::split(page.payloads).0.iter().map(|payload| payload.id));
            request.after = found.last().copied();
            if !page.more {
                break;
            }
        }
        assert_eq!(found, expected, "{since:?} {until:?}");
    }
    let unknown = "nobody".parse().unwrap();
    let error =
        world.hooks.payloads(&world.scope, &unknown, &ListPayloads { limit: 1, ..Default::default() }).await;
    assert_eq!(error.unwrap_err().code(), "unknown-hook");
}

#[tokio::test]
async fn payloads_go_when_their_time_is_over_and_replays_do_not_prolong_it() {
    let world = World::new(HookSettings::default());
    let route = world.declare("git", json!({ "retention": "1h" })).await;
    let id = world.receive(&route, "{}").await.unwrap().id;
    world.clock.advance(Duration::from_secs(59 * 60));
    world.hooks.replay(&world.scope, &route.name, id, Uuid::from_u128(1)).await.unwrap();
    world.clock.advance(Duration::from_secs(2 * 60));
    let error = world.hooks.payload(&world.scope, &route.name, id).await.unwrap_err();
    assert_eq!(error.code(), "unknown-payload");
    let kept = world.declare("kept", json!({})).await;
    let id = world.receive(&kept, "{}").await.unwrap().id;
    world.hooks.delete_payload(&world.scope, &kept.name, id).await.unwrap();
    assert_eq!(world.count(BODY).await, 0);
    assert!(world.hooks.delete_payload(&world.scope, &kept.name, id).await.is_err());
}

#[tokio::test]
async fn route_duplicate_path_returns_error_and_changes_need_the_version() {
    let world = World::new(HookSettings::default());
    let route = world.declare("git", json!({})).await;
    let (hooks, scope, name) = (&world.hooks, &world.scope, &route.name);
    let code = |outcome: Result<u64, HookError>| outcome.unwrap_err().code();
    assert_eq!(code(hooks.create(scope, name, &route.hook).await), "hook-exists");
    assert_eq!(code(hooks.replace(scope, name, &route.hook, route.version + 1).await), "hook-changed");
    let unknown = Hook { function: Some("nobody".parse().unwrap()), ..route.hook.clone() };
    assert_eq!(code(hooks.create(scope, &"x".parse().unwrap(), &unknown).await), "unknown-function");
    let foreign = json!({ "type": "github", "secrets": [{ "file": "/etc/shadow" }] });
    let foreign = Hook { verification: serde_json::from_value(foreign).unwrap(), ..route.hook.clone() };
    assert_eq!(code(hooks.create(scope, &"x".parse().unwrap(), &foreign).await), "function-not-permitted");
    let large = Hook { max_body_bytes: Some(usize::MAX), ..route.hook.clone() };
    assert_eq!(code(hooks.create(scope, &"x".parse().unwrap(), &large).await), "invalid-hook");
    let version = hooks.replace(scope, name, &route.hook, route.version).await.unwrap();
    assert_eq!(hooks.delete(scope, name, Some(route.version)).await.unwrap_err().code(), "hook-changed");
    hooks.delete(scope, name, Some(version)).await.unwrap();
    assert_eq!(hooks.delete(scope, name, None).await.unwrap_err().code(), "unknown-hook");
    assert_eq!(hooks.list(scope, None, 10).await.unwrap(), []);
}

/// A crash in the ingress commit: what was not acknowledged may be there or not, but never by half.
#[tokio::test]
async fn a_commit_that_fails_leaves_all_of_a_payload_or_nothing() {
    for fault in [Fault::FailBefore, Fault::FailAfter] {
        let clock = VirtualClock::new();
        clock.set_ms(NOW_MS);
        let memory = MemoryStore::with_clock(clock.clone());
        let whole = World::on(clock.clone(), memory.clone(), memory.clone(), HookSettings::default());
        let route = whole.declare("git", json!({ "dedup": { "header": "x-id" } })).await;
        let failing = FaultStore::new(memory.clone(), clock.clone(), script([(1, fault)]));
        let world = World::on(clock, memory, failing, HookSettings::default());
        assert_eq!(world.receive(&route, "1").await.unwrap_err().reason(), "error");
        let mut counts = Vec::new();
        for kind in [PAYLOAD, BODY, KEY, EVENT, ACTION_KIND] {
            counts.push(world.count(kind).await);
        }
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        // The sender tries again: with the key, it is one call whatever happened.
        world.receive(&route, "1").await.unwrap();
        assert_eq!((world.count(ACTION_KIND).await, world.count(PAYLOAD).await), (1, 1));
    }
}

#[tokio::test]
async fn a_route_starts_an_orchestration_in_place_of_a_function() {
    let world = World::new(HookSettings::default());
    let hook = json!({ "orchestration": "Order", "verification": "none" });
    let hook: Hook = serde_json::from_value(hook).unwrap();
    let name = "orders".parse().unwrap();
    world.hooks.create(&world.scope, &name, &hook).await.unwrap();
    let route = world.hooks.find(&world.scope, &name).await.unwrap();
    let accepted = world.receive(&route, r#"{"n":1}"#).await.unwrap();
    let Outcome::Routed { action, function: None, orchestration: Some(orchestration) } = &accepted.outcome
    else {
        panic!("{accepted:?}")
    };
    assert_eq!(orchestration.as_str(), "Order");
    let stored = world.db.get(*action).await.unwrap();
    assert_eq!((stored.tool_name.as_str(), stored.orchestration.as_ref()), ("", Some(orchestration)));
    assert_eq!(stored.tool_input.as_str(), r#"{"n":1}"#);
    let again = world.hooks.replay(&world.scope, &name, accepted.id, Uuid::from_u128(9)).await.unwrap();
    assert!(matches!(again.outcome, Outcome::Replayed { orchestration: Some(_), .. }), "{again:?}");
    let both: Hook = serde_json::from_value(
        json!({"function": "deploy", "orchestration": "Order", "verification": "none"}),
    )
    .unwrap();
    assert!(both.check().unwrap_err().to_string().starts_with("orchestration: "));
    let built_in = serde_json::from_value::<Hook>(json!({"orchestration": "invoke", "verification": "none"}));
    assert!(built_in.unwrap_err().to_string().contains("built in"));
}
