//! Work for workers elsewhere: handed out, answered, and pushed; and the places of what this node runs itself.
//!
//! | file | what |
//! |---|---|
//! | `seal` | leases as signed text that a caller cannot make up |
//! | `fetch` | fetching for callers that may go away |
//! | `exchanges` | answers of exchanges that are kept for repeated requests |
//! | `item` | a leased call as it goes over the wire |
//! | `presence` | which workers there are, told to other nodes |
//! | `roster` | those that a node remembers, bounded for each tenant |
//! | `push` | sending calls to the URLs of workers |
//! | `node` | which calls this node runs itself |
//! | `limit` | how many calls a worker takes at once, by its answers |
//! | `places` | how many calls at once, and how many of one function and tenant |

mod exchanges;
mod fetch;
mod item;
mod limit;
mod node;
mod places;
mod presence;
mod push;
mod roster;
mod seal;

pub use exchanges::{Exchange, Exchanges};
pub use fetch::{Untold, fetch};
pub use item::{call_of, item, no_call};
pub use node::NodePlaces;
pub use presence::{Announced, Asked, Holder, Presence};
pub use push::Pusher;
pub use seal::{HeldLease, LeaseSeal};
