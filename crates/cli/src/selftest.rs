//! `segno selftest`: does this machine and disk keep what they acknowledge?
//!
//! A second process of this binary writes into an embedded store and says what was acknowledged. It is killed at a random
//! moment, the store is opened again, and all that was acknowledged must be there. That is a test of the store, the file system
//! and the kernel. A power cut is more than a kill: the time of a commit shows whether the disk really writes.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _, stdout};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use segno::clock::{Clock, SystemClock};
use segno::ids::SystemIds;
use segno::store::{Expect, RecordBatch, RecordWrite, Store};
use segno_stores::StoreUrl;
use serde::Serialize;

use crate::arguments::SelftestArguments;
use crate::exit::Failure;
use crate::output::{Output, Table, count};
use crate::progress::Meter;

/// Kind of the records that are written.
const KIND: &str = "selftest";

/// Writers at once.
const WRITERS: u64 = 16;

/// A round is killed after 1 to this many acknowledged commits.
const MAX_COMMITS_PER_ROUND: u64 = 400;

/// Commits whose time is measured.
const MEASURED_COMMITS: usize = 200;

/// A commit that is faster than this did not wait for a disk: a cache answered. In microseconds.
const SUSPICIOUS_US: u64 = 15;

/// What came out.
#[derive(Debug, Serialize)]
struct Outcome {
    rounds: u32,
    acknowledged: u64,
    lost: u64,
    commit_p50_us: u64,
    commit_p99_us: u64,
    disk_waits: bool,
}

/// Does it.
pub async fn run(arguments: SelftestArguments, output: &Output) -> Result<(), Failure> {
    if let Some(store) = &arguments.write_to {
        return write(&StoreUrl::Embedded(store.clone())).await;
    }
    let scratch = arguments.directory.join(format!("segno-selftest-{}", SystemIds::shared().new_uuid()));
    let outcome = measure(&scratch, arguments.rounds, output).await;
    let removed = std::fs::remove_dir_all(&scratch);
    let outcome = outcome?;
    removed?;
    let waits = match outcome.disk_waits {
        true => "yes",
        false => "no: a cache answers, so a power cut may lose what was acknowledged",
    };
    let table = Table::default()
        .line("killed", count(outcome.rounds.into()))
        .line("commits acknowledged", count(outcome.acknowledged))
        .line("commits lost", count(outcome.lost))
        .line(
            "a commit takes",
            format!("{} µs (p50), {} µs (p99)", outcome.commit_p50_us, outcome.commit_p99_us),
        )
        .line("commits wait for the disk", waits);
    output.print(&outcome, table)?;
    if outcome.lost > 0 { Err(Failure::Unsound) } else { Ok(()) }
}

async fn measure(scratch: &Path, rounds: u32, output: &Output) -> Result<Outcome, Failure> {
    let url = StoreUrl::Embedded(scratch.to_owned());
    let mut times_us = commit_times(&url).await?;
    times_us.sort_unstable();
    let percentile = |percent: usize| times_us[(times_us.len() - 1) * percent / 100];
    let mut outcome = Outcome {
        rounds,
        acknowledged: 0,
        lost: 0,
        commit_p50_us: percentile(50),
        commit_p99_us: percentile(99),
        disk_waits: percentile(50) >= SUSPICIOUS_US,
    };
    let mut meter = Meter::new(output, Some(rounds.into()));
    for round in 0..rounds {
        let acknowledged = write_and_kill(scratch)?;
        let store = url.open().await?;
        for (writer, number) in &acknowledged {
            let record = store.get_record(KIND, writer).await.map_err(segno_stores::Error::Store)?;
            let stored =
                record.and_then(|record| std::str::from_utf8(&record.body).ok()?.parse::<u64>().ok());
            outcome.acknowledged += number;
            outcome.lost += number.saturating_sub(stored.unwrap_or(0));
        }
        for writer in acknowledged.into_keys() {
            commit(
                &*store,
                RecordWrite::Delete { kind: KIND.to_owned(), id: writer, expect: Expect::Anything },
            )
            .await?;
        }
        meter.show("killing", u64::from(round) + 1, "rounds");
    }
    Ok(outcome)
}

/// How long a commit takes that nobody shares.
async fn commit_times(url: &StoreUrl) -> Result<Vec<u64>, Failure> {
    let store = url.open().await?;
    let mut times_us = Vec::with_capacity(MEASURED_COMMITS);
    for number in 0..MEASURED_COMMITS {
        let began_ns = SystemClock.monotonic_ns();
        commit(&*store, put("alone", number as u64)).await?;
        times_us.push((SystemClock.monotonic_ns() - began_ns) / 1_000);
    }
    commit(
        &*store,
        RecordWrite::Delete { kind: KIND.to_owned(), id: "alone".to_owned(), expect: Expect::Anything },
    )
    .await?;
    Ok(times_us)
}

/// Lets the other process write, kills it, and tells what each of its writers was told last.
fn write_and_kill(scratch: &Path) -> Result<BTreeMap<String, u64>, Failure> {
    let mut writer = Killed(
        Command::new(std::env::current_exe()?)
            .args(["selftest", "--write-to"])
            .arg(scratch)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?,
    );
    let said = writer
        .0
        .stdout
        .take()
        .ok_or_else(|| Failure::Serving("the writing process has no output".to_owned()))?;
    let random = SystemIds::shared().new_uuid().as_u128() as u64;
    let enough = 1 + random % MAX_COMMITS_PER_ROUND;
    let mut acknowledged = BTreeMap::new();
    let mut lines = BufReader::new(said).lines();
    let mut note = |line: Result<String, std::io::Error>| {
        if let Some((writer, number)) = line.ok().as_deref().and_then(|line| line.split_once(' '))
            && let Ok(number) = number.parse::<u64>()
        {
            acknowledged.insert(writer.to_owned(), number);
        }
    };
    for line in lines.by_ref().take(usize::try_from(enough).unwrap_or(usize::MAX)) {
        note(line);
    }
    drop(writer);
    // What it said before it died counts too.
    lines.for_each(note);
    Ok(acknowledged)
}

/// A process that is killed when this is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes until it is killed, and says what was acknowledged.
async fn write(url: &StoreUrl) -> Result<(), Failure> {
    let store = url.open().await?;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store: Arc<dyn Store> = store.clone();
        writers.spawn(async move {
            for number in 1_u64.. {
                commit(&*store, put(&writer.to_string(), number)).await?;
                // One write of one line, so that a reader never sees half a line as a whole one.
                let mut out = stdout().lock();
                out.write_all(format!("{writer} {number}\n").as_bytes())?;
                out.flush()?;
            }
            Ok::<(), Failure>(())
        });
    }
    match writers.join_next().await {
        Some(Ok(outcome)) => outcome,
        _ => Ok(()),
    }
}

fn put(id: &str, number: u64) -> RecordWrite {
    RecordWrite::Put {
        kind: KIND.to_owned(),
        id: id.to_owned(),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: number.to_string().into_bytes().into(),
    }
}

async fn commit(store: &dyn Store, write: RecordWrite) -> Result<(), Failure> {
    let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
    store.commit_records(batch).await.map_err(segno_stores::Error::Store)?;
    Ok(())
}
