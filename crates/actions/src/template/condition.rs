//! Conditions: `payload.action == "opened" and headers.x-github-event in ["push", "pull_request"]`.
//!
//! ```text
//! condition  = all { "or" all }
//! all        = one { "and" one }
//! one        = "not" one | "(" condition ")" | "exists" "(" path ")" | operand [ comparison operand ]
//! comparison = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "contains"
//! operand    = path | text | number | "true" | "false" | "null" | "[" [ operand { "," operand } ] "]"
//! ```

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::error::{Place, TemplateError};
use super::limits::{MAX_CONDITION_BYTES, MAX_CONDITION_DEPTH};
use super::path::Path;
use super::scan::Scanner;
use super::wanted::Wanted;

/// Something that is true or not of the names. It is one of the two whatever they are: a name that is not there is null,
/// and values that cannot be compared are not equal and not in order. Only what takes too long to compare has no answer.
///
/// ```
/// use segno_actions::template::Condition;
/// use serde_json::json;
///
/// let condition = Condition::parse(r#"payload.action == "opened" and not payload.draft"#)?;
/// assert!(condition.holds(&json!({ "payload": { "action": "opened", "draft": false } }))?);
/// assert!(!condition.holds(&json!({ "payload": { "action": "closed" } }))?);
/// # Ok::<_, segno_actions::template::TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    source: String,
    pub(super) root: Node,
}

/// A part of a condition that is true or not.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Any(Vec<Node>),
    All(Vec<Node>),
    Not(Box<Node>),
    Exists(Path),
    /// An operand alone: whether it is `true`.
    Is(Operand),
    Compare(Operand, Comparison, Operand),
}

/// A value in a condition.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    Path(Path),
    Literal(Value),
    List(Vec<Operand>),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Contains,
}

/// Signs of comparisons; a longer one comes before its beginning.
const SIGNS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    ("<", Comparison::Less),
    (">=", Comparison::GreaterOrEqual),
    (">", Comparison::Greater),
];

impl Condition {
    /// The text that it was read from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Reads a condition.
    ///
    /// # Errors
    /// `invalid-template` with the place and what to write instead.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > MAX_CONDITION_BYTES {
            let problem =
                format!("the condition has {} bytes, the limit is {MAX_CONDITION_BYTES}", text.len());
            return Err(TemplateError::Invalid { place: Place::default(), problem });
        }
        let mut parser = Parser { scanner: Scanner::new(text), depth: 0 };
        let root = parser.any()?;
        if parser.scanner.rest().is_empty() {
            return Ok(Condition { source: text.to_owned(), root });
        }
        Err(parser.scanner.unexpected("and, or, a comparison, or the end"))
    }

    /// What it asks for.
    pub fn wanted(&self) -> Wanted<'_> {
        let mut paths = Vec::new();
        self.root.collect_paths(&mut paths);
        Wanted::new(paths)
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Condition::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Node {
    fn collect_paths<'c>(&'c self, paths: &mut Vec<&'c Path>) {
        match self {
            Node::Any(nodes) | Node::All(nodes) => nodes.iter().for_each(|node| node.collect_paths(paths)),
            Node::Not(node) => node.collect_paths(paths),
            Node::Exists(path) => paths.push(path),
            Node::Is(operand) => operand.collect_paths(paths),
            Node::Compare(left, _, right) => {
                left.collect_paths(paths);
                right.collect_paths(paths);
            }
        }
    }
}

impl Operand {
    fn collect_paths<'c>(&'c self, paths: &mut Vec<&'c Path>) {
        match self {
            Operand::Path(path) => paths.push(path),
            Operand::Literal(_) => {}
            Operand::List(items) => items.iter().for_each(|item| item.collect_paths(paths)),
        }
    }
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    depth: usize,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<Node, TemplateError> {
        let mut nodes = vec![self.all()?];
        while self.scanner.take_word("or") {
            nodes.push(self.all()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Any(nodes) })
    }

    fn all(&mut self) -> Result<Node, TemplateError> {
        let mut nodes = vec![self.one()?];
        while self.scanner.take_word("and") {
            nodes.push(self.one()?);
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::All(nodes) })
    }

    /// Reads one part and the space behind it.
    fn one(&mut self) -> Result<Node, TemplateError> {
        self.scanner.skip_space();
        let node = if self.scanner.take_word("not") {
            Node::Not(Box::new(self.deeper(Self::one)?))
        } else if self.scanner.take("(") {
            let node = self.deeper(Self::any)?;
            self.close(")")?;
            node
        } else if self.scanner.take_word("exists") {
            self.scanner.skip_space();
            if !self.scanner.take("(") {
                return Err(self.scanner.unexpected("( and a path"));
            }
            self.scanner.skip_space();
            let path = Path::scan(&mut self.scanner)?;
            self.scanner.skip_space();
            self.close(")")?;
            Node::Exists(path)
        } else {
            self.comparison()?
        };
        self.scanner.skip_space();
        Ok(node)
    }

    fn comparison(&mut self) -> Result<Node, TemplateError> {
        let left = self.operand()?;
        self.scanner.skip_space();
        let sign =
            SIGNS.into_iter().find(|(sign, _)| self.scanner.take(sign)).map(|(_, comparison)| comparison);
        let comparison = match sign {
            Some(comparison) => comparison,
            None if self.scanner.take_word("in") => Comparison::In,
            None if self.scanner.take_word("contains") => Comparison::Contains,
            None => return Ok(Node::Is(left)),
        };
        self.scanner.skip_space();
        Ok(Node::Compare(left, comparison, self.operand()?))
    }

    fn operand(&mut self) -> Result<Operand, TemplateError> {
        if self.scanner.take("[") {
            return self.deeper(Self::list);
        }
        if let Some(value) = self.scanner.literal()? {
            return Ok(Operand::Literal(value));
        }
        if ["and", "or", "not", "in", "contains", "exists"].contains(&self.scanner.peek_word()) {
            return Err(self.scanner.unexpected("a name or a value"));
        }
        Path::scan(&mut self.scanner).map(Operand::Path)
    }

    fn list(&mut self) -> Result<Operand, TemplateError> {
        let mut items = Vec::new();
        self.scanner.skip_space();
        while !self.scanner.take("]") {
            if !items.is_empty() {
                self.close(",")?;
                self.scanner.skip_space();
            }
            items.push(self.operand()?);
            self.scanner.skip_space();
        }
        Ok(Operand::List(items))
    }

    fn close(&mut self, sign: &str) -> Result<(), TemplateError> {
        if self.scanner.take(sign) { Ok(()) } else { Err(self.scanner.unexpected(sign)) }
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, TemplateError>,
    ) -> Result<T, TemplateError> {
        if self.depth == MAX_CONDITION_DEPTH {
            let problem = format!("a condition is nested at most {MAX_CONDITION_DEPTH} deep");
            return Err(self.scanner.invalid(problem));
        }
        self.depth += 1;
        let outcome = read(self);
        self.depth -= 1;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_a_place_and_advice() {
        for (text, says) in [
            ("", "column 1: expected a name, found the end"),
            ("payload.a =", "column 11: expected and, or, a comparison, or the end, found '='"),
            ("payload.a == ", "column 14: expected a name, found the end"),
            ("a == b == c", "column 8: expected and, or"),
            ("a and", "column 6: expected a name, found the end"),
            ("and a", "column 1: expected a name or a value, found \"and\""),
            ("(a", "column 3: expected )"),
            ("a)", "column 2: expected and, or"),
            ("exists a", "expected ( and a path"),
            ("exists(\"a\")", "expected a name"),
            ("a in [1, 2", "expected ,"),
            ("a in [1 2]", "expected ,"),
            ("a == 'x", "has no end"),
            ("a && b", "column 3: expected and, or"),
            ("a\n == ?", "line 2, column 5: expected a name, found '?'"),
        ] {
            let error = Condition::parse(text).unwrap_err();
            assert_eq!(error.code(), "invalid-template");
            assert!(error.to_string().contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        for text in [
            "(".repeat(4_000),
            "not ".repeat(1_000),
            format!("a == {}", "[".repeat(4_000)),
            "a or ".repeat(1_000),
            "(".repeat(MAX_CONDITION_DEPTH + 1) + "a" + &")".repeat(MAX_CONDITION_DEPTH + 1),
        ] {
            assert!(Condition::parse(&text).is_err());
        }
        let deepest = "(".repeat(MAX_CONDITION_DEPTH) + "a" + &")".repeat(MAX_CONDITION_DEPTH);
        assert!(Condition::parse(&deepest).is_ok());
    }

    #[test]
    fn it_is_stored_as_it_was_written() {
        let text = r#""payload.a  == 'x' and b in [c, 1]""#;
        let condition: Condition = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&condition).unwrap(), text);
        assert_eq!(condition.wanted().names().collect::<Vec<_>>(), ["b", "c", "payload"]);
    }
}
