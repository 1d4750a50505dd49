//! What becomes of a payload. Pure: no clock, no store.

use segno::Payload;

use super::error::HookError;
use super::hook::Hook;
use super::incoming::{Names, Seen};

/// What becomes of a payload.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    /// It is kept, and nothing is called.
    Filtered,
    /// It is kept, unless it has come before.
    Store {
        /// What names it.
        key: Option<String>,
    },
    /// It is kept and its function is called, unless it has come before.
    Call {
        /// What names it.
        key: Option<String>,
        /// Input of the function.
        input: Payload,
    },
    /// It is kept, and no call can be made of it.
    Fail {
        /// Why.
        reason: String,
    },
}

/// What becomes of a payload that has just come in.
pub(super) fn decide(hook: &Hook, seen: &Seen<'_>) -> Decision {
    let names = seen.names(&hook.wanted());
    match hook.filter.as_ref().map_or(Ok(true), |filter| filter.holds(&names.value)) {
        Ok(true) => {}
        Ok(false) => return Decision::Filtered,
        Err(error) => return Decision::Fail { reason: names.explain("filter", &error) },
    }
    let key = match key(hook, seen, &names) {
        Ok(key) => key,
        Err(reason) => return Decision::Fail { reason },
    };
    if hook.store_only {
        return Decision::Store { key };
    }
    match render(hook, seen, &names) {
        Ok(input) => Decision::Call { key, input },
        Err(reason) => Decision::Fail { reason },
    }
}

/// The input of the function, made of a payload that is called again: neither filter nor key count.
///
/// # Errors
/// `template-failed` with the reason.
pub(super) fn input_of(hook: &Hook, seen: &Seen<'_>) -> Result<Payload, HookError> {
    let names = seen.names(&hook.input.wanted());
    render(hook, seen, &names).map_err(|reason| HookError::NoCall { reason })
}

/// A template works on what was read of the body, in which integers of more than 64 bits have become doubles. The body as a
/// whole is passed on as it came.
fn render(hook: &Hook, seen: &Seen<'_>, names: &Names) -> Result<Payload, String> {
    let body = std::str::from_utf8(seen.body).ok();
    if let (Some("payload"), Some(body)) = (hook.input.only_name(), body) {
        // Why a body is no JSON is explained below, as for every template.
        if names.has("payload") {
            return Payload::from_json(body.trim()).map_err(|error| format!("input: {error}"));
        }
    }
    let rendered = hook.input.render(&names.value).map_err(|error| names.explain("input", &error))?;
    Payload::encode(&rendered).map_err(|error| format!("input: {error}"))
}

fn key(hook: &Hook, seen: &Seen<'_>, names: &Names) -> Result<Option<String>, String> {
    let Some(dedup) = &hook.dedup else { return Ok(None) };
    let key = match (&dedup.header, &dedup.key) {
        (Some(header), _) => seen
            .headers
            .get(header)
            .cloned()
            .ok_or_else(|| format!("dedup.header: the request has no header {header}"))?,
        (None, Some(template)) => {
            template.render(&names.value).map_err(|error| names.explain("dedup.key", &error))?
        }
        (None, None) => return Ok(None),
    };
    if key.is_empty() {
        return Err("dedup: the key is empty".to_owned());
    }
    Ok(Some(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::{HookName, Scope};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use uuid::Uuid;

    fn decided(declaration: Value, body: &str) -> Decision {
        let mut whole = json!({ "function": "f", "verification": "none" });
        for (name, value) in declaration.as_object().unwrap() {
            whole[name] = value.clone();
        }
        let hook: Hook = serde_json::from_value(whole).unwrap();
        hook.check().unwrap();
        let (scope, route) = (Scope::default(), HookName::new("r").unwrap());
        let headers: BTreeMap<String, String> = [("x-id".to_owned(), "h1".to_owned())].into();
        let seen = Seen {
            scope: &scope,
            route: &route,
            id: Uuid::nil(),
            received_at_ms: 0,
            content_type: None,
            headers: &headers,
            params: &BTreeMap::new(),
            body: body.as_bytes(),
        };
        decide(&hook, &seen)
    }

    #[test]
    fn what_becomes_of_a_payload() {
        let call = |key: Option<&str>, input: Value| Decision::Call {
            key: key.map(str::to_owned),
            input: Payload::encode(&input).unwrap(),
        };
        for (declaration, body, decision) in [
            (json!({}), r#"{"a":1}"#, call(None, json!({ "a": 1 }))),
            (json!({ "filter": "payload.a == 2" }), r#"{"a":1}"#, Decision::Filtered),
            (json!({ "filter": "payload.a == 2" }), "not json", Decision::Filtered),
            (
                json!({ "filter": "payload.a == 1", "input": "{{payload.a}}" }),
                r#"{"a":1}"#,
                call(None, json!(1)),
            ),
            (json!({ "dedup": { "header": "x-id" } }), "1", call(Some("h1"), json!(1))),
            (json!({ "dedup": { "key": "k{{payload}}" } }), "1", call(Some("k1"), json!(1))),
            (json!({ "store_only": true }), "not json", Decision::Store { key: None }),
            (
                json!({ "store_only": true, "dedup": { "header": "x-id" } }),
                "",
                Decision::Store { key: Some("h1".to_owned()) },
            ),
        ] {
            assert_eq!(decided(declaration.clone(), body), decision, "{declaration} {body}");
        }
    }

    #[test]
    fn what_cannot_be_called_says_why() {
        for (declaration, body, says) in [
            (json!({}), "not json", "input: column 3: payload cannot be resolved"),
            (
                json!({ "input": { "x": "{{payload.b}}" } }),
                r#"{"a":1}"#,
                "input: /x, column 3: payload.b cannot be resolved",
            ),
            (
                json!({ "dedup": { "header": "x-other" } }),
                "1",
                "dedup.header: the request has no header x-other",
            ),
            (
                json!({ "dedup": { "key": "{{payload.id}}" } }),
                "{}",
                "dedup.key: column 3: payload.id cannot be resolved",
            ),
            (json!({ "dedup": { "key": "{{payload.id}}" } }), r#"{"id":""}"#, "dedup: the key is empty"),
        ] {
            let Decision::Fail { reason } = decided(declaration.clone(), body) else {
                panic!("{declaration}")
            };
            assert!(reason.starts_with(says), "{declaration}: {reason}");
        }
    }
}
