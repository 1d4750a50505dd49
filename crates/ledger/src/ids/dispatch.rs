//! Dispatch ids: one for each attempt of a task, so that dispatching twice is dispatching once.

use std::fmt;
use std::str::FromStr;

use super::segment::{escape, unescape};

/// `dispatch:{run}:{task}:{attempt}`.
pub fn dispatch_id(run_id: &str, task_key: &str, attempt: u32) -> String {
    format!("dispatch:{}:{}:{attempt}", escape(run_id), escape(task_key))
}

/// What a dispatch id says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchName {
    /// The run.
    pub run_id: String,
    /// The task.
    pub task_key: String,
    /// The attempt.
    pub attempt: u32,
}

impl fmt::Display for DispatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&dispatch_id(&self.run_id, &self.task_key, self.attempt))
    }
}

/// A text that is not a dispatch id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a dispatch id: it has the form dispatch:{{run}}:{{task}}:{{attempt}}")]
pub struct InvalidDispatchId(pub String);

impl FromStr for DispatchName {
    type Err = InvalidDispatchId;

    fn from_str(text: &str) -> Result<Self, InvalidDispatchId> {
        let read = || -> Option<DispatchName> {
            // Segments are escaped, so a colon always divides two of them.
            let segments: Vec<&str> = text.strip_prefix("dispatch:")?.split(':').collect();
            let [run, task, attempt] = segments.try_into().ok()?;
            let attempt = attempt.parse().ok()?;
            Some(DispatchName { run_id: unescape(run)?, task_key: unescape(task)?, attempt })
        };
        read().ok_or_else(|| InvalidDispatchId(text.chars().take(200).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_has_one_dispatch_id_and_no_other_attempt_has_it() {
        assert_eq!(dispatch_id("run1", "extract", 1), "dispatch:run1:extract:1");
        assert_ne!(dispatch_id("a", "b:c", 1), dispatch_id("a:b", "c", 1));
    }

    #[test]
    fn dispatch_ids_with_colons_in_their_keys_are_read_back() {
        for (run, task) in [("run1", "extract"), ("a:b", "c:1"), ("%", "%3A")] {
            let name = DispatchName { run_id: run.to_owned(), task_key: task.to_owned(), attempt: 7 };
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for text in ["", "dispatch:a:b", "dispatch:a:b:c:1", "dispatch:a:b:x", "timer:a:b:1"] {
            assert_eq!(text.parse::<DispatchName>(), Err(InvalidDispatchId(text.to_owned())));
        }
    }
}
