//! Filters: what `| name` does to a value.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::borrow::Cow;

use super::error::{Problem, TemplateError};
use super::limits::{MAX_FILTERED_BYTES, MAX_OUTPUT_BYTES};
use super::path::kind_of;
use super::scan::Scanner;

/// What can be written after `|`, for errors.
const KNOWN: &str = "json, string, base64, lower, upper, trim or default(…)";

/// What is done to a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Filter {
    /// This value where the other is missing or null.
    Default(Value),
    /// A text is made of it.
    Convert(Conversion),
}

/// How a text is made of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Conversion {
    /// Its JSON text.
    Json,
    /// A text as it is, everything else as its JSON text.
    String,
    /// A text in base64.
    Base64,
    /// A text in lowercase.
    Lower,
    /// A text in uppercase.
    Upper,
    /// A text without white space around it.
    Trim,
}

impl Filter {
    /// Reads a filter's name and argument.
    pub(super) fn scan(scanner: &mut Scanner<'_>) -> Result<Self, TemplateError> {
        let conversion = match scanner.peek_word() {
            "json" => Conversion::Json,
            "string" => Conversion::String,
            "base64" => Conversion::Base64,
            "lower" => Conversion::Lower,
            "upper" => Conversion::Upper,
            "trim" => Conversion::Trim,
            "default" => {
                scanner.word();
                return Ok(Filter::Default(argument(scanner)?));
            }
            _ => return Err(scanner.unexpected(KNOWN)),
        };
        scanner.word();
        Ok(Filter::Convert(conversion))
    }

    /// What becomes of a value, or of a value that is missing. A value is read and not copied before it is filtered.
    pub(super) fn apply<'v>(
        &'v self,
        value: Result<Cow<'v, Value>, Problem>,
        work: &mut Work,
    ) -> Result<Cow<'v, Value>, Problem> {
        match (self, value) {
            (Filter::Default(other), Err(_)) => Ok(Cow::Borrowed(other)),
            (Filter::Default(other), Ok(value)) if value.is_null() => Ok(Cow::Borrowed(other)),
            (Filter::Default(_), value) => value,
            (Filter::Convert(conversion), value) => {
                conversion.apply(&*value?, work).map(|text| Cow::Owned(Value::String(text)))
            }
        }
    }
}

/// What the filters of one rendering may still read.
pub(super) struct Work {
    bytes_left: usize,
}

impl Work {
    pub(super) fn new() -> Self {
        Work { bytes_left: MAX_FILTERED_BYTES }
    }

    fn take(&mut self, bytes: usize) -> Result<(), Problem> {
        let too_much = || Problem(format!("the filters read more than {MAX_FILTERED_BYTES} bytes"));
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or_else(too_much)?;
        Ok(())
    }
}

impl Conversion {
    fn apply(self, value: &Value, work: &mut Work) -> Result<String, Problem> {
        if let Value::String(text) = value {
            work.take(text.len())?;
        }
        let text = match self {
            Conversion::Json => json_text(value)?,
            Conversion::String => match value {
                Value::String(text) => text.clone(),
                other => json_text(other)?,
            },
            Conversion::Base64 => {
                let text = wanted_text(value, "base64")?;
                within_limit(text.len().div_ceil(3).saturating_mul(4))?;
                STANDARD.encode(text)
            }
            Conversion::Lower => wanted_text(value, "lower")?.to_lowercase(),
            Conversion::Upper => wanted_text(value, "upper")?.to_uppercase(),
            Conversion::Trim => wanted_text(value, "trim")?.trim().to_owned(),
        };
        within_limit(text.len())?;
        work.take(text.len())?;
        Ok(text)
    }
}

fn argument(scanner: &mut Scanner<'_>) -> Result<Value, TemplateError> {
    scanner.skip_space();
    if !scanner.take("(") {
        return Err(scanner.unexpected("( and a text, a number, true, false or null"));
    }
    scanner.skip_space();
    let Some(value) = scanner.literal()? else {
        return Err(scanner.unexpected("a text in quotes, a number, true, false or null"));
    };
    scanner.skip_space();
    if scanner.take(")") { Ok(value) } else { Err(scanner.unexpected(")")) }
}

fn wanted_text<'v>(value: &'v Value, filter: &str) -> Result<&'v str, Problem> {
    match value {
        Value::String(text) => Ok(text),
        other => {
            let kind = kind_of(other);
            Err(Problem(format!("| {filter} takes a text, and this is {kind}; write | string before it")))
        }
    }
}

/// The JSON text of a value. It is not made if it would be too long.
pub(super) fn json_text(value: &Value) -> Result<String, Problem> {
    let mut out = Bounded { bytes: Vec::new() };
    serde_json::to_writer(&mut out, value).map_err(|_| too_long())?;
    String::from_utf8(out.bytes).map_err(|_| too_long())
}

pub(super) fn within_limit(bytes: usize) -> Result<(), Problem> {
    if bytes <= MAX_OUTPUT_BYTES { Ok(()) } else { Err(too_long()) }
}

pub(super) fn too_long() -> Problem {
    Problem(format!("the result has more than {MAX_OUTPUT_BYTES} bytes"))
}

/// A buffer that does not grow beyond the limit.
struct Bounded {
    bytes: Vec<u8>,
}

impl std::io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_OUTPUT_BYTES {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filtered(filter: &str, value: Value) -> Result<Value, String> {
        let mut scanner = Scanner::new(filter);
        let filter = Filter::scan(&mut scanner).map_err(|error| error.to_string())?;
        let value = if value == json!("missing") { Err(Problem("gone".to_owned())) } else { Ok(value) };
        let filtered = filter.apply(value.map(Cow::Owned), &mut Work::new());
        filtered.map(Cow::into_owned).map_err(|Problem(problem)| problem)
    }

    #[test]
    fn each_filter_does_its_part() {
        for (filter, value, result) in [
            ("json", json!({ "a": [1, "x\"y"] }), json!(r#"{"a":[1,"x\"y"]}"#)),
            ("json", json!("x"), json!("\"x\"")),
            ("string", json!("x"), json!("x")),
            ("string", json!(1.5), json!("1.5")),
            ("string", Value::Null, json!("null")),
            ("base64", json!("héé"), json!("aMOpw6k=")),
            ("lower", json!("ÄB"), json!("äb")),
            ("upper", json!("ß"), json!("SS")),
            ("trim", json!(" a\n"), json!("a")),
            ("default('x')", json!(7), json!(7)),
            ("default('x')", Value::Null, json!("x")),
            ("default( -1 )", json!("missing"), json!(-1)),
        ] {
            assert_eq!(filtered(filter, value.clone()), Ok(result), "{value} | {filter}");
        }
    }

    #[test]
    fn mistakes_say_what_can_be_written() {
        for (filter, value, says) in [
            ("shell", json!("x"), "expected json, string"),
            ("default", json!("x"), "expected ( and a text"),
            ("default(x)", json!("x"), "expected a text in quotes"),
            ("default('x'", json!("x"), "expected )"),
            ("lower", json!(7), "write | string before it"),
            ("base64", json!([]), "this is a list"),
            ("json", json!("missing"), "gone"),
        ] {
            let error = filtered(filter, value).unwrap_err();
            assert!(error.contains(says), "{filter}: {error}");
        }
    }

    #[test]
    fn a_result_does_not_grow_beyond_the_limit() {
        for (filter, text) in [("json", "\u{1}"), ("upper", "ΐ"), ("base64", "xy")] {
            let value = json!(text.repeat(MAX_OUTPUT_BYTES / 2));
            assert!(filtered(filter, value).unwrap_err().contains("more than"), "{filter}");
        }
    }
}
