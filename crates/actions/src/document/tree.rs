//! A YAML document as a tree in which every node has its place, so that all problems can be found
//! in one pass. A typed deserializer would stop at the first one.
//!
//! The parser works under budgets: nesting, nodes, anchors, aliases and bytes, aliases expanded.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{DuplicateKeyPolicy, Error, Location, MessageFormatter, Options, Spanned};

use super::budget::Budget;
use super::problem::{Position, Problem};
use super::size;

/// The byte order mark that some editors write at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it stands.
    pub at: Position,
    /// The value.
    pub tree: Tree,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number, and its text in the document: `0x10` and `1.50` are not what they are printed as.
    Number(Number, String),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the document.
    Map(Vec<Entry>),
}

/// A key with its value. Keys of a map are unique.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub at: Position,
    /// The value.
    pub value: Node,
}

impl Node {
    /// What it is, for errors.
    pub fn kind(&self) -> &'static str {
        match self.tree {
            Tree::Null => "nothing",
            Tree::Bool(_) => "true or false",
            Tree::Number(..) => "a number",
            Tree::Text(_) => "a text",
            Tree::List(_) => "a list",
            Tree::Map(_) => "a map",
        }
    }

    /// The same value as JSON.
    pub fn to_json(&self) -> Value {
        match &self.tree {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(*value),
            Tree::Number(number, _) => Value::Number(number.clone()),
            Tree::Text(text) => Value::String(text.clone()),
            Tree::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Tree::Map(entries) => {
                let fields = entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json()));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}

/// A document, and the first key that it has twice, if it does.
#[derive(Debug)]
pub struct Document {
    /// The whole value.
    pub root: Node,
    /// The first key that a map has twice.
    pub duplicate: Option<Problem>,
}

/// Reads a document.
///
/// # Errors
/// The one problem that prevents reading on.
pub fn read(bytes: &[u8], budget: &Budget) -> Result<Document, Problem> {
    let text = decoded(bytes, budget)?;
    size::check(text, budget)?;
    match parse(text, budget, DuplicateKeyPolicy::Error) {
        Ok(root) => Ok(Document { root, duplicate: None }),
        // The rest of the document may have problems as well.
        Err(error @ Error::DuplicateMappingKey { .. }) => {
            let root = parse(text, budget, DuplicateKeyPolicy::FirstWins)
                .map_err(|error| syntax_problem(&error, budget))?;
            Ok(Document { root, duplicate: Some(syntax_problem(&error, budget)) })
        }
        Err(error) => Err(syntax_problem(&error, budget)),
    }
}

/// The text, if it is UTF-8 and not too large.
fn decoded<'b>(bytes: &'b [u8], budget: &Budget) -> Result<&'b str, Problem> {
    let Budget { noun, max_bytes, .. } = budget;
    if bytes.len() > *max_bytes {
        // Not how many there are: the caller may have stopped reading at the limit.
        let problem = format!("the {noun} has more than the limit of {} MiB", max_bytes / (1024 * 1024));
        let advice = format!("split it into several {noun}s");
        return Err(Problem::error(Position::START, "", problem).advice(advice));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let at = Position {
            line: before.matches('\n').count() as u64 + 1,
            column: before[line_start..].chars().count() as u64 + 1,
        };
        let is_utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        let encoding = if is_utf16 { "UTF-16" } else { "not UTF-8" };
        Problem::error(at, "", format!("the file is {encoding}")).advice("save it as UTF-8")
    })?;
    Ok(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
}

fn parse(text: &str, budget: &Budget, duplicate_keys: DuplicateKeyPolicy) -> Result<Node, Error> {
    let options = options(budget, duplicate_keys);
    let root: Spanned<Raw<'_>> = serde_saphyr::from_str_with_options(text, options)?;
    Ok(located(root, text, Position::START))
}

fn options(limits: &Budget, duplicate_keys: DuplicateKeyPolicy) -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: limits.max_depth,
            max_nodes: limits.max_nodes,
            // A list or map has an end as well, and a document a beginning and an end.
            max_events: 2 * limits.max_nodes + 16,
            max_aliases: limits.max_aliases,
            max_anchors: limits.max_anchors,
            max_merge_keys: limits.max_aliases,
            max_total_scalar_bytes: limits.max_scalar_bytes,
            max_recorded_anchor_events: limits.max_nodes,
            max_recorded_anchor_bytes: limits.max_bytes,
            // One anchor with many aliases is what defaults of steps look like.
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: limits.max_nodes,
            max_replay_stack_depth: limits.max_depth,
        },
        duplicate_keys: duplicate_keys,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// Why a document cannot be read, in our words where a limit is ours.
fn syntax_problem(error: &Error, budget: &Budget) -> Problem {
    let at = error.location().and_then(position).unwrap_or(Position::START);
    let (problem, advice) = match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().map_or_else(String::new, |key| format!(" {key:?}"));
            (format!("the key{key} is given twice in one map"), Some("remove one of them".to_owned()))
        }
        Error::MultipleDocuments { .. } => (
            "there is more than one YAML document".to_owned(),
            Some(format!("write one {} in each file, without a second ---", budget.noun)),
        ),
        Error::Budget { breach, .. } => (exceeded(breach, budget), None),
        Error::AliasReplayLimitExceeded { .. } => (exceeded(&BudgetBreach::Nodes { nodes: 0 }, budget), None),
        Error::AliasReplayStackDepthExceeded { .. } => {
            (exceeded(&BudgetBreach::Depth { depth: 0 }, budget), None)
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            ("an alias stands for a value that contains the alias".to_owned(), None)
        }
        Error::NonFiniteFloat { value, .. } => {
            (format!("the number {value} has no JSON form"), Some("write it in quotes".to_owned()))
        }
        Error::NullIntoString { .. } | Error::Unexpected { expected: "string scalar", .. } => {
            ("a key is not a text".to_owned(), Some("write it in quotes".to_owned()))
        }
        Error::AliasError { error, .. } => return syntax_problem(error, budget),
        other => {
            let message = serde_saphyr::DefaultMessageFormatter.format_message(other).into_owned();
            if message.contains(TOO_DEEP) {
                return Problem::error(at, "", exceeded(&BudgetBreach::Depth { depth: 0 }, budget));
            }
            (format!("the YAML cannot be read: {}", printable(&message)), None)
        }
    };
    Problem::error(at, "", problem).maybe_advice(advice)
}

/// What the parser reports of lists that are nested deeper than it can go.
const TOO_DEEP: &str = "recursion limit";

/// The text without control characters, which it may repeat from the document.
fn printable(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

fn exceeded(breach: &BudgetBreach, budget: &Budget) -> String {
    let Budget { max_depth, max_aliases, max_anchors, .. } = budget;
    match breach {
        BudgetBreach::Depth { .. } => {
            format!("it is nested deeper than {max_depth} levels, aliases and merge keys expanded")
        }
        BudgetBreach::Aliases { .. } => format!("it has more than {max_aliases} aliases"),
        BudgetBreach::Anchors { .. } => format!("it has more than {max_anchors} anchors"),
        BudgetBreach::MergeKeys { .. } => format!("it has more than {max_aliases} merge keys"),
        BudgetBreach::ScalarBytes { .. } | BudgetBreach::RecordedAnchorBytes { .. } => {
            budget.too_many_bytes()
        }
        BudgetBreach::Nodes { .. }
        | BudgetBreach::Events { .. }
        | BudgetBreach::RecordedAnchorEvents { .. } => budget.too_many_nodes(),
        other => format!("it exceeds a limit of the parser: {other:?}"),
    }
}

fn position(location: Location) -> Option<Position> {
    (location.line() > 0).then(|| Position { line: location.line(), column: location.column().max(1) })
}

/// Gives every node its place, that of its parent where the parser knows none.
fn located(raw: Spanned<Raw<'_>>, text: &str, parent: Position) -> Node {
    let at = position(raw.referenced).unwrap_or(parent);
    let tree = match raw.value {
        Raw::Null => Tree::Null,
        Raw::Bool(value) => Tree::Bool(value),
        Raw::Number(number) => {
            let written = written(raw.defined, text).map_or_else(|| number.to_string(), str::to_owned);
            Tree::Number(number, written)
        }
        Raw::Text(text) => Tree::Text(text.into_owned()),
        Raw::List(items) => Tree::List(items.into_iter().map(|item| located(item, text, at)).collect()),
        Raw::Map(entries) => {
            let entries = entries.into_iter().map(|(key, value)| {
                let key_at = position(key.referenced).unwrap_or(at);
                Entry { key: key.value, at: key_at, value: located(value, text, key_at) }
            });
            Tree::Map(entries.collect())
        }
    };
    Node { at, tree }
}

/// The text of a number in the document.
fn written(defined: Location, text: &str) -> Option<&str> {
    let span = defined.span();
    let from = usize::try_from(span.byte_offset()?).ok()?;
    let length = usize::try_from(span.byte_len()?).ok()?;
    let slice = text.get(from..from.checked_add(length)?)?.trim();
    slice.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')).then_some(slice)
}

/// A value as the parser reports it. Texts are borrowed where they stand in the document as they
/// are, so that expanding aliases copies nothing.
enum Raw<'de> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'de, str>),
    List(Vec<Spanned<Raw<'de>>>),
    Map(Vec<(Spanned<String>, Spanned<Raw<'de>>)>),
}

impl<'de> Deserialize<'de> for Raw<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Raw<'de>, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw<'de>, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw<'de>, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw<'de>, E> {
        Ok(Raw::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw<'de>, E> {
        Ok(Raw::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Raw<'de>, E> {
        Number::from_f64(value).map(Raw::Number).ok_or_else(|| E::custom("the number is not finite"))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Raw<'de>, E> {
        Ok(Raw::Text(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw<'de>, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Raw::Map(map))
    }
}
