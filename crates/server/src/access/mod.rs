//! Who may do what.
//!
//! | file | what |
//! |---|---|
//! | `caller` | who asks, and what roles allow |
//! | `keys` | API keys as records: made, verified, listed, revoked |
//! | `recheck` | keys are verified again while a stream or long poll lasts |
//! | `guard` | the layer in front of every route that is not public |
//!
//! **Invariants.** Deny by default: a route is in a group, and every group but the public one has a guard. What a route
//! needs is decided by the route that matched, never by the text of the path. A secret is stored as its hash only.

mod caller;
mod guard;
mod keys;
mod recheck;

pub use caller::{Caller, Need};
pub use guard::{guard, same_origin_only};
pub use keys::{KeyStore, NewKey, REVOKED_WITHIN, timestamp};
