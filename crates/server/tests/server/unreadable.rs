//! Stored data that cannot be read, or that breaks today's rule: listings and deletions survive it and show it.

use std::time::Duration;

use segno::Payload;
use segno::store::{Expect, RecordBatch, RecordWrite};
use segno::work_item::{StartOrchestration, WorkItem};
use segno_api::client::Expected;
use segno_server::settings::Authentication;
use serde_json::{Value, json};

use crate::stand::{Ground, PATIENCE, Stand, json_of, settings};

const ID: &str = "00000000-0000-4000-8000-000000000001";
const OTHER: &str = "00000000-0000-4000-8000-000000000002";

struct World {
    stand: Stand,
    ground: Ground,
}

impl World {
    async fn start() -> Self {
        let ground = Ground::new().await;
        World { stand: Stand::on(settings(Authentication::Keys), &ground).await, ground }
    }

    /// Stores a record as an earlier version may have: also before there was an index of its kind.
    async fn put(&self, kind: &str, id: &str, body: &str) {
        let not_indexed = RecordWrite::Delete {
            kind: format!("{kind}-order-built"),
            id: "default/default/".to_owned(),
            expect: Expect::Anything,
        };
        let write = RecordWrite::Put {
            kind: kind.to_owned(),
            id: id.to_owned(),
            expect: Expect::Anything,
            due_at_ms: None,
            time_to_live: None,
            body: body.to_owned().into(),
        };
        let batch = RecordBatch { writes: vec![write, not_indexed], ..RecordBatch::default() };
        self.ground.store.commit_records(batch).await.unwrap();
    }

    async fn send(&self, method: &str, path: &str) -> (u16, String) {
        let call = crate::stand::http().request(method.parse().unwrap(), self.stand.url(path));
        let answer = call.bearer_auth(&self.stand.admin_key).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn reads(&self, path: &str) -> Value {
        let (status, answer) = self.send("GET", path).await;
        assert_eq!(status, 200, "{path}: {answer}");
        serde_json::from_str(&answer).unwrap()
    }
}

/// How many rows of a listing can be read.
fn readable(listed: &Value) -> usize {
    let lists = listed.as_object().unwrap().iter().filter(|(name, _)| *name != "unreadable");
    lists.filter_map(|(_, rows)| rows.as_array()).map(Vec::len).sum()
}

/// One row of a kind, where it is listed, and what deletes it.
struct Row {
    kind: &'static str,
    id: &'static str,
    list: &'static str,
    shown: &'static str,
    one: Option<&'static str>,
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_listed_as_such_and_deleted() {
    let world = World::start().await;
    let declaration = json_of(&json!({ "function": "echo", "verification": "none" }));
    world.stand.client().put_hook("p", &declaration, Expected::Absent).await.unwrap();
    world.put("segno.hook-body", "default/default/p/00000000-0000-4000-8000-000000000001", "x").await;
    let row = |kind, id, list, shown, one| Row { kind, id, list, shown, one };
    for row in [
        row(
            "segno.action",
            "default/default/00000000-0000-4000-8000-000000000001",
            "/v1/actions",
            ID,
            Some("/v1/actions/00000000-0000-4000-8000-000000000001"),
        ),
        row(
            "segno.recurring",
            "default/default/00000000-0000-4000-8000-000000000001",
            "/v1/recurring",
            ID,
            Some("/v1/recurring/00000000-0000-4000-8000-000000000001"),
        ),
        row("segno.hook", "default/default/h", "/v1/hooks", "h", Some("/v1/hooks/default/h")),
        row(
            "segno.hook-payload",
            "default/default/p/00000000-0000-4000-8000-000000000001",
            "/v1/hooks/default/p/payloads",
            ID,
            Some("/v1/hooks/default/p/payloads/00000000-0000-4000-8000-000000000001"),
        ),
        row(
            "segno.hook-event",
            "default/default/00000000-0000-4000-8000-000000000001",
            "/v1/hooks/events",
            ID,
            None,
        ),
        row("segno.function", "default/default/f", "/v1/functions", "f", Some("/v1/functions/f")),
        row(
            "segno.key",
            "0123456789abcdef",
            "/v1/keys",
            "0123456789abcdef",
            Some("/v1/keys/0123456789abcdef"),
        ),
        row(
            "segno.session",
            "0123456789abcdef-0123456789abcdef",
            "/v1/sessions",
            "0123456789abcdef-0123456789abcdef",
            Some("/v1/sessions/0123456789abcdef-0123456789abcdef"),
        ),
        row("segno.saved", "default/default/s", "/v1/saved", "s", Some("/v1/saved/s")),
        row("segno.worker", "default/default/w@n", "/v1/workers", "w@n", None),
        row("segno.audit", "default/default/0", "/v1/audit", "0", None),
    ] {
        let before = world.reads(row.list).await;
        for junk in ["junk", r#"{"format":99}"#, r#"{"format":1,"value":{"#] {
            world.put(row.kind, row.id, junk).await;
            let listed = world.reads(row.list).await;
            let unreadable = &listed["unreadable"];
            assert_eq!(unreadable.as_array().map(Vec::len), Some(1), "{}: {listed}", row.kind);
            assert_eq!(unreadable[0]["id"], row.shown, "{}: {listed}", row.kind);
            assert!(!unreadable[0]["reason"].as_str().unwrap().is_empty(), "{}: {listed}", row.kind);
            assert_eq!(readable(&listed), readable(&before), "{} hides no other", row.kind);
        }
        let Some(one) = row.one else { continue };
        let (status, answer) = world.send("DELETE", one).await;
        assert_eq!(status, 204, "{}: {answer}", row.kind);
        assert_eq!(world.reads(row.list).await.get("unreadable"), None, "{}", row.kind);
    }
}

/// What readers of the time before could not show: nested 200 deep, beyond a double, half a pair.
fn old() -> Vec<String> {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    vec![deep, "[1e400]".to_owned(), "7".repeat(5_000), r#"{"t":"\ud800"}"#.to_owned()]
}

#[tokio::test]
async fn records_from_before_the_rule_are_shown_changed_and_deleted() {
    let world = World::start().await;
    let time = "2026-02-10T14:00:00Z";
    for text in old() {
        let action = format!(
            r#"{{"format":1,"namespace":"default","tenant":"default","action":{{"id":"{ID}","label":"l","tool_name":"echo",
                "tool_input":{text},"trigger":{{"type":"scheduled","next_tick_at":"{time}"}},
                "status":{{"type":"completed","result":{text}}},"created_at":"{time}","updated_at":"{time}","on_restart":"fail"}}}}"#
        );
        world.put("segno.action", &format!("default/default/{ID}"), &action).await;
        let recurring = format!(
            r#"{{"format":1,"value":{{"id":"{OTHER}","namespace":"default","tenant":"default","cron_expr":"0 0 1 1 *","timezone":"UTC",
                "enabled":true,"action_template":{{"provider":"echo","action_type":"","payload":{text},"metadata":{{}},"dedup_key":null}},
                "created_at":"{time}","updated_at":"{time}","last_executed_at":null,"next_execution_at":"2096-01-01T00:00:00Z",
                "execution_count":0,"progress":{{"caught_up":0,"zones":""}}}}}}"#
        );
        world.put("segno.recurring", &format!("default/default/{OTHER}"), &recurring).await;
        let action = format!("/v1/actions/{ID}");
        for path in ["/v1/actions", &action] {
            let (status, shown) = world.send("GET", path).await;
            assert_eq!((status, shown.matches(text.as_str()).count()), (200, 2), "{path}: {shown}");
        }
        assert_eq!(world.send("DELETE", &action).await.0, 204);
        let recurring = format!("/v1/recurring/{OTHER}");
        let (status, shown) = world.send("GET", &recurring).await;
        assert!(status == 200 && shown.contains(&text), "{status} {shown}");
        for verb in ["pause", "resume"] {
            let (status, answer) = world.send("POST", &format!("{recurring}/{verb}")).await;
            assert_eq!(status, 200, "{verb}: {answer}");
        }
        assert_eq!(world.reads("/v1/recurring").await["recurring_actions"][0]["id"], OTHER);
        assert_eq!(world.send("DELETE", &recurring).await.0, 204);
    }
}

/// A start that was queued before there was a rule: what code cannot take fails with a code, and all of it is shown.
#[tokio::test]
async fn instances_from_before_the_rule_are_shown_and_deleted() {
    let world = World::start().await;
    for (number, text) in old().into_iter().enumerate() {
        let input = json!({ "namespace": "default", "tenant": "default", "function": "echo",
            "route": { "local": {} }, "retry": segno::Retry::never() });
        let input = input.to_string();
        let input = format!(r#"{},"input":{text}}}"#, input.strip_suffix('}').unwrap());
        let start = StartOrchestration {
            orchestration: "invoke".to_owned(),
            input: serde_json::from_str::<Payload>(&input).unwrap(),
            version: None,
            parent: None,
            labels: Default::default(),
            start_at_ms: None,
            traceparent: None,
            execution_id: None,
            seed: None,
            settle: None,
            follows_another: false,
        };
        let id = format!("default/default/invoke:{number}");
        let message = WorkItem::StartOrchestration(Box::new(start)).for_orchestrator(id);
        world.ground.store.enqueue_for_orchestrator(message, None).await.unwrap();
        let id = format!("invoke:{number}");
        let ended = world.stand.client().instance(&id, PATIENCE).await.unwrap();
        let code = ended.failure.unwrap().code.unwrap();
        assert!(["payload-too-deep", "payload-not-json"].contains(&code.as_str()), "{code}");
        let path = format!("/v1/instances/{id}");
        let (status, history) = world.send("GET", &format!("{path}/history")).await;
        assert!(status == 200 && history.contains(&text), "{status} {history}");
        assert_eq!(world.reads("/v1/instances").await["instances"][0]["id"], id);
        assert_eq!(world.send("DELETE", &path).await.0, 200);
        assert!(world.stand.client().instance(&id, Duration::ZERO).await.is_err());
    }
}
