//! Everything at once: three nodes under load while the database crashes, backends are terminated, a node is frozen
//! beyond its lease and another one is killed.

use std::time::Duration;

use segno::Client;
use segno_postgres::{PostgresOptions, PostgresStore};
use segno_testkit::seeded::Random;
use tokio_postgres::NoTls;

use crate::cluster::Cluster;
use crate::node::{CHAIN, LOCK, Node};
use crate::{pause, rounds};

/// Instances that are started in each round.
const INSTANCES: u64 = 12;

/// Until everything must have ended after the storm.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_live_through_crashes_of_the_database_and_of_each_other() {
    let cluster = Cluster::start("storm");
    let options = PostgresOptions::from_url(&cluster.url).unwrap().retry_for(PATIENCE);
    let store = PostgresStore::open_with(options).await.unwrap();
    let client = Client::new(store);
    let mut nodes: Vec<Node> = (0..3).map(|_| Node::start(&cluster.url)).collect();
    let mut random = Random::new(4);
    let mut runs = tokio::task::JoinSet::new();
    for round in 0..rounds(10) {
        for number in 0..INSTANCES {
            let client = client.clone();
            runs.spawn(async move {
                let id = format!("{round}-{number}");
                let input = u32::try_from(number).unwrap();
                // A start whose answer was lost is the same start.
                let started = client
                    .start(CHAIN, input)
                    .id(id.clone())
                    .on_conflict(segno::client::OnConflict::UseExisting);
                started.await.unwrap();
                let ended = client.wait_until_ended(&id, PATIENCE).await.unwrap();
                (id, ended.result().map(|result| result.as_str().to_owned()), (input + 3).to_string())
            });
        }
        pause(Duration::from_millis(random.below(400))).await;
        match round % 5 {
            1 => terminate_backends(&cluster.url).await,
            2 => {
                nodes[0].signal("-STOP");
                pause(LOCK + Duration::from_millis(500)).await;
                nodes[0].signal("-CONT");
            }
            3 => nodes[1].kill(),
            _ => {}
        }
        tokio::task::block_in_place(|| cluster.crash());
    }
    for (id, result, expected) in runs.join_all().await {
        assert_eq!(result.as_deref(), Some(expected.as_str()), "{id}");
    }
    segno_testkit::invariants::check(&client).await.unwrap();
    // What is still queued are timers and messages for instances that have ended; nodes clear them away.
    for _ in 0..100 {
        if segno_testkit::invariants::check_at_rest(&client).await.is_ok() {
            break;
        }
        pause(Duration::from_millis(100)).await;
    }
    segno_testkit::invariants::check_at_rest(&client).await.unwrap();
}

async fn terminate_backends(url: &str) {
    let Ok((client, connection)) = tokio_postgres::connect(url, NoTls).await else { return };
    tokio::spawn(connection);
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE application_name = 'segno' AND pid % 2 = 0 AND pid <> pg_backend_pid()";
    let _ = client.query(sql, &[]).await;
}
