//! Limits of a schema's text, checked before anything recurses into it without a bound of its own.

use boon::Draft;
use serde_json::{Map, Value};

use super::pattern::PatternSize;
use crate::functions::limits::{
    MAX_SCHEMA_BYTES, MAX_SCHEMA_LEVELS, MAX_SCHEMA_PATTERN_BYTES, MAX_SCHEMA_PATTERN_STATES,
    MAX_SCHEMA_PATTERNS, MAX_SCHEMA_REFERENCES,
};

/// Counts by name wherever it stands, which may count too many and never too few.
#[derive(Default)]
struct Tally {
    references: usize,
    patterns: usize,
    pattern_states: u64,
}

/// Checks the text of a schema and returns its draft.
pub(super) fn check(schema: &Value) -> Result<Draft, String> {
    let mut tally = Tally::default();
    tally.add(schema, 1)?;
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(format!("the schema has {bytes} bytes, the limit is {MAX_SCHEMA_BYTES}"));
    }
    let Tally { references, patterns, pattern_states } = tally;
    if patterns > MAX_SCHEMA_PATTERNS {
        return Err(format!(
            "the schema has {patterns} regular expressions, the limit is {MAX_SCHEMA_PATTERNS}"
        ));
    }
    if pattern_states > MAX_SCHEMA_PATTERN_STATES {
        return Err(format!(
            "the regular expressions of the schema have about {pattern_states} states, the limit is \
             {MAX_SCHEMA_PATTERN_STATES}; repeat smaller parts less often"
        ));
    }
    if references > MAX_SCHEMA_REFERENCES {
        return Err(format!("the schema has {references} references, the limit is {MAX_SCHEMA_REFERENCES}"));
    }
    draft(schema)
}

fn draft(schema: &Value) -> Result<Draft, String> {
    match schema.get("$schema") {
        Some(Value::String(url)) => Draft::from_url(url).ok_or_else(|| {
            format!(
                "this is not a usable JSON Schema: $schema {url:?} is not one of the drafts 4, 6, 7, 2019-09 \
                 and 2020-12"
            )
        }),
        _ => Ok(Draft::V2020_12),
    }
}

impl Tally {
    fn add(&mut self, value: &Value, level: usize) -> Result<(), String> {
        if level > MAX_SCHEMA_LEVELS {
            return Err(format!(
                "the schema is nested deeper than {MAX_SCHEMA_LEVELS} levels; put parts of it into $defs"
            ));
        }
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.add(item, level + 1)),
            Value::Object(fields) => {
                self.add_keywords(fields)?;
                fields.values().try_for_each(|value| self.add(value, level + 1))
            }
            _ => Ok(()),
        }
    }

    fn add_keywords(&mut self, fields: &Map<String, Value>) -> Result<(), String> {
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(_)) => self.references += 1,
                ("pattern", Value::String(pattern)) => self.add_pattern(pattern)?,
                ("patternProperties", Value::Object(patterns)) => {
                    patterns.keys().try_for_each(|pattern| self.add_pattern(pattern))?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add_pattern(&mut self, pattern: &str) -> Result<(), String> {
        self.patterns += 1;
        if pattern.len() > MAX_SCHEMA_PATTERN_BYTES {
            return Err(format!(
                "a regular expression of the schema has {} bytes, the limit is {MAX_SCHEMA_PATTERN_BYTES}",
                pattern.len()
            ));
        }
        // What is not a regular expression is refused by the compiler, with the reason.
        let states = PatternSize::of(pattern).unwrap_or_default().states;
        self.pattern_states = self.pattern_states.saturating_add(states);
        Ok(())
    }
}
