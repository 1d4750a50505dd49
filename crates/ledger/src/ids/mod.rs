//! Ids: ULIDs of events, and the deterministic names of whatever follows from a run, a task and an
//! attempt.
//!
//! | file | what it has |
//! |---|---|
//! | `ulid.rs` | event ids, and the monotonic generator that writers draw them from |
//! | `segment.rs` | escaped segments, so that keys with a colon never change where an id is divided |
//! | `dispatch.rs`, `timer.rs` | ids of dispatches and timers, and the reading of timer ids |
//! | `digest.rs` | names that are hashes: queue names, attempts, repairs, fingerprints, run ids from run keys |
//! | `callback.rs` | the task id in the URL that a worker calls back |

mod callback;
mod digest;
mod dispatch;
mod segment;
mod timer;
mod ulid;

pub use callback::{CallbackTask, InvalidCallbackTask};
pub use digest::{
    attempt_id, dispatch_queue_name, fingerprint, repair_queue_name, run_id_of_key, timer_queue_name,
};
pub use dispatch::{DispatchName, InvalidDispatchId, dispatch_id};
pub use segment::{escape, unescape};
pub use timer::{InvalidTimerId, TimerName, TimerPurpose};
pub use ulid::{InvalidUlid, Ulid, Ulids};
