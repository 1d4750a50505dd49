//! What goes wrong with a template: while it is read, and while it is rendered.

use std::fmt;

use segno::store::ErrorKind;

/// Where in a template something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// JSON pointer to the text in a JSON template; empty is the whole template.
    pub pointer: String,
    /// Line of the text, from 1.
    pub line: usize,
    /// Character of the line, from 1.
    pub column: usize,
}

impl Default for Place {
    fn default() -> Self {
        Place { pointer: String::new(), line: 1, column: 1 }
    }
}

impl Place {
    /// The place at a byte of a text.
    pub(super) fn in_text(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Place {
            pointer: String::new(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}, ", self.pointer)?;
        }
        if self.line > 1 {
            write!(f, "line {}, ", self.line)?;
        }
        write!(f, "column {}", self.column)
    }
}

/// An error of a template or condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// It is no template.
    #[error("{place}: {problem} [invalid-template]")]
    Invalid {
        /// Where.
        place: Place,
        /// What is wrong, and what to write instead.
        problem: String,
    },
    /// It cannot be rendered with these values.
    #[error("{place}: {problem} [template-failed]")]
    Failed {
        /// Where.
        place: Place,
        /// What is wrong, with the path that was asked for.
        problem: String,
    },
}

impl TemplateError {
    /// The stable code, with a page in `docs/errors/`.
    pub fn code(&self) -> &'static str {
        match self {
            TemplateError::Invalid { .. } => "invalid-template",
            TemplateError::Failed { .. } => "template-failed",
        }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }

    /// What is wrong, without the place.
    pub fn problem(&self) -> &str {
        match self {
            TemplateError::Invalid { problem, .. } | TemplateError::Failed { problem, .. } => problem,
        }
    }

    /// The same error in a text that stands at this place of a JSON template.
    #[must_use]
    pub fn below(mut self, pointer: &str) -> Self {
        let (TemplateError::Invalid { place, .. } | TemplateError::Failed { place, .. }) = &mut self;
        pointer.clone_into(&mut place.pointer);
        self
    }
}

/// A reason why a value cannot be used, before it is known where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem(pub(super) String);

impl Problem {
    pub(super) fn at(self, place: &Place) -> TemplateError {
        TemplateError::Failed { place: place.clone(), problem: self.0 }
    }
}
