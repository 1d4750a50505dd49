//! Limits of a schema's text, checked before anything recurses into it without a bound of its own.

use boon::Draft;
use serde_json::{Map, Value};

use super::pattern::{PatternSize, translated_bytes};
use crate::functions::limits::{
    MAX_SCHEMA_BYTES, MAX_SCHEMA_LEVELS, MAX_SCHEMA_PATTERN_BYTES, MAX_SCHEMA_PATTERN_STATES,
    MAX_SCHEMA_PATTERNS, MAX_SCHEMA_REFERENCES, MAX_SCHEMA_TRANSLATED_BYTES,
};

/// What is known of a schema whose text is within the limits.
pub(super) struct Declaration<'s> {
    pub(super) draft: Draft,
    /// Bytes of its JSON text.
    pub(super) bytes: usize,
    /// Its regular expressions, possibly some that are none of the schema's.
    pub(super) patterns: Vec<(&'s str, PatternSize)>,
}

/// Counts by name wherever it stands, which may count too many and never too few.
#[derive(Default)]
struct Tally<'s> {
    references: usize,
    patterns: Vec<(&'s str, PatternSize)>,
    pattern_states: u64,
    translated_bytes: u64,
}

/// Checks the text of a schema.
pub(super) fn check(schema: &Value) -> Result<Declaration<'_>, String> {
    let mut tally = Tally::default();
    tally.add(schema, 1)?;
    let bytes = schema.to_string().len();
    if bytes > MAX_SCHEMA_BYTES {
        return Err(format!("the schema has {bytes} bytes, the limit is {MAX_SCHEMA_BYTES}"));
    }
    let Tally { references, patterns, pattern_states, translated_bytes } = tally;
    if patterns.len() > MAX_SCHEMA_PATTERNS {
        return Err(format!(
            "the schema has {} regular expressions, the limit is {MAX_SCHEMA_PATTERNS}",
            patterns.len()
        ));
    }
    if pattern_states > MAX_SCHEMA_PATTERN_STATES {
        return Err(format!(
            "the regular expressions of the schema have about {pattern_states} states, the limit is \
             {MAX_SCHEMA_PATTERN_STATES}; repeat smaller parts less often"
        ));
    }
    if translated_bytes > MAX_SCHEMA_TRANSLATED_BYTES {
        return Err(format!(
            "translating the regular expressions of the schema takes about {translated_bytes} bytes of parsing, the \
             limit is {MAX_SCHEMA_TRANSLATED_BYTES}; use fewer classes such as \\d, or repeat them as in \\d{{8}}"
        ));
    }
    if references > MAX_SCHEMA_REFERENCES {
        return Err(format!("the schema has {references} references, the limit is {MAX_SCHEMA_REFERENCES}"));
    }
    Ok(Declaration { draft: draft(schema)?, bytes, patterns })
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

impl<'s> Tally<'s> {
    fn add(&mut self, value: &'s Value, level: usize) -> Result<(), String> {
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

    fn add_keywords(&mut self, fields: &'s Map<String, Value>) -> Result<(), String> {
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

    fn add_pattern(&mut self, pattern: &'s str) -> Result<(), String> {
        if pattern.len() > MAX_SCHEMA_PATTERN_BYTES {
            return Err(format!(
                "a regular expression of the schema has {} bytes, the limit is {MAX_SCHEMA_PATTERN_BYTES}",
                pattern.len()
            ));
        }
        // What is not a regular expression is refused by the compiler, with the reason.
        let size = PatternSize::of(pattern).unwrap_or_default();
        self.pattern_states = self.pattern_states.saturating_add(size.states);
        self.translated_bytes = self.translated_bytes.saturating_add(translated_bytes(pattern));
        self.patterns.push((pattern, size));
        Ok(())
    }
}
