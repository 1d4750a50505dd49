//! Topics and subscriptions.

use std::fmt;
use std::str::FromStr;

use super::error::BusError;

/// Topic of the events of batches.
pub const ORCHESTRATOR_EVENTS: &str = "orchestrator-events";
/// The subscription of the orchestrator to it.
pub const ORCHESTRATOR: &str = "orchestrator";
/// Topic of jobs for workers.
pub const JOBS: &str = "jobs";
/// Topic of results of workers.
pub const RESULTS: &str = "results";
/// The same as [`JOBS`], as later workers call it.
pub const WORKER_JOBS: &str = "worker-jobs";
/// The same as [`RESULTS`], as later workers call it.
pub const WORKER_RESULTS: &str = "worker-results";

/// Longest name in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The name of a topic. Names that mean the same topic are the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(String);

/// The name of a subscription, with its topic.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionName {
    /// The topic.
    pub topic: TopicName,
    name: String,
}

impl TopicName {
    /// Checks a name.
    ///
    /// # Errors
    /// `invalid-bus-name`.
    pub fn new(name: &str) -> Result<Self, BusError> {
        let name = check("topic", name)?;
        Ok(TopicName(match name.as_str() {
            WORKER_JOBS => JOBS.to_owned(),
            WORKER_RESULTS => RESULTS.to_owned(),
            _ => name,
        }))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TopicName {
    type Err = BusError;

    fn from_str(name: &str) -> Result<Self, BusError> {
        TopicName::new(name)
    }
}

impl SubscriptionName {
    /// Checks a name.
    ///
    /// # Errors
    /// `invalid-bus-name`.
    pub fn new(topic: &str, name: &str) -> Result<Self, BusError> {
        Ok(SubscriptionName { topic: TopicName::new(topic)?, name: check("subscription", name)? })
    }

    /// The name, without the topic.
    pub fn as_str(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for SubscriptionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.topic, self.name)
    }
}

/// Names of both kinds stand in ids of records, and are the same whatever their letter case.
fn check(what: &'static str, name: &str) -> Result<String, BusError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if name.len() > MAX_NAME_BYTES || !starts_well || !name.chars().all(is_allowed) {
        return Err(BusError::InvalidName { what, name: name.chars().take(MAX_NAME_BYTES).collect() });
    }
    Ok(name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_mean_the_same_are_the_same() {
        for (one, other) in [("jobs", "worker-jobs"), ("Worker-Results", "RESULTS"), ("a.b_c-1", "A.B_C-1")] {
            assert_eq!(TopicName::new(one).unwrap(), TopicName::new(other).unwrap());
        }
        assert_eq!(SubscriptionName::new("Jobs", "Cloud-01").unwrap().to_string(), "jobs/cloud-01");
        for bad in ["", "a/b", "-a", "ä", &"x".repeat(129)] {
            assert_eq!(TopicName::new(bad).unwrap_err().code(), "invalid-bus-name", "{bad}");
        }
    }
}
