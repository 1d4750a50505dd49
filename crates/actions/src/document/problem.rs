//! Problems of a text that a user wrote: each with its place, all of them at once.

use std::fmt;

use serde::Serialize;

use super::limits::MAX_PROBLEMS;

/// Whether a problem prevents the use of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The text cannot be used.
    Error,
    /// The text can be used, but probably does not do what its author wants.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// A line and a column of a text, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The character in the line.
    pub column: u64,
}

impl Position {
    /// The first character.
    pub const START: Position = Position { line: 1, column: 1 };

    /// No place in a text: what is wrong is named by its path alone.
    pub const NONE: Position = Position { line: 0, column: 0 };

    /// A whole line.
    pub fn of_line(line: u64) -> Self {
        Position { line, column: 0 }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Whether the text can be used.
    pub severity: Severity,
    /// Line of the text, from 1; 0 if what is wrong is not in a text.
    pub line: u64,
    /// Character of the line, from 1; 0 if the problem concerns the line as a whole.
    #[serde(skip_serializing_if = "is_zero")]
    pub column: u64,
    /// What it is about, as in `phases[1].steps[0].on_failure`; empty is the whole text.
    pub path: String,
    /// What is wrong, with the value.
    pub problem: String,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Problem {
    /// An error about a place.
    pub fn error(at: Position, path: impl Into<String>, problem: impl Into<String>) -> Self {
        let Position { line, column } = at;
        let (path, problem) = (path.into(), problem.into());
        Problem { severity: Severity::Error, line, column, path, problem, advice: None }
    }

    /// A warning about a place.
    pub fn warning(at: Position, path: impl Into<String>, problem: impl Into<String>) -> Self {
        Problem { severity: Severity::Warning, ..Problem::error(at, path, problem) }
    }

    /// With what to write instead.
    #[must_use]
    pub fn advice(self, advice: impl Into<String>) -> Self {
        Problem { advice: Some(advice.into()), ..self }
    }

    /// With what to write instead, if that is known.
    #[must_use]
    pub fn maybe_advice(self, advice: Option<String>) -> Self {
        Problem { advice, ..self }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}", self.line)?;
            if self.column > 0 {
                write!(f, ", column {}", self.column)?;
            }
            f.write_str(": ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.problem)?;
        match &self.advice {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

/// The problems of one text, in the order of their places, of which at most [`MAX_PROBLEMS`] errors
/// and as many warnings are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Problems {
    kept: Vec<Problem>,
    errors: usize,
    warnings: usize,
}

impl Problems {
    /// Adds one.
    pub fn push(&mut self, problem: Problem) {
        let count = match problem.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        if *count <= MAX_PROBLEMS {
            self.kept.push(problem);
        }
    }

    /// Sorts them by place; problems of one place stay in the order in which they were found.
    pub fn sort(&mut self) {
        self.kept.sort_by_key(|problem| (problem.line, problem.column));
    }

    /// The same problems without lines, for what was not written by people.
    #[must_use]
    pub fn without_positions(&self) -> Self {
        let mut problems = self.clone();
        for problem in &mut problems.kept {
            (problem.line, problem.column) = (0, 0);
        }
        problems
    }

    /// Whether there is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many errors there are, those that are not kept included.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// How many warnings there are, those that are not kept included.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// How many were found beyond those that are kept.
    pub fn omitted(&self) -> usize {
        self.errors + self.warnings - self.kept.len()
    }

    /// Those that are kept.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.kept.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors = self.kept.iter().filter(|problem| problem.severity == Severity::Error);
        for (number, problem) in errors.enumerate() {
            write!(f, "{}{problem}", if number > 0 { "\n" } else { "" })?;
        }
        match self.errors.saturating_sub(MAX_PROBLEMS) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_counted_beyond_those_that_are_kept() {
        let mut problems = Problems::default();
        for line in (1..=MAX_PROBLEMS as u64 + 5).rev() {
            problems.push(Problem::error(Position { line, column: 1 }, "x", "is wrong").advice("write y"));
        }
        problems.push(Problem::warning(Position::START, "", "is odd"));
        problems.sort();
        assert_eq!((problems.errors(), problems.warnings(), problems.omitted()), (105, 1, 5));
        assert_eq!(problems.iter().count(), MAX_PROBLEMS + 1);
        let text = problems.to_string();
        assert!(text.starts_with("line 6, column 1: x: is wrong; write y\nline 7, "), "{text}");
        assert!(text.ends_with("\nand 5 more") && !text.contains("odd"), "{text}");
    }
}
