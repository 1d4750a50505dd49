//! What the flags say, as the server takes it.

use segno_api::recurring::RecurringFields;
use serde::de::DeserializeOwned;

use super::arguments::{Call, Policy};
use crate::exit::Failure;
use crate::remote::start::{self, json};

/// Puts what is called and the policies into the fields of a request.
///
/// # Errors
/// When a value is none.
pub fn fill(call: Call, policy: Policy, fields: &mut RecurringFields) -> Result<(), Failure> {
    let pairs = |flag: &str, given: &[String]| {
        start::pairs(flag, given).map(|pairs| (!pairs.is_empty()).then_some(pairs))
    };
    fields.function = call.function;
    fields.orchestration = call.orchestration;
    fields.input = call.input.map(|text| json("--input", &text)).transpose()?;
    fields.provider = call.provider;
    fields.action_type = call.action_type;
    fields.payload = call.payload.map(|text| json("--payload", &text)).transpose()?;
    fields.metadata = pairs("--metadata", &call.metadata)?;
    fields.dedup_key = call.dedup_key;
    fields.name = call.name;
    fields.description = call.description;
    fields.labels = pairs("--label", &call.labels)?;
    fields.overlap_policy =
        choice("--overlap-policy", policy.overlap_policy, "allow, skip, buffer_one or cancel_other")?;
    fields.missed = choice("--missed", policy.missed, "none, latest or all")?;
    fields.catch_up_window = policy.catch_up_window.map(|duration| duration.to_string());
    fields.catch_up_limit = policy.catch_up_limit;
    fields.jitter = policy.jitter.map(|duration| duration.to_string());
    fields.max_executions = policy.max_executions;
    fields.pause_after_failures = policy.pause_after_failures;
    fields.dedup_window = policy.dedup_window.map(|duration| duration.to_string());
    Ok(())
}

fn choice<T: DeserializeOwned>(
    flag: &str,
    text: Option<String>,
    choices: &str,
) -> Result<Option<T>, Failure> {
    let Some(text) = text else { return Ok(None) };
    let parsed = serde_json::from_value(text.replace('-', "_").into());
    parsed.map(Some).map_err(|_| Failure::Refused(format!("{flag} {text}: use {choices}")))
}
