//! What is between a node and its database: encryption, and a pooler that gives a connection for a transaction only.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/cluster.rs"]
mod cluster;

use std::time::Duration;

use cluster::Cluster;
use segno::{Activity, ActivityContext, Client, Context, Failure, Orchestration, Registry, Runtime};
use segno_postgres::{OpenError, PostgresOptions, PostgresStore};
use segno_testkit::invariants;

const ECHO: Orchestration<u32, u32> = Orchestration::new("echo");
const SAY: Activity<u32, u32> = Activity::new("say");

fn registry() -> Registry {
    let echo = async |ctx: Context, number: u32| -> Result<u32, Failure> { ctx.activity(SAY, number).await };
    let say = async |_: ActivityContext, number: u32| -> Result<u32, Failure> { Ok(number) };
    Registry::builder().orchestration(ECHO, echo).activity(SAY, say).build().unwrap()
}

/// A port that nobody has at the moment.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn runs_on(url: &str) -> Runtime {
    let store = PostgresStore::open(url).await.unwrap();
    Runtime::builder(store).registry(registry()).start().await.unwrap()
}

async fn do_some_work(client: &Client) {
    let mut runs = tokio::task::JoinSet::new();
    for number in 0..30 {
        let client = client.clone();
        runs.spawn(async move { client.start(ECHO, number).result().await.unwrap() });
    }
    let mut results = runs.join_all().await;
    results.sort_unstable();
    assert_eq!(results, (0..30).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_encrypted_and_the_certificate_is_verified() {
    let cluster = Cluster::start_with_certificate("tls", free_port());
    let authority = cluster.directory.join("authority.crt");
    let trusting = format!("{}?sslrootcert={}", cluster.url, authority.display());
    for mode in ["require", "verify-full"] {
        let runtime = runs_on(&format!("{trusting}&sslmode={mode}")).await;
        do_some_work(runtime.client()).await;
        let (direct, connection) =
            tokio_postgres::connect(&cluster.url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = "SELECT count(*), count(*) FILTER (WHERE s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
                    WHERE a.application_name = 'segno'";
        let row = direct.query_one(sql, &[]).await.unwrap();
        let (all, encrypted): (i64, i64) = (row.get(0), row.get(1));
        assert!(all >= 3 && all == encrypted, "{encrypted} of {all} connections are encrypted with {mode}");
        runtime.shutdown(Duration::from_secs(5)).await;
    }
    // An authority that did not sign it: the certificate of the server itself.
    let wrong = cluster.directory.join("server.crt");
    for url in [
        format!("{}?sslmode=require&sslrootcert={}", cluster.url, wrong.display()),
        format!("{}?sslmode=require", cluster.url),
        // A name that is not in the certificate.
        format!("{trusting}&sslmode=verify-full").replace("@localhost:", "@127.0.0.1:"),
    ] {
        let refused = PostgresStore::open(&url).await.unwrap_err();
        assert!(matches!(refused, OpenError::Tls(_)), "{url}: {refused}");
        assert!(refused.to_string().contains("sslrootcert"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_work_through_a_pooler_in_transaction_mode() {
    let cluster = Cluster::start("pool");
    let pooled = cluster.pool();
    let (one, two) = (runs_on(&pooled).await, runs_on(&pooled).await);
    do_some_work(one.client()).await;
    do_some_work(two.client()).await;
    // Listening goes past the pooler.
    let options = PostgresOptions::from_url(&pooled).unwrap().listen_url(&cluster.url).unwrap();
    let listening = Client::new(PostgresStore::open_with(options).await.unwrap());
    do_some_work(&listening).await;
    invariants::check(&listening).await.unwrap();
    for node in [one, two] {
        node.shutdown(Duration::from_secs(5)).await;
    }
}
