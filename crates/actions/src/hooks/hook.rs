//! A route's declaration: who may send, what is called with what, what is left out, and what is kept.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::HookError;
use super::incoming::NAMES;
use super::limits::{
    CONDITION_BYTES_PER_FILTER, DEFAULT_DEDUP_WINDOW, MAX_CONTENT_TYPES, MAX_HOOK_BYTES,
    MAX_INLINE_PAYLOAD_BYTES, MAX_INLINE_TEMPLATE_BYTES, MAX_KEPT_HEADERS, MAX_RETENTION,
};
use super::verification::Verification;
use crate::free_text;
use crate::functions::limits::MAX_DESCRIPTION_BYTES;
use crate::functions::{FunctionName, HumanDuration};
use crate::target::{OrchestrationName, Target};
use crate::template::{Condition, JsonTemplate, Template, Wanted};

/// Headers that have secrets in them, whoever sends them.
const SECRET_HEADERS: [&str; 3] = ["authorization", "cookie", "proxy-authorization"];

/// The header that says what a body is; it is always kept.
const CONTENT_TYPE: &str = "content-type";

/// What comes in under a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hook {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The function that is called. Only a route that stores and calls nothing goes without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionName>,
    /// The orchestration that is started, in place of a function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<OrchestrationName>,
    /// Its input, made of what came in; the payload itself unless said otherwise.
    #[serde(default = "whole_payload")]
    pub input: JsonTemplate,
    /// How the route knows that a request comes from whom it should.
    pub verification: Verification,
    /// Whether requests are taken.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Whether payloads are kept and nothing is called.
    #[serde(default)]
    pub store_only: bool,
    /// Headers that are kept, besides those that templates name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub headers: BTreeSet<String>,
    /// Content types that are taken; all if empty.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub content_types: BTreeSet<String>,
    /// What must be true of a payload for the function to be called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Condition>,
    /// How payloads are recognised that have come before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup: Option<Dedup>,
    /// How long payloads are kept; as the node is set if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<HumanDuration>,
    /// Largest body; as the node is set if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<usize>,
}

/// How payloads are recognised that have come before: by a header, or by a key that is made of what came in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dedup {
    /// The header that names a payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The template of the key that names a payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Template>,
    /// How long a key is remembered.
    #[serde(default = "default_window")]
    pub window: HumanDuration,
}

fn whole_payload() -> JsonTemplate {
    JsonTemplate::parse(&Value::from("{{payload}}")).expect("this is a template")
}

fn yes() -> bool {
    true
}

fn default_window() -> HumanDuration {
    DEFAULT_DEDUP_WINDOW
}

impl Hook {
    /// Whether what is made of so many bytes is so little work that the thread that serves the request may do it.
    pub(super) fn is_quick_for(&self, bytes: usize) -> bool {
        let key = self.dedup.as_ref().and_then(|dedup| dedup.key.as_ref());
        let condition = self.filter.as_ref().map_or(0, |filter| filter.source().len());
        let filters = self.input.filter_count()
            + key.map_or(0, Template::filter_count)
            + condition / CONDITION_BYTES_PER_FILTER;
        // A template without filters reads the payload too.
        bytes <= MAX_INLINE_PAYLOAD_BYTES && filters.saturating_mul(bytes) <= MAX_INLINE_TEMPLATE_BYTES
    }

    /// A route that keeps what comes in and calls nothing.
    pub fn storing(verification: Verification) -> Self {
        Hook {
            description: None,
            function: None,
            orchestration: None,
            input: whole_payload(),
            verification,
            enabled: true,
            store_only: true,
            headers: BTreeSet::new(),
            content_types: BTreeSet::new(),
            filter: None,
            dedup: None,
            retention: None,
            max_body_bytes: None,
        }
    }

    /// A route that calls a function with the payload.
    pub fn calling(function: FunctionName, verification: Verification) -> Self {
        Hook { function: Some(function), store_only: false, ..Self::storing(verification) }
    }

    /// A route that starts an orchestration with the payload.
    pub fn starting(orchestration: OrchestrationName, verification: Verification) -> Self {
        Hook { orchestration: Some(orchestration), store_only: false, ..Self::storing(verification) }
    }

    /// What is started, if anything is.
    pub fn target(&self) -> Option<Target> {
        let orchestration = || self.orchestration.clone().map(Target::Orchestration);
        self.function.clone().map(Target::Function).or_else(orchestration)
    }

    /// Checks what types cannot.
    ///
    /// # Errors
    /// `invalid-hook` with the setting, what is wrong with it, and what to write instead.
    pub fn check(&self) -> Result<(), HookError> {
        self.verification.check()?;
        if self.target().is_none() && !self.store_only {
            let problem = "name the function to call, or an orchestration, or set store_only to keep payloads without a call";
            return Err(HookError::invalid("function", problem));
        }
        if self.function.is_some() && self.orchestration.is_some() {
            let problem = "is named beside a function; name one of them";
            return Err(HookError::invalid("orchestration", problem));
        }
        let description = self.description.as_deref().unwrap_or_default();
        if let Some(problem) = free_text::problem(description, MAX_DESCRIPTION_BYTES) {
            return Err(HookError::invalid("description", problem));
        }
        self.check_dedup()?;
        self.check_names()?;
        self.check_headers()?;
        self.check_content_types()?;
        if self.max_body_bytes == Some(0) {
            return Err(HookError::invalid("max_body_bytes", "must be at least 1"));
        }
        check_life("retention", self.retention)?;
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_HOOK_BYTES {
            return Err(HookError::invalid("hook", format!("it has more than {MAX_HOOK_BYTES} bytes")));
        }
        Ok(())
    }

    fn check_dedup(&self) -> Result<(), HookError> {
        let Some(dedup) = &self.dedup else { return Ok(()) };
        if dedup.header.is_some() == dedup.key.is_some() {
            return Err(HookError::invalid("dedup", "name either a header or a key"));
        }
        check_life("dedup.window", Some(dedup.window))
    }

    /// A name that no payload has would fail every time.
    fn check_names(&self) -> Result<(), HookError> {
        let key = self.dedup.as_ref().and_then(|dedup| dedup.key.as_ref());
        let filter = self.filter.as_ref();
        for (field, wanted) in [
            ("input", Some(self.input.wanted())),
            ("filter", filter.map(Condition::wanted)),
            ("dedup.key", key.map(Template::wanted)),
        ] {
            let unknown =
                wanted.into_iter().find_map(|wanted| wanted.names().find(|name| !NAMES.contains(name)));
            if let Some(name) = unknown {
                let problem = format!("there is no name {name:?}; use {}", NAMES.join(", "));
                return Err(HookError::invalid(field, problem));
            }
        }
        Ok(())
    }

    fn check_headers(&self) -> Result<(), HookError> {
        let kept = self.kept_headers();
        if kept.len() > MAX_KEPT_HEADERS {
            return Err(HookError::invalid(
                "headers",
                format!("at most {MAX_KEPT_HEADERS} headers are kept"),
            ));
        }
        for name in kept {
            if !is_header_name(name) {
                let problem = format!("{name:?} is no name of a header; write it in lowercase");
                return Err(HookError::invalid("headers", problem));
            }
            if SECRET_HEADERS.contains(&name) || self.verification.secret_header() == Some(name) {
                return Err(HookError::invalid(
                    "headers",
                    format!("{name} has a secret in it, which is not kept"),
                ));
            }
        }
        Ok(())
    }

    fn check_content_types(&self) -> Result<(), HookError> {
        if self.content_types.len() > MAX_CONTENT_TYPES {
            return Err(HookError::invalid("content_types", format!("name at most {MAX_CONTENT_TYPES}")));
        }
        let is_plain =
            |text: &str| text.bytes().all(|b| b.is_ascii_graphic() && b != b';' && !b.is_ascii_uppercase());
        match self.content_types.iter().find(|text| !text.contains('/') || !is_plain(text)) {
            Some(text) => {
                let problem = format!("{text:?} is no content type, such as application/json, in lowercase");
                Err(HookError::invalid("content_types", problem))
            }
            None => Ok(()),
        }
    }

    /// What its templates ask for.
    pub(super) fn wanted(&self) -> Wanted<'_> {
        let mut wanted = self.input.wanted();
        if let Some(filter) = &self.filter {
            wanted = wanted.and(filter.wanted());
        }
        if let Some(key) = self.dedup.as_ref().and_then(|dedup| dedup.key.as_ref()) {
            wanted = wanted.and(key.wanted());
        }
        wanted
    }

    /// The headers that are kept: those that were chosen, and those that templates name, which a replay needs again.
    pub fn kept_headers(&self) -> BTreeSet<&str> {
        let mut kept: BTreeSet<&str> = self.headers.iter().map(String::as_str).collect();
        kept.extend(self.wanted().fields_of("headers"));
        kept.extend(self.dedup.as_ref().and_then(|dedup| dedup.header.as_deref()));
        kept.insert(CONTENT_TYPE);
        kept
    }

    /// Whether a content type is one that is taken.
    pub(super) fn takes(&self, content_type: Option<&str>) -> bool {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        self.content_types.is_empty() || self.content_types.contains(&essence.to_ascii_lowercase())
    }
}

fn check_life(field: &str, life: Option<HumanDuration>) -> Result<(), HookError> {
    match life {
        Some(life) if life.as_ms() < 1_000 || life > MAX_RETENTION => {
            Err(HookError::invalid(field, format!("must be from 1s to {MAX_RETENTION}")))
        }
        _ => Ok(()),
    }
}

/// Whether a text is the name of a header in lowercase.
pub(super) fn is_header_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&b);
    (1..=128).contains(&name.len()) && name.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(declaration: Value) -> Result<Hook, String> {
        let hook: Hook = serde_json::from_value(declaration).map_err(|error| error.to_string())?;
        hook.check().map_err(|error| error.to_string())?;
        Ok(hook)
    }

    #[test]
    fn a_large_payload_and_filters_times_bytes_make_a_hook_slow() {
        let quick = |declaration: Value, bytes: usize| {
            let mut whole = json!({ "function": "f", "verification": "none" });
            for (name, value) in declaration.as_object().unwrap() {
                whole[name] = value.clone();
            }
            serde_json::from_value::<Hook>(whole).unwrap().is_quick_for(bytes)
        };
        let plain = json!({ "input": { "a": "{{payload.a}}", "b": ["{{payload.b}}"] } });
        assert!(
            quick(plain.clone(), MAX_INLINE_PAYLOAD_BYTES) && !quick(plain, MAX_INLINE_PAYLOAD_BYTES + 1)
        );
        let filters = json!({ "input": { "a": ["{{payload | json}}".repeat(200)] } });
        assert!(quick(filters.clone(), 1_000) && !quick(filters, 10_000));
        let key = json!({ "dedup": { "key": "{{payload.id | lower | upper}}".repeat(4) } });
        assert!(
            quick(key.clone(), MAX_INLINE_TEMPLATE_BYTES / 8) && !quick(key, MAX_INLINE_TEMPLATE_BYTES / 7)
        );
        let condition =
            json!({ "filter": "payload.action in [\"opened\", \"closed\"] and payload.draft == false" });
        assert!(quick(condition.clone(), 10_000) && !quick(condition, 1_000_000));
    }

    #[test]
    fn a_declaration_is_short_and_stored_with_its_defaults() {
        let hook = read(json!({ "function": "deploy", "verification": "none" })).unwrap();
        assert_eq!(hook, Hook::calling("deploy".parse().unwrap(), Verification::None));
        let stored = json!({
            "function": "deploy", "input": "{{payload}}", "verification": "none", "enabled": true, "store_only": false,
        });
        assert_eq!(serde_json::to_value(&hook).unwrap(), stored);
        let whole = json!({
            "description": "pushes", "function": "deploy", "input": { "ref": "{{payload.ref}}", "by": "{{headers.x-by}}" },
            "verification": { "type": "github", "secrets": [{ "env": "HOOK" }] }, "enabled": false, "store_only": true,
            "headers": ["x-github-event"], "content_types": ["application/json"],
            "filter": "headers.x-github-event == 'push'", "dedup": { "header": "x-github-delivery", "window": "1h" },
            "retention": "1d", "max_body_bytes": 1000,
        });
        let hook = read(whole.clone()).unwrap();
        assert_eq!(serde_json::to_value(&hook).unwrap(), whole);
        let kept: Vec<&str> = hook.kept_headers().into_iter().collect();
        assert_eq!(kept, ["content-type", "x-by", "x-github-delivery", "x-github-event"]);
        assert!(hook.takes(Some("Application/JSON; charset=utf-8")));
        assert!(!hook.takes(Some("text/plain")) && !hook.takes(None));
    }

    #[test]
    fn mistakes_name_the_setting() {
        let with = |field: &str, value: Value| {
            let mut declaration = json!({ "function": "f", "verification": "none" });
            declaration[field] = value;
            declaration
        };
        for (declaration, says) in [
            (json!({ "function": "f" }), "missing field `verification`"),
            (json!({ "verification": "none" }), "function: name the function to call"),
            (with("function", json!("../x")), "cannot be a function name"),
            (with("surprise", json!(1)), "unknown field `surprise`"),
            (with("input", json!({ "a": "{{ payload. }}" })), "/a, column 12: expected a name"),
            (
                with("input", json!("{{ body }}")),
                "input: there is no name \"body\"; use content_type, headers",
            ),
            (with("filter", json!("payload.a =")), "column 11"),
            (with("filter", json!("event == 1")), "filter: there is no name \"event\""),
            (with("dedup", json!({})), "dedup: name either a header or a key"),
            (with("dedup", json!({ "header": "a", "key": "b" })), "dedup: name either"),
            (with("dedup", json!({ "header": "a", "window": "0s" })), "dedup.window: must be from 1s"),
            (with("dedup", json!({ "key": "{{nope}}" })), "dedup.key: there is no name"),
            (with("headers", json!(["X-Upper"])), "headers: \"X-Upper\" is no name"),
            (with("headers", json!(["authorization"])), "headers: authorization has a secret in it"),
            (with("input", json!("{{headers.cookie}}")), "headers: cookie has a secret in it"),
            (
                json!({ "function": "f", "headers": ["x-webhook-secret"],
                        "verification": { "type": "shared_secret", "secrets": [{ "env": "A" }] } }),
                "headers: x-webhook-secret has a secret",
            ),
            (with("content_types", json!(["json"])), "content_types: \"json\" is no content type"),
            (with("retention", json!("1000d")), "retention: must be from 1s to"),
            (with("max_body_bytes", json!(0)), "max_body_bytes: must be at least 1"),
        ] {
            let error = read(declaration.clone()).unwrap_err();
            assert!(error.contains(says), "{declaration}: {error}");
        }
    }
}
