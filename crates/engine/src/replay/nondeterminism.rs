//! The code asked for something else than its history says.

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
    /// What the code asked for.
    pub requested: String,
}
