//! Exchanges: answers and the next calls in one request, which may be repeated.

use std::time::Duration;

use bytes::Bytes;
use segno_api::client::Expected;
use segno_api::instance::Status;
use segno_api::invocation::Invoke;
use segno_api::key::Role;
use segno_api::work::{
    CompleteWork, ExchangeWork, ExchangedWork, FailWork, FailureCategory, FetchWork, Heartbeat,
    OutcomeStatus, ReleaseWork, WorkAnswer, WorkItem,
};
use segno_api::{Client, Json};
use segno_server::settings::Authentication;
use serde_json::{Value, json};

use crate::stand::{Ground, PATIENCE, Stand, json_of, settings};

async fn declare(client: &Client) {
    client
        .put_function("render", &json_of(&json!({ "executor": "remote" })), Expected::Absent)
        .await
        .unwrap();
}

async fn call(client: &Client, key: &str) -> String {
    let request = Invoke { key: Some(key.to_owned()), ..Invoke::new("render", json_of(key)) };
    client.invoke(&request, Duration::ZERO).await.unwrap().id
}

/// An exchange that waits for calls.
fn poll(number: u64) -> ExchangeWork {
    let wait_ms = u64::try_from(PATIENCE.as_millis()).unwrap();
    ExchangeWork::new(number, FetchWork { max_items: 10, wait_ms, ..FetchWork::new("w", ["render"]) })
}

/// One that answers and fetches what is available.
fn answering(number: u64, answers: Vec<WorkAnswer>) -> ExchangeWork {
    ExchangeWork { answers, ..poll(number) }
}

fn completed(item: &WorkItem, result: &str) -> WorkAnswer {
    WorkAnswer::Complete(CompleteWork { lease: item.lease.clone(), result: json_of(result) })
}

fn failed(item: &WorkItem) -> WorkAnswer {
    WorkAnswer::Fail(FailWork {
        lease: item.lease.clone(),
        message: "no paint".to_owned(),
        category: FailureCategory::Application,
        code: None,
        retry_after_ms: None,
        retryable: Some(false),
        details: None,
    })
}

fn statuses(exchanged: &ExchangedWork) -> Vec<OutcomeStatus> {
    exchanged.outcomes.iter().map(|outcome| outcome.status).collect()
}

/// So many calls, leased one after the other.
async fn leased(client: &Client, keys: &[&str]) -> Vec<WorkItem> {
    let mut items = Vec::new();
    for (number, key) in keys.iter().enumerate() {
        call(client, key).await;
        items.extend(client.exchange_work(&poll(1_000 + number as u64)).await.unwrap().items);
    }
    assert_eq!(items.len(), keys.len());
    items
}

async fn result_of(client: &Client, item: &WorkItem) -> String {
    client.instance(&item.instance, PATIENCE).await.unwrap().result.unwrap().text().to_owned()
}

#[tokio::test]
async fn one_request_answers_every_kind_and_brings_the_next_calls() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client).await;
    let items = leased(&client, &["a", "b", "c", "d"]).await;
    call(&client, "next").await;
    let next = client.exchange_work(&poll(1)).await.unwrap().items.remove(0);
    let beat =
        Heartbeat { lease: items[2].lease.clone(), extend_ms: 60_000, progress: Some(json_of("half")) };
    let release = ReleaseWork { lease: items[3].lease.clone(), delay_ms: Some(600_000) };
    let request = answering(
        2,
        vec![
            completed(&items[0], "one"),
            failed(&items[1]),
            WorkAnswer::Heartbeat(beat),
            WorkAnswer::Release(release),
            completed(&next, "five"),
        ],
    );
    let exchanged = client.exchange_work(&request).await.unwrap();
    let done = OutcomeStatus::Done;
    assert_eq!(statuses(&exchanged), [done, done, OutcomeStatus::Continue, done, done]);
    assert_eq!(result_of(&client, &items[0]).await, r#""one""#);
    assert_eq!(client.instance(&items[1].instance, PATIENCE).await.unwrap().status, Status::Failed);
    assert_eq!(result_of(&client, &next).await, r#""five""#);
    let extended = exchanged.outcomes[2].lease.clone().unwrap();
    assert!(exchanged.outcomes[2].lease_expires_at.unwrap() > items[2].lease_expires_at);
    let last = completed(&WorkItem { lease: extended, ..items[2].clone() }, "three");
    assert_eq!(statuses(&client.exchange_work(&answering(3, vec![last])).await.unwrap()), [done]);
    assert_eq!(result_of(&client, &items[2]).await, r#""three""#);
}

#[tokio::test]
async fn an_exchange_with_answers_does_not_wait_and_takes_what_is_available() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client).await;
    let items = leased(&client, &["a", "b"]).await;
    // It would wait longer than the client does.
    let nothing = client.exchange_work(&answering(1, vec![completed(&items[0], "a")])).await.unwrap();
    assert_eq!((statuses(&nothing), nothing.items.len()), (vec![OutcomeStatus::Done], 0));
    let released = ReleaseWork { lease: items[1].lease.clone(), delay_ms: None };
    client.release_work(&released).await.unwrap();
    let beat = Heartbeat { lease: items[0].lease.clone(), extend_ms: 30_000, progress: None };
    let got = client.exchange_work(&answering(2, vec![WorkAnswer::Heartbeat(beat)])).await.unwrap();
    assert_eq!((statuses(&got), got.items.len()), (vec![OutcomeStatus::Cancel], 1));
    let without = ExchangeWork { max_items: 0, ..answering(3, vec![completed(&got.items[0], "b")]) };
    assert_eq!(statuses(&client.exchange_work(&without).await.unwrap()), [OutcomeStatus::Done]);
}

#[tokio::test]
async fn a_repeated_number_gets_the_same_outcomes_and_leases_and_another_request_is_refused() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client).await;
    let items = leased(&client, &["a", "b"]).await;
    let request = answering(1, vec![completed(&items[0], "a")]);
    let first = client.exchange_work(&request).await.unwrap();
    assert_eq!(client.exchange_work(&request).await.unwrap(), first);
    let poll = poll(2);
    call(&client, "d").await;
    let got = client.exchange_work(&poll).await.unwrap();
    assert!(!got.items.is_empty());
    let again = client.exchange_work(&poll).await.unwrap();
    assert_eq!(again, got, "the same leases");
    assert!(again.items.iter().all(|item| item.delivery == 1));
    let other = client.exchange_work(&answering(1, vec![completed(&items[1], "b")])).await.unwrap_err();
    assert_eq!((other.status(), other.code()), (Some(409), Some("conflict")));
    assert_eq!(client.instance(&items[1].instance, Duration::ZERO).await.unwrap().status, Status::Running);
    // Of another worker, the number is another one.
    let stranger = ExchangeWork { worker: "x".to_owned(), ..answering(1, vec![completed(&items[1], "b")]) };
    assert_eq!(statuses(&client.exchange_work(&stranger).await.unwrap()), [OutcomeStatus::Done]);
}

#[tokio::test]
async fn a_repeat_at_another_node_finds_that_its_answers_were_taken() {
    let ground = Ground::new().await;
    let one = Stand::on(settings(Authentication::None), &ground).await;
    let client = one.client();
    declare(&client).await;
    let items = leased(&client, &["a", "b", "c"]).await;
    let request = answering(1, vec![completed(&items[0], "a"), failed(&items[1])]);
    let first = client.exchange_work(&request).await.unwrap();
    assert_eq!(statuses(&first), [OutcomeStatus::Done; 2]);
    // It knows nothing of the exchange, as the next process after a crash.
    let two = Stand::on(settings(Authentication::None), &ground).await;
    let repeated = two.client().exchange_work(&request).await.unwrap();
    assert_eq!(statuses(&repeated), [OutcomeStatus::Done; 2]);
    let other = answering(2, vec![completed(&items[0], "another"), completed(&items[1], "no failure")]);
    let refused = two.client().exchange_work(&other).await.unwrap();
    assert_eq!(statuses(&refused), [OutcomeStatus::Refused; 2]);
    for outcome in &refused.outcomes {
        assert_eq!(outcome.problem.as_ref().unwrap().code, "lease-lost");
    }
    assert_eq!(result_of(&client, &items[0]).await, r#""a""#);
}

#[tokio::test]
async fn stale_and_foreign_leases_are_refused_one_by_one() {
    let stand = Stand::with_keys().await;
    let operator = stand.client_with(Role::Operator, "shop", "eu").await.scope("shop", "eu");
    let worker = stand.client_with(Role::Worker, "shop", "eu").await.scope("shop", "eu");
    let stranger = stand.client_with(Role::Worker, "shop", "us").await.scope("shop", "us");
    declare(&operator).await;
    assert_eq!(operator.exchange_work(&poll(1)).await.unwrap_err().status(), Some(403));
    for key in ["a", "b"] {
        call(&operator, key).await;
    }
    let mut items = Vec::new();
    for number in 1.. {
        items.extend(worker.exchange_work(&poll(number)).await.unwrap().items);
        if items.len() == 2 {
            break;
        }
    }
    let stolen = answering(100, vec![completed(&items[0], "stolen"), failed(&items[1])]);
    let refused = stranger.exchange_work(&stolen).await.unwrap();
    assert_eq!(statuses(&refused), [OutcomeStatus::Refused; 2]);
    assert!(refused.items.is_empty());
    let forged = WorkItem { lease: format!("{}x", items[1].lease), ..items[1].clone() };
    let mixed = answering(100, vec![completed(&items[0], "mine"), completed(&forged, "forged")]);
    let mixed = worker.exchange_work(&mixed).await.unwrap();
    assert_eq!(statuses(&mixed), [OutcomeStatus::Done, OutcomeStatus::Refused]);
    let problem = mixed.outcomes[1].problem.clone().unwrap();
    assert_eq!((problem.status, problem.code.as_str()), (409, "lease-lost"));
    assert_eq!(result_of(&operator, &items[0]).await, r#""mine""#);
    // The same worker, number and request of another tenant is another exchange.
    assert_eq!(stranger.exchange_work(&stolen).await.unwrap(), refused);
}

#[tokio::test]
async fn what_is_out_of_range_is_refused_before_anything_is_done() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client).await;
    let items = leased(&client, &["a"]).await;
    let with = |change: fn(&mut ExchangeWork)| {
        let mut request = answering(1, vec![completed(&items[0], "a")]);
        change(&mut request);
        request
    };
    for (request, field) in [
        (with(|r| r.worker = "a/b".to_owned()), "worker"),
        (with(|r| r.number = 1 << 53), "number"),
        (with(|r| r.answers = vec![r.answers[0].clone(); 1_001]), "answers"),
        (with(|r| r.functions.clear()), "functions"),
        (with(|r| r.functions = vec!["f".to_owned(); 33]), "functions"),
        (with(|r| r.max_items = 101), "max_items"),
        (with(|r| r.lease_ms = 9), "lease_ms"),
        (with(|r| (r.wait_ms, r.answers) = (60_001, Vec::new())), "wait_ms"),
    ] {
        let refused = client.exchange_work(&request).await.unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(400), Some("invalid-request")), "{field}");
        assert!(refused.to_string().contains(field), "{field}: {refused}");
    }
    // What is wrong with one answer is its outcome, and the others are stored.
    let too_long = Heartbeat { lease: items[0].lease.clone(), extend_ms: 1, progress: None };
    let request = with(|_| {});
    let answers = [vec![WorkAnswer::Heartbeat(too_long)], request.answers.clone()].concat();
    let exchanged = client.exchange_work(&ExchangeWork { answers, ..request }).await.unwrap();
    assert_eq!(statuses(&exchanged), [OutcomeStatus::Refused, OutcomeStatus::Done]);
    assert_eq!(exchanged.outcomes[0].problem.as_ref().unwrap().errors[0].field, "extend_ms");
    assert_eq!(result_of(&client, &items[0]).await, r#""a""#);
}

#[tokio::test]
async fn a_body_that_is_none_or_too_large_is_refused_as_a_whole() {
    let stand = Stand::open().await;
    let http = crate::stand::http();
    let send = async |body: String| {
        let call = http.post(stand.url("/v1/work/exchange")).header("content-type", "application/json");
        let answer = call.body(body).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.unwrap())
    };
    let large = json!({ "worker": "w", "number": 1, "answers": [{ "complete": { "lease": "x", "result": "x".repeat(2_000_000) } }] });
    for (body, status) in [
        (large.to_string(), 413),
        (json!({ "worker": "w" }).to_string(), 400),
        (json!({ "worker": "w", "number": -1 }).to_string(), 400),
        (json!({ "worker": "w", "number": 1, "answers": [{}] }).to_string(), 400),
        (json!({ "worker": "w", "number": 1, "answers": [{ "win": { "lease": "x" } }] }).to_string(), 400),
        (json!({ "worker": "w", "number": 1, "answers": [{ "release": ["x"] }] }).to_string(), 400),
        (json!({ "worker": "w", "number": 1, "answer": [] }).to_string(), 400),
    ] {
        let (found, problem) = send(body).await;
        assert_eq!(found, status, "{problem}");
    }
    let nothing = send(json!({ "worker": "w", "number": 1 }).to_string()).await;
    assert_eq!(nothing, (200, json!({ "outcomes": [], "items": [] })));
}

#[tokio::test]
async fn a_poll_whose_caller_has_gone_leases_nothing_and_its_repeat_gets_the_call() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client).await;
    let request = poll(7);
    let gone = tokio::spawn({
        let (client, request) = (client.clone(), request.clone());
        async move { client.exchange_work(&request).await }
    });
    while client.workers(None).await.unwrap().workers.is_empty() {}
    gone.abort();
    assert!(gone.await.is_err());
    call(&client, "a").await;
    let item = client.exchange_work(&request).await.unwrap().items.remove(0);
    assert_eq!((item.delivery, item.input.text()), (1, r#""a""#));
}

#[tokio::test]
async fn a_pool_is_served_and_throttling_gives_the_call_back() {
    let stand = Stand::open().await;
    let client = stand.client();
    let announce = FetchWork::of_pool("w", "Edge", ["Paint"]);
    let first = ExchangeWork::new(1, announce.clone());
    assert!(client.exchange_work(&first).await.unwrap().items.is_empty());
    let request = Invoke { pool: Some("Edge".to_owned()), ..Invoke::new("Paint", Json::null()) };
    client.invoke(&request, Duration::ZERO).await.unwrap();
    let wait_ms = u64::try_from(PATIENCE.as_millis()).unwrap();
    let waiting = ExchangeWork::new(2, FetchWork { wait_ms, ..announce });
    let item = client.exchange_work(&waiting).await.unwrap().items.remove(0);
    let WorkAnswer::Fail(mut throttled) = failed(&item) else { unreachable!() };
    throttled.code = Some("throttled".to_owned());
    let answer = ExchangeWork { max_items: 0, answers: vec![WorkAnswer::Fail(throttled)], ..waiting.clone() };
    let answer = ExchangeWork { number: 3, ..answer };
    assert_eq!(statuses(&client.exchange_work(&answer).await.unwrap()), [OutcomeStatus::Done]);
    let pool = client.pool("Edge", None).await.unwrap();
    assert!(pool.pool.throttled_until.is_some());
    assert_eq!(client.instance(&item.instance, Duration::ZERO).await.unwrap().status, Status::Running);
}

#[tokio::test]
async fn http_2_carries_many_exchanges_over_one_connection() {
    let stand = Stand::open().await;
    let client = stand.client();
    declare(&client).await;
    let stream = tokio::net::TcpStream::connect(stand.server.address()).await.unwrap();
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut answers = Vec::new();
    for number in 0..8 {
        let request =
            http::Request::post(stand.url("/v1/work/exchange")).header("content-type", "application/json");
        let (answer, mut body) = sender.send_request(request.body(()).unwrap(), false).unwrap();
        let poll = serde_json::to_vec(&ExchangeWork { max_items: 1, ..poll(number) }).unwrap();
        body.send_data(Bytes::from(poll), true).unwrap();
        answers.push(answer);
    }
    for key in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        call(&client, key).await;
    }
    for answer in answers {
        let mut body = answer.await.unwrap().into_body();
        let mut bytes = Vec::new();
        while let Some(data) = body.data().await {
            bytes.extend_from_slice(&data.unwrap());
        }
        let exchanged: ExchangedWork = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(exchanged.items.len(), 1);
    }
}
