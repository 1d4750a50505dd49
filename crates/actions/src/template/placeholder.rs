//! What stands between `{{` and `}}`: a path or a text, and filters.

use std::borrow::Cow;

use serde_json::Value;

use super::error::{Place, Problem, TemplateError};
use super::filter::{Filter, Work};
use super::limits::MAX_FILTERS;
use super::path::{Path, kind_of};
use super::reference::Reference;
use super::scan::Scanner;

/// What opens a placeholder.
pub(super) const OPEN: &str = "{{";
/// What closes it.
pub(super) const CLOSE: &str = "}}";

/// A value that is taken from the names when a template is rendered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placeholder {
    place: Place,
    source: Source,
    filters: Vec<Filter>,
}

#[derive(Debug, Clone, PartialEq)]
enum Source {
    Path(Path),
    /// A text that is written out, for braces that are meant as such.
    Text(Value),
}

impl Placeholder {
    pub fn filter_count(&self) -> usize {
        self.filters.len()
    }

    /// Reads a placeholder whose `{{` is read, up to and with its `}}`.
    pub(super) fn scan(scanner: &mut Scanner<'_>) -> Result<Self, TemplateError> {
        scanner.skip_space();
        let place = scanner.place();
        let source = match scanner.peek() {
            Some('"' | '\'') => Source::Text(Value::String(scanner.quoted()?)),
            _ => Source::Path(Path::scan(scanner)?),
        };
        let mut filters = Vec::new();
        loop {
            scanner.skip_space();
            if scanner.take(CLOSE) {
                return Ok(Placeholder { place, source, filters });
            }
            if !scanner.take("|") {
                return Err(scanner.unexpected("| and a filter, or }}"));
            }
            if filters.len() == MAX_FILTERS {
                return Err(scanner.invalid(format!("a placeholder has at most {MAX_FILTERS} filters")));
            }
            scanner.skip_space();
            filters.push(Filter::scan(scanner)?);
        }
    }

    /// Its path, if it has one.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::Path(path) => Some(path),
            Source::Text(_) => None,
        }
    }

    /// Its path, if it has one, and whether a default replaces it.
    pub(super) fn reference(&self) -> Option<Reference<'_>> {
        Some(Reference::new(self.path()?, self.has_default()))
    }

    fn has_default(&self) -> bool {
        self.filters.iter().any(|filter| matches!(filter, Filter::Default(_)))
    }

    /// The name that must be there for it to be rendered; none if it has a default.
    pub(super) fn required_name(&self) -> Option<&str> {
        if self.has_default() { None } else { self.path().map(Path::root) }
    }

    /// Its name, if it is one whole name without filters.
    pub(super) fn only_name(&self) -> Option<&str> {
        self.path().filter(|_| self.filters.is_empty())?.only_part()
    }

    /// The value.
    ///
    /// # Errors
    /// `template-failed` when it is not there, or a filter cannot be used on it.
    pub(super) fn value<'v>(
        &'v self,
        names: &'v Value,
        work: &mut Work,
    ) -> Result<Cow<'v, Value>, TemplateError> {
        let found = match &self.source {
            Source::Path(path) => path.resolve(names),
            Source::Text(text) => Ok(text),
        };
        let found = found.map(Cow::Borrowed);
        let filtered = self.filters.iter().fold(found, |value, filter| filter.apply(value, work));
        filtered.map_err(|problem| problem.at(&self.place))
    }

    /// The value as it stands in a text.
    ///
    /// # Errors
    /// Those of [`Placeholder::value`], and `template-failed` for null, lists and objects: what they look like in a text
    /// is for the template to say.
    pub(super) fn text<'v>(
        &'v self,
        names: &'v Value,
        work: &mut Work,
    ) -> Result<Cow<'v, str>, TemplateError> {
        let kind = match self.value(names, work)? {
            Cow::Borrowed(Value::String(text)) => return Ok(Cow::Borrowed(text)),
            Cow::Owned(Value::String(text)) => return Ok(Cow::Owned(text)),
            value if value.is_number() || value.is_boolean() => return Ok(Cow::Owned(value.to_string())),
            value => kind_of(&value),
        };
        let name = match &self.source {
            Source::Path(path) => path.to_string(),
            Source::Text(text) => text.to_string(),
        };
        let problem = format!("{name} is {kind}, which has no place in a text; write | json or | default(…)");
        Err(Problem(problem).at(&self.place))
    }
}
