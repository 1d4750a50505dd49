//! What happens to instances, for callers who listen. See `docs/adr/0021-event-stream.md`.
//!
//! | file | what |
//! |---|---|
//! | `ring` | the last changes, each with its place; pure |
//! | `hub` | hears from the runtime, keeps the ring, and has listeners |
//! | `relay` | what nodes on one store tell each other while somebody listens |

mod hub;
mod relay;
mod ring;

pub use hub::{Heard, Hub, Known, Listener};
pub use relay::Relay;
pub use ring::Position;
