//! How many calls one worker process answers over HTTP. Not part of the gate:
//!
//! ```text
//! cargo nextest run --release -p segno-server worker_over_http --run-ignored all --no-capture
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use segno::clock::SystemClock;
use segno_actions::functions::{INVOKE, Invocation};
use segno_api::Json;
use segno_api::work::{CompleteWork, FetchWork};
use segno_server::settings::Authentication;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::stand::{Ground, Stand, settings};

/// Calls that wait when the worker begins.
const CALLS: usize = 20_000;
/// Answers under way at once.
const ANSWERS: usize = 32;
/// Starts under way at once, while the queue is being filled.
const STARTS: usize = 256;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement; run it by name, with --release"]
async fn a_worker_over_http_answers_thousands_of_calls_a_second() {
    let mut settings = settings(Authentication::Keys);
    settings
        .functions
        .insert("work".parse().unwrap(), serde_json::from_value(json!({ "executor": "remote" })).unwrap());
    let ground = Ground::new().await;
    let stand = Stand::on(settings, &ground).await;
    fill(&stand).await;
    while ground.store.get_queue_depths().await.unwrap().worker_queue < CALLS as u64 {
        segno::clock::sleep(&*SystemClock::shared(), Duration::from_millis(50)).await;
    }
    let key = stand.key(segno_api::key::Role::Worker, "default", "default").await;
    let client = segno_api::Client::new(&stand.url("")).unwrap().retry_for(Duration::ZERO).key(key);
    let (places, answered) = (Arc::new(Semaphore::new(ANSWERS)), Arc::new(AtomicUsize::new(0)));
    let clock = SystemClock::shared();
    let begun_ms = clock.now_ms();
    while answered.load(Ordering::Relaxed) < CALLS {
        let request = FetchWork { max_items: 100, wait_ms: 100, ..FetchWork::new("load", ["work"]) };
        for item in client.fetch_work(&request).await.unwrap().items {
            let place = places.clone().acquire_owned().await.unwrap();
            let (client, answered) = (client.clone(), answered.clone());
            tokio::spawn(async move {
                let answer = CompleteWork { lease: item.lease, result: Json::null() };
                client.complete_work(&answer).await.unwrap();
                answered.fetch_add(1, Ordering::Relaxed);
                drop(place);
            });
        }
    }
    let took_ms = clock.now_ms() - begun_ms;
    println!("{CALLS} calls in {took_ms} ms: {} a second", CALLS as u64 * 1_000 / took_ms.max(1));
}

/// Calls the function, without HTTP.
async fn fill(stand: &Stand) {
    let invocation: Invocation = serde_json::from_value(json!({
        "namespace": "default", "tenant": "default", "function": "work", "input": { "n": 1 },
        "route": { "remote": {} }, "retry": { "max": 1, "first": 0, "factor": 1.0, "cap": 0, "jitter": 0.0 },
    }))
    .unwrap();
    let places = Arc::new(Semaphore::new(STARTS));
    for number in 0..CALLS {
        let place = places.clone().acquire_owned().await.unwrap();
        let start = stand
            .server
            .client()
            .start(INVOKE, invocation.clone())
            .id(format!("default/default/load-{number}"));
        tokio::spawn(async move {
            start.await.unwrap();
            drop(place);
        });
    }
    let _all = places.acquire_many(u32::try_from(STARTS).unwrap()).await.unwrap();
}
