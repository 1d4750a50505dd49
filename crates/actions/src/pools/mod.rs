//! Pools of workers: functions that only the workers know, called by pool and name.
//!
//! A pool is declared in the settings, or announced by its workers. Its allow-list says which functions may be called
//! through it; nothing else is declared of them, and their names keep their case. All calls of a pool wait under one
//! routing tag, so a worker of the pool gets every function of it.
//!
//! | file | what |
//! |---|---|
//! | `pool.rs` | a pool: transport, allow-list, rate |
//! | `stored.rs` | pools that workers have announced, and the state of pools: paused, throttled, how fast |
//! | `catalogue.rs` | [`Pools`]: finding, announcing, pausing |
//! | `recent.rs` | what of that was read a moment ago, bounded in bytes |
//! | `admission.rs` | how many calls may be handed out now: a pure function of the state |
//! | `resumes.rs` | waking the fetches that wait for a closed pool, on every node |
//! | `combine.rs` | admissions of one node and pool that share a commit |
//! | `call.rs` | a call through a pool, ready to be started |
//! | `rooms.rs` | the door for other rooms: starting, checking and cancelling calls under reserved ids |
//! | `reserved.rs` | ids that callers cannot take |

mod admission;
mod call;
mod catalogue;
mod combine;
mod pool;
mod recent;
mod reserved;
mod resumes;
mod rooms;
mod stored;

pub use admission::{Admission, Headroom, THROTTLED};
pub use call::PoolCall;
pub use catalogue::{FoundPool, PoolOrigin, Pools};
pub use pool::{AllowList, Pool, Transport};
pub use reserved::{Room, reserved_key_prefix, reserved_prefix};
pub use resumes::POOL_RESUMED_KIND;
pub use rooms::{CallState, POOL_LABEL, RoomCall, RoomCalls};
pub use stored::{POOL_KIND, POOL_STATE_KIND, Pause, PoolState};
