//! Inputs of planned tasks: values, of which some texts are templates that only the outputs of upstream tasks resolve.
//!
//! What is resolved is never read as a template again: the places of the texts that still are templates are kept beside
//! the value. So a parameter or an output that contains `{{` stays as it is.

use std::collections::BTreeSet;

use segno_actions::objects::Objects;
use segno_actions::template::{JsonTemplate, Template, TemplateError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::limits::MAX_RESOLVED_INPUT_BYTES;

/// An input, or the list of a `for_each`, as a plan has it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PlannedInput {
    /// The value.
    pub value: Value,
    /// JSON pointers to the texts that are templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<String>,
}

/// What templates may name when a task is dispatched.
#[derive(Debug, Clone, Copy)]
pub struct RunNames<'n> {
    /// The run.
    pub run_id: &'n str,
    /// Its parameters.
    pub params: &'n Map<String, Value>,
    /// What [`PartitionSet::names`](super::partition::PartitionSet::names) has of its partition.
    pub partition: Option<&'n Value>,
}

/// Why an input cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A template cannot be rendered.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// It is too large.
    #[error("the input has {bytes} bytes of JSON text, the limit is {MAX_RESOLVED_INPUT_BYTES}")]
    TooLarge {
        /// How large it is.
        bytes: usize,
    },
    /// What the plan has is not an input.
    #[error("the plan has an input that cannot be read: {0}")]
    Unreadable(String),
}

impl PlannedInput {
    /// An input as the author wrote it, in which all names that are known are resolved. A text with other names stays a
    /// template as a whole.
    ///
    /// # Errors
    /// When a template cannot be rendered with what is known.
    pub(crate) fn resolve_known(source: &Value, names: &Value) -> Result<Self, InputError> {
        let mut planned = PlannedInput { value: source.clone(), templates: Vec::new() };
        let texts = texts(source);
        for pointer in texts {
            let Some(place) = planned.value.pointer_mut(&pointer) else { continue };
            let template = Template::parse(place.as_str().unwrap_or_default())?;
            let is_known = |root: &str| names.get(root).is_some();
            if template.wanted().names().all(is_known) {
                *place = render(place, &pointer, names)?;
            } else {
                planned.templates.push(pointer);
            }
        }
        Ok(planned)
    }

    /// The keys of the tasks whose outputs its templates name.
    ///
    /// # Errors
    /// When a template cannot be read.
    pub fn wanted_outputs(&self) -> Result<BTreeSet<String>, InputError> {
        let mut wanted = BTreeSet::new();
        for pointer in &self.templates {
            let text = self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            wanted.extend(Template::parse(text)?.wanted().fields_of("tasks").map(str::to_owned));
        }
        Ok(wanted)
    }

    /// The value with all templates resolved.
    ///
    /// # Errors
    /// When a template names what is not there, or the value is too large.
    pub fn resolve(&self, names: &Value) -> Result<Value, InputError> {
        let mut value = self.value.clone();
        for pointer in &self.templates {
            if let Some(place) = value.pointer_mut(pointer) {
                *place = render(place, pointer, names)?;
            }
        }
        let bytes = value.to_string().len();
        if bytes > MAX_RESOLVED_INPUT_BYTES { Err(InputError::TooLarge { bytes }) } else { Ok(value) }
    }

    /// As it stands in a [`PlannedTask`](crate::event::PlannedTask).
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).expect("an input has string keys only")
    }

    /// What stands in a [`PlannedTask`](crate::event::PlannedTask).
    ///
    /// # Errors
    /// When it is not an input.
    pub fn from_value(value: &Value) -> Result<Self, InputError> {
        PlannedInput::deserialize(Objects(value)).map_err(|error| InputError::Unreadable(error.to_string()))
    }
}

impl RunNames<'_> {
    /// The names of all templates but those of an item, with the outputs of these tasks.
    pub fn with_outputs(&self, outputs: impl IntoIterator<Item = (String, Value)>) -> Value {
        let outputs = outputs.into_iter().map(|(key, output)| (key, json!({ "output": output })));
        let mut names = json!({
            "run": { "id": self.run_id },
            "params": self.params,
            "tasks": outputs.collect::<Map<_, _>>(),
        });
        if let Some(partition) = self.partition {
            names["partition"] = partition.clone();
        }
        names
    }
}

/// One text as a JSON template; errors name the place in the whole input.
fn render(text: &Value, pointer: &str, names: &Value) -> Result<Value, InputError> {
    let rendered = JsonTemplate::parse(text).and_then(|template| template.render(names));
    rendered.map_err(|error| error.below(pointer).into())
}

/// JSON pointers to all texts that have a placeholder.
fn texts(value: &Value) -> Vec<String> {
    fn collect(value: &Value, pointer: &mut String, found: &mut Vec<String>) {
        let mut within = |part: &str, value: &Value| {
            let length = pointer.len();
            pointer.push('/');
            pointer.push_str(&part.replace('~', "~0").replace('/', "~1"));
            collect(value, pointer, found);
            pointer.truncate(length);
        };
        match value {
            Value::String(text) if text.contains("{{") => found.push(pointer.clone()),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(index, item)| within(&index.to_string(), item));
            }
            Value::Object(fields) => fields.iter().for_each(|(name, field)| within(name, field)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(value, &mut String::new(), &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Value {
        json!({ "params": { "day": "2026-01-01", "odd": "{{ run.id }}", "list": [1] } })
    }

    #[test]
    fn what_is_known_is_resolved_and_never_read_again() {
        let source = json!({
            "day": "{{ params.day }}", "odd": "{{ params.odd }}", "list": "{{ params.list }}",
            "mixed": "{{ params.odd }}/{{ tasks.a.output }}", "a/b": ["{{ tasks.b.output.rows }}"], "n": 1,
        });
        let planned = PlannedInput::resolve_known(&source, &known()).unwrap();
        assert_eq!(planned.value["day"], "2026-01-01");
        assert_eq!(planned.value["odd"], "{{ run.id }}");
        assert_eq!(planned.value["list"], json!([1]));
        assert_eq!(planned.templates, ["/a~1b/0", "/mixed"]);
        assert_eq!(planned.wanted_outputs().unwrap(), BTreeSet::from(["a".to_owned(), "b".to_owned()]));
        let params = known()["params"].as_object().cloned().unwrap();
        let names = RunNames { run_id: "r", params: &params, partition: None };
        let outputs = [("a".to_owned(), json!("{{ x }}")), ("b".to_owned(), json!({ "rows": { "n": 7 } }))];
        let resolved = planned.resolve(&names.with_outputs(outputs)).unwrap();
        assert_eq!(
            resolved,
            json!({
                "day": "2026-01-01", "odd": "{{ run.id }}", "list": [1],
                "mixed": "{{ run.id }}/{{ x }}", "a/b": [{ "n": 7 }], "n": 1,
            })
        );
        let stored = PlannedInput::from_value(&planned.to_value()).unwrap();
        assert_eq!(stored, planned);
    }

    #[test]
    fn what_is_missing_or_too_large_is_an_error_with_its_place() {
        let planned =
            PlannedInput::resolve_known(&json!({ "a": "{{ tasks.x.output.rows }}" }), &known()).unwrap();
        let params = Map::new();
        let names = RunNames { run_id: "r", params: &params, partition: None };
        let error = planned.resolve(&names.with_outputs([("x".to_owned(), json!({}))])).unwrap_err();
        assert!(error.to_string().starts_with("/a, column 4: tasks.x.output.rows"), "{error}");
        let large = json!({ "rows": "x".repeat(MAX_RESOLVED_INPUT_BYTES) });
        let error = planned.resolve(&names.with_outputs([("x".to_owned(), large)])).unwrap_err();
        assert!(error.to_string().contains("bytes"), "{error}");
        let error = PlannedInput::resolve_known(&json!("{{ params.dya }}"), &known()).unwrap_err();
        assert!(error.to_string().contains("params.dya cannot be resolved"), "{error}");
        assert!(PlannedInput::from_value(&json!([1])).is_err());
    }
}
