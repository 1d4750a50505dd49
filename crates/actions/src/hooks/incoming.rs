//! A request as it came in, and the names that templates see of it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::limits::{MAX_KEPT_VALUE_BYTES, MAX_PARAMETERS};
use super::verify::Unverified;
use crate::functions::{HookName, Scope};
use crate::moment::timestamp;
use crate::template::{TemplateError, Wanted};

/// The names that templates of webhooks may use.
pub(super) const NAMES: [&str; 11] = [
    "content_type",
    "headers",
    "id",
    "namespace",
    "params",
    "payload",
    "payload_base64",
    "payload_text",
    "received_at",
    "route",
    "tenant",
];

/// Headers of a request, by name in lowercase.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers {
    values: BTreeMap<String, Vec<String>>,
}

impl Headers {
    /// The values of a header, in the order in which they came.
    pub fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// The one value of a header.
    ///
    /// # Errors
    /// When it is missing, or there are several: then nobody can say which one counts.
    pub(super) fn one(&self, name: &str) -> Result<&str, Unverified> {
        match self.all(name) {
            [value] => Ok(value),
            [] => Err(Unverified::missing(format!("the header {name} is missing"))),
            _ => Err(Unverified::missing(format!("there is more than one header {name}"))),
        }
    }
}

impl<N: AsRef<str>, V: AsRef<[u8]>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(headers: I) -> Self {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in headers {
            let value = String::from_utf8_lossy(value.as_ref()).into_owned();
            values.entry(name.as_ref().to_ascii_lowercase()).or_default().push(value);
        }
        Headers { values }
    }
}

/// A request as it came in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Incoming {
    /// Its headers.
    pub headers: Headers,
    /// Its query parameters.
    pub params: BTreeMap<String, String>,
    /// Its body, byte for byte.
    pub body: Bytes,
}

impl Incoming {
    /// What the sender says that the body is.
    pub fn content_type(&self) -> Option<&str> {
        self.headers.all("content-type").first().map(String::as_str)
    }

    /// Bytes that templates may see of it.
    pub(super) fn seen_bytes(&self) -> usize {
        let headers = self.headers.values.values().flatten().map(String::len).sum::<usize>();
        let params = self.params.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        self.body.len() + headers + params
    }

    /// The headers of these names, several values of one joined as HTTP has it.
    pub(super) fn kept_headers(&self, names: &BTreeSet<&str>) -> BTreeMap<String, String> {
        let kept = names.iter().filter_map(|name| match self.headers.all(name) {
            [] => None,
            values => Some(((*name).to_owned(), cut(&values.join(", ")))),
        });
        kept.collect()
    }

    pub(super) fn kept_params(&self) -> BTreeMap<String, String> {
        self.params.iter().take(MAX_PARAMETERS).map(|(name, value)| (cut(name), cut(value))).collect()
    }
}

fn cut(text: &str) -> String {
    let end = (0..=MAX_KEPT_VALUE_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text[..end.unwrap_or(0)].to_owned()
}

/// A payload with all that templates see of it, fresh or read from the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) scope: &'a Scope,
    pub(super) route: &'a HookName,
    pub(super) id: Uuid,
    pub(super) received_at_ms: u64,
    pub(super) content_type: Option<&'a str>,
    pub(super) headers: &'a BTreeMap<String, String>,
    pub(super) params: &'a BTreeMap<String, String>,
    pub(super) body: &'a [u8],
}

/// The names of a payload, and why some are not there.
pub(super) struct Names {
    pub(super) value: Value,
    missing: Vec<(&'static str, String)>,
}

impl Seen<'_> {
    /// The names that are wanted; a large body is read only as it is needed.
    pub(super) fn names(&self, wanted: &Wanted<'_>) -> Names {
        let mut names = Names { value: Value::Null, missing: Vec::new() };
        let mut values = Map::new();
        for name in wanted.names() {
            if let Some(value) = self.value_of(name, &mut names.missing) {
                values.insert(name.to_owned(), value);
            }
        }
        names.value = Value::Object(values);
        names
    }

    /// The body as JSON.
    fn parsed(&self) -> Result<Value, String> {
        segno::Payload::check_names(self.body).map_err(|error| error.to_string())?;
        serde_json::from_slice(self.body).map_err(|error| error.to_string())
    }

    fn value_of(&self, name: &str, missing: &mut Vec<(&'static str, String)>) -> Option<Value> {
        let texts = |map: &BTreeMap<String, String>| {
            Value::Object(
                map.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect(),
            )
        };
        Some(match name {
            "content_type" => Value::from(self.content_type?),
            "headers" => texts(self.headers),
            "id" => Value::from(self.id.to_string()),
            "namespace" => Value::from(self.scope.namespace.as_str()),
            "params" => texts(self.params),
            "payload" => match self.parsed() {
                Ok(value) => value,
                Err(error) => {
                    let reason =
                        format!("the payload is not JSON: {error}; take payload_text or payload_base64");
                    missing.push(("payload", reason));
                    return None;
                }
            },
            "payload_base64" => Value::from(STANDARD.encode(self.body)),
            "payload_text" => match std::str::from_utf8(self.body) {
                Ok(text) => Value::from(text),
                Err(error) => {
                    let reason = format!("the payload is not UTF-8: {error}; take payload_base64");
                    missing.push(("payload_text", reason));
                    return None;
                }
            },
            "received_at" => Value::from(timestamp(self.received_at_ms).to_string()),
            "route" => Value::from(self.route.as_str()),
            "tenant" => Value::from(self.scope.tenant.as_str()),
            _ => return None,
        })
    }
}

impl Names {
    /// Whether a name is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some()
    }

    /// Why a template failed, with the reason why a name is not there.
    pub(super) fn explain(&self, what: &str, error: &TemplateError) -> String {
        let missing = |name: &str| error.problem().contains(&format!("there is no name {name:?}"));
        match self.missing.iter().find(|(name, _)| missing(name)) {
            Some((_, reason)) => format!("{what}: {error}; {reason}"),
            None => format!("{what}: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::JsonTemplate;
    use serde_json::json;

    fn render(body: &[u8], template: Value) -> Result<Value, String> {
        let (scope, route) = (Scope::new("eu", "acme").unwrap(), HookName::new("orders").unwrap());
        let headers = [("x-id".to_owned(), "7".to_owned())].into();
        let params = [("a".to_owned(), "b".to_owned())].into();
        let seen = Seen {
            scope: &scope,
            route: &route,
            id: Uuid::from_u128(1),
            received_at_ms: 1_500,
            content_type: Some("text/plain"),
            headers: &headers,
            params: &params,
            body,
        };
        let template = JsonTemplate::parse(&template).unwrap();
        let names = seen.names(&template.wanted());
        template.render(&names.value).map_err(|error| names.explain("input", &error))
    }

    #[test]
    fn templates_see_all_of_a_request() {
        let template = json!({
            "p": "{{payload}}", "t": "{{payload_text}}", "b": "{{payload_base64}}", "h": "{{headers.x-id}}",
            "q": "{{params.a}}", "at": "{{received_at}}", "id": "{{id}}", "r": "{{namespace}}/{{tenant}}/{{route}}",
            "c": "{{content_type}}",
        });
        let expected = json!({
            "p": [1], "t": "[1]", "b": "WzFd", "h": "7", "q": "b", "at": "1970-01-01T00:00:01.5Z",
            "id": "00000000-0000-0000-0000-000000000001", "r": "eu/acme/orders", "c": "text/plain",
        });
        assert_eq!(render(b"[1]", template), Ok(expected));
    }

    #[test]
    fn what_a_body_is_not_is_explained() {
        let error = render(b"\xff{", json!("{{payload.a}}")).unwrap_err();
        assert!(error.starts_with("input: column 3: payload.a cannot be resolved"), "{error}");
        assert!(error.contains("the payload is not JSON"), "{error}");
        let error = render(b"\xff", json!("{{payload_text}}")).unwrap_err();
        assert!(error.contains("not UTF-8") && error.contains("payload_base64"), "{error}");
        assert_eq!(render(b"\xff", json!("{{payload_base64}}")), Ok(json!("/w==")));
        assert_eq!(render(b"", json!("{{payload | default('none')}}")), Ok(json!("none")));
    }

    #[test]
    fn headers_have_no_case_and_repeated_ones_are_seen() {
        let headers: Headers = [("X-A", "1"), ("x-a", "2"), ("B", "3")].into_iter().collect();
        assert_eq!(headers.all("x-a"), ["1", "2"]);
        assert_eq!(headers.one("b").unwrap(), "3");
        assert!(headers.one("x-a").is_err() && headers.one("c").is_err());
        let incoming = Incoming { headers, ..Incoming::default() };
        let kept = incoming.kept_headers(&BTreeSet::from(["x-a", "c"]));
        assert_eq!(kept, [("x-a".to_owned(), "1, 2".to_owned())].into());
        assert_eq!(cut(&"ä".repeat(MAX_KEPT_VALUE_BYTES)).len(), MAX_KEPT_VALUE_BYTES);
    }
}
