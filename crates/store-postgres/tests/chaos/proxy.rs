//! Connections that are cut between statement and answer: the server has done it, and nobody hears of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use segno::store::{OrchestratorMessage, Provider, RecordBatch, RecordWrite, Records};
use segno_postgres::{PostgresOptions, PostgresStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};

use crate::cluster::Cluster;
use crate::rounds;

/// A proxy that swallows every so-manyth answer of the server and cuts the connection.
pub struct Proxy {
    pub url: String,
    pub cuts: Arc<AtomicU64>,
    is_cutting: Arc<AtomicBool>,
}

impl Proxy {
    /// Will cut one of `every` answers; the first ones of a connection get through, so that it can be made.
    pub async fn start(socket: PathBuf, every: u64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgres://segno@{}/postgres?sslmode=disable", listener.local_addr().unwrap());
        let (cuts, answers) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let is_cutting = Arc::new(AtomicBool::new(false));
        let (counted, cutting) = (Arc::clone(&cuts), Arc::clone(&is_cutting));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = UnixStream::connect(&socket).await else { continue };
                let (answers, cuts) = (Arc::clone(&answers), Arc::clone(&counted));
                let cutting = Arc::clone(&cutting);
                tokio::spawn(async move {
                    let (mut from_client, mut to_client) = client.into_split();
                    let (mut from_server, mut to_server) = server.into_split();
                    let up =
                        tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
                    let mut buffer = vec![0; 64 * 1024];
                    let mut passed = 0_u64;
                    while let Ok(length @ 1..) = from_server.read(&mut buffer).await {
                        passed += 1;
                        if passed > 4
                            && cutting.load(Ordering::Relaxed)
                            && answers.fetch_add(1, Ordering::Relaxed) % every == every - 1
                        {
                            cuts.fetch_add(1, Ordering::Relaxed);
                            break;
                        }
                        if to_client.write_all(&buffer[..length]).await.is_err() {
                            break;
                        }
                    }
                    up.abort();
                });
            }
        });
        Proxy { url, cuts, is_cutting }
    }

    /// Begins to cut.
    pub fn begin(&self) {
        self.is_cutting.store(true, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_lost_is_asked_for_again_and_nothing_is_done_twice() {
    let cluster = Cluster::start("cut");
    let proxy = Proxy::start(cluster.socket(), 3).await;
    let options = PostgresOptions::from_url(&proxy.url).unwrap();
    let store = PostgresStore::open_with(options).await.unwrap();
    proxy.begin();
    let senders = 4;
    let each = rounds(10) * 5;
    let mut sending = tokio::task::JoinSet::new();
    for sender in 0..senders {
        let store = Arc::clone(&store);
        sending.spawn(async move {
            for number in 0..each {
                // Neither a message nor an unconditional write can be repeated without being seen.
                let message = OrchestratorMessage::new(format!("i{sender}"), format!("{number}"));
                let write = RecordWrite::Put {
                    kind: "k".to_owned(),
                    id: format!("{sender}-{number}"),
                    expect: segno::store::Expect::Absent,
                    due_at_ms: None,
                    time_to_live: None,
                    body: Bytes::new(),
                };
                let batch = RecordBatch {
                    writes: vec![write],
                    orchestrator_items: vec![message],
                    ..RecordBatch::default()
                };
                store.commit_records(batch).await.unwrap();
            }
        });
    }
    sending.join_all().await;
    let statistics = store.statistics();
    assert!(proxy.cuts.load(Ordering::Relaxed) > 10, "connections were cut");
    assert!(statistics.repetitions > 0, "an answer was lost after the commit: {statistics:?}");

    let direct = PostgresStore::open(&cluster.url).await.unwrap();
    for sender in 0..senders {
        let request = segno::store::FetchOrchestrationItems {
            max_items: 1,
            ..segno::store::FetchOrchestrationItems::one(std::time::Duration::from_secs(60))
        };
        let items = direct.fetch_orchestration_items(request).await.unwrap();
        let bodies: Vec<String> = items[0]
            .messages
            .iter()
            .map(|message| String::from_utf8(message.body.to_vec()).unwrap())
            .collect();
        assert_eq!(bodies, (0..each).map(|number| number.to_string()).collect::<Vec<_>>(), "sender {sender}");
    }
}
