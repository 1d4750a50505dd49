//! High availability: the primary is lost under load and its synchronous standby takes over. Every start that was
//! acknowledged ends once, and the nodes find the new primary by themselves.

use std::net::TcpListener;
use std::time::Duration;

use segno::Client;
use segno_postgres::{PostgresOptions, PostgresStore};
use segno_testkit::seeded::Random;

use crate::cluster::{Cluster, Pair};
use crate::node::{CHAIN, Node};
use crate::{pause, rounds};

/// Instances that are started in each round, spread over the time before and during the failover.
const INSTANCES: u64 = 24;

/// Until everything must have ended after the last failover.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_ends_once_when_a_synchronous_standby_takes_over() {
    let mut pair = Pair::start("failover");
    let options = PostgresOptions::from_url(&pair.url).unwrap().retry_for(PATIENCE);
    let store = PostgresStore::open_with(options).await.unwrap();
    let client = Client::new(store);
    let mut nodes: Vec<Node> = (0..2).map(|_| Node::start(&pair.url)).collect();
    let mut random = Random::new(9);
    let mut runs = tokio::task::JoinSet::new();
    for round in 0..rounds(4) {
        for number in 0..INSTANCES {
            let client = client.clone();
            let delay = Duration::from_millis(random.below(600));
            runs.spawn(async move {
                pause(delay).await;
                let id = format!("{round}-{number}");
                let input = u32::try_from(number).unwrap();
                // An id that is taken would be refused: a start that is repeated by the store must not be seen twice.
                client.start(CHAIN, input).id(id.clone()).await.unwrap();
                let ended = client.wait_until_ended(&id, PATIENCE).await;
                let ended = ended.unwrap_or_else(|error| panic!("{id} was acknowledged: {error}"));
                (id, ended.result().map(|result| result.as_str().to_owned()), (input + 3).to_string())
            });
        }
        pause(Duration::from_millis(random.below(600))).await;
        tokio::task::block_in_place(|| {
            pair.fail_over();
            // The lost server is made a standby again while nodes work: the next round fails over to it.
            pair.repair();
        });
    }
    for (id, result, expected) in runs.join_all().await {
        assert_eq!(result.as_deref(), Some(expected.as_str()), "{id}");
    }
    let metrics = client.system_metrics().await.unwrap();
    let counted = (metrics.total_instances, metrics.total_executions, metrics.completed_instances);
    let started = rounds(4) * INSTANCES;
    assert_eq!(counted, (started, started, started), "each start is one instance and one execution");
    assert!(nodes.iter_mut().all(Node::is_running), "nodes live through a failover");
    segno_testkit::invariants::check(&client).await.unwrap();
}

#[tokio::test]
async fn a_host_that_accepts_and_never_answers_is_passed_over() {
    let cluster = Cluster::start("silent");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = cluster.directory.display().to_string().replace('/', "%2F");
    let at = silent.local_addr().unwrap();
    let url = format!("postgres://segno@{at},{host}/postgres?connect_timeout=1");
    let store = PostgresStore::open(&url).await.unwrap();
    assert_eq!(Client::new(store).system_metrics().await.unwrap().total_instances, 0);
}

#[tokio::test]
async fn a_url_without_a_primary_names_what_each_host_said() {
    let mut pair = Pair::start("alone");
    // Both are there, and the second one is a standby.
    let standby = pair.url.replace("-a-", "-none-");
    let error = PostgresStore::open(&standby).await.unwrap_err().to_string();
    assert!(error.contains("-none-") && error.contains("does not allow writes"), "{error}");
    tokio::task::spawn_blocking(move || pair.fail_over()).await.unwrap();
}
