//! Requests with large bodies of one tenant, and the small ones of another that come meanwhile. Not part of the gate;
//! with `SEGNO_TEST_UNGATED=1`, as it is when work on much data does not take turns:
//!
//! ```text
//! cargo nextest run -p segno-server small_writes_take --run-ignored all --no-capture
//! ```

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno::poll_gate::MAX_FREE_BYTES;
use segno_server::settings::Authentication;
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::stand::{Stand, greet, settings};

/// Connections of the tenant with large bodies.
const LARGE: usize = 100;
/// Small requests of the other tenant.
const SMALL: usize = 20;

/// The body of a request that takes long to read.
fn large_body(path: &str) -> String {
    let input = "\\u0041".repeat(150_000);
    match path {
        "/v1/instances" => format!(r#"{{"orchestration":"greet","input":{{"name":"{input}"}}}}"#),
        "/v1/invocations" => format!(r#"{{"function":"echo","input":"{input}"}}"#),
        "/v1/actions" => {
            format!(r#"{{"tool_name":"echo","input":"{input}","next_tick_at":"2999-01-01T00:00:00Z"}}"#)
        }
        _ => format!(r#"{{"input":"{input}"}}"#),
    }
}

/// Large requests that are sent until it is told to stop.
#[derive(Clone)]
struct Flood {
    url: String,
    body: String,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    failed: Arc<AtomicUsize>,
}

impl Flood {
    /// Sends one after the other.
    async fn send(self) {
        let http = reqwest::Client::new();
        while !self.stop.load(Ordering::Relaxed) {
            let request = http.post(&self.url).header("content-type", "application/json");
            let answer = request.body(self.body.clone()).send().await;
            let is_done = answer.is_ok_and(|answer| answer.status().is_success());
            let count = if is_done { &self.done } else { &self.failed };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends over many connections, in a runtime of its own, as callers have.
    fn begin(&self) -> thread::JoinHandle<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let (runtime, flood) = (runtime.unwrap(), self.clone());
        thread::spawn(move || {
            runtime.block_on(async move {
                let mut senders = JoinSet::new();
                (0..LARGE).for_each(|_| drop(senders.spawn(flood.clone().send())));
                senders.join_all().await;
            });
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_with_large_bodies_take_turns_and_small_ones_pass() {
    let stand = Stand::open().await;
    let (release, released) = mpsc::channel::<()>();
    let (begin, begun) = oneshot::channel();
    // A poll that goes on and on has the one permit of two threads.
    let holding = tokio::spawn(segno::poll_gate::gated(|| true, async move {
        begin.send(()).unwrap();
        released.recv().unwrap();
    }));
    begun.await.unwrap();
    let client = stand.client().scope("shop", "large");
    let large = tokio::spawn(async move {
        let input = format!(r#"{{"name":"{}"}}"#, "x".repeat(MAX_FREE_BYTES));
        client.start(&greet("large", &input), None, Duration::ZERO).await
    });
    let client = stand.client().scope("shop", "small");
    for number in 0..50 {
        let start = greet(&format!("s{number}"), r#"{"name":"Ada"}"#);
        assert!(client.start(&start, None, Duration::ZERO).await.unwrap().created);
    }
    assert!(!large.is_finished(), "it was not its turn");
    release.send(()).unwrap();
    holding.await.unwrap();
    assert!(large.await.unwrap().unwrap().created);
}

/// Gives the gate of this process so many permits that it lets everything through: it has them by the threads of
/// the runtime that uses it first.
fn open_the_gate() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2 * LARGE).build().unwrap();
    runtime.block_on(segno::poll_gate::gated(|| true, async {}));
    runtime.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement; run it by name"]
async fn how_long_small_writes_take_beside_large_ones() {
    if std::env::var_os("SEGNO_TEST_UNGATED").is_some() {
        tokio::task::spawn_blocking(open_the_gate).await.unwrap();
    }
    for path in ["/v1/instances", "/v1/invocations", "/v1/actions", "/v1/hooks/default/h"] {
        let stand = Stand::with(settings(Authentication::None)).await;
        let hook = json!({ "store_only": true, "verification": "none" });
        let url = stand.url("/v1/hooks/default/h?tenant=large");
        reqwest::Client::new().put(url).header("if-none-match", "*").json(&hook).send().await.unwrap();
        let flood = Flood {
            url: stand.url(&format!("{path}?tenant=large")),
            body: large_body(path),
            stop: Arc::default(),
            done: Arc::default(),
            failed: Arc::default(),
        };
        let flood_begun_ms = SystemClock.now_ms();
        let sending = flood.begin();
        let client = stand.client().scope("shop", "small");
        let mut times_ms = Vec::new();
        for number in 0..SMALL {
            segno::clock::sleep(&SystemClock, Duration::from_millis(200)).await;
            let begun_ms = SystemClock.now_ms();
            let start = greet(&format!("s{number}"), r#"{"name":"Ada"}"#);
            // One that times out counts as long as it took.
            let _ = client.start(&start, None, Duration::ZERO).await;
            times_ms.push(SystemClock.now_ms() - begun_ms);
        }
        flood.stop.store(true, Ordering::Relaxed);
        times_ms.sort_unstable();
        tokio::task::spawn_blocking(move || sending.join().unwrap()).await.unwrap();
        let took_ms = SystemClock.now_ms() - flood_begun_ms;
        println!(
            "{path}: small writes took {} ms, {} ms, {} ms (median, 90 %, most); {} large ones in {took_ms} ms, {} failed",
            times_ms[SMALL / 2],
            times_ms[SMALL * 9 / 10],
            times_ms[SMALL - 1],
            flood.done.load(Ordering::Relaxed),
            flood.failed.load(Ordering::Relaxed)
        );
    }
}
