//! What is wrong in a tenant now.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What is wrong now, and what was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemReport {
    /// When this was found out. An answer is given again for a second.
    pub at: Timestamp,
    /// What is wrong, errors first.
    pub problems: Vec<KnownProblem>,
    /// The kinds of problems that were looked for.
    pub checked: Vec<ProblemKind>,
    /// Kinds that could not be looked for, or not to their end.
    pub unknown: Vec<UnknownProblem>,
}

/// What may be wrong. More kinds may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// Instances failed in the last hour; its items are codes.
    FailedRecently,
    /// Instances run and wait for nothing, without an event for the longer of 10 minutes and three
    /// times what their name usually takes; its items are instances.
    Stuck,
    /// Instances are paused.
    Paused,
    /// Recurring actions should have fired more than a minute ago; its items are their names.
    OverdueSchedules,
    /// Actions should have fired more than a minute ago.
    OverdueActions,
    /// Calls wait for functions that no worker serves; its items are functions.
    FunctionsWithoutWorker,
    /// Messages, turns and activities were given up.
    DeadLetters,
    /// Requests to webhooks were refused in the last hour; its items are reasons.
    HooksRefused,
    /// Batches wait for an approval; its items are batches.
    BatchesWaiting,
    /// Removals of members wait for an approval; its items are runbooks.
    RemovalsWaiting,
    /// Runs of DAGs failed in the last hour; its items are DAGs.
    RunsFailed,
    /// Polls of sensors of DAGs have failed several times in a row, so that they are further and further apart; its items are
    /// sensors.
    SensorsFailing,
    /// The store takes no writes, has met damage, or its disk is nearly full.
    Store,
    /// The ledger of DAG runs cannot be read or written, its events are not folded, or a tenant's part of it cannot be driven; its
    /// items are reasons.
    Ledger,
    /// The clock of the node that answers differs from the clock of the store.
    Clock,
    /// Nodes have vanished in the last hour without stopping in order, and no other has taken their place; its items are nodes.
    Nodes,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Work is not done.
    Error,
    /// Work waits, or will.
    Warning,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KnownProblem {
    /// What.
    pub kind: ProblemKind,
    /// How bad it is.
    pub severity: Severity,
    /// How many there are.
    pub count: u64,
    /// Whether there are more than were counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// What it is, for people, to be read behind the count.
    pub text: String,
    /// Since when it has been so, for the oldest of those that were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<Timestamp>,
    /// How many of them arose in each five minutes of the last hour, oldest first; absent where that is not known. Those that
    /// are older are in none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trend: Vec<u64>,
    /// Where it is listed.
    pub link: ProblemLink,
    /// Parts of the count, most first, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<ProblemItem>,
}

/// Where problems are listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemLink {
    /// The list, as its route is called: `instances`, `recurring`, `dead_letters`.
    pub page: String,
    /// What it is filtered by, as the text form of the filter has it.
    pub filter: BTreeMap<String, String>,
}

/// A part of a count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemItem {
    /// What it is called.
    pub name: String,
    /// How many.
    pub count: u64,
}

/// Something that could not be looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnknownProblem {
    /// What.
    pub kind: ProblemKind,
    /// Why.
    pub reason: String,
}
