//! A real process on a real directory, killed while it writes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use segno::store::{OrchestratorMessage, RecordBatch, Records};
use segno_embedded::{EmbeddedStore, OpenOptions};
use segno_testkit::seeded::Random;

use crate::{block_on, cases, new_record};

/// Tells the child where to write.
const DIRECTORY: &str = "SEGNO_KILL_DIRECTORY";
/// Tells the child which round it is in, so that its ids are new.
const ROUND: &str = "SEGNO_KILL_ROUND";
/// How many write at once, in turns: a few, and so many that they leave their operations to each other.
const WRITERS: [u64; 2] = [8, 300];
const ROUNDS_PER_LOOK: u64 = 10;
const KIND: &str = "written";

/// The child: writes records and prints the id of each that was acknowledged. Not a test by itself.
#[test]
fn child_that_is_killed() {
    let (Ok(directory), Ok(round)) = (std::env::var(DIRECTORY), std::env::var(ROUND)) else { return };
    let options = OpenOptions::default().checkpoint_bytes(50_000);
    let store = EmbeddedStore::open_with(directory, options).unwrap();
    block_on(async {
        let mut writers = tokio::task::JoinSet::new();
        let writers_now = WRITERS[round.parse::<usize>().unwrap() % WRITERS.len()];
        for writer in 0..writers_now {
            let (store, round) = (Arc::clone(&store), round.clone());
            writers.spawn(async move {
                for number in 0.. {
                    let id = format!("{round}-{writer}-{number}");
                    store.commit_records(batch(&id)).await.unwrap();
                    // The whole line in one write, so that the kill cannot tear it.
                    std::io::stdout().write_all(format!("acknowledged {id}\n").as_bytes()).unwrap();
                }
            });
        }
        writers.join_all().await;
    });
}

fn batch(id: &str) -> RecordBatch {
    let write = new_record(KIND, id, Bytes::from(id.repeat(20)));
    let message = OrchestratorMessage::new(id, Bytes::from_static(b"go"));
    RecordBatch { writes: vec![write], orchestrator_items: vec![message], ..RecordBatch::default() }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(1);
    let mut acknowledged: Vec<String> = Vec::new();
    let rounds = cases("SEGNO_KILL_ROUNDS", 40);
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child_that_is_killed", "--nocapture"])
            .env(DIRECTORY, directory.path())
            .env(ROUND, round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let ids = lines.by_ref().filter_map(|line| Some(line.split_once("acknowledged ")?.1.to_owned()));
        acknowledged.extend(ids.take(random.between(1, 60) as usize));
        child.kill().unwrap();
        child.wait().unwrap();
        // What it had written to the pipe before it died counts as well.
        acknowledged.extend(lines.filter_map(|line| Some(line.split_once("acknowledged ")?.1.to_owned())));
        // In between, the next child finds what the one before has left.
        if round % ROUNDS_PER_LOOK != 0 && round + 1 < rounds {
            continue;
        }
        let store = EmbeddedStore::open(directory.path()).unwrap();
        block_on(async {
            for id in &acknowledged {
                let record = store.get_record(KIND, id).await.unwrap();
                assert_eq!(
                    record.map(|record| record.body),
                    Some(Bytes::from(id.repeat(20))),
                    "{id} is lost"
                );
            }
        });
    }
    assert!(acknowledged.len() > 5, "the child has written nothing");
}

#[test]
fn a_second_process_is_told_who_has_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path()).unwrap();
    let refused = EmbeddedStore::open(directory.path()).unwrap_err().to_string();
    assert!(refused.contains(&format!("process id {}", std::process::id())), "{refused}");
    drop(store);
    EmbeddedStore::open(directory.path()).unwrap();
}
