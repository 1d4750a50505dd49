//! A compiled schema and the check of an input against it.

use std::fmt::{self, Write as _};

use boon::{Compiler, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cost::{self, TooCostly};
use super::graph::Graph;
use super::pattern::{MAX_COUNTED_STATES, translated};
use super::references::SCHEMA_URL;
use super::{declaration, footprint, threads};
use crate::functions::error::FunctionError;
use crate::functions::limits::{MAX_EXPLAINED_EVALUATIONS, MAX_VIOLATIONS};

/// Longest reason of a violation in characters.
const MAX_REASON_CHARS: usize = 300;
/// Most errors of the validator that are looked at for violations that differ.
const MAX_ERRORS_SEEN: usize = 1_000;

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
    graph: Graph,
    schemas: Schemas,
    index: SchemaIndex,
    /// Holds for what does not fit. The validator makes no errors within a negation and stops at the first.
    negation: SchemaIndex,
    /// The regular expressions of `patternProperties`, each as a schema of a string, but for very large ones.
    patterns: Vec<Option<SchemaIndex>>,
    estimated_bytes: usize,
}

impl fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InputSchema")
    }
}

/// Why an input was not checked.
#[derive(Debug)]
pub(in crate::functions) struct Unchecked {
    /// What the schema and the input would take.
    pub(in crate::functions) cost: TooCostly,
}

impl InputSchema {
    /// Compiles a schema; without `$schema` it is of the 2020-12 draft. References may lead within the schema only.
    /// It runs on a thread with a stack of its own, and the caller waits for that.
    ///
    /// # Errors
    /// `invalid-function` when it is no schema, refers to other documents, or is over a limit.
    pub fn compile(schema: &Value) -> Result<Self, FunctionError> {
        threads::run_blocking(|| Self::compile_here(schema))?
    }

    /// Compiles a schema and checks one value, on a thread of its own like [`compile`](Self::compile).
    ///
    /// # Errors
    /// Those of [`compile`](Self::compile), and when the check would take too long.
    pub fn check_once(schema: &Value, value: &Value) -> Result<Vec<Violation>, FunctionError> {
        threads::run_blocking(|| {
            let too_costly = |Unchecked { cost }| FunctionError::invalid("input_schema", cost.to_string());
            Self::compile_here(schema)?.violations(value).map_err(too_costly)
        })?
    }

    /// The same on this thread, which has to be one of [`threads`].
    pub(in crate::functions) fn compile_here(schema: &Value) -> Result<Self, FunctionError> {
        let refuse = |problem: String| FunctionError::invalid("input_schema", problem);
        let declaration = declaration::check(schema).map_err(refuse)?;
        let graph = Graph::build(schema, declaration.draft).map_err(refuse)?;
        let mut compiling = Compiling::new();
        let index = compiling.compile(SCHEMA_URL, schema.clone())?;
        let negation = json!({ "not": { "$ref": SCHEMA_URL } });
        let negation = compiling.compile("https://segno.invalid/negation", negation)?;
        let mut patterns = Vec::with_capacity(graph.patterns.len());
        for (number, (pattern, size)) in graph.patterns.iter().enumerate() {
            if size.states > MAX_COUNTED_STATES {
                patterns.push(None);
                continue;
            }
            let url = format!("https://segno.invalid/pattern/{number}");
            patterns.push(Some(compiling.compile(&url, json!({ "pattern": translated(pattern) }))?));
        }
        let copies = graph.patterns.iter().map(|(pattern, size)| (pattern.as_str(), *size));
        let copies = copies.filter(|(_, size)| size.states <= MAX_COUNTED_STATES);
        let compiled = declaration.patterns.into_iter().chain(copies);
        let estimated_bytes = footprint::of_schema(declaration.bytes, graph.nodes.len(), compiled);
        Ok(InputSchema { graph, schemas: compiling.schemas, index, negation, patterns, estimated_bytes })
    }

    /// What it takes in memory at worst.
    pub(super) fn estimated_bytes(&self) -> usize {
        self.estimated_bytes
    }

    /// Every place that does not fit, up to [`limits::MAX_VIOLATIONS`](crate::functions::limits::MAX_VIOLATIONS); empty
    /// when the input fits. It runs on a thread of [`threads`].
    ///
    /// # Errors
    /// [`Unchecked`] when it would take too long or recurse too deep.
    pub(in crate::functions) fn violations(&self, input: &Value) -> Result<Vec<Violation>, Unchecked> {
        let matches = |pattern: usize, name: &str| {
            let pattern = (*self.patterns.get(pattern)?)?;
            Some(self.schemas.validate(&Value::String(name.to_owned()), pattern).is_ok())
        };
        let cost = cost::count(&self.graph, &matches, input).map_err(|cost| Unchecked { cost })?;
        if self.schemas.validate(input, self.negation).is_err() {
            return Ok(Vec::new());
        }
        if cost.evaluations > MAX_EXPLAINED_EVALUATIONS {
            let reason = "does not fit; it is too large for a list of the places that do not".to_owned();
            return Ok(vec![Violation { path: String::new(), reason }]);
        }
        let mut found = Found::default();
        if let Err(error) = self.schemas.validate(input, self.index) {
            found.collect(&error);
        }
        Ok(found.violations)
    }
}

/// The compiler with what it has compiled.
struct Compiling {
    compiler: Compiler,
    schemas: Schemas,
}

impl Compiling {
    fn new() -> Self {
        let mut compiler = Compiler::new();
        compiler.set_default_draft(boon::Draft::V2020_12);
        compiler.use_loader(Box::new(NothingIsFetched));
        Compiling { compiler, schemas: Schemas::new() }
    }

    fn compile(&mut self, url: &str, schema: Value) -> Result<SchemaIndex, FunctionError> {
        let unusable = |error: boon::CompileError| {
            let reason = match &error {
                // A pattern whose automaton is larger than the library allows.
                boon::CompileError::Bug(reason) => {
                    cut(1_000, &format_args!("a regular expression: {reason}"))
                }
                error => cut(1_000, &format_args!("{error:#}")).replace(SCHEMA_URL, ""),
            };
            FunctionError::invalid("input_schema", format!("this is not a usable JSON Schema: {reason}"))
        };
        self.compiler.add_resource(url, schema).map_err(unusable)?;
        self.compiler.compile(url, &mut self.schemas).map_err(unusable)
    }
}

/// Violations that differ, from a tree of errors of which a bounded part is looked at.
#[derive(Default)]
struct Found {
    violations: Vec<Violation>,
    seen: usize,
}

impl Found {
    /// The leaves of the tree of errors say what is wrong; the nodes above only where the schema asked for it.
    fn collect(&mut self, error: &ValidationError<'_, '_>) {
        if self.violations.len() >= MAX_VIOLATIONS || self.seen >= MAX_ERRORS_SEEN {
            return;
        }
        if error.causes.is_empty() {
            self.seen += 1;
            let violation = Violation {
                path: error.instance_location.to_string(),
                reason: cut(MAX_REASON_CHARS, &error.kind),
            };
            if !self.violations.contains(&violation) {
                self.violations.push(violation);
            }
        }
        for cause in &error.causes {
            self.collect(cause);
        }
    }
}

/// The beginning of a text, which is not made any further.
fn cut(max_chars: usize, text: &dyn fmt::Display) -> String {
    struct Cut {
        text: String,
        chars_left: usize,
    }
    impl fmt::Write for Cut {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            for char in part.chars() {
                self.chars_left = self.chars_left.checked_sub(1).ok_or(fmt::Error)?;
                self.text.push(char);
            }
            Ok(())
        }
    }
    let mut cut = Cut { text: String::new(), chars_left: max_chars };
    // The only error is that the text is long enough.
    write!(cut, "{text}").ok();
    cut.text
}

/// References to other documents are refused: a declaration must not make the node read files or call servers.
struct NothingIsFetched;

impl UrlLoader for NothingIsFetched {
    fn load(&self, url: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err(format!("{url} is another document; put what it defines into $defs of this schema").into())
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
