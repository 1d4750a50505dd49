//! A value with its path, and a map whose keys are known.

use super::excerpt::shown;
use super::problem::{Position, Problem};
use super::tree::{Entry, Node, Tree};

/// A value and what it is called, as in `phases[1].steps[0].on_failure`.
#[derive(Debug, Clone)]
pub struct Field<'n> {
    /// The value.
    pub node: &'n Node,
    /// Its path; empty is the whole document.
    pub path: String,
}

impl<'n> Field<'n> {
    /// The whole document.
    pub fn root(node: &'n Node) -> Self {
        Field { node, path: String::new() }
    }

    /// Where it stands.
    pub fn at(&self) -> Position {
        self.node.at
    }

    /// An error about it.
    pub fn error(&self, problem: impl Into<String>) -> Problem {
        Problem::error(self.at(), self.path.clone(), problem)
    }

    /// A warning about it.
    pub fn warning(&self, problem: impl Into<String>) -> Problem {
        Problem::warning(self.at(), self.path.clone(), problem)
    }

    /// An item of it.
    pub fn item(&self, index: usize, node: &'n Node) -> Field<'n> {
        Field { node, path: format!("{}[{index}]", self.path) }
    }

    /// A value of it.
    pub fn value(&self, entry: &'n Entry) -> Field<'n> {
        Field { node: &entry.value, path: below(&self.path, &entry.key) }
    }
}

/// The path of a key below another path.
pub fn below(path: &str, key: &str) -> String {
    if path.is_empty() { shown(key) } else { format!("{path}.{}", shown(key)) }
}

/// A map whose keys are known.
#[derive(Debug)]
pub struct Fields<'n> {
    whole: Field<'n>,
    entries: &'n [Entry],
    keys: &'static [&'static str],
}

impl<'n> Fields<'n> {
    pub(super) fn new(whole: Field<'n>, entries: &'n [Entry], keys: &'static [&'static str]) -> Self {
        Fields { whole, entries, keys }
    }

    /// The value of a key. A key without a value is as if it were not there.
    pub fn get(&self, key: &str) -> Option<Field<'n>> {
        debug_assert!(self.keys.contains(&key), "{key} is not in the table of keys");
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        (entry.value.tree != Tree::Null).then(|| self.whole.value(entry))
    }

    /// The whole map.
    pub fn whole(&self) -> &Field<'n> {
        &self.whole
    }
}
