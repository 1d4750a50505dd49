//! Plans run without a server and without time: functions are answered by stubs, events go through the one fold, and waits
//! pass at once. What happens is what would happen, as far as the stubs are right.
//!
//! | file | what |
//! |---|---|
//! | `stubs.rs` | the answers of functions, from YAML or JSON |
//! | `run.rs` | the loop: expand, dispatch, finish, wait |
//! | `report.rs` | what happened, step by step |

mod error;
mod report;
mod run;
mod stubs;

pub use error::{INVALID_STUBS, InvalidStubs};
pub use report::{Ended, Report, Step, StepKind};
pub use run::rehearse;
pub use stubs::{STUB_OBJECTS, Stub, Stubs, parse_stubs};
