//! JSON templates: JSON whose texts have placeholders, which becomes JSON.
//!
//! A text that is nothing but one placeholder becomes the value with its own type; in a longer text the value is text.
//! There is nothing to quote and nothing that could be quoted wrongly, because values are put into JSON that is read
//! already.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::error::{Place, TemplateError};
use super::filter::{Work, json_text, too_long};
use super::limits::{MAX_DEPTH, MAX_JSON_TEMPLATE_BYTES, MAX_OUTPUT_BYTES};
use super::path::Path;
use super::placeholder::OPEN;
use super::text::Template;
use super::wanted::Wanted;

/// JSON with placeholders, read and checked.
///
/// ```
/// use segno_actions::template::JsonTemplate;
/// use serde_json::json;
///
/// let template = JsonTemplate::parse(&json!({ "user": "{{payload.user}}", "title": "Hi {{payload.user.name}}" }))?;
/// let rendered = template.render(&json!({ "payload": { "user": { "name": "A\"da", "age": 36 } } }))?;
/// assert_eq!(rendered, json!({ "user": { "name": "A\"da", "age": 36 }, "title": "Hi A\"da" }));
/// # Ok::<_, segno_actions::template::TemplateError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct JsonTemplate {
    source: Value,
    node: Node,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Fixed(Value),
    Text { pointer: String, template: Template },
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    fn filter_count(&self) -> usize {
        match self {
            Node::Fixed(_) => 0,
            Node::Text { template, .. } => template.filter_count(),
            Node::List(nodes) => nodes.iter().map(Node::filter_count).sum(),
            Node::Object(fields) => fields.iter().map(|(_, node)| node.filter_count()).sum(),
        }
    }
}

impl JsonTemplate {
    /// How many filters it applies in all.
    pub(crate) fn filter_count(&self) -> usize {
        self.node.filter_count()
    }

    /// Reads a template.
    ///
    /// # Errors
    /// `invalid-template` with the place and what to write instead.
    pub fn parse(source: &Value) -> Result<Self, TemplateError> {
        let bytes = json_text(source).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_JSON_TEMPLATE_BYTES {
            let problem = format!("the template has more than {MAX_JSON_TEMPLATE_BYTES} bytes");
            return Err(TemplateError::Invalid { place: Place::default(), problem });
        }
        Ok(JsonTemplate { node: read(source, &mut Vec::new())?, source: source.clone() })
    }

    /// The JSON with values in place of placeholders.
    ///
    /// # Errors
    /// `template-failed` when a name is not there, a value cannot stand in a text, or the result is too large.
    pub fn render(&self, names: &Value) -> Result<Value, TemplateError> {
        let mut rendering = Rendering { names, left: MAX_OUTPUT_BYTES, work: Work::new() };
        rendering.render(&self.node, 0)
    }

    /// The name, if the template is nothing but a placeholder of one whole name, without filters.
    pub(crate) fn only_name(&self) -> Option<&str> {
        match &self.node {
            Node::Text { template, .. } => template.only_placeholder()?.only_name(),
            _ => None,
        }
    }

    /// The names without which it cannot be rendered: those that no filter `default` replaces.
    pub fn required_names(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        collect_required(&self.node, &mut names);
        names
    }

    /// What it asks for.
    pub fn wanted(&self) -> Wanted<'_> {
        let mut paths = Vec::new();
        collect_paths(&self.node, &mut paths);
        Wanted::new(paths)
    }
}

impl Serialize for JsonTemplate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.source.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonTemplate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        JsonTemplate::parse(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// `at` is the way to the value, as parts of a JSON pointer.
fn read(value: &Value, at: &mut Vec<String>) -> Result<Node, TemplateError> {
    if at.len() > MAX_DEPTH {
        let place = Place { pointer: pointer(at), ..Place::default() };
        let problem = format!("the template is nested more than {MAX_DEPTH} deep");
        return Err(TemplateError::Invalid { place, problem });
    }
    match value {
        Value::String(text) => {
            let pointer = pointer(at);
            let template = Template::parse(text).map_err(|error| error.below(&pointer))?;
            if template.is_plain() {
                return Ok(Node::Fixed(value.clone()));
            }
            Ok(Node::Text { pointer, template })
        }
        Value::Array(items) => {
            let nodes = items.iter().enumerate().map(|(index, item)| within(at, index.to_string(), item));
            Ok(Node::List(nodes.collect::<Result<_, _>>()?))
        }
        Value::Object(fields) => {
            let nodes = fields.iter().map(|(name, field)| {
                if name.contains(OPEN) {
                    let place = Place { pointer: pointer(at), ..Place::default() };
                    let problem = format!("placeholders stand in values, not in names such as {name:?}");
                    return Err(TemplateError::Invalid { place, problem });
                }
                Ok((name.clone(), within(at, name.clone(), field)?))
            });
            Ok(Node::Object(nodes.collect::<Result<_, _>>()?))
        }
        other => Ok(Node::Fixed(other.clone())),
    }
}

fn within(at: &mut Vec<String>, part: String, value: &Value) -> Result<Node, TemplateError> {
    at.push(part);
    let node = read(value, at);
    at.pop();
    node
}

fn pointer(parts: &[String]) -> String {
    parts.iter().map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1"))).collect()
}

fn collect_paths<'t>(node: &'t Node, paths: &mut Vec<&'t Path>) {
    match node {
        Node::Fixed(_) => {}
        Node::Text { template, .. } => paths.extend(template.paths()),
        Node::List(items) => items.iter().for_each(|item| collect_paths(item, paths)),
        Node::Object(fields) => fields.iter().for_each(|(_, field)| collect_paths(field, paths)),
    }
}

fn collect_required<'t>(node: &'t Node, names: &mut BTreeSet<&'t str>) {
    match node {
        Node::Fixed(_) => {}
        Node::Text { template, .. } => names.extend(template.required_names()),
        Node::List(items) => items.iter().for_each(|item| collect_required(item, names)),
        Node::Object(fields) => fields.iter().for_each(|(_, field)| collect_required(field, names)),
    }
}

/// One rendering, with what is left of the largest result.
struct Rendering<'n> {
    names: &'n Value,
    left: usize,
    work: Work,
}

impl Rendering<'_> {
    fn render(&mut self, node: &Node, depth: usize) -> Result<Value, TemplateError> {
        match node {
            Node::Fixed(value) => Ok(value.clone()),
            Node::Text { pointer, template } => {
                self.text(template, depth).map_err(|error| error.below(pointer))
            }
            Node::List(items) => {
                let items = items.iter().map(|item| self.render(item, depth + 1));
                items.collect::<Result<_, _>>().map(Value::Array)
            }
            Node::Object(fields) => {
                let fields =
                    fields.iter().map(|(name, field)| Ok((name.clone(), self.render(field, depth + 1)?)));
                fields.collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
        }
    }

    fn text(&mut self, template: &Template, depth: usize) -> Result<Value, TemplateError> {
        let failed = |problem| TemplateError::Failed { place: Place::default(), problem };
        let value = match template.only_placeholder() {
            Some(placeholder) => placeholder.value(self.names, &mut self.work)?,
            None => Cow::Owned(Value::String(template.render_within(self.names, &mut self.work)?)),
        };
        if is_deeper(&value, MAX_DEPTH.saturating_sub(depth)) {
            return Err(failed(format!("the result is nested more than {MAX_DEPTH} deep")));
        }
        let bytes = json_text(&value).map_or(usize::MAX, |text| text.len());
        self.left = self.left.checked_sub(bytes).ok_or_else(|| failed(too_long().0))?;
        Ok(value.into_owned())
    }
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let mut inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => return false,
    };
    levels == 0 || inner.any(|value| is_deeper(value, levels - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn render(template: Value, names: Value) -> Result<Value, String> {
        let template = JsonTemplate::parse(&template).map_err(|error| error.to_string())?;
        template.render(&names).map_err(|error| error.to_string())
    }

    #[test]
    fn a_placeholder_alone_keeps_its_type_and_in_a_text_it_is_text() {
        let names = json!({ "payload": { "n": 7, "list": [1, { "a": null }], "none": null, "q": "say \"{{x}}\"\n" } });
        let template = json!({
            "all": "{{payload}}",
            "n": "{{ payload.n }}",
            "text": "n={{payload.n}}",
            "none": "{{payload.none}}",
            "list": ["{{payload.list}}", "{{payload.list[1]}}", 5, true, null],
            "quoted": "he said: {{payload.q}}",
            "forced": "{{payload.n | string}}",
            "space": " {{payload.n}}",
        });
        let expected = json!({
            "all": names["payload"],
            "n": 7,
            "text": "n=7",
            "none": null,
            "list": [[1, { "a": null }], { "a": null }, 5, true, null],
            "quoted": "he said: say \"{{x}}\"\n",
            "forced": "7",
            "space": " 7",
        });
        assert_eq!(render(template, names.clone()), Ok(expected));
        assert_eq!(render(json!("{{payload.n}}"), names), Ok(json!(7)));
    }

    #[test]
    fn mistakes_point_to_the_text() {
        let names = json!({ "payload": {} });
        for (template, says) in [
            (json!({ "a": ["x", "{{ payload. }}"] }), "/a/1, column 12: expected a name"),
            (
                json!({ "a/b": { "c~": "{{payload.x}}" } }),
                "/a~1b/c~0, column 3: payload.x cannot be resolved",
            ),
            (
                json!({ "a": { "{{payload}}": 1 } }),
                "/a, column 1: placeholders stand in values, not in names",
            ),
            (json!({ "a": "x {{payload}}" }), "/a, column 5: payload is an object"),
        ] {
            let error = render(template.clone(), names.clone()).unwrap_err();
            assert!(error.starts_with(says), "{template}: {error}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let nested = |levels: usize| (0..levels).fold(json!("{{p}}"), |inner, _| json!([inner]));
        assert!(JsonTemplate::parse(&nested(MAX_DEPTH)).is_ok());
        assert!(JsonTemplate::parse(&nested(MAX_DEPTH + 1)).is_err());
        let deep = (0..60).fold(json!(1), |inner, _| json!({ "x": inner }));
        assert!(render(nested(40), json!({ "p": deep })).is_ok());
        let error = render(nested(41), json!({ "p": deep })).unwrap_err();
        assert!(error.contains("nested more than 100 deep"), "{error}");
        let many: Vec<Value> = (0..5).map(|_| json!("{{p}}")).collect();
        let error = render(json!(many), json!({ "p": "x".repeat(MAX_OUTPUT_BYTES / 4) })).unwrap_err();
        assert!(error.starts_with("/3, column 1: the result has more than"), "{error}");
        assert!(JsonTemplate::parse(&json!("x".repeat(MAX_JSON_TEMPLATE_BYTES))).is_err());
        // Each result is empty, and each takes reading all of it.
        let many: Vec<Value> = (0..100).map(|_| json!("{{ p | lower | upper | trim }}")).collect();
        let names = json!({ "p": " ".repeat(MAX_OUTPUT_BYTES) });
        let error = render(json!(many), names.clone()).unwrap_err();
        assert!(error.contains("the filters read more than"), "{error}");
        assert_eq!(render(json!([many[0]]), names), Ok(json!([""])));
    }

    #[test]
    fn it_is_stored_as_it_was_written() {
        let text = r#"{"a":["{{payload}}",1]}"#;
        let template: JsonTemplate = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&template).unwrap(), text);
        assert_eq!(template.wanted().names().collect::<Vec<_>>(), ["payload"]);
        let error = serde_json::from_str::<JsonTemplate>(r#"{"a":"{{"}"#).unwrap_err().to_string();
        assert!(error.contains("/a, column 3: expected a name"), "{error}");
    }
}
