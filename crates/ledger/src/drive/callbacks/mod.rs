//! Callbacks: workers that are no workers of Segno report the start, the heartbeats and the end of an attempt, with a bearer token
//! that is bound to that attempt.
//!
//! A task with `completion: callback` has its function called with an envelope as input. The call hands the attempt over; what
//! ends it is a report. Reports are events in the outbox, like everything else that is appended.
//!
//! | file | what |
//! |---|---|
//! | `token.rs` | signed tokens: bound to an attempt, with an expiry |
//! | `envelope.rs` | the input of the function, and the issuer that adds the token when the call is handed out |
//! | `report.rs` | what workers report, within limits |
//! | `receipt.rs` | records that make a repeated report harmless and a contradictory one an error |
//! | `attempt.rs` | from a token to the attempt that it is for, or why it is refused |
//! | `handle.rs` | the three reports |
//! | `error.rs` | refusals, each with its code |
//!
//! **Invariants.** A token is never stored: the issuer adds it in memory. A report is accepted only for the attempt that is under
//! way, and the response to `completed` is what the tables show.

mod attempt;
mod envelope;
mod error;
mod handle;
mod receipt;
mod report;
mod token;

pub(super) use envelope::envelope;
pub use envelope::{TokenIssuer, issue};
pub use error::CallbackError;
pub use handle::{Acknowledged, Alive, Callbacks};
pub use report::{
    AttemptName, CompletedReport, HeartbeatReport, ReportedError, ReportedOutput, StartedReport,
};
pub use token::{InvalidToken, TaskToken, TaskTokens};
