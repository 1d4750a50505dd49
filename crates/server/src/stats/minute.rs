//! The counts of one minute.

use std::collections::BTreeMap;

use segno::runtime::{ChangeKind, EndedExecution};
use serde::{Deserialize, Serialize};

use super::histogram::Histogram;

/// Names of functions, of orchestrations and of failures that a minute tells apart, of each.
const MAX_NAMES: usize = 100;

/// What further names are counted under.
pub const OTHERS: &str = "(others)";

/// What happened to the instances of a tenant in a minute. Stored; names are for ever.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MinuteCounts {
    /// Instances that began.
    pub started: u64,
    /// That completed.
    pub completed: u64,
    /// That failed.
    pub failed: u64,
    /// That were cancelled.
    pub cancelled: u64,
    /// When the first of those that failed did, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_failed_at_ms: Option<u64>,
    /// Ends of calls, by function.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub functions: BTreeMap<String, NameCounts>,
    /// Ends of all others, by orchestration.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub orchestrations: BTreeMap<String, NameCounts>,
    /// Failures by code.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
    /// How late timers were delivered.
    pub lateness: Histogram,
}

/// How executions of one name ended, and how long they took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NameCounts {
    /// That completed.
    pub completed: u64,
    /// That failed.
    pub failed: u64,
    /// That were cancelled.
    pub cancelled: u64,
    /// From the begin of the execution to its end.
    pub times: Histogram,
}

impl MinuteCounts {
    /// Counts a change. `function` is that of a call.
    pub fn count(&mut self, kind: ChangeKind, ended: Option<EndedExecution<'_>>, function: Option<&str>) {
        match kind {
            ChangeKind::Started => self.started += 1,
            ChangeKind::Completed => self.completed += 1,
            ChangeKind::Failed => self.failed += 1,
            ChangeKind::Cancelled => self.cancelled += 1,
            ChangeKind::StatusChanged
            | ChangeKind::Paused
            | ChangeKind::Resumed
            | ChangeKind::ContinuedAsNew => {}
        }
        let Some(ended) = ended else { return };
        if kind == ChangeKind::Failed {
            self.first_failed_at_ms = earlier(self.first_failed_at_ms, Some(ended.ended_at_ms));
        }
        if let Some(code) = ended.failure {
            *entry(&mut self.failures, code) += 1;
        }
        let counts = match function {
            Some(function) => entry(&mut self.functions, function),
            None => entry(&mut self.orchestrations, ended.orchestration),
        };
        match kind {
            ChangeKind::Completed => counts.completed += 1,
            ChangeKind::Failed => counts.failed += 1,
            _ => counts.cancelled += 1,
        }
        counts.times.record(ended.ended_at_ms.saturating_sub(ended.started_at_ms));
    }

    /// Adds the counts of another process or minute.
    pub fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.completed += other.completed;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.first_failed_at_ms = earlier(self.first_failed_at_ms, other.first_failed_at_ms);
        merge_names(&mut self.functions, &other.functions);
        merge_names(&mut self.orchestrations, &other.orchestrations);
        for (code, count) in &other.failures {
            *self.failures.entry(code.clone()).or_default() += count;
        }
        self.lateness.merge(&other.lateness);
    }
}

impl NameCounts {
    /// Adds the counts of another name, process or minute.
    pub fn merge(&mut self, other: &Self) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.cancelled += other.cancelled;
        self.times.merge(&other.times);
    }
}

/// The earlier of two times that may be unknown.
fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

fn merge_names(into: &mut BTreeMap<String, NameCounts>, from: &BTreeMap<String, NameCounts>) {
    for (name, counts) in from {
        into.entry(name.clone()).or_default().merge(counts);
    }
}

/// The counts of a name, or those of all others when there are too many names.
fn entry<'m, T: Default>(map: &'m mut BTreeMap<String, T>, name: &str) -> &'m mut T {
    let name = match map.len() < MAX_NAMES || map.contains_key(name) {
        true => name,
        false => OTHERS,
    };
    map.entry(name.to_owned()).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(orchestration: &str) -> EndedExecution<'_> {
        const NONE: &BTreeMap<String, String> = &BTreeMap::new();
        EndedExecution { orchestration, labels: NONE, started_at_ms: 10, ended_at_ms: 15, failure: None }
    }

    #[test]
    fn ends_are_counted_by_function_or_orchestration_and_failures_by_code() {
        let mut minute = MinuteCounts::default();
        minute.count(ChangeKind::Started, None, None);
        minute.count(ChangeKind::Completed, Some(ended("greet")), None);
        let failed = EndedExecution { failure: Some("no-paint"), ..ended("invoke") };
        let late = EndedExecution { ended_at_ms: 90, ..failed };
        minute.count(ChangeKind::Failed, Some(late), Some("render"));
        assert_eq!(minute.first_failed_at_ms, Some(90));
        minute.failed = 0;
        minute.failures.clear();
        minute.functions.clear();
        minute.count(ChangeKind::Failed, Some(failed), Some("render"));
        minute.count(ChangeKind::Cancelled, Some(ended("greet")), None);
        minute.count(ChangeKind::Paused, None, None);
        let mut twice = minute.clone();
        twice.merge(&minute);
        assert_eq!((twice.started, twice.completed, twice.failed, twice.cancelled), (2, 2, 2, 2));
        assert_eq!(twice.first_failed_at_ms, Some(15));
        assert_eq!(twice.failures, [("no-paint".to_owned(), 2)].into());
        assert_eq!(twice.functions["render"].failed, 2);
        assert_eq!(
            (twice.orchestrations["greet"].completed, twice.orchestrations["greet"].cancelled),
            (2, 2)
        );
        assert_eq!(twice.orchestrations["greet"].times.quantile(50), Some(5));
        let stored = serde_json::to_vec(&twice).unwrap();
        assert_eq!(serde_json::from_slice::<MinuteCounts>(&stored).unwrap(), twice);
    }

    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let mut minute = MinuteCounts::default();
        for number in 0..MAX_NAMES + 20 {
            minute.count(ChangeKind::Completed, Some(ended(&format!("n{number}"))), None);
        }
        assert_eq!(minute.orchestrations.len(), MAX_NAMES + 1);
        assert_eq!(minute.orchestrations[OTHERS].completed, 20);
    }

    #[test]
    fn the_stored_form_of_before_is_read() {
        let stored = r#"{"started":1,"completed":1,"failed":0,"cancelled":0,
            "functions":{"echo":{"completed":1,"failed":0,"cancelled":0,"times":{"5":1}}},"lateness":{"0":2}}"#;
        let minute: MinuteCounts = serde_json::from_str(stored).unwrap();
        assert_eq!(minute.functions["echo"].times.quantile(99), Some(5));
        assert_eq!((minute.started, minute.lateness.quantile(50)), (1, Some(0)));
    }
}
