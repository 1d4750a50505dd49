//! Templates of steps: what a function is called with for one member.
//!
//! The language is that of all templates ([`segno_actions::template`]); this module decides which
//! names there are and what their values look like.
//!
//! | file | what |
//! |---|---|
//! | `variables.rs` | [`Variables`]: the names of one batch or member, with their lookup order |
//! | `call.rs` | [`StepTemplate`]: from a step and variables to a call |
//! | `usage.rs` | which variables a definition uses, and what provides them |
//! | `error.rs` | why a step has no call yet |

mod call;
mod error;
mod usage;
mod variables;

pub use call::{ResolvedCall, StepTemplate};
pub use error::{ResolveError, UNRESOLVED_VARIABLE};
pub use usage::{Provider, StepAt, VariableUse, columns_needed, uses};
pub use variables::{MemberVariables, VariableSources, Variables};
