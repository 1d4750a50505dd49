//! JSON Schema of a function's input: compiled when the function is declared, checked before anything is queued.

use std::fmt;

use boon::{Compiler, Draft, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::FunctionError;
use super::limits::{MAX_SCHEMA_BYTES, MAX_SCHEMA_PATTERNS, MAX_VIOLATIONS};

/// Longest reason of a violation in characters.
const MAX_REASON_CHARS: usize = 300;
/// The name that a schema has while it is compiled. Nothing is there, and nothing is fetched.
const SCHEMA_URL: &str = "https://segno.invalid/input-schema";

/// One place of an input that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// JSON pointer to the place; empty is the whole input.
    pub path: String,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the input" } else { &self.path };
        write!(f, "{path}: {}", self.reason)
    }
}

/// A compiled schema.
pub struct InputSchema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InputSchema")
    }
}

impl InputSchema {
    /// Compiles a schema; without `$schema` it is of the 2020-12 draft. References may lead within the schema only.
    ///
    /// # Errors
    /// `invalid-function` when it is no schema, refers to other documents, or is over a limit.
    pub fn compile(schema: &Value) -> Result<Self, FunctionError> {
        let refuse = |problem: String| FunctionError::invalid("input_schema", problem);
        let bytes = schema.to_string().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(refuse(format!("the schema has {bytes} bytes, the limit is {MAX_SCHEMA_BYTES}")));
        }
        let patterns = count_patterns(schema);
        if patterns > MAX_SCHEMA_PATTERNS {
            return Err(refuse(format!(
                "the schema has {patterns} regular expressions, the limit is {MAX_SCHEMA_PATTERNS}"
            )));
        }
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.set_default_draft(Draft::V2020_12);
        compiler.use_loader(Box::new(NothingIsFetched));
        let compiled = match compiler.add_resource(SCHEMA_URL, schema.clone()) {
            Ok(()) => compiler.compile(SCHEMA_URL, &mut schemas),
            Err(error) => Err(error),
        };
        match compiled {
            Ok(index) => Ok(InputSchema { schemas, index }),
            Err(error) => {
                let reason: String =
                    format!("{error:#}").replace(SCHEMA_URL, "").chars().take(1_000).collect();
                Err(refuse(format!("this is not a usable JSON Schema: {reason}")))
            }
        }
    }

    /// Every place that does not fit, up to [`limits::MAX_VIOLATIONS`](super::limits::MAX_VIOLATIONS); empty when the input fits.
    pub fn violations(&self, input: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        if let Err(error) = self.schemas.validate(input, self.index) {
            collect(&error, &mut found);
        }
        found
    }
}

/// The leaves of the tree of errors say what is wrong; the nodes above only where the schema asked for it.
fn collect(error: &ValidationError<'_, '_>, found: &mut Vec<Violation>) {
    if found.len() >= MAX_VIOLATIONS {
        return;
    }
    if error.causes.is_empty() {
        let violation = Violation {
            path: error.instance_location.to_string(),
            reason: error.kind.to_string().chars().take(MAX_REASON_CHARS).collect(),
        };
        if !found.contains(&violation) {
            found.push(violation);
        }
    }
    for cause in &error.causes {
        collect(cause, found);
    }
}

/// Counts by name wherever it stands, which may count too many and never too few.
fn count_patterns(schema: &Value) -> usize {
    match schema {
        Value::Array(items) => items.iter().map(count_patterns).sum(),
        Value::Object(fields) => {
            let own = |(name, value): (&String, &Value)| match (name.as_str(), value) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(patterns)) => patterns.len(),
                _ => 0,
            };
            fields.iter().map(own).sum::<usize>() + fields.values().map(count_patterns).sum::<usize>()
        }
        _ => 0,
    }
}

/// References to other documents are refused: a declaration must not make the node read files or call servers.
struct NothingIsFetched;

impl UrlLoader for NothingIsFetched {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("{url} is another document; put what it defines into $defs of this schema").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_input_is_checked_place_by_place() {
        let schema = InputSchema::compile(&json!({
            "type": "object",
            "required": ["to", "count"],
            "properties": {
                "to": { "type": "string", "pattern": "^[a-z]+@" },
                "count": { "$ref": "#/$defs/positive" },
                "list": { "items": { "type": "integer" } }
            },
            "additionalProperties": false,
            "$defs": { "positive": { "type": "integer", "minimum": 1 } }
        }))
        .unwrap();
        assert_eq!(schema.violations(&json!({ "to": "a@b", "count": 1 })), []);
        let found = schema.violations(&json!({ "to": "A", "count": 0, "list": [1, "x"] }));
        let paths: Vec<&str> = found.iter().map(|violation| violation.path.as_str()).collect();
        for path in ["/to", "/count", "/list/1"] {
            assert!(paths.contains(&path), "{found:?}");
        }
        let found = schema.violations(&json!({ "surprise": 1 }));
        let text: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(text.iter().any(|line| line.contains("to") && line.contains("count")), "{text:?}");
        assert!(text.iter().any(|line| line.contains("surprise")), "{text:?}");
    }

    #[test]
    fn violations_are_bounded() {
        let schema = InputSchema::compile(&json!({ "items": { "type": "string" } })).unwrap();
        let input: Vec<u32> = (0..1_000).collect();
        assert_eq!(schema.violations(&json!(input)).len(), MAX_VIOLATIONS);
    }

    #[test]
    fn bad_schemas_are_refused_when_declared() {
        let patterns: Vec<Value> = (0..40).map(|n| json!({ "pattern": format!("a{n}") })).collect();
        for (schema, says) in [
            (json!({ "type": "strnig" }), "not a usable JSON Schema"),
            (json!(7), "not a usable JSON Schema"),
            (json!({ "pattern": "(" }), "not a usable JSON Schema"),
            (json!({ "$ref": "file:///etc/passwd" }), "another document"),
            (json!({ "$ref": "http://127.0.0.1/x" }), "another document"),
            (json!({ "$ref": "other.json" }), "another document"),
            (json!({ "$schema": "http://example.org/mine" }), "not a usable JSON Schema"),
            (json!({ "$ref": "#/$defs/missing" }), "not a usable JSON Schema"),
            (json!({ "description": "x".repeat(MAX_SCHEMA_BYTES) }), "bytes"),
            (json!({ "anyOf": patterns }), "40 regular expressions"),
        ] {
            let error = InputSchema::compile(&schema).unwrap_err();
            assert_eq!(error.code(), "invalid-function");
            assert!(error.to_string().contains(says), "{schema}: {error}");
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let tree = json!({ "properties": { "child": { "$ref": "#" } }, "required": ["name"] });
        let schema = InputSchema::compile(&tree).unwrap();
        assert_eq!(schema.violations(&json!({ "name": 1, "child": { "name": 2 } })), []);
        assert_eq!(schema.violations(&json!({ "name": 1, "child": {} }))[0].path, "/child");
        if let Ok(endless) = InputSchema::compile(&json!({ "$ref": "#" })) {
            assert_ne!(endless.violations(&json!(1)), []);
        }
    }
}
