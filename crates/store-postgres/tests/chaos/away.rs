//! A database that is away: every write is answered in its own time, and what was withdrawn never
//! happens.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::{Clock, SystemClock};
use segno::store::{ErrorKind, Expect, RecordBatch, RecordWrite, Records, WriteOutcome};
use segno_postgres::{PostgresOptions, PostgresStore};

use crate::cluster::Cluster;
use crate::pause;

/// How long a write waits for the database.
const RETRY_FOR: Duration = Duration::from_secs(2);

/// Longest time to an answer on a busy machine. A write that waits for others first would take
/// twice [`RETRY_FOR`].
const LONGEST: Duration = Duration::from_millis(3_500);

/// Between two writes, so that the later ones wait behind the retries of the first.
const BETWEEN: Duration = Duration::from_millis(200);

fn put(number: u64) -> RecordBatch {
    let write = RecordWrite::Put {
        kind: "k".to_owned(),
        id: number.to_string(),
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        body: Bytes::new(),
    };
    RecordBatch { writes: vec![write], ..RecordBatch::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_to_a_database_that_is_away_fail_in_time_and_tell_their_outcome() {
    let cluster = Cluster::start("away");
    let options = PostgresOptions::from_url(&cluster.url).unwrap().retry_for(RETRY_FOR);
    let store = PostgresStore::open_with(options).await.unwrap();
    store.commit_records(put(0)).await.unwrap();
    cluster.kill();
    let mut writes = tokio::task::JoinSet::new();
    for number in 1..=10 {
        let store = Arc::clone(&store);
        writes.spawn(async move {
            let begun_ms = SystemClock.now_ms();
            let error = store.commit_records(put(number)).await.unwrap_err();
            (number, Duration::from_millis(SystemClock.now_ms() - begun_ms), error)
        });
        pause(BETWEEN).await;
    }
    let failed = writes.join_all().await;
    cluster.restart();
    let looked = async {
        loop {
            match store.get_record("k", "0").await {
                Ok(found) => return assert!(found.is_some(), "an acknowledged write is there"),
                Err(_) => pause(BETWEEN).await,
            }
        }
    };
    looked.await;
    // Whatever was still to be sent goes before this one.
    while store.commit_records(put(11)).await.is_err_and(|error| error.kind() != ErrorKind::Conflict) {}
    let mut withdrawn = 0;
    for (number, took, error) in failed {
        assert!(took < LONGEST, "write {number} took {took:?}: {error}");
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        if error.outcome() == WriteOutcome::NothingChanged {
            withdrawn += 1;
            let found = store.get_record("k", &number.to_string()).await.unwrap();
            assert!(found.is_none(), "write {number} was said to have changed nothing");
        }
    }
    assert!(withdrawn >= 8, "only writes that were sent have an unknown outcome: {withdrawn} of 10 were not");
}
