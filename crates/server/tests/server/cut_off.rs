//! Requests whose server dies in the middle: the repeat gets the first answer as soon as there is a server again, and what was
//! asked for is there once.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use reqwest::StatusCode;
use segno::clock::SystemClock;
use segno::store::Store;
use segno_server::settings::Authentication;
use segno_server::{Server, samples};
use segno_testkit::faults::{CommitPoint, Fault, FaultStore};
use serde_json::{Value, json};

use crate::stand::{Ground, PATIENCE, listener, settings};

/// A request, what its answer must be, and the listing that has one row for it.
struct Case {
    path: &'static str,
    body: Value,
    status: u16,
    listing: (&'static str, &'static str),
    rows: usize,
}

async fn server(store: Arc<dyn Store>) -> Server {
    let builder = Server::builder(store, settings(Authentication::None));
    let builder = builder.registry(samples::registry()).functions(samples::functions);
    builder.start(listener().await).await.unwrap()
}

async fn post(server: &Server, case: &Case) -> (StatusCode, bool, Value) {
    let url = format!("http://{}{}", server.address(), case.path);
    let call = crate::stand::http().post(url).header("idempotency-key", "k").json(&case.body);
    let answer = call.send().await.unwrap();
    let (status, replayed) = (answer.status(), answer.headers().contains_key("idempotency-replayed"));
    (status, replayed, answer.json().await.unwrap())
}

/// Rows of a listing.
async fn rows(server: &Server, (path, field): (&str, &str)) -> usize {
    let url = format!("http://{}{path}", server.address());
    let page: Value = crate::stand::http().get(url).send().await.unwrap().json().await.unwrap();
    page[field].as_array().unwrap().len()
}

/// A store whose node dies at the write of this number that a request makes, counted from when it is armed.
fn dying(store: Arc<dyn Store>, fault: Fault) -> (Arc<FaultStore>, Arc<AtomicI64>) {
    let left = Arc::new(AtomicI64::new(i64::MIN));
    let counted = left.clone();
    let plan = move |point: CommitPoint| {
        let is_of_a_request = ["commit_records", "enqueue_for_orchestrator"].contains(&point.operation);
        let is_it = is_of_a_request && counted.fetch_sub(1, Ordering::SeqCst) == 1;
        if is_it { fault } else { Fault::None }
    };
    (FaultStore::new(store, SystemClock::shared(), Box::new(plan)), left)
}

/// Sends a request to a server that dies at one of its writes, and repeats it at the next one. Whether the server died.
async fn cut_off(case: &Case, number: i64, fault: Fault) -> bool {
    let ground = Ground::new().await;
    let (store, left) = dying(ground.store.clone(), fault);
    let first = server(store.clone()).await;
    left.store(number, Ordering::SeqCst);
    let answered = tokio::select! {
        biased;
        () = store.died() => None,
        answer = post(&first, case) => Some(answer),
    };
    left.store(i64::MIN, Ordering::SeqCst);
    drop(first);
    let second = server(ground.store.clone()).await;
    let again = post(&second, case).await;
    let told = format!("{} {number} {fault:?}: {again:?}", case.path);
    assert_eq!(again.0.as_u16(), case.status, "{told}");
    if let Some(first) = &answered {
        assert_eq!((first.0, &first.2), (again.0, &again.2), "{told}");
        assert!(again.1, "{told}");
    }
    // An instance is listed from its first turn on.
    let listed = async {
        while rows(&second, case.listing).await < case.rows {
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, listed).await.expect("it is listed");
    assert_eq!(rows(&second, case.listing).await, case.rows, "{told}");
    let once_more = post(&second, case).await;
    assert_eq!((once_more.0, once_more.1, &once_more.2), (again.0, true, &again.2), "{told}");
    answered.is_none()
}

async fn cut_off_everywhere(case: Case) {
    for fault in [Fault::CrashBefore, Fault::CrashAfter] {
        let mut number = 1;
        while cut_off(&case, number, fault).await {
            number += 1;
        }
        assert!(number > 1, "{} makes no write", case.path);
    }
}

fn start(body: Value) -> Case {
    Case {
        path: "/v1/instances",
        body,
        status: 201,
        listing: ("/v1/instances?orchestration=greet", "instances"),
        rows: 1,
    }
}

#[tokio::test]
async fn a_start_under_an_id_of_its_own() {
    let input = json!({ "name": "Ada" });
    cut_off_everywhere(start(json!({ "orchestration": "greet", "id": "mine", "input": input }))).await;
}

#[tokio::test]
async fn a_start_without_an_id() {
    cut_off_everywhere(start(json!({ "orchestration": "greet", "input": { "name": "Ada" } }))).await;
}

#[tokio::test]
async fn a_call_of_a_function() {
    let listing = ("/v1/instances?orchestration=invoke", "instances");
    let body = json!({ "function": "echo", "input": 1 });
    cut_off_everywhere(Case { path: "/v1/invocations", body, status: 201, listing, rows: 1 }).await;
}

#[tokio::test]
async fn an_action() {
    let body = json!({ "tool_name": "echo", "next_tick_at": "2999-01-01T00:00:00Z" });
    let listing = ("/v1/actions", "actions");
    cut_off_everywhere(Case { path: "/v1/actions", body, status: 201, listing, rows: 1 }).await;
}

#[tokio::test]
async fn a_recurring_action() {
    let body = json!({ "cron_expr": "0 0 1 1 *", "function": "echo", "input": 1 });
    let listing = ("/v1/recurring", "recurring_actions");
    cut_off_everywhere(Case { path: "/v1/recurring", body, status: 201, listing, rows: 1 }).await;
}

/// Makes a key through a server that dies at one of its writes, and repeats that at the next one. Whether the server died.
async fn make_key(number: i64, fault: Fault) -> bool {
    let ground = Ground::new().await;
    let with_keys = |store| async {
        let builder = Server::builder(store, settings(Authentication::Keys));
        builder.start(listener().await).await.unwrap()
    };
    let (store, left) = dying(ground.store.clone(), fault);
    let mut first = with_keys(store.clone() as Arc<dyn Store>).await;
    let admin = first.take_first_key().unwrap();
    // The use of a key is a write as well: the first one of each server.
    let used = crate::stand::http().get(format!("http://{}/v1/keys", first.address())).bearer_auth(&admin);
    assert_eq!(used.send().await.unwrap().status(), StatusCode::OK);
    let make = |server: &Server| {
        let body = json!({ "name": "ci", "role": "viewer", "grants": [{ "namespace": "*", "tenant": "*" }] });
        let url = format!("http://{}/v1/keys", server.address());
        let call = crate::stand::http().post(url).bearer_auth(&admin).header("idempotency-key", "k");
        call.json(&body).send()
    };
    left.store(number, Ordering::SeqCst);
    let answered = tokio::select! {
        biased;
        () = store.died() => false,
        answer = make(&first) => answer.unwrap().status() == StatusCode::CREATED,
    };
    left.store(i64::MIN, Ordering::SeqCst);
    drop(first);
    let second = with_keys(ground.store.clone()).await;
    let again = make(&second).await.unwrap();
    assert_eq!(again.status(), StatusCode::CREATED, "{number} {fault:?}");
    let is_replay = again.headers().contains_key("idempotency-replayed");
    let made: Value = again.json().await.unwrap();
    let list = format!("http://{}/v1/keys", second.address());
    let list = crate::stand::http().get(list).bearer_auth(&admin).send().await.unwrap();
    let list: Value = list.json().await.unwrap();
    assert_eq!(list["keys"].as_array().unwrap().len(), 2, "{number} {fault:?}: {list}");
    let own = format!("http://{}/v1/me", second.address());
    let own = crate::stand::http().get(own).bearer_auth(made["secret"].as_str().unwrap()).send().await;
    let works = own.unwrap().status() == StatusCode::OK;
    assert!(is_replay || works, "{number} {fault:?}: the repeat has no secret that works: {made}");
    !answered
}

#[tokio::test]
async fn a_key_is_made_once_and_its_secret_is_told() {
    for fault in [Fault::CrashBefore, Fault::CrashAfter] {
        let mut number = 1;
        while make_key(number, fault).await {
            number += 1;
        }
        assert!(number > 2, "a key and its claim are two writes");
    }
}

/// The repeat of a request whose first server died.
struct Repeated {
    status: StatusCode,
    answer: Value,
    /// Whether the answer of the first try had been kept.
    is_replay: bool,
    /// Whether the instance was cancelled before the repeat.
    was_cancelled: bool,
}

/// Cancels a waiting instance through a server that dies after a write of this number, and repeats the request once that has
/// taken effect; `None` if the server did not die.
async fn cancel_again(number: i64) -> Option<Repeated> {
    let ground = Ground::new().await;
    let (store, left) = dying(ground.store.clone(), Fault::CrashAfter);
    let first = server(store.clone()).await;
    let start = json!({ "orchestration": "greet", "id": "mine", "input": { "name": "Ada", "wait": true } });
    let http = crate::stand::http();
    let started = http.post(format!("http://{}/v1/instances", first.address())).json(&start).send().await;
    assert_eq!(started.unwrap().status(), StatusCode::CREATED);
    let listing = ("/v1/instances", "instances");
    let cancel = Case { path: "/v1/instances/mine/cancel", body: json!({}), status: 202, listing, rows: 1 };
    left.store(number, Ordering::SeqCst);
    let answered = tokio::select! {
        biased;
        () = store.died() => None,
        answer = post(&first, &cancel) => Some(answer),
    };
    left.store(i64::MIN, Ordering::SeqCst);
    drop(first);
    if answered.is_some() {
        return None;
    }
    let second = server(ground.store.clone()).await;
    let url = format!("http://{}/v1/instances/mine?wait_ms=30000", second.address());
    let mine: Value = http.get(url).send().await.unwrap().json().await.unwrap();
    let (status, is_replay, answer) = post(&second, &cancel).await;
    Some(Repeated { status, answer, is_replay, was_cancelled: mine["status"] == "cancelled" })
}

/// Rounds until a try is cut off between its change and its answer.
const ROUNDS: u32 = 5;

#[tokio::test]
async fn a_cancel_that_meets_what_its_own_earlier_try_has_cancelled_is_told_so() {
    let mut met = 0;
    // Writes of the node itself are counted as well, so that a round may cut off none of the request's.
    for _ in 0..ROUNDS {
        let mut number = 1;
        while let Some(Repeated { status, answer, is_replay, was_cancelled }) = cancel_again(number).await {
            let detail = answer["detail"].as_str().unwrap_or_default();
            let meets_itself = was_cancelled && !is_replay;
            match meets_itself {
                true => {
                    assert!(
                        status == 409 && detail.contains("may have done it"),
                        "{number}: {status} {answer}"
                    );
                }
                false => assert_eq!(status, 202, "{number}: {answer}"),
            }
            (number, met) = (number + 1, met + u32::from(meets_itself));
        }
        if met > 0 {
            break;
        }
    }
    assert!(met > 0, "no try was cut off between its change and its answer");
}

#[tokio::test]
async fn requests_with_one_key_at_the_same_time_have_one_effect_and_one_answer() {
    let ground = Ground::new().await;
    let server = server(ground.store.clone()).await;
    let case = start(json!({ "orchestration": "greet", "id": "mine", "input": { "name": "Ada" } }));
    let (one, two, three) = tokio::join!(post(&server, &case), post(&server, &case), post(&server, &case));
    for answer in [&one, &two, &three] {
        assert_eq!((answer.0.as_u16(), &answer.2), (201, &one.2));
    }
    assert_eq!([one, two, three].iter().filter(|answer| answer.1).count(), 2);
    assert_eq!(rows(&server, case.listing).await, 1);
}

#[tokio::test]
async fn a_start_whose_id_is_taken_is_refused_again_and_again() {
    let ground = Ground::new().await;
    let server = server(ground.store.clone()).await;
    let body = json!({ "orchestration": "greet", "id": "mine", "input": { "name": "Ada" } });
    let url = format!("http://{}/v1/instances", server.address());
    assert_eq!(crate::stand::http().post(url).json(&body).send().await.unwrap().status(), 201);
    for replayed in [false, true] {
        let refused = post(&server, &start(body.clone())).await;
        assert_eq!(
            (refused.0.as_u16(), refused.1, &refused.2["code"]),
            (409, replayed, &json!("instance-exists"))
        );
    }
}
