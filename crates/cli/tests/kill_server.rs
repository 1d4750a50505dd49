//! A server that is killed again and again under load: what it has accepted it does, once, and it never takes back a word.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy knows only the tests themselves"
)]

mod process;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use process::Process;
use segno_api::client::Expected;
use segno_api::instance::{OnConflict, StartInstance, Status};
use segno_api::{Client, Json};
use tempfile::TempDir;

/// Rounds of the normal run; `SEGNO_KILL_ROUNDS` says otherwise.
const ROUNDS: u64 = 5;

/// Clients at once.
const CLIENTS: u64 = 8;

/// Accepted starts of a round after which the server is killed; a multiple of it, so that kills fall on different moments.
const STARTS_BEFORE_KILL: u64 = 25;

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

fn start_of(id: &str) -> StartInstance {
    StartInstance {
        orchestration: "greet".to_owned(),
        version: None,
        id: Some(id.to_owned()),
        input: Json::from_text(format!(r#"{{"name":"{id}"}}"#)).unwrap(),
        labels: Default::default(),
        start_at: None,
        on_conflict: OnConflict::Reject,
    }
}

#[derive(Default)]
struct Book {
    /// Ids whose start was acknowledged.
    accepted: Mutex<Vec<String>>,
    count: AtomicU64,
    stopped: AtomicBool,
}

/// Starts instances until the server is gone. A start without an answer is repeated by the next round's checks only if it was
/// accepted; what is unknown may be there or not.
async fn start_until_killed(client: Client, book: Arc<Book>, round: u64, number: u64) {
    for sequence in 0.. {
        let id = format!("r{round}-c{number}-{sequence}");
        match client.start(&start_of(&id), None, Duration::ZERO).await {
            Ok(started) => {
                assert!(started.created, "{id}");
                book.accepted.lock().unwrap().push(id);
                book.count.fetch_add(1, Ordering::SeqCst);
            }
            Err(error) if error.status().is_none() => return,
            Err(error) => panic!("{id}: {error}"),
        }
        if book.stopped.load(Ordering::SeqCst) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_is_done_once_however_often_the_server_is_killed() {
    let rounds = std::env::var("SEGNO_KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let directory = TempDir::new().unwrap();
    let book = Arc::new(Book::default());
    for round in 0..rounds {
        let mut server = Process::dev(directory.path());
        let mut clients = tokio::task::JoinSet::new();
        let before = book.count.load(Ordering::SeqCst);
        for number in 0..CLIENTS {
            let client = Client::new(&server.address).unwrap();
            clients.spawn(start_until_killed(client, book.clone(), round, number));
        }
        let enough = before + STARTS_BEFORE_KILL * (1 + round % 4);
        while book.count.load(Ordering::SeqCst) < enough {
            tokio::task::yield_now().await;
        }
        server.kill();
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
    }
    let server = Process::dev(directory.path());
    let client = Client::new(&server.address).unwrap();
    let accepted = book.accepted.lock().unwrap().clone();
    assert!(accepted.len() as u64 >= rounds * STARTS_BEFORE_KILL);
    for id in &accepted {
        let again = client.start(&start_of(id), None, Duration::ZERO).await.unwrap_err();
        assert_eq!(again.code(), Some("instance-exists"), "{id}");
        let ended = client.instance(id, PATIENCE).await.unwrap();
        assert_eq!(ended.status, Status::Completed, "{id}");
        assert_eq!(ended.result.unwrap().text(), format!("\"Hello, {id}!\""));
        assert_eq!(ended.execution, 1, "{id}");
        let history = client.history(id, None, 0).await.unwrap();
        let ends = history.events.iter().filter(|event| event.kind == "OrchestrationCompleted").count();
        assert_eq!(ends, 1, "{id}");
    }
}

/// Posts to a hook until the server is gone.
async fn post_until_killed(client: Client, book: Arc<Book>, round: u64, number: u64) {
    for sequence in 0.. {
        let delivery = format!("r{round}-c{number}-{sequence}");
        let headers = [("x-delivery".to_owned(), delivery.clone())];
        match client.send_hook("killed", &headers, format!("\"{delivery}\"").into_bytes()).await {
            Ok(received) => {
                assert_eq!(received.outcome, "routed", "{delivery}");
                book.accepted.lock().unwrap().push(format!("{} {delivery}", received.id));
                book.count.fetch_add(1, Ordering::SeqCst);
            }
            Err(error) if error.status().is_none() => return,
            Err(error) => panic!("{delivery}: {error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hook_has_acknowledged_is_kept_and_called_once_however_often_the_server_is_killed() {
    let rounds = std::env::var("SEGNO_KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let directory = TempDir::new().unwrap();
    let book = Arc::new(Book::default());
    let declaration =
        r#"{"function":"echo","verification":"none","dedup":{"header":"x-delivery"}}"#.to_owned();
    for round in 0..rounds {
        let mut server = Process::dev(directory.path());
        let client = Client::new(&server.address).unwrap();
        if round == 0 {
            let declaration = Json::from_text(declaration.clone()).unwrap();
            client.put_hook("killed", &declaration, Expected::Absent).await.unwrap();
        }
        let mut clients = tokio::task::JoinSet::new();
        let before = book.count.load(Ordering::SeqCst);
        for number in 0..CLIENTS {
            clients.spawn(post_until_killed(client.clone(), book.clone(), round, number));
        }
        let enough = before + STARTS_BEFORE_KILL * (1 + round % 4);
        while book.count.load(Ordering::SeqCst) < enough {
            tokio::task::yield_now().await;
        }
        server.kill();
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
    }
    let server = Process::dev(directory.path());
    let client = Client::new(&server.address).unwrap();
    let accepted = book.accepted.lock().unwrap().clone();
    assert!(accepted.len() as u64 >= rounds * STARTS_BEFORE_KILL);
    for line in &accepted {
        let (id, delivery) = line.split_once(' ').unwrap();
        let headers = [("x-delivery".to_owned(), delivery.to_owned())];
        let again = client.send_hook("killed", &headers, b"1".to_vec()).await.unwrap();
        assert_eq!((again.id.as_str(), again.outcome.as_str()), (id, "deduplicated"));
        let action = loop {
            let detail = client.hook_payload("killed", id).await.unwrap();
            assert_eq!(detail.actions.len(), 1, "{delivery}");
            if detail.actions[0].status == "completed" {
                break detail.actions[0].clone();
            }
        };
        assert_eq!(action.result.unwrap().text(), format!("\"{delivery}\""));
        let history = client.history(&action.instance.unwrap(), None, 0).await.unwrap();
        let calls = history.events.iter().filter(|event| event.kind == "ActivityScheduled").count();
        assert_eq!(calls, 1, "{delivery}");
    }
}
