//! What is decided when a planned task is ready: its input, or the tasks that its list adds.

use segno_actions::template::kind_of;
use serde_json::{Map, Value};

use super::input::{InputError, PlannedInput, RunNames};
use super::limits::{MAX_EXPANDED_BYTES, MAX_FOR_EACH_ITEMS};
use crate::event::PlannedTask;

/// The input that a task is called with. `output` is what an upstream task has returned, if it has succeeded.
///
/// # Errors
/// When a template names what is not there, or the input is too large.
pub fn resolve_input(
    task: &PlannedTask,
    names: &RunNames<'_>,
    output: impl Fn(&str) -> Option<Value>,
) -> Result<Value, InputError> {
    let Some(input) = &task.input else { return Ok(Value::Null) };
    let input = PlannedInput::from_value(input)?;
    let outputs = outputs_for(&[&input], output)?;
    input.resolve(&names.with_outputs(outputs))
}

/// Why a list adds no tasks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The task is not expanded over a list.
    #[error("the task {0:?} has no for_each")]
    NoForEach(String),
    /// The list, or the input of an item, cannot be resolved.
    #[error("{place}: {error}")]
    Input {
        /// `for_each`, or the key of the task of the item.
        place: String,
        /// Why.
        error: InputError,
    },
    /// It is something else.
    #[error("for_each: expected a list, found {0}; name a list in {{{{ … }}}}")]
    NotAList(&'static str),
    /// It is too long.
    #[error("for_each: the list has {count} items, the limit is {limit}; {advice}")]
    TooMany {
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
        /// What to do about it.
        advice: &'static str,
    },
    /// The inputs are too large.
    #[error(
        "for_each: the inputs of the items have more than {MAX_EXPANDED_BYTES} bytes; pass references to large values instead"
    )]
    TooLarge,
}

/// What can be done about a list that is too long for a limit.
pub(super) fn too_long(limit: usize) -> &'static str {
    if limit < MAX_FOR_EACH_ITEMS as usize {
        "raise max_items or shorten the list"
    } else {
        "no list may have more: shorten it, or expand several tasks"
    }
}

/// The tasks that a list adds: `load[0]`, `load[1]` and so on, with their inputs resolved. They depend on nothing.
///
/// # Errors
/// When there is no list, it is too long, or an input cannot be resolved.
pub fn expand(
    task: &PlannedTask,
    names: &RunNames<'_>,
    output: impl Fn(&str) -> Option<Value>,
) -> Result<Vec<PlannedTask>, ExpandError> {
    let Some(for_each) = &task.for_each else { return Err(ExpandError::NoForEach(task.key.to_string())) };
    let of_list = |error: InputError| ExpandError::Input { place: "for_each".to_owned(), error };
    let list = PlannedInput::from_value(&for_each.items).map_err(of_list)?;
    let input = task.input.as_ref().map_or_else(|| Ok(PlannedInput::default()), PlannedInput::from_value);
    let input = input.map_err(of_list)?;
    let outputs = outputs_for(&[&list, &input], output).map_err(of_list)?;
    let mut names = names.with_outputs(outputs);
    let items = match list.resolve(&names).map_err(of_list)? {
        Value::Array(items) => items,
        other => return Err(ExpandError::NotAList(kind_of(&other))),
    };
    let limit = for_each.max_items.unwrap_or(MAX_FOR_EACH_ITEMS).min(MAX_FOR_EACH_ITEMS) as usize;
    if items.len() > limit {
        return Err(ExpandError::TooMany { count: items.len(), limit, advice: too_long(limit) });
    }
    let mut added = Vec::with_capacity(items.len());
    let mut bytes_left = MAX_EXPANDED_BYTES;
    for (index, item) in items.into_iter().enumerate() {
        let key = expanded_key(&task.key, index);
        (names["item"], names["index"]) = (item, index.into());
        let value = input.resolve(&names);
        let value = value.map_err(|error| ExpandError::Input { place: key.clone(), error })?;
        bytes_left = bytes_left.checked_sub(value.to_string().len()).ok_or(ExpandError::TooLarge)?;
        let mut one = PlannedTask::new(key);
        one.target.clone_from(&task.target);
        one.max_attempts = task.max_attempts;
        one.heartbeat_timeout_sec = task.heartbeat_timeout_sec;
        one.backoff = task.backoff;
        one.timeout_seconds = task.timeout_seconds;
        one.tag.clone_from(&task.tag);
        one.pool.clone_from(&task.pool);
        one.worker_pool.clone_from(&task.worker_pool);
        one.completion = task.completion;
        one.input = Some(PlannedInput { value, templates: Vec::new() }.to_value());
        added.push(one);
    }
    Ok(added)
}

/// The key of the task of one item. Keys that users write have no brackets.
pub fn expanded_key(key: &str, index: usize) -> String {
    format!("{key}[{index}]")
}

/// The outputs that templates name and that exist.
fn outputs_for(
    inputs: &[&PlannedInput],
    output: impl Fn(&str) -> Option<Value>,
) -> Result<Map<String, Value>, InputError> {
    let mut outputs = Map::new();
    for input in inputs {
        for key in input.wanted_outputs()? {
            if let Some(output) = output(&key) {
                outputs.insert(key, output);
            }
        }
    }
    Ok(outputs)
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
