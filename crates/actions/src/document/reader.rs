//! What all parts of a document are read with: a report of problems, maps with known keys, and values of the types
//! that keys have.

use std::collections::BTreeSet;

use segno::Payload;
use serde_json::Value;

use super::excerpt::{folded, shown};
use super::field::{Field, Fields, below};
use super::keys::ObjectKeys;
use super::problem::{Problem, Problems};
use super::size::too_many_items;
use super::suggestion::did_you_mean;
use super::tree::{Entry, Tree};
use crate::free_text;
use crate::functions::HumanDuration;

/// Where a text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// From an author.
    New,
    /// It was published. A rule that is younger than it must not make it unreadable.
    Published,
}

/// Reads the parts of one document. A part that cannot be read is reported and left out, and reading
/// continues, so that all problems are found at once.
pub trait PartReader {
    /// The problems that were found so far.
    fn problems(&mut self) -> &mut Problems;

    /// Where the text comes from.
    fn origin(&self) -> Origin;

    /// Reports a problem.
    fn push(&mut self, problem: Problem) {
        self.problems().push(problem);
    }

    /// Reports a value of another kind than expected.
    fn wrong_kind(&mut self, field: &Field<'_>, expected: &str, advice: Option<String>) {
        let problem = field.error(format!("expected {expected}, found {}", field.node.kind()));
        self.push(problem.maybe_advice(advice));
    }

    /// A map with these keys. Other keys are reported as warnings.
    fn fields<'n>(&mut self, field: Field<'n>, keys: &ObjectKeys) -> Option<Fields<'n>> {
        let entries = self.map(&field)?;
        for entry in entries.iter().filter(|entry| !keys.keys.contains(&entry.key.as_str())) {
            let problem = format!("the key {:?} is not known and has no effect", shown(&entry.key));
            let advice = did_you_mean(&entry.key, keys.keys.iter().copied());
            let problem = Problem::warning(entry.at, below(&field.path, &entry.key), problem);
            self.push(problem.maybe_advice(advice));
        }
        Some(Fields::new(field, entries, keys.keys))
    }

    /// The entries of a map.
    fn map<'n>(&mut self, field: &Field<'n>) -> Option<&'n [Entry]> {
        match &field.node.tree {
            Tree::Map(entries) => Some(entries),
            _ => {
                self.wrong_kind(field, "a map", None);
                None
            }
        }
    }

    /// The items of a list with at most so many.
    fn list<'n>(&mut self, field: &Field<'n>, max_items: usize) -> Vec<Field<'n>> {
        let Tree::List(items) = &field.node.tree else {
            let advice = "begin each item with \"- \", or write [a, b]".to_owned();
            self.wrong_kind(field, "a list", Some(advice));
            return Vec::new();
        };
        if items.len() > max_items {
            self.push(field.error(too_many_items(items.len(), max_items)));
        }
        items.iter().take(max_items).enumerate().map(|(index, node)| field.item(index, node)).collect()
    }

    /// The value of a key that must be there.
    fn required<'n>(&mut self, fields: &Fields<'n>, key: &str, example: &str) -> Option<Field<'n>> {
        let found = fields.get(key);
        if found.is_none() {
            let problem = fields.whole().error(format!("the key {key:?} is missing"));
            self.push(problem.advice(format!("add {key}: {example}")));
        }
        found
    }

    /// A text. A plain number stands for its own digits.
    fn text(&mut self, field: &Field<'_>, max_bytes: usize) -> Option<String> {
        let text = match &field.node.tree {
            Tree::Text(text) => text.clone(),
            Tree::Number(_, written) => written.clone(),
            Tree::Bool(_) => {
                self.wrong_kind(field, "a text", Some("write it in quotes".to_owned()));
                return None;
            }
            _ => {
                self.wrong_kind(field, "a text", None);
                return None;
            }
        };
        if text.len() > max_bytes {
            self.push(field.error(format!("the text has {} bytes, the limit is {max_bytes}", text.len())));
            return None;
        }
        if text.trim().is_empty() {
            self.push(field.error("the text is empty"));
            return None;
        }
        Some(text)
    }

    /// A text for people, or for machines such as a query: several lines, no other control characters.
    fn lines(&mut self, field: &Field<'_>, max_bytes: usize) -> Option<String> {
        let text = self.text(field, max_bytes)?;
        let problem = free_text::problem(&text, max_bytes);
        if let Some(problem) = problem.filter(|_| self.origin() == Origin::New) {
            self.push(field.error(format!("the text {problem}")));
            return None;
        }
        Some(text)
    }

    /// The same on one line, such as a path.
    fn line(&mut self, field: &Field<'_>, max_bytes: usize) -> Option<String> {
        let text = self.text(field, max_bytes)?;
        let found = text.chars().enumerate().find(|(_, c)| c.is_control());
        if let Some((before, c)) = found.filter(|_| self.origin() == Origin::New) {
            let problem = format!("the text has the control character {c:?} (character {})", before + 1);
            self.push(field.error(problem).advice("remove it: the text is one line"));
            return None;
        }
        Some(text)
    }

    /// A text that passes a check, such as a name.
    fn checked(
        &mut self,
        field: &Field<'_>,
        check: impl FnOnce(&str) -> Result<(), String>,
    ) -> Option<String> {
        let text = self.text(field, usize::MAX)?;
        match check(&text) {
            Ok(()) => Some(text),
            Err(problem) => {
                self.push(field.error(problem));
                None
            }
        }
    }

    /// One of several words.
    fn choice<T: Copy>(&mut self, field: &Field<'_>, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text(field, usize::MAX)?;
        let found = choices.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let advice = match did_you_mean(&text, words.iter().copied()) {
                Some(advice) => advice,
                None => format!("write {}", words.join(" or ")),
            };
            self.push(field.error(format!("{:?} is not known here", shown(&text))).advice(advice));
        }
        found.map(|(_, choice)| *choice)
    }

    /// A whole number between two others.
    fn number(&mut self, field: &Field<'_>, min: u64, max: u64) -> Option<u64> {
        let number = match &field.node.tree {
            Tree::Number(number, _) => number.as_u64(),
            _ => None,
        };
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let found = match &field.node.tree {
                Tree::Number(_, written) | Tree::Text(written) => format!("{:?}", shown(written)),
                _ => field.node.kind().to_owned(),
            };
            self.push(field.error(format!("expected a whole number from {min} to {max}, found {found}")));
        }
        number
    }

    /// A percentage, as a number or as in `25%`.
    fn percent(&mut self, field: &Field<'_>, min: u8) -> Option<u8> {
        let number = match &field.node.tree {
            Tree::Number(number, _) => number.as_u64(),
            Tree::Text(text) => percent_of(text),
            _ => None,
        };
        let percent = number.and_then(|number| u8::try_from(number).ok());
        let percent = percent.filter(|percent| (min..=100).contains(percent));
        if percent.is_none() {
            let found = match &field.node.tree {
                Tree::Number(_, written) | Tree::Text(written) => format!("{:?}", shown(written)),
                _ => field.node.kind().to_owned(),
            };
            let problem = format!("expected a whole percentage from {min} to 100, found {found}");
            self.push(field.error(problem).advice("write it as 25 or 25%"));
        }
        percent
    }

    /// A duration in whole seconds, at least so many.
    fn seconds(&mut self, field: &Field<'_>, min_sec: u64) -> Option<u64> {
        let text = match &field.node.tree {
            Tree::Text(text) => text,
            Tree::Number(_, written) => {
                let problem = field.error(format!("the duration {written} has no unit"));
                self.push(problem.advice(format!("write {written}s, {written}m, {written}h or {written}d")));
                return None;
            }
            _ => {
                self.wrong_kind(field, "a duration", Some("write it as 30s, 15m, 24h or 5d".to_owned()));
                return None;
            }
        };
        let problem = match text.parse::<HumanDuration>() {
            Err(error) => error.to_string(),
            Ok(duration) if !duration.as_ms().is_multiple_of(1_000) => {
                format!("{:?} is not a whole number of seconds", shown(text))
            }
            Ok(duration) if duration.as_ms() / 1_000 < min_sec => {
                let min = HumanDuration::from_secs(min_sec);
                format!("{:?} is too short; the minimum is {min}", shown(text))
            }
            Ok(duration) => return Some(duration.as_ms() / 1_000),
        };
        self.push(field.error(problem));
        None
    }

    /// Any value, as JSON that every reader of it can show.
    fn json(&mut self, field: &Field<'_>, max_bytes: usize) -> Option<Value> {
        let json = field.node.to_json();
        let text = json.to_string();
        if text.len() > max_bytes {
            let problem =
                format!("the value has {} bytes of JSON text, the limit is {max_bytes}", text.len());
            self.push(field.error(problem));
            return None;
        }
        match Payload::from_json(&text) {
            Ok(_) => Some(json),
            Err(error) => {
                self.push(field.error(error.to_string()));
                None
            }
        }
    }

    /// Reports a name that an earlier item has too; letter case does not matter.
    fn unique(&mut self, seen: &mut BTreeSet<String>, name: &str, field: &Field<'_>) {
        let name = folded(name);
        if seen.contains(&name) {
            let problem = format!("the name {:?} is used twice; letter case does not matter", shown(&name));
            self.push(field.error(problem).advice("rename one of them"));
        } else {
            seen.insert(name);
        }
    }
}

/// The number in `25%` or `25`.
pub fn percent_of(text: &str) -> Option<u64> {
    let digits = text.trim();
    digits.strip_suffix('%').map_or(digits, str::trim_end).parse().ok()
}
