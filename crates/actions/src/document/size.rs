//! What a document would be with its aliases expanded, counted before anything is built from it. Counting takes time in
//! the length of the text, while reading takes time in what the text stands for: a text of some kilobytes can stand for
//! half a million values.

use std::collections::HashMap;
use std::ops::{Add, Sub};

use serde_saphyr::granit_parser::{Event, Parser, Span};

use super::budget::{Budget, ListLimit};
use super::field::below;
use super::problem::{Position, Problem};

/// Values and bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

impl Add for Size {
    type Output = Size;

    fn add(self, other: Size) -> Size {
        Size { nodes: self.nodes.saturating_add(other.nodes), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl Sub for Size {
    type Output = Size;

    fn sub(self, other: Size) -> Size {
        Size { nodes: self.nodes - other.nodes, bytes: self.bytes - other.bytes }
    }
}

/// What an alias stands for.
#[derive(Debug, Clone, Copy)]
struct Anchored {
    size: Size,
    /// How many items it has, if it is a list.
    items: usize,
}

/// A list or map that has begun and not ended.
struct Open {
    anchor: usize,
    at: Position,
    /// What was counted before it.
    before: Size,
    kind: Kind,
}

enum Kind {
    List {
        items: usize,
        limit: Option<&'static ListLimit>,
    },
    Map {
        /// The key whose value comes next, or the last one.
        key: String,
        is_key_next: bool,
    },
}

/// A count that is under way.
struct Count<'b> {
    budget: &'b Budget,
    total: Size,
    anchors: HashMap<usize, Anchored>,
    open: Vec<Open>,
}

/// Refuses a document that stands for too much. What is wrong with its syntax is left to the parser.
///
/// # Errors
/// The first limit that it breaks.
pub(super) fn check(text: &str, budget: &Budget) -> Result<(), Problem> {
    let mut count = Count { budget, total: Size::default(), anchors: HashMap::new(), open: Vec::new() };
    let mut documents = 0;
    for event in Parser::new_from_str(text) {
        let Ok((event, span)) = event else { return Ok(()) };
        documents += usize::from(matches!(event, Event::DocumentStart(..)));
        // The parser refuses a second document, and one that is nested too deeply, at this place.
        if documents > 1 || count.open.len() > budget.max_depth {
            return Ok(());
        }
        count.add(&event, position(span))?;
    }
    Ok(())
}

fn position(span: Span) -> Position {
    let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    Position { line: number(span.start.line()), column: number(span.start.col()).saturating_add(1) }
}

impl Count<'_> {
    fn add(&mut self, event: &Event<'_>, at: Position) -> Result<(), Problem> {
        match event {
            Event::Scalar(value, _, anchor, _) => {
                self.place(Some(value.as_ref()));
                let size = Size { nodes: 1, bytes: value.len() };
                self.remember(*anchor, Anchored { size, items: 0 });
                self.grow(size, at)
            }
            Event::Alias(anchor) => {
                let Some(anchored) = self.anchors.get(anchor).copied() else { return Ok(()) };
                self.place(None);
                if let Some(limit) = self.list_limit() {
                    self.check_items(anchored.items, limit, at)?;
                }
                self.grow(anchored.size, at)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.place(None);
                let limit = self.list_limit();
                self.begin(*anchor, at, Kind::List { items: 0, limit })
            }
            Event::MappingStart(_, anchor, _) => {
                self.place(None);
                self.begin(*anchor, at, Kind::Map { key: String::new(), is_key_next: true })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            _ => Ok(()),
        }
    }

    /// Notes that a value, or the key of one, begins in the list or map around it.
    fn place(&mut self, scalar: Option<&str>) {
        match self.open.last_mut().map(|open| &mut open.kind) {
            Some(Kind::List { items, .. }) => *items += 1,
            Some(Kind::Map { key, is_key_next }) => {
                if *is_key_next {
                    key.clear();
                    key.push_str(scalar.unwrap_or_default());
                }
                *is_key_next = !*is_key_next;
            }
            None => {}
        }
    }

    fn begin(&mut self, anchor: usize, at: Position, kind: Kind) -> Result<(), Problem> {
        self.open.push(Open { anchor, at, before: self.total, kind });
        self.grow(Size { nodes: 1, bytes: 0 }, at)
    }

    fn end(&mut self) -> Result<(), Problem> {
        let Some(Open { anchor, at, before, kind }) = self.open.pop() else { return Ok(()) };
        let items = match kind {
            Kind::List { items, limit } => {
                if let Some(limit) = limit {
                    self.check_items(items, limit, at)?;
                }
                items
            }
            Kind::Map { .. } => 0,
        };
        self.remember(anchor, Anchored { size: self.total - before, items });
        Ok(())
    }

    fn remember(&mut self, anchor: usize, anchored: Anchored) {
        // 0 stands for no anchor.
        if anchor != 0 {
            self.anchors.insert(anchor, anchored);
        }
    }

    fn grow(&mut self, by: Size, at: Position) -> Result<(), Problem> {
        self.total = self.total + by;
        if self.total.nodes > self.budget.max_nodes {
            return Err(Problem::error(at, "", self.budget.too_many_nodes()));
        }
        if self.total.bytes > self.budget.max_scalar_bytes {
            return Err(Problem::error(at, "", self.budget.too_many_bytes()));
        }
        Ok(())
    }

    /// The limit of a list that stands where the count is.
    fn list_limit(&self) -> Option<&'static ListLimit> {
        if let Some(Open { kind: Kind::Map { is_key_next: false, .. }, .. }) = self.open.last() {
            // It is a key itself.
            return None;
        }
        self.budget.lists.iter().find(|limit| {
            let is_step = |(wanted, open): (&&str, &Open)| match &open.kind {
                Kind::List { .. } => *wanted == "*",
                Kind::Map { key, .. } => *wanted == "*" || *wanted == key.as_str(),
            };
            limit.path.len() == self.open.len() && limit.path.iter().zip(&self.open).all(is_step)
        })
    }

    fn check_items(&self, items: usize, limit: &ListLimit, at: Position) -> Result<(), Problem> {
        if items <= limit.max_items {
            return Ok(());
        }
        let path = self.open.iter().fold(String::new(), |path, open| match &open.kind {
            Kind::List { items, .. } => format!("{path}[{}]", items.saturating_sub(1)),
            Kind::Map { key, .. } => below(&path, key),
        });
        Err(Problem::error(at, path, too_many_items(items, limit.max_items)))
    }
}

/// What is wrong with a list that is too long.
pub(super) fn too_many_items(items: usize, max_items: usize) -> String {
    format!("the list has {items} items, the limit is {max_items}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget {
        noun: "plan",
        max_bytes: 1_000_000,
        max_depth: 8,
        max_nodes: 1_000,
        max_aliases: 10_000,
        max_anchors: 1_000,
        max_scalar_bytes: 10_000,
        lists: &[
            ListLimit { path: &["parts", "*", "steps"], max_items: 3 },
            ListLimit { path: &["undo", "*"], max_items: 2 },
        ],
    };

    fn problem(text: &str) -> Option<String> {
        check(text, &BUDGET).err().map(|problem| problem.to_string())
    }

    #[test]
    fn aliases_count_for_what_they_stand_for() {
        let bomb = |levels: usize| {
            let mut text = "a0: &a0 [x, x, x, x]\n".to_owned();
            for level in 1..levels {
                text.push_str(&format!("a{level}: &a{level} [*a{0}, *a{0}, *a{0}, *a{0}]\n", level - 1));
            }
            text
        };
        assert_eq!(problem(&bomb(4)), None);
        let found = problem(&bomb(200)).unwrap();
        assert!(found.contains("line 5") && found.contains("more than 1000 values"), "{found}");
        let texts = format!("t: &t {}\nall: [*t, *t, *t, *t]\n", "x".repeat(3_000));
        assert!(problem(&texts).unwrap().contains("more than 10000 bytes"), "{texts:.20}");
        let merged = "b: &b {a: 1, b: 2}\n".to_owned() + &"m: {<<: *b}\n".repeat(200);
        assert!(problem(&merged).unwrap().contains("more than 1000 values"));
    }

    #[test]
    fn lists_at_named_places_have_limits_also_as_aliases() {
        for (text, expected) in [
            ("parts: [{steps: [1, 2, 3]}]", None),
            (
                "parts: [{}, {name: x, steps: [1, 2, 3, 4]}]",
                Some("parts[1].steps: the list has 4 items, the limit is 3"),
            ),
            ("all: &a [1, 2, 3, 4]\nparts: [{steps: *a}]", Some("parts[0].steps: the list has 4 items")),
            ("parts: [{steps: [{steps: [1, 2, 3, 4]}]}]", None),
            (
                "undo: {first: [1, 2], second: [1, 2, 3]}",
                Some("undo.second: the list has 3 items, the limit is 2"),
            ),
            ("{undo: {? [1, 2, 3, 4] : [1]}}", None),
        ] {
            let found = problem(text);
            match expected {
                None => assert_eq!(found, None, "{text}"),
                Some(part) => {
                    assert!(found.as_ref().is_some_and(|found| found.contains(part)), "{text}: {found:?}")
                }
            }
        }
    }

    #[test]
    fn what_the_parser_refuses_is_left_to_it() {
        for text in ["[", "a: *nowhere", "a: &a [*a]", "--- [1]\n--- [2]\n", &"[".repeat(100_000), "\t- x"] {
            assert_eq!(problem(text), None, "{text:.20}");
        }
    }
}
