//! A runbook as it was published and checked. How it is written as YAML is another file's concern.
//!
//! The types hold what validation has established: names are unique, references exist, durations are
//! positive. Times and lengths are in seconds, as the columns of the tables are.

mod flow;
mod notify;
mod source;
mod step;

pub use flow::{Approval, Blackout, MemberLimit, Members, OnPhaseFailure, Phase, Wave};
pub use notify::{NoticeEvent, Notify};
pub use source::{BatchTime, DataSource, MultiValued, MultiValuedFormat, SourceKind};
pub use step::{Poll, Retry, StepDefinition};

use std::collections::BTreeMap;

/// One version of a runbook.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// Name of the runbook.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Where members come from.
    pub data_source: DataSource,
    /// Steps that run once for a batch, in order, before its phases.
    pub init: Vec<StepDefinition>,
    /// Phases in due order: the largest offset before the start first, equal offsets as written.
    pub phases: Vec<Phase>,
    /// Steps for a member that has left its batch.
    pub on_member_removed: Vec<StepDefinition>,
    /// Rollback sequences by the name that `on_failure` gives.
    pub rollbacks: BTreeMap<String, Vec<StepDefinition>>,
    /// Whether members wait for each other at every step index.
    pub members: Members,
    /// What a failed phase does to the batch.
    pub on_phase_failure: OnPhaseFailure,
    /// Windows in which no step is dispatched.
    pub blackout: Vec<Blackout>,
    /// What is called when people have to know something.
    pub notify: Option<Notify>,
}
