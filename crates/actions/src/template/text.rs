//! Text templates: a text with placeholders, which becomes a text.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::error::{Place, TemplateError};
use super::filter::{Work, within_limit};
use super::limits::{MAX_PLACEHOLDERS, MAX_TEMPLATE_BYTES};
use super::path::Path;
use super::placeholder::{OPEN, Placeholder};
use super::reference::Reference;
use super::scan::Scanner;
use super::wanted::Wanted;

/// A text with placeholders, read and checked.
///
/// ```
/// use segno_actions::template::Template;
/// use serde_json::json;
///
/// let template = Template::parse("{{recurring_id}}@{{ execution_time | lower }}")?;
/// let names = json!({ "recurring_id": "nightly", "execution_time": "2026-03-29T01:00:00Z" });
/// assert_eq!(template.render(&names)?, "nightly@2026-03-29t01:00:00z");
/// # Ok::<_, segno_actions::template::TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Placeholder(Placeholder),
}

impl Template {
    /// How many filters it applies: what it takes to render grows with these and with the size of the names.
    pub(crate) fn filter_count(&self) -> usize {
        let count = |part: &Part| match part {
            Part::Text(_) => 0,
            Part::Placeholder(placeholder) => placeholder.filter_count(),
        };
        self.parts.iter().map(count).sum()
    }

    /// Reads a template.
    ///
    /// # Errors
    /// `invalid-template` with the place and what to write instead.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        if text.len() > MAX_TEMPLATE_BYTES {
            let problem = format!("the text has {} bytes, the limit is {MAX_TEMPLATE_BYTES}", text.len());
            return Err(TemplateError::Invalid { place: Place::default(), problem });
        }
        let mut scanner = Scanner::new(text);
        let mut parts = Vec::new();
        let mut count = 0;
        while !scanner.rest().is_empty() {
            let literal = scanner.rest().split(OPEN).next().unwrap_or_default();
            if !literal.is_empty() {
                parts.push(Part::Text(literal.to_owned()));
                scanner.take(literal);
            }
            if scanner.take(OPEN) {
                count += 1;
                if count > MAX_PLACEHOLDERS {
                    return Err(
                        scanner.invalid(format!("a text has at most {MAX_PLACEHOLDERS} placeholders"))
                    );
                }
                parts.push(Part::Placeholder(Placeholder::scan(&mut scanner)?));
            }
        }
        Ok(Template { source: text.to_owned(), parts })
    }

    /// The text with values in place of placeholders.
    ///
    /// # Errors
    /// `template-failed` when a name is not there, a value cannot stand in a text, or the result is too long.
    pub fn render(&self, names: &Value) -> Result<String, TemplateError> {
        self.render_within(names, &mut Work::new())
    }

    /// The same as a part of a larger rendering.
    pub(super) fn render_within(&self, names: &Value, work: &mut Work) -> Result<String, TemplateError> {
        let mut rendered = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => rendered.push_str(text),
                Part::Placeholder(placeholder) => {
                    let text = placeholder.text(names, work)?;
                    let bytes = rendered.len().saturating_add(text.len());
                    within_limit(bytes).map_err(|problem| problem.at(&Place::default()))?;
                    rendered.push_str(&text);
                }
            }
        }
        Ok(rendered)
    }

    /// What it asks for.
    pub fn wanted(&self) -> Wanted<'_> {
        Wanted::new(self.paths())
    }

    /// The names without which it cannot be rendered: those that no filter `default` replaces.
    pub fn required_names(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Placeholder(placeholder) => placeholder.required_name(),
        })
    }

    /// The paths that it asks for, in their order.
    pub fn references(&self) -> impl Iterator<Item = Reference<'_>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Placeholder(placeholder) => placeholder.reference(),
        })
    }

    /// Whether it is nothing but one placeholder, which keeps the type of its value in a JSON template.
    pub fn is_one_placeholder(&self) -> bool {
        self.only_placeholder().is_some()
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Placeholder(placeholder) => placeholder.path(),
        })
    }

    /// The placeholder, if there is nothing else.
    pub(super) fn only_placeholder(&self) -> Option<&Placeholder> {
        match self.parts.as_slice() {
            [Part::Placeholder(placeholder)] => Some(placeholder),
            _ => None,
        }
    }

    /// Whether there is no placeholder.
    pub fn is_plain(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Template::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::limits::MAX_OUTPUT_BYTES;
    use serde_json::json;

    fn names() -> Value {
        json!({
            "payload": { "user": { "name": "Ada", "age": 36, "tags": ["a", "b"], "none": null } },
            "headers": { "x-github-event": "push" },
            "braces": "{{payload}}",
            "Größe": "XL",
            "2nd": "b",
        })
    }

    #[test]
    fn values_take_the_place_of_placeholders() {
        for (template, rendered) in [
            ("", ""),
            ("no placeholder }} at all {", "no placeholder }} at all {"),
            ("Hello, {{payload.user.name}}!", "Hello, Ada!"),
            ("{{ payload.user.tags[1] }}{{payload.user.age}}", "b36"),
            ("{{ payload.user | json }}", r#"{"age":36,"name":"Ada","none":null,"tags":["a","b"]}"#),
            ("{{headers.x-github-event|upper}}", "PUSH"),
            ("{{ payload.user.phone | default('none') }}", "none"),
            ("{{ payload.user.none | default('none') | upper }}", "NONE"),
            // What is put in is not read again.
            ("{{ braces }}", "{{payload}}"),
            ("{{ '{{' }}x}}", "{{x}}"),
            ("{{ \"}}\" }}", "}}"),
            ("{{Größe}} {{2nd}}", "XL b"),
            ("{{{payload.user.name}}}", "error"),
        ] {
            let outcome = Template::parse(template).and_then(|template| template.render(&names()));
            match outcome {
                Ok(text) => assert_eq!(text, rendered, "{template}"),
                Err(error) => assert_eq!(rendered, "error", "{template}: {error}"),
            }
        }
    }

    #[test]
    fn a_mistake_has_a_place_and_advice() {
        for (template, says) in [
            ("a {{ payload", "column 13: expected | and a filter, or }}, found the end"),
            ("{{}}", "column 3: expected a name, found '}'"),
            ("line\n{{ -7 }}", "line 2, column 4: expected a name, found \"-7\""),
            ("{{ a b }}", "column 6: expected | and a filter, or }}, found \"b\""),
            ("{{ a | shell }}", "column 8: expected json, string"),
            ("{{ a }", "column 6: expected | and a filter, or }}, found '}'"),
            ("{{ 'a }}", "has no end"),
            ("{% for x in y %}{{% x %}}", "expected a name, found '%'"),
        ] {
            let error = Template::parse(template).unwrap_err();
            assert_eq!(error.code(), "invalid-template");
            assert!(error.to_string().contains(says), "{template}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_rendered_is_named() {
        for (template, says) in [
            (
                "x {{ payload.usr.name }}",
                "column 6: payload.usr.name cannot be resolved: payload has no field",
            ),
            ("{{ nobody }}", "there is no name \"nobody\""),
            ("{{ payload.user }}", "payload.user is an object, which has no place in a text"),
            ("{{ payload.user.none }}", "is null"),
            ("{{ payload.user.age | lower }}", "column 4: | lower takes a text"),
        ] {
            let error = Template::parse(template).unwrap().render(&names()).unwrap_err();
            assert_eq!(error.code(), "template-failed");
            assert!(error.to_string().contains(says), "{template}: {error}");
        }
    }

    #[test]
    fn sizes_are_bounded() {
        assert!(Template::parse(&"x".repeat(MAX_TEMPLATE_BYTES)).is_ok());
        assert!(Template::parse(&"x".repeat(MAX_TEMPLATE_BYTES + 1)).is_err());
        assert!(Template::parse(&"{{a}}".repeat(MAX_PLACEHOLDERS + 1)).is_err());
        assert!(Template::parse(&"{{".repeat(5_000)).is_err());
        assert!(Template::parse(&format!("{{{{ a{} }}}}", " | json".repeat(9))).is_err());
        let many = Template::parse(&"{{a}}".repeat(MAX_PLACEHOLDERS)).unwrap();
        let error = many.render(&json!({ "a": "x".repeat(MAX_OUTPUT_BYTES / 2) })).unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
    }

    #[test]
    fn the_names_it_uses_are_known_beforehand() {
        let template = Template::parse("{{payload.a}} {{headers.b}} {{'x'}} {{id}}").unwrap();
        assert_eq!(template.wanted().names().collect::<Vec<_>>(), ["headers", "id", "payload"]);
        assert_eq!(template.wanted().fields_of("headers").collect::<Vec<_>>(), ["b"]);
        assert_eq!(template.wanted().fields_of("id").count(), 0);
        let template = Template::parse("{{a}} {{b | upper | default('x')}} {{c.d | lower}}").unwrap();
        let references: Vec<(Vec<String>, bool)> = template
            .references()
            .map(|reference| (reference.parts().to_vec(), reference.is_required()))
            .collect();
        let parts = |path: &str| path.split('.').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(references, [(parts("a"), true), (parts("b"), false), (parts("c.d"), true)]);
        assert_eq!(template.required_names().collect::<Vec<_>>(), ["a", "c"]);
    }
}
