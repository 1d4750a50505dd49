//! Who may do what.
//!
//! | file | what |
//! |---|---|
//! | `caller` | who asks, and what roles allow |
//! | `keys` | API keys as records: made, verified, listed, revoked |
//! | `recheck` | keys are verified again while a stream, long poll or query lasts |
//! | `sessions` | sessions of browsers as records: a key becomes a cookie for a while |
//! | `browser` | whether a page of this server sent a request |
//! | `guard` | the layer in front of every route that is not public |
//!
//! **Invariants.** Deny by default: a route is in a group, and every group but the public one has a guard. What a route
//! needs is decided by the route that matched, never by the text of the path. A secret is stored as its hash only.

mod browser;
mod caller;
mod guard;
mod keys;
mod recheck;
mod sessions;

pub use browser::is_of_own_page;
pub use caller::{Caller, Need};
pub use guard::{Credential, NOT_OWN_PAGE, bearer, guard, same_origin_only};
pub use keys::{KeyStore, NewKey, REVOKED_WITHIN, is_key_id, timestamp};
pub use sessions::{COOKIE, NewSession, SessionStore, cookie, is_session_id};
