//! Tenants that share the threads which check inputs: one that fills its queue with slow checks is refused with a time to
//! try again, and neither calls nor actions of another tenant wait for it.

use reqwest::StatusCode;
use segno::clock::SystemClock;
use segno_actions::functions::limits::{MAX_WAITING_CHECKS_PER_TENANT, SCHEMA_THREADS_PER_TENANT};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::stand::{PATIENCE, Stand};

/// Many more calls than a tenant may have running and waiting, as some are answered while others still arrive.
const CALLS: usize = SCHEMA_THREADS_PER_TENANT + 2 * MAX_WAITING_CHECKS_PER_TENANT;

/// A schema within all limits that takes about 400,000 evaluations for any input.
fn slow_schema() -> Value {
    let two = |to: usize| {
        let to = json!({ "$ref": format!("#/$defs/d{to}") });
        json!({ "allOf": [to, to] })
    };
    let mut defs: serde_json::Map<String, Value> = (0..17).map(|n| (format!("d{n}"), two(n + 1))).collect();
    defs.insert("d17".to_owned(), json!({ "type": "integer" }));
    json!({ "$ref": "#/$defs/d0", "$defs": defs })
}

struct Caller<'a> {
    stand: &'a Stand,
    http: reqwest::Client,
}

impl Caller<'_> {
    fn call(&self, method: &str, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), self.stand.url(path)).json(body)
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> (StatusCode, Value) {
        let answer = self.call(method, path, body).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    async fn declare(&self, tenant: &str, schema: &Value) {
        let function = json!({ "executor": "remote", "input_schema": schema });
        let path = format!("/v1/functions/f?tenant={tenant}");
        let put = self.call("PUT", &path, &function).header("if-none-match", "*");
        assert_eq!(put.send().await.unwrap().status(), 201);
        let hook = json!({ "function": "f", "verification": "none" });
        let path = format!("/v1/hooks/default/h?tenant={tenant}");
        let put = self.call("PUT", &path, &hook).header("if-none-match", "*");
        assert_eq!(put.send().await.unwrap().status(), 201);
    }

    /// The states of a tenant's actions.
    async fn actions(&self, tenant: &str) -> String {
        let (status, list) =
            self.send("GET", &format!("/v1/actions?tenant={tenant}&limit=1000"), &Value::Null).await;
        assert_eq!(status, 200);
        list["actions"].as_array().unwrap().iter().map(|action| action["status"].to_string()).collect()
    }
}

/// Calls of the slow tenant that are under way, and what was answered of them.
struct Flood {
    calls: JoinSet<(StatusCode, Option<String>, Value)>,
    done: usize,
}

impl Flood {
    fn begin(caller: &Caller<'_>) -> Self {
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let call =
                caller.call("POST", "/v1/invocations?tenant=slow", &json!({ "function": "f", "input": 1 }));
            calls.spawn(async move {
                let answer = call.send().await.unwrap();
                let retry_after = answer.headers().get("retry-after");
                let retry_after = retry_after.map(|value| value.to_str().unwrap().to_owned());
                (answer.status(), retry_after, answer.json().await.unwrap())
            });
        }
        Flood { calls, done: 0 }
    }

    /// Waits until a call is refused because the tenant's queue is full.
    async fn fills_the_queue(&mut self) {
        loop {
            let (status, retry_after, answer) = self.calls.join_next().await.unwrap().unwrap();
            self.done += 1;
            if status == 503 {
                assert_eq!(answer["code"], "unavailable", "{answer}");
                let detail = answer["detail"].as_str().unwrap();
                assert!(detail.contains("work of this tenant waits for a thread"), "{detail}");
                assert!(detail.contains("nothing was changed; try again"), "{detail}");
                assert_eq!(retry_after.as_deref(), Some("1"));
                return;
            }
            assert_eq!(status, 201, "never a wrong answer: {answer}");
        }
    }

    /// Calls that are not answered yet.
    fn open(&mut self) -> usize {
        while let Some(ended) = self.calls.try_join_next() {
            assert!(matches!(ended.unwrap().0.as_u16(), 201 | 503));
            self.done += 1;
        }
        CALLS - self.done
    }
}

#[tokio::test]
async fn a_tenant_with_slow_schemas_holds_up_no_other() {
    let stand = Stand::open().await;
    let caller = Caller { stand: &stand, http: crate::stand::http() };
    caller.declare("slow", &slow_schema()).await;
    caller.declare("quick", &json!({ "type": "integer" })).await;
    let work = async {
        let mut flood = Flood::begin(&caller);
        flood.fills_the_queue().await;
        for input in [json!(1), json!("x")] {
            let call = json!({ "function": "f", "input": input });
            let (status, answer) = caller.send("POST", "/v1/invocations?tenant=quick", &call).await;
            let expected = if input.is_number() { 201 } else { 400 };
            assert_eq!(status, expected, "{answer}");
        }
        assert!(flood.open() > MAX_WAITING_CHECKS_PER_TENANT / 2, "the slow tenant was served first");
        // The same by webhooks, whose actions are fired by one loop for all tenants.
        for _ in 0..50 {
            let (status, _) = caller.send("POST", "/v1/hooks/default/h?tenant=slow", &json!(1)).await;
            assert_eq!(status, 202);
        }
        let (status, _) = caller.send("POST", "/v1/hooks/default/h?tenant=quick", &json!(1)).await;
        assert_eq!(status, 202);
        while !caller.actions("quick").await.contains("running") {
            crate::stand::look_again().await;
        }
        let slow = caller.actions("slow").await;
        assert!(slow.contains("pending"), "the slow tenant was served first: {slow}");
        assert!(!slow.contains("failed"), "what is postponed has not failed: {slow}");
        assert!(flood.open() > 0);
    };
    segno::clock::timeout(&SystemClock, PATIENCE, work).await.expect("another tenant is held up");
}
