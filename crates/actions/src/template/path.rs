//! A path into the names: `payload.user.name`, `payload.items[0]`, `headers["x.y"]`.

use std::fmt;

use serde_json::Value;

use super::error::{Problem, TemplateError};
use super::limits::MAX_PATH_PARTS;
use super::scan::Scanner;

/// Names one value. Its parts are fields of objects or numbers of items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    parts: Vec<String>,
}

impl Path {
    /// Reads a path. It begins with a letter, a digit or an underscore.
    pub(super) fn scan(scanner: &mut Scanner<'_>) -> Result<Self, TemplateError> {
        if !scanner.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return Err(scanner.unexpected("a name"));
        }
        let mut parts = vec![scanner.word().to_owned()];
        loop {
            let part = if scanner.take(".") {
                scanner.word().to_owned()
            } else if scanner.take("[") {
                bracketed(scanner)?
            } else {
                return Ok(Path { parts });
            };
            if part.is_empty() {
                return Err(scanner.unexpected("a name"));
            }
            if parts.len() == MAX_PATH_PARTS {
                return Err(scanner.invalid(format!("a path has at most {MAX_PATH_PARTS} parts")));
            }
            parts.push(part);
        }
    }

    /// All parts.
    pub(super) fn parts(&self) -> &[String] {
        &self.parts
    }

    /// The first part.
    pub(super) fn root(&self) -> &str {
        &self.parts[0]
    }

    /// The second part, if there is one.
    pub(super) fn field(&self) -> Option<&str> {
        self.parts.get(1).map(String::as_str)
    }

    /// The first part, if there is no other.
    pub(super) fn only_part(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [part] => Some(part),
            _ => None,
        }
    }

    /// The value, if it is there.
    pub(super) fn find<'v>(&self, names: &'v Value) -> Option<&'v Value> {
        self.parts.iter().try_fold(names, |value, part| member(value, part))
    }

    /// The value.
    ///
    /// # Errors
    /// Names the path and the part of it that is not there.
    pub(super) fn resolve<'v>(&self, names: &'v Value) -> Result<&'v Value, Problem> {
        let mut value = names;
        for (depth, part) in self.parts.iter().enumerate() {
            let Some(found) = member(value, part) else {
                return Err(Problem(self.missing(value, depth)));
            };
            value = found;
        }
        Ok(value)
    }

    fn missing(&self, holder: &Value, depth: usize) -> String {
        if depth == 0 {
            return format!("{self} cannot be resolved: there is no name {:?}", self.root());
        }
        let known = Path { parts: self.parts[..depth].to_vec() };
        let part = &self.parts[depth];
        let reason = match holder {
            Value::Object(_) => format!("{known} has no field {part:?}"),
            Value::Array(items) => format!("{known} has {} items, and no item {part:?}", items.len()),
            other => format!("{known} is {}, which has no parts", kind_of(other)),
        };
        format!("{self} cannot be resolved: {reason}; write | default(…) if it may be missing")
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root())?;
        for part in &self.parts[1..] {
            let is_plain = part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
            if is_plain { write!(f, ".{part}")? } else { write!(f, "[{part:?}]")? }
        }
        Ok(())
    }
}

fn bracketed(scanner: &mut Scanner<'_>) -> Result<String, TemplateError> {
    scanner.skip_space();
    let part = match scanner.peek() {
        Some('"' | '\'') => scanner.quoted()?,
        _ => {
            let digits = scanner.word();
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(scanner.unexpected("the number of an item or a name in quotes"));
            }
            digits.to_owned()
        }
    };
    scanner.skip_space();
    if scanner.take("]") { Ok(part) } else { Err(scanner.unexpected("]")) }
}

fn member<'v>(value: &'v Value, part: &str) -> Option<&'v Value> {
    match value {
        Value::Object(fields) => fields.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => None,
    }
}

/// What a value is, for people.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(text: &str) -> Result<Path, String> {
        let mut scanner = Scanner::new(text);
        let path = Path::scan(&mut scanner).map_err(|error| error.to_string())?;
        assert_eq!(scanner.rest(), "", "{text}");
        Ok(path)
    }

    #[test]
    fn values_are_found_by_field_and_item() {
        let names = json!({
            "a": { "b-c": [10, { "x.y": 1 }], "0": "zero" },
            "headers": { "x-id": "7" },
            "Größe": { "2nd": true },
        });
        for (text, value) in [
            ("a.b-c[0]", json!(10)),
            ("a.b-c.1[\"x.y\"]", json!(1)),
            ("a['b-c'][ 0 ]", json!(10)),
            ("a.0", json!("zero")),
            ("headers.x-id", json!("7")),
            ("Größe.2nd", json!(true)),
        ] {
            assert_eq!(path(text).unwrap().resolve(&names), Ok(&value), "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let names = json!({ "a": { "list": [1], "text": "x" } });
        for (text, says) in [
            ("b.c", "b.c cannot be resolved: there is no name \"b\""),
            ("a.x.y", "a.x.y cannot be resolved: a has no field \"x\""),
            ("a.list.1", "a.list has 1 items, and no item \"1\""),
            ("a.list[\"-1\"]", "a.list has 1 items, and no item \"-1\""),
            ("a.text.len", "a.text is a text, which has no parts"),
        ] {
            let Problem(problem) = path(text).unwrap().resolve(&names).unwrap_err();
            assert!(problem.contains(says), "{text}: {problem}");
        }
    }

    #[test]
    fn paths_that_are_none_are_refused() {
        let long = format!("a{}", ".b".repeat(MAX_PATH_PARTS));
        for bad in ["", ".a", "a.", "a..b", "a[", "a[]", "a[x]", "a['']", "a[\"x\"", "-a", &long] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }
}
