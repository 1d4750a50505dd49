//! A server that is killed again and again under load: what it has accepted it does, once, and it never takes back a word.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::process::Process;
use segno_api::client::Expected;
use segno_api::instance::{OnConflict, StartInstance, Status};
use segno_api::invocation::Invoke;
use segno_api::work::{
    CompleteWork, ExchangeWork, FetchWork, Heartbeat, HeartbeatAction, OutcomeStatus, WorkAnswer, WorkItem,
};
use segno_api::{Client, Json};
use tempfile::TempDir;

/// Rounds of the normal run; `SEGNO_KILL_ROUNDS` says otherwise.
const ROUNDS: u64 = 3;

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

fn rounds() -> u64 {
    std::env::var("SEGNO_KILL_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap())
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

/// Lets clients work on a server until it is killed, round after round. Returns what was accepted.
async fn kill_again_and_again<F: Future<Output = ()> + Send + 'static>(
    directory: &Path,
    work: impl Fn(Client, Arc<Book>, u64, u64) -> F,
) -> Vec<String> {
    let rounds = rounds();
    let book = Arc::new(Book::default());
    for round in 0..rounds {
        let mut server = Process::dev(directory);
        let mut clients = tokio::task::JoinSet::new();
        let before = book.count.load(Ordering::SeqCst);
        for number in 0..CLIENTS {
            let client = Client::new(&server.address).unwrap().retry_for(Duration::ZERO);
            clients.spawn(work(client, book.clone(), round, number));
        }
        let enough = before + STARTS_BEFORE_KILL * (1 + round % 4);
        while book.count.load(Ordering::SeqCst) < enough {
            crate::process::look_again().await;
        }
        server.kill();
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
    }
    let accepted = book.accepted.lock().unwrap().clone();
    assert!(accepted.len() as u64 >= rounds * STARTS_BEFORE_KILL);
    accepted
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_accepted_is_done_once_however_often_the_server_is_killed() {
    let directory = TempDir::new().unwrap();
    let accepted = kill_again_and_again(directory.path(), start_until_killed).await;
    let server = Process::dev(directory.path());
    let client = Client::new(&server.address).unwrap();
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

/// Starts instances with an idempotency key each until the server is gone; `unanswered` gets the one that it was cut off in.
async fn start_with_keys(
    client: Client,
    book: Arc<Book>,
    (round, number): (u64, u64),
    unanswered: Arc<Mutex<Vec<String>>>,
) {
    for sequence in 0.. {
        let id = format!("r{round}-c{number}-{sequence}");
        match client.start(&start_of(&id), Some(&id), Duration::ZERO).await {
            Ok(started) => {
                assert!(started.created, "{id}");
                book.count.fetch_add(1, Ordering::SeqCst);
            }
            Err(error) if error.status().is_none() => {
                unanswered.lock().unwrap().push(id);
                return;
            }
            Err(error) => panic!("{id}: {error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_start_gets_its_first_answer_as_soon_as_the_server_is_back() {
    let directory = TempDir::new().unwrap();
    let book = Arc::new(Book::default());
    let unanswered = Arc::new(Mutex::new(Vec::<String>::new()));
    for round in 0..rounds() {
        let mut server = Process::dev(directory.path());
        // Whether the first try was done cannot be known. The repeat is a start that succeeds in either case, and at once.
        let client = Client::new(&server.address).unwrap().retry_for(Duration::ZERO);
        let cut_off = std::mem::take(&mut *unanswered.lock().unwrap());
        for id in cut_off {
            let again = client.start(&start_of(&id), Some(&id), Duration::ZERO).await;
            assert!(again.unwrap_or_else(|error| panic!("{id}: {error}")).created, "{id}");
            assert_eq!(client.instance(&id, PATIENCE).await.unwrap().status, Status::Completed, "{id}");
        }
        let mut clients = tokio::task::JoinSet::new();
        let enough = book.count.load(Ordering::SeqCst) + STARTS_BEFORE_KILL * (1 + round % 4);
        for number in 0..CLIENTS {
            let client = Client::new(&server.address).unwrap().retry_for(Duration::ZERO);
            clients.spawn(start_with_keys(client, book.clone(), (round, number), unanswered.clone()));
        }
        while book.count.load(Ordering::SeqCst) < enough {
            crate::process::look_again().await;
        }
        server.kill();
        while let Some(ended) = clients.join_next().await {
            ended.unwrap();
        }
        assert_eq!(unanswered.lock().unwrap().len() as u64, CLIENTS);
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
    let directory = TempDir::new().unwrap();
    let declaration = r#"{"function":"echo","verification":"none","dedup":{"header":"x-delivery"}}"#;
    let declaration = Json::from_text(declaration.to_owned()).unwrap();
    let server = Process::dev(directory.path());
    Client::new(&server.address).unwrap().put_hook("killed", &declaration, Expected::Absent).await.unwrap();
    drop(server);
    let accepted = kill_again_and_again(directory.path(), post_until_killed).await;
    let server = Process::dev(directory.path());
    let client = Client::new(&server.address).unwrap();
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

/// A remote function.
const STAMP: &str = "stamp";

/// Workers at once.
const WORKERS: u64 = 4;

/// What workers have answered for a call, by its instance. Each answer is different from all others.
#[derive(Default)]
struct Answers {
    /// The server took it.
    taken: Mutex<HashMap<String, String>>,
    /// The server died before it said so.
    unknown: Mutex<HashMap<String, Vec<String>>>,
    count: AtomicU64,
}

/// Calls the function until the server is gone.
async fn call_until_killed(client: Client, book: Arc<Book>, round: u64, number: u64) {
    for sequence in 0.. {
        let key = format!("r{round}-c{number}-{sequence}");
        let call = Invoke { key: Some(key.clone()), ..Invoke::new(STAMP, Json::null()) };
        match client.invoke(&call, Duration::ZERO).await {
            Ok(started) => {
                book.accepted.lock().unwrap().push(started.id);
                book.count.fetch_add(1, Ordering::SeqCst);
            }
            Err(error) if error.status().is_none() => return,
            Err(error) => panic!("{key}: {error}"),
        }
    }
}

/// Works until the server is gone or there is no more to do. Begins with what was held when the last server died, and gives
/// back what is held now.
async fn work_until_killed(
    client: Client,
    book: Arc<Book>,
    answers: Arc<Answers>,
    mut held: Vec<WorkItem>,
) -> Vec<WorkItem> {
    let request =
        FetchWork { max_items: 4, wait_ms: 100, lease_ms: 5_000, ..FetchWork::new("worker", [STAMP]) };
    while !book.stopped.load(Ordering::SeqCst) {
        while let Some(item) = held.pop() {
            let stamp = format!("\"{}\"", answers.count.fetch_add(1, Ordering::SeqCst));
            let result = Json::from_text(stamp.clone()).unwrap();
            match client.complete_work(&CompleteWork { lease: item.lease.clone(), result }).await {
                Ok(()) => {
                    let before = answers.taken.lock().unwrap().insert(item.instance.clone(), stamp);
                    assert_eq!(before, None, "{} was answered twice", item.instance);
                }
                Err(error) if error.status().is_none() => {
                    answers.unknown.lock().unwrap().entry(item.instance.clone()).or_default().push(stamp);
                    held.push(item);
                    return held;
                }
                // An answer that the last server took and did not confirm, or a lease that has
                // ended meanwhile.
                Err(error) => assert_eq!(error.code(), Some("lease-lost"), "{error}"),
            }
        }
        match client.fetch_work(&request).await {
            Ok(fetched) => held = fetched.items,
            Err(error) if error.status().is_none() => return held,
            Err(error) => panic!("{error}"),
        }
    }
    held
}

/// A request for an exchange without an answer yet, and what it answers: instances and stamps.
struct Unanswered {
    request: ExchangeWork,
    stamps: Vec<(String, String)>,
}

/// As [`work_until_killed`], by exchanges. Begins with the request that the last server did not
/// answer, repeated as it was.
async fn exchange_until_killed(
    client: Client,
    book: Arc<Book>,
    answers: Arc<Answers>,
    mut unanswered: Option<Unanswered>,
) -> Option<Unanswered> {
    let worker = format!("worker-{}", answers.count.fetch_add(1, Ordering::SeqCst));
    let fetch =
        || FetchWork { max_items: 4, wait_ms: 100, lease_ms: 5_000, ..FetchWork::new(&worker, [STAMP]) };
    let mut items = Vec::<WorkItem>::new();
    while !book.stopped.load(Ordering::SeqCst) || unanswered.is_some() || !items.is_empty() {
        let Unanswered { request, stamps } = unanswered.take().unwrap_or_else(|| {
            let number = answers.count.fetch_add(1, Ordering::SeqCst);
            let mut request = ExchangeWork::new(number, fetch());
            let mut stamps = Vec::new();
            for item in items.drain(..) {
                let stamp = format!("\"{}\"", answers.count.fetch_add(1, Ordering::SeqCst));
                let result = Json::from_text(stamp.clone()).unwrap();
                request.answers.push(WorkAnswer::Complete(CompleteWork { lease: item.lease, result }));
                stamps.push((item.instance, stamp));
            }
            Unanswered { request, stamps }
        });
        let exchanged = match client.exchange_work(&request).await {
            Ok(exchanged) => exchanged,
            Err(error) if error.status().is_none() => return Some(Unanswered { request, stamps }),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(exchanged.outcomes.len(), stamps.len());
        for ((instance, stamp), outcome) in stamps.into_iter().zip(exchanged.outcomes) {
            match outcome.status {
                OutcomeStatus::Done => {
                    let before = answers.taken.lock().unwrap().insert(instance.clone(), stamp);
                    assert_eq!(before, None, "{instance} was answered twice");
                }
                // The lease ended before the server was back, and another worker answers.
                _ => assert_eq!(outcome.problem.unwrap().code.as_str(), "lease-lost"),
            }
        }
        items = exchanged.items;
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_workers_answered_stands_however_often_the_server_is_killed() {
    answer_again_and_again(work_until_killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_that_a_killed_server_did_not_answer_is_repeated_without_a_loss_or_a_double() {
    answer_again_and_again(exchange_until_killed).await;
}

/// Lets workers answer calls of a server that is killed again and again; `H` is what a worker
/// keeps from one server to the next.
async fn answer_again_and_again<H, F>(work: impl Fn(Client, Arc<Book>, Arc<Answers>, H) -> F)
where
    H: Default + Send + 'static,
    F: Future<Output = H> + Send + 'static,
{
    let rounds = rounds();
    let directory = TempDir::new().unwrap();
    let (book, answers) = (Arc::new(Book::default()), Arc::new(Answers::default()));
    let mut held = Vec::<H>::new();
    for round in 0..rounds {
        let mut server = Process::dev(directory.path());
        let client = Client::new(&server.address).unwrap().retry_for(Duration::ZERO);
        if round == 0 {
            let remote = Json::from_text(r#"{"executor":"remote"}"#.to_owned()).unwrap();
            client.put_function(STAMP, &remote, Expected::Absent).await.unwrap();
        }
        let (mut callers, mut workers) = (tokio::task::JoinSet::new(), tokio::task::JoinSet::new());
        let before = book.count.load(Ordering::SeqCst);
        for number in 0..CLIENTS {
            callers.spawn(call_until_killed(client.clone(), book.clone(), round, number));
        }
        for _ in 0..WORKERS {
            let held = held.pop().unwrap_or_default();
            workers.spawn(work(client.clone(), book.clone(), answers.clone(), held));
        }
        let enough = before + STARTS_BEFORE_KILL * (1 + round % 4);
        while book.count.load(Ordering::SeqCst) < enough {
            crate::process::look_again().await;
        }
        server.kill();
        callers.join_all().await;
        held = workers.join_all().await;
    }
    let server = Process::dev(directory.path());
    let client = Client::new(&server.address).unwrap();
    let mut workers = tokio::task::JoinSet::new();
    for held in held {
        workers.spawn(work(client.clone(), book.clone(), answers.clone(), held));
    }
    let accepted = book.accepted.lock().unwrap().clone();
    assert!(accepted.len() as u64 >= rounds * STARTS_BEFORE_KILL);
    for id in &accepted {
        let ended = client.instance(id, PATIENCE).await.unwrap();
        assert_eq!((ended.status, ended.execution), (Status::Completed, 1), "{id}");
    }
    book.stopped.store(true, Ordering::SeqCst);
    workers.join_all().await;
    for id in &accepted {
        check_answer(&client, &answers, id).await;
    }
}

/// A call ended once, with what a worker has answered.
async fn check_answer(client: &Client, answers: &Answers, id: &str) {
    let result = client.instance(id, PATIENCE).await.unwrap().result.unwrap().text().to_owned();
    let taken = answers.taken.lock().unwrap().get(id).cloned();
    let unknown = answers.unknown.lock().unwrap().get(id).cloned().unwrap_or_default();
    match taken {
        Some(taken) => assert_eq!(result, taken, "{id}"),
        None => assert!(unknown.contains(&result), "{id} has {result}, which nobody answered"),
    }
    let history = client.history(id, None, 0).await.unwrap();
    let ends = history.events.iter().filter(|event| event.kind == "ActivityCompleted").count();
    assert_eq!(ends, 1, "{id}");
}

/// A server on a directory with a call of the remote function, which a worker has leased for so
/// long.
async fn leased(directory: &Path, lease_ms: u64) -> (Process, WorkItem) {
    let server = Process::dev(directory);
    let client = Client::new(&server.address).unwrap();
    let remote = Json::from_text(r#"{"executor":"remote"}"#.to_owned()).unwrap();
    client.put_function(STAMP, &remote, Expected::Absent).await.unwrap();
    let waiting = tokio::spawn({
        let client = client.clone();
        let wait_ms = u64::try_from(PATIENCE.as_millis()).unwrap();
        async move {
            client
                .fetch_work(&FetchWork { wait_ms, lease_ms, ..FetchWork::new("first", [STAMP]) })
                .await
                .unwrap()
        }
    });
    client.invoke(&Invoke::new(STAMP, Json::null()), Duration::ZERO).await.unwrap();
    let item = waiting.await.unwrap().items.remove(0);
    assert_eq!(item.delivery, 1);
    (server, item)
}

/// Ends a server in one of the ways in which servers end.
fn end(mut server: Process, signal: &str) {
    server.signal(signal);
    server.child.wait().unwrap();
}

#[tokio::test]
async fn a_lease_outlives_the_server_that_gave_it() {
    for signal in ["KILL", "TERM"] {
        let directory = TempDir::new().unwrap();
        let (server, item) = leased(directory.path(), 600_000).await;
        end(server, signal);
        let server = Process::dev(directory.path());
        let client = Client::new(&server.address).unwrap();
        let others = client.fetch_work(&FetchWork { wait_ms: 0, ..FetchWork::new("second", [STAMP]) }).await;
        assert!(others.unwrap().items.is_empty(), "{signal}: the call is with its worker");
        let beat = Heartbeat { lease: item.lease, extend_ms: 600_000, progress: None };
        let answer = client.heartbeat_work(&beat).await.unwrap();
        assert_eq!(answer.action, HeartbeatAction::Continue, "{signal}");
        end(server, signal);
        let server = Process::dev(directory.path());
        let client = Client::new(&server.address).unwrap();
        let result = Json::from_text("\"done\"".to_owned()).unwrap();
        client.complete_work(&CompleteWork { lease: answer.lease.unwrap(), result }).await.unwrap();
        let ended = client.instance(&item.instance, PATIENCE).await.unwrap();
        assert_eq!(ended.result.unwrap().text(), "\"done\"", "{signal}");
        let history = client.history(&item.instance, None, 0).await.unwrap();
        let ends = history.events.iter().filter(|event| event.kind == "ActivityCompleted").count();
        assert_eq!(ends, 1, "{signal}");
    }
}

#[tokio::test]
async fn a_call_whose_lease_ends_after_a_restart_is_delivered_once_more() {
    let directory = TempDir::new().unwrap();
    // Long enough for the call to be looked at before it ends, however busy the machine is; the
    // second server waits for the end.
    let (server, item) = leased(directory.path(), 2_000).await;
    end(server, "KILL");
    let server = Process::dev(directory.path());
    let client = Client::new(&server.address).unwrap();
    let wait_ms = u64::try_from(PATIENCE.as_millis()).unwrap();
    let request = FetchWork { wait_ms, lease_ms: 600_000, ..FetchWork::new("second", [STAMP]) };
    let again = client.fetch_work(&request).await.unwrap().items;
    assert_eq!((again.len(), again[0].delivery, &again[0].instance), (1, 2, &item.instance));
    let late = client.complete_work(&CompleteWork { lease: item.lease, result: Json::null() }).await;
    assert_eq!(late.unwrap_err().code(), Some("lease-lost"));
    let third = client.fetch_work(&FetchWork { wait_ms: 0, ..request }).await.unwrap().items;
    assert!(third.is_empty(), "{third:?}");
}
