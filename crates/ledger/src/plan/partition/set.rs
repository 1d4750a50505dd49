//! A partition definition that was checked: which keys there are.

use std::collections::BTreeMap;

use jiff::Timestamp;
use segno_actions::document::{did_you_mean, shown};
use segno_actions::schedule::Zones;
use serde_json::{Value, json};

use super::calendar::{Calendar, Window};
use super::error::PartitionError;
use super::grid::Grid;
use crate::plan::definition::{Partitions, WindowSize};
use crate::plan::limits::{MAX_PARTITION_KEY_BYTES, MAX_RANGE_KEYS, MAX_STATIC_KEYS};

/// What separates the two ends of a range.
const RANGE: &str = "..";
/// What stands for all keys of a dimension.
const ALL: &str = "*";

/// The keys of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSet(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Windows(Windows),
    Keys(Vec<String>),
    Grid(Box<Grid>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Windows {
    calendar: Calendar,
    /// The start of the first window.
    start: Timestamp,
    /// The end of the last window, if there is one.
    end: Option<Timestamp>,
}

impl PartitionSet {
    /// Checks a definition. A grid takes its dimensions from the other definitions.
    ///
    /// # Errors
    /// What is wrong with the definition.
    pub fn compile(
        definition: &Partitions,
        others: &BTreeMap<String, Partitions>,
        zones: &Zones,
    ) -> Result<Self, PartitionError> {
        match definition {
            Partitions::Windows { window, timezone, first, last } => {
                let zone = zones.get(timezone).map_err(|error| PartitionError::new(error.problem()))?;
                let calendar = Calendar { size: *window, zone };
                let start = calendar.window(first)?.start;
                let end = last.as_deref().map(|last| calendar.window(last)).transpose()?;
                let end = end.map(|window| window.end);
                if end.is_some_and(|end| end <= start) {
                    let last = last.as_deref().unwrap_or_default();
                    let problem = format!("the last partition {last:?} is before the first, {first:?}");
                    return Err(PartitionError::new(problem));
                }
                Ok(PartitionSet(Kind::Windows(Windows { calendar, start, end })))
            }
            Partitions::Keys { values } => {
                check_keys(values)?;
                Ok(PartitionSet(Kind::Keys(values.clone())))
            }
            Partitions::Grid { dimensions } => {
                let [first, second] = dimensions;
                if first == second {
                    let problem = format!("the two dimensions are the same, {first:?}; name another one");
                    return Err(PartitionError::new(problem));
                }
                let definitions = [dimension(first, others)?, dimension(second, others)?];
                let [first, second] = definitions.map(|definition| Self::compile(definition, others, zones));
                let sets = [first?, second?];
                Ok(PartitionSet(Kind::Grid(Box::new(Grid::new(dimensions.clone(), sets)))))
            }
        }
    }

    /// Checks that a key is one of these.
    ///
    /// # Errors
    /// `invalid-partition` with what a key looks like.
    pub fn check(&self, key: &str) -> Result<(), PartitionError> {
        match &self.0 {
            Kind::Windows(windows) => windows.window(key).map(|_| ()),
            Kind::Keys(keys) => position(keys, key).map(|_| ()),
            Kind::Grid(grid) => grid.check(key),
        }
    }

    /// The window of a key, if time is one of the dimensions.
    pub fn window(&self, key: &str) -> Option<Window> {
        match &self.0 {
            Kind::Windows(windows) => windows.window(key).ok(),
            Kind::Keys(_) => None,
            Kind::Grid(grid) => grid.window(key),
        }
    }

    /// Whether each partition is a window of time and nothing else.
    pub fn has_windows_only(&self) -> bool {
        matches!(self.0, Kind::Windows(_))
    }

    /// The key of the last window that has ended at a time; none for keys without time, or before the first window ends.
    pub fn latest_complete(&self, at: Timestamp) -> Option<String> {
        let Kind::Windows(windows) = &self.0 else { return None };
        let at = windows.end.map_or(at, |end| end.min(at));
        let current = windows.calendar.containing(at)?;
        let last = windows.calendar.containing(just_before(current.start)?)?;
        (last.start >= windows.start).then(|| windows.calendar.key(last))
    }

    /// The keys of a range: `FIRST..LAST` with both ends, one key, or `*` for all. An end of time may be given by a
    /// longer window: `2026-01..2026-02` are all days of two months. In a grid there is a range for each dimension:
    /// `2026-01-01..2026-01-30|*`.
    ///
    /// # Errors
    /// `invalid-partition` when it is no range, or has too many keys.
    pub fn range(&self, text: &str) -> Result<Vec<String>, PartitionError> {
        match &self.0 {
            Kind::Windows(windows) => windows.range(text),
            Kind::Keys(keys) if text == ALL => Ok(keys.clone()),
            Kind::Keys(keys) => {
                let (first, last) = text.split_once(RANGE).unwrap_or((text, text));
                let (first, last) = (position(keys, first)?, position(keys, last)?);
                match keys.get(first..=last) {
                    Some(keys) if first <= last => Ok(keys.to_vec()),
                    _ => Err(ends_before_it_begins(text)),
                }
            }
            Kind::Grid(grid) => grid.range(text),
        }
    }

    /// All keys. Windows without a last one are those that have ended at a time.
    ///
    /// # Errors
    /// `invalid-partition` when there are too many.
    pub fn keys_until(&self, at: Timestamp) -> Result<Vec<String>, PartitionError> {
        match &self.0 {
            Kind::Windows(windows) => {
                let end = windows.end.map_or(at, |end| end.min(at));
                let keys = windows.keys_within(Window { start: windows.start, end })?;
                // The last one may not have ended.
                let ended = |key: &String| windows.window(key).is_ok_and(|window| window.end <= end);
                Ok(keys.into_iter().filter(ended).collect())
            }
            Kind::Keys(keys) => Ok(keys.clone()),
            Kind::Grid(grid) => grid.keys_until(at),
        }
    }

    /// The keys whose windows overlap with a window.
    ///
    /// # Errors
    /// `invalid-partition` when these are no windows, or there are too many.
    pub fn overlapping(&self, window: Window) -> Result<Vec<String>, PartitionError> {
        let Kind::Windows(windows) = &self.0 else {
            return Err(PartitionError::new(
                "partitions that are not windows of time do not overlap with one",
            ));
        };
        let start = windows.calendar.containing(window.start).map_or(window.start, |first| first.start);
        windows.keys_within(Window { start, end: window.end })
    }

    /// What templates know of a partition under `partition`.
    ///
    /// # Errors
    /// `invalid-partition` when the key is none of these.
    pub fn names(&self, key: &str) -> Result<Value, PartitionError> {
        self.check(key)?;
        let mut names = json!({ "key": key });
        if let Some(Window { start, end }) = self.window(key) {
            names["start"] = start.to_string().into();
            names["end"] = end.to_string().into();
        }
        if let Kind::Grid(grid) = &self.0 {
            names["keys"] = grid.keys_by_dimension(key)?;
        }
        Ok(names)
    }

    /// The fields that [`names`](Self::names) has, and below `keys` the names of the dimensions.
    pub(crate) fn fields(&self) -> (Vec<&'static str>, &[String]) {
        let with_window = ["key", "start", "end"];
        match &self.0 {
            Kind::Windows(_) => (with_window.to_vec(), &[]),
            Kind::Keys(_) => (vec!["key"], &[]),
            Kind::Grid(grid) => {
                let mut fields = if grid.has_window() { with_window.to_vec() } else { vec!["key"] };
                fields.push("keys");
                (fields, grid.dimensions())
            }
        }
    }
}

impl Windows {
    /// The window of a key of this definition.
    fn window(&self, key: &str) -> Result<Window, PartitionError> {
        let window = self.calendar.window(key)?;
        if window.start < self.start {
            let first = self.calendar.containing(self.start).map(|first| self.calendar.key(first));
            let first = first.unwrap_or_default();
            return Err(PartitionError::new(format!("the partition {key:?} is before the first, {first:?}")));
        }
        if self.end.is_some_and(|end| window.end > end) {
            return Err(PartitionError::new(format!("the partition {key:?} is after the last")));
        }
        Ok(window)
    }

    fn range(&self, text: &str) -> Result<Vec<String>, PartitionError> {
        if text == ALL {
            let Some(end) = self.end else {
                let problem = "the partitions have no last one; write a range, as in ";
                return Err(PartitionError::new(format!("{problem}{0}..{0}", self.calendar.size.example())));
            };
            return self.keys_within(Window { start: self.start, end });
        }
        let (first, last) = text.split_once(RANGE).unwrap_or((text, text));
        let (first, last) = (self.end_of_range(first.trim())?, self.end_of_range(last.trim())?);
        if last.end <= first.start {
            return Err(ends_before_it_begins(text));
        }
        let keys = self.keys_within(Window { start: first.start, end: last.end })?;
        match keys.is_empty() {
            true => Err(PartitionError::new(format!("there is no partition in {:?}", shown(text)))),
            false => Ok(keys),
        }
    }

    /// The window of an end of a range, which may be longer than those of the definition.
    fn end_of_range(&self, text: &str) -> Result<Window, PartitionError> {
        match WindowSize::of_key(text).filter(|size| *size > self.calendar.size) {
            Some(size) => Calendar { size, zone: self.calendar.zone.clone() }.window(text),
            None => self.window(text),
        }
    }

    /// The keys of the windows that begin within a window.
    fn keys_within(&self, within: Window) -> Result<Vec<String>, PartitionError> {
        let end = self.end.map_or(within.end, |end| end.min(within.end));
        let start = within.start.max(self.start);
        let mut keys = Vec::new();
        let mut next = self.calendar.containing(start);
        while let Some(window) = next.filter(|window| window.start < end) {
            if window.start >= start {
                check_count(keys.len() + 1)?;
                keys.push(self.calendar.key(window));
            }
            next = self.calendar.following(window);
        }
        Ok(keys)
    }
}

/// The definition of a dimension of a grid.
fn dimension<'d>(
    name: &str,
    definitions: &'d BTreeMap<String, Partitions>,
) -> Result<&'d Partitions, PartitionError> {
    let definition = definitions.get(name).ok_or_else(|| {
        let advice = did_you_mean(name, definitions.keys().map(String::as_str));
        let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
        PartitionError::new(format!("there are no partitions {:?}{advice}", shown(name)))
    })?;
    match definition {
        Partitions::Grid { .. } => {
            Err(PartitionError::new(format!("{name:?} has two dimensions itself; name one with one")))
        }
        _ => Ok(definition),
    }
}

/// Refuses more keys than a range may have.
pub(super) fn check_count(count: usize) -> Result<(), PartitionError> {
    if count > MAX_RANGE_KEYS {
        let problem = format!("there are more than {MAX_RANGE_KEYS} partitions; write a shorter range");
        return Err(PartitionError::new(problem));
    }
    Ok(())
}

fn ends_before_it_begins(text: &str) -> PartitionError {
    PartitionError::new(format!("{:?} ends before it begins; write the earlier partition first", shown(text)))
}

fn position(keys: &[String], key: &str) -> Result<usize, PartitionError> {
    keys.iter().position(|known| known == key).ok_or_else(|| {
        let advice = did_you_mean(key, keys.iter().map(String::as_str));
        let advice = advice.unwrap_or_else(|| match keys {
            [first, .., last] => format!("the first is {first:?} and the last {last:?}"),
            keys => format!("the only one is {:?}", keys.concat()),
        });
        PartitionError::new(format!("there is no partition {:?}; {advice}", shown(key)))
    })
}

/// Static keys stand in ranges and in keys of grids, so they cannot have what separates these.
fn check_keys(keys: &[String]) -> Result<(), PartitionError> {
    if keys.is_empty() || keys.len() > MAX_STATIC_KEYS {
        let problem = format!("expected 1 to {MAX_STATIC_KEYS} partition keys, found {}", keys.len());
        return Err(PartitionError::new(problem));
    }
    let mut seen = std::collections::BTreeSet::new();
    for key in keys {
        let shown = shown(key);
        if key.is_empty() || key.len() > MAX_PARTITION_KEY_BYTES {
            let problem = format!("the partition key {shown:?} has {} bytes", key.len());
            return Err(PartitionError::new(format!("{problem}; write 1 to {MAX_PARTITION_KEY_BYTES}")));
        }
        let is_key = key.trim() == key && !key.chars().any(char::is_control);
        if !is_key || key.contains('|') || key.contains(RANGE) || key == ALL {
            let rule =
                "write printable characters without \"|\", \"..\" and white space at the ends, and not \"*\"";
            return Err(PartitionError::new(format!("{shown:?} cannot be a partition key; {rule}")));
        }
        if !seen.insert(key) {
            return Err(PartitionError::new(format!(
                "the partition key {shown:?} is given twice; remove one"
            )));
        }
    }
    Ok(())
}

fn just_before(time: Timestamp) -> Option<Timestamp> {
    time.checked_sub(jiff::SignedDuration::from_nanos(1)).ok()
}

#[cfg(test)]
#[path = "set_tests.rs"]
mod tests;
