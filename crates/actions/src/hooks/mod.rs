//! Webhooks: what comes in over HTTP is kept byte for byte, and becomes an action.
//!
//! A *hook* is a route with a declaration: who may send (verification), what is called (function and input template), and
//! what is left out (filter, duplicates). One commit stores the payload, its event, its action and its key, so that what
//! was acknowledged is called once, whatever happens.
//!
//! | file | what |
//! |---|---|
//! | `hook.rs` | a declaration, and what is checked about it |
//! | `verification.rs`, `verify.rs`, `sign.rs` | who may send: settings, the check, and what a sender does |
//! | `incoming.rs` | a request, and the names that templates see of it |
//! | `decide.rs` | what becomes of a request (pure) |
//! | `payload.rs`, `event.rs` | what is kept of it |
//! | `catalogue.rs` | [`Hooks`]: declaring, finding, deleting routes |
//! | `receive.rs`, `inspect.rs` | receiving; listing, reading and replaying payloads |
//! | `log.rs` | the event log: bounded, also against those who are refused |
//! | `records.rs`, `id.rs` | how it is stored, newest first |
//! | `error.rs`, `limits.rs` | how calls fail, and every limit |
//!
//! **Invariants.** Nothing is acknowledged before it is on the disk. A request that is refused leaves an event at most,
//! and no more than a few a second. A secret is read when it is needed and is never stored or shown.

mod catalogue;
mod decide;
mod error;
mod event;
mod hook;
#[cfg(test)]
mod hooks_tests;
mod id;
mod incoming;
mod inspect;
pub mod limits;
mod log;
mod payload;
mod receive;
mod records;
mod sign;
mod verification;
mod verify;

pub use crate::functions::HookName;
pub use catalogue::{HookSettings, Hooks, Route};
pub use error::HookError;
pub use event::{HookEvent, Outcome};
pub use hook::{Dedup, Hook};
pub use incoming::{Headers, Incoming};
pub use inspect::{ListEvents, ListPayloads, PayloadPage};
pub use payload::Payload;
pub use receive::{Accepted, Refused};
pub use sign::signed_headers;
pub use verification::{Scheme, Verification};
pub use verify::Unverified;
