//! What the conformance suite cannot see: that what was acknowledged is there after anything that can happen to a
//! process or a disk.
//!
//! * `script`: random operations that follow from a seed, and everything that a store shows.
//! * `disk`: a directory in memory that records every write and sync, fails on request, and builds images of what
//!   a power cut may leave.
//! * `gate`: syncs that wait for the test. `early`: work on changes before they are durable. `joined`: activities that end
//!   with the turn that follows. `leases`: locks that outlive the process.
//! * `quarantine`: reads of instances whose last change is not on disk.
//! * `model`: the memory store as the oracle, with reopening at random points.
//! * `filling`: crash images of a store that is being filled.
//! * `power_cut`: crash images, also of recovery and checkpoints. `refusal`: errors at every operation. `damage`: flipped bits. `blocks`:
//!   every block of a small store overwritten in turn.
//! * `missing`: log files that are gone or cut short. `read_only`: reading while nothing can be written.
//! * `callers`: very many callers at once, also when the disk fails or the store is closed.
//! * `kill`: a real process, killed. `engine`: an orchestration that continues. `size`: many finished instances.
//! * `tail`: how much there is to read again. `space`: giving it back. `golden`: stores that must open for ever.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod blocks;
mod callers;
mod compacting;
mod damage;
mod disk;
mod early;
mod engine;
mod filling;
mod gate;
mod golden;
mod joined;
mod kill;
mod leases;
mod missing;
mod model;
mod power_cut;
mod quarantine;
mod read_only;
mod refusal;
mod script;
mod size;
mod space;
mod tail;
mod unfinished;

use bytes::Bytes;
use segno::store::{Expect, RecordWrite};

/// How many cases to run: the number in the environment variable, or this many.
fn cases(variable: &str, normally: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(normally)
}

/// A record that is not there yet.
fn new_record(kind: &str, id: &str, body: Bytes) -> RecordWrite {
    RecordWrite::Put {
        kind: kind.to_owned(),
        id: id.to_owned(),
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        body,
    }
}

/// Runs a test's future on one thread.
fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
