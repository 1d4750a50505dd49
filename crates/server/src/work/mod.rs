//! Work for workers elsewhere: handed out, answered, and pushed.
//!
//! | file | what |
//! |---|---|
//! | `seal` | leases as signed text that a caller cannot make up |
//! | `fetch` | fetching for callers that may go away |
//! | `item` | a leased call as it goes over the wire |
//! | `presence` | which workers there are, told to other nodes |
//! | `roster` | those that a node remembers, bounded for each tenant |
//! | `push` | sending calls to the URLs of workers |
//! | `places` | how many of them at once, and how many of one function and tenant |

mod fetch;
mod item;
mod places;
mod presence;
mod push;
mod roster;
mod seal;

pub use fetch::{Untold, fetch};
pub use item::{call_of, item, no_call};
pub use presence::{Announced, Asked, Holder, Presence};
pub use push::Pusher;
pub use seal::{HeldLease, LeaseSeal};
