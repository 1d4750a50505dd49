//! What happens to instances, batches and runs of DAGs, for callers who listen. See `docs/adr/0021-event-stream.md`.
//!
//! | file | what |
//! |---|---|
//! | `ring` | the last changes, each with its place; pure |
//! | `batches` | what a commit changed in a batch of a runbook, summarized |
//! | `runs` | what a fold of the ledger changed in a run of a DAG, summarized |
//! | `hub` | hears from the runtime, keeps the ring, and has listeners |
//! | `relay` | what nodes on one store tell each other while somebody listens |

mod batches;
mod hub;
mod relay;
mod ring;
mod runs;

pub use batches::{BatchAnnouncer, Held, ObservedBatch, ObservedRow, RowKind};
pub use hub::{Heard, Hub, Known, KnownInstance, Listener};
pub use relay::Relay;
pub use ring::Position;
pub use runs::{HubAnnouncer, ObservedRun};
