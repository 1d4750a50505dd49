//! Keys with two dimensions: `2026-03-29|eu`. Keys of a dimension cannot have the separator.

use jiff::Timestamp;
use segno_actions::document::shown;
use serde_json::{Map, Value};

use super::calendar::Window;
use super::error::PartitionError;
use super::set::{PartitionSet, check_count};

/// What separates the keys of the dimensions.
const SEPARATOR: char = '|';

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grid {
    names: [String; 2],
    sets: [PartitionSet; 2],
}

impl Grid {
    pub fn new(names: [String; 2], sets: [PartitionSet; 2]) -> Self {
        Grid { names, sets }
    }

    pub fn dimensions(&self) -> &[String] {
        &self.names
    }

    pub fn has_window(&self) -> bool {
        self.sets.iter().filter(|set| set.has_windows_only()).count() == 1
    }

    pub fn check(&self, key: &str) -> Result<(), PartitionError> {
        let keys = self.split(key)?;
        self.sets.iter().zip(keys).try_for_each(|(set, key)| set.check(key))
    }

    /// The window of the one dimension that has windows.
    pub fn window(&self, key: &str) -> Option<Window> {
        let keys = self.split(key).ok().filter(|_| self.has_window())?;
        self.sets.iter().zip(keys).find_map(|(set, key)| set.window(key))
    }

    pub fn range(&self, text: &str) -> Result<Vec<String>, PartitionError> {
        let text = if text == "*" { "*|*" } else { text };
        let [first, second] = self.split(text)?;
        joined(&self.sets[0].range(first)?, &self.sets[1].range(second)?)
    }

    pub fn keys_until(&self, at: Timestamp) -> Result<Vec<String>, PartitionError> {
        joined(&self.sets[0].keys_until(at)?, &self.sets[1].keys_until(at)?)
    }

    pub fn keys_by_dimension(&self, key: &str) -> Result<Value, PartitionError> {
        let keys = self.split(key)?;
        let keys = self.names.iter().zip(keys).map(|(name, key)| (name.clone(), Value::from(key)));
        Ok(Value::Object(keys.collect::<Map<_, _>>()))
    }

    fn split<'k>(&self, key: &'k str) -> Result<[&'k str; 2], PartitionError> {
        let parts = key.split_once(SEPARATOR).filter(|(_, second)| !second.contains(SEPARATOR));
        parts.map(|(first, second)| [first, second]).ok_or_else(|| {
            let [first, second] = &self.names;
            let problem = format!("{:?} has not two dimensions", shown(key));
            PartitionError::new(format!(
                "{problem}; write the keys of {first} and {second} with | between them"
            ))
        })
    }
}

fn joined(first: &[String], second: &[String]) -> Result<Vec<String>, PartitionError> {
    check_count(first.len().saturating_mul(second.len()))?;
    let keys =
        first.iter().flat_map(|first| second.iter().map(move |second| format!("{first}{SEPARATOR}{second}")));
    Ok(keys.collect())
}
