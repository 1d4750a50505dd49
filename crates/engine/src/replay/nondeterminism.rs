//! The commands of the code differ from its history.

/// Where code and history part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "event {event_id} of the history is {recorded}, but the code asked for {requested}; \
     orchestration code must do the same on every replay: guard changes with ctx.patched(\"…\") or register a new version"
)]
pub struct Nondeterminism {
    /// The recorded event that does not fit.
    pub event_id: u64,
    /// What was recorded.
    pub recorded: String,
    /// The command of the code.
    pub requested: String,
}
