//! What a request says of a recurring action, put into one.

use std::collections::BTreeSet;

use segno::Payload;
use segno_actions::OrchestrationName;
use segno_actions::functions::HumanDuration;
use segno_actions::recurring::{
    MissedPolicy, NewRecurringAction, OverlapPolicy, RecurringAction, RecurringActionTemplate,
    RecurringPolicy,
};
use segno_actions::schedule::{Daylight, Gap, Overlap, ScheduleSpec};
use segno_api::recurring::{self as wire, RecurringFields};

use super::super::instances::view::checked;
use super::super::partial::not_clearable;
use crate::problem::Refusal;

/// A recurring action as the first request describes it.
///
/// # Errors
/// When something is missing or wrong, with the field.
pub fn new(fields: RecurringFields) -> Result<NewRecurringAction, Refusal> {
    if !names_a_call(&fields) {
        return Err(Refusal::field("provider", "is missing; name the function to call, or an orchestration"));
    }
    if fields.provider.is_some() && fields.action_type.as_deref().is_none_or(|text| text.trim().is_empty()) {
        let rule = "is missing or empty; say what sort of action it is, or use function and input";
        return Err(Refusal::field("action_type", rule));
    }
    draft(fields)
}

/// Whether a request says what is called.
pub fn names_a_call(fields: &RecurringFields) -> bool {
    fields.provider.is_some() || fields.function.is_some() || fields.orchestration.is_some()
}

/// What a request says of a recurring action, which may be all of it or not.
///
/// # Errors
/// When something is wrong, with the field.
pub fn draft(fields: RecurringFields) -> Result<NewRecurringAction, Refusal> {
    let template = RecurringActionTemplate {
        provider: String::new(),
        orchestration: None,
        action_type: String::new(),
        payload: if fields.provider.is_some() { empty_object() } else { Payload::null() },
        metadata: Default::default(),
        dedup_key: None,
    };
    let mut draft = NewRecurringAction::new(ScheduleSpec::default(), template);
    apply(fields, &BTreeSet::new(), &mut draft)?;
    Ok(draft)
}

fn empty_object() -> Payload {
    Payload::from_json("{}").expect("an empty object is JSON")
}

/// What can be said of a recurring action, as it is.
pub fn draft_of(action: &RecurringAction) -> NewRecurringAction {
    NewRecurringAction {
        id: None,
        name: action.name.clone(),
        schedule: action.schedule.clone(),
        action_template: action.action_template.clone(),
        policy: action.policy.clone(),
        description: action.description.clone(),
        labels: action.labels.clone(),
        enabled: action.enabled,
    }
}

/// Puts a draft back.
pub fn put_back(draft: NewRecurringAction, action: &mut RecurringAction) {
    action.name = draft.name;
    action.schedule = draft.schedule;
    action.action_template = draft.action_template;
    action.policy = draft.policy;
    action.description = draft.description;
    action.labels = draft.labels;
    action.enabled = draft.enabled;
}

/// Puts what is said into a draft.
///
/// # Errors
/// When a field is wrong.
pub fn apply(
    fields: RecurringFields,
    cleared: &BTreeSet<String>,
    draft: &mut NewRecurringAction,
) -> Result<(), Refusal> {
    for field in cleared {
        clear(field, draft)?;
    }
    apply_schedule(&fields, &mut draft.schedule)?;
    apply_template(&fields, &mut draft.action_template)?;
    apply_policy(&fields, &mut draft.policy)?;
    if let Some(name) = fields.name {
        draft.name = Some(name);
    }
    if let Some(description) = fields.description {
        draft.description = Some(description);
    }
    if let Some(labels) = fields.labels {
        draft.labels = labels;
    }
    if let Some(enabled) = fields.enabled {
        draft.enabled = enabled;
    }
    Ok(())
}

fn apply_schedule(fields: &RecurringFields, schedule: &mut ScheduleSpec) -> Result<(), Refusal> {
    let every = duration("every", fields.every.as_deref())?;
    // Another sort of schedule takes the place of the one that was.
    if fields.cron_expr.is_some() || every.is_some() || fields.at.is_some() {
        schedule.cron_expr.clone_from(&fields.cron_expr);
        schedule.every = every;
        schedule.at = fields.at;
        if every.is_none() {
            schedule.anchor = None;
        }
        if fields.cron_expr.is_none() {
            schedule.daylight = Daylight::default();
        }
    }
    if let Some(timezone) = &fields.timezone {
        schedule.timezone.clone_from(timezone);
    }
    if let Some(daylight) = fields.daylight {
        schedule.daylight = read_daylight(daylight);
    }
    schedule.anchor = fields.anchor.or(schedule.anchor);
    schedule.starts_at = fields.starts_at.or(schedule.starts_at);
    schedule.ends_at = fields.ends_at.or(schedule.ends_at);
    if let Some(exclude) = &fields.exclude {
        schedule.exclude.clone_from(exclude);
    }
    Ok(())
}

fn apply_template(fields: &RecurringFields, template: &mut RecurringActionTemplate) -> Result<(), Refusal> {
    let by_provider = fields.provider.is_some() || fields.action_type.is_some() || fields.payload.is_some();
    let is_as_it_is = fields.function.is_some() || fields.orchestration.is_some() || fields.input.is_some();
    if by_provider && is_as_it_is {
        let field = if fields.orchestration.is_some() { "orchestration" } else { "function" };
        let rule = "cannot be used with provider, action_type or payload; use one or the other";
        return Err(Refusal::field(field, rule));
    }
    if fields.function.is_some() && fields.orchestration.is_some() {
        return Err(Refusal::field("orchestration", "cannot be used with function; name one of them"));
    }
    // Another thing to start takes the place of the one that was.
    if fields.provider.is_some() || fields.function.is_some() {
        template.orchestration = None;
    }
    if let Some(orchestration) = &fields.orchestration {
        let name = OrchestrationName::new(orchestration.as_str());
        template.orchestration = Some(name.map_err(|problem| Refusal::field("orchestration", problem))?);
        template.provider = String::new();
    }
    if let Some(provider) = &fields.provider {
        template.provider.clone_from(provider);
    }
    if let Some(action_type) = &fields.action_type {
        if action_type.trim().is_empty() {
            return Err(Refusal::field("action_type", "is empty; say what sort of action it is"));
        }
        template.action_type.clone_from(action_type);
    }
    if let Some(payload) = &fields.payload {
        template.payload = checked("payload", payload)?;
    }
    if is_as_it_is {
        template.action_type = String::new();
    }
    if let Some(function) = &fields.function {
        template.provider.clone_from(function);
    }
    if let Some(input) = &fields.input {
        template.payload = checked("input", input)?;
    }
    if let Some(metadata) = &fields.metadata {
        template.metadata.clone_from(metadata);
    }
    if let Some(dedup_key) = &fields.dedup_key {
        template.dedup_key = Some(dedup_key.clone());
    }
    Ok(())
}

fn apply_policy(fields: &RecurringFields, policy: &mut RecurringPolicy) -> Result<(), Refusal> {
    if let Some(overlap) = fields.overlap_policy {
        policy.overlap_policy = match overlap {
            wire::OverlapPolicy::Allow => OverlapPolicy::Allow,
            wire::OverlapPolicy::Skip => OverlapPolicy::Skip,
            wire::OverlapPolicy::BufferOne => OverlapPolicy::BufferOne,
            wire::OverlapPolicy::CancelOther => OverlapPolicy::CancelOther,
        };
    }
    if let Some(missed) = fields.missed {
        policy.missed = match missed {
            wire::MissedPolicy::None => MissedPolicy::None,
            wire::MissedPolicy::Latest => MissedPolicy::Latest,
            wire::MissedPolicy::All => MissedPolicy::All,
        };
    }
    if let Some(window) = duration("catch_up_window", fields.catch_up_window.as_deref())? {
        policy.catch_up_window = window;
    }
    if let Some(window) = duration("dedup_window", fields.dedup_window.as_deref())? {
        policy.dedup_window = window;
    }
    policy.catch_up_limit = fields.catch_up_limit.unwrap_or(policy.catch_up_limit);
    policy.jitter = duration("jitter", fields.jitter.as_deref())?.or(policy.jitter);
    policy.max_executions = fields.max_executions.or(policy.max_executions);
    policy.pause_after_failures = fields.pause_after_failures.or(policy.pause_after_failures);
    Ok(())
}

fn clear(field: &str, draft: &mut NewRecurringAction) -> Result<(), Refusal> {
    let defaults = RecurringPolicy::default();
    match field {
        "name" => draft.name = None,
        "description" => draft.description = None,
        "labels" => draft.labels.clear(),
        "metadata" => draft.action_template.metadata.clear(),
        "dedup_key" => draft.action_template.dedup_key = None,
        "timezone" => draft.schedule.timezone = ScheduleSpec::default().timezone,
        "daylight" => draft.schedule.daylight = Daylight::default(),
        "anchor" => draft.schedule.anchor = None,
        "starts_at" | "start_date" => draft.schedule.starts_at = None,
        "ends_at" | "end_date" => draft.schedule.ends_at = None,
        "exclude" => draft.schedule.exclude.clear(),
        "overlap_policy" => draft.policy.overlap_policy = defaults.overlap_policy,
        "missed" => draft.policy.missed = defaults.missed,
        "catch_up_window" => draft.policy.catch_up_window = defaults.catch_up_window,
        "catch_up_limit" => draft.policy.catch_up_limit = defaults.catch_up_limit,
        "dedup_window" => draft.policy.dedup_window = defaults.dedup_window,
        "jitter" => draft.policy.jitter = None,
        "max_executions" => draft.policy.max_executions = None,
        "pause_after_failures" => draft.policy.pause_after_failures = None,
        _ => return Err(not_clearable(field)),
    }
    Ok(())
}

fn duration(field: &str, text: Option<&str>) -> Result<Option<HumanDuration>, Refusal> {
    let parsed = text.map(str::parse::<HumanDuration>).transpose();
    parsed.map_err(|error| Refusal::field(field, error.to_string()))
}

fn read_daylight(daylight: wire::Daylight) -> Daylight {
    Daylight {
        gap: match daylight.gap {
            wire::DaylightGap::Shift => Gap::Shift,
            wire::DaylightGap::Skip => Gap::Skip,
        },
        overlap: match daylight.overlap {
            wire::DaylightOverlap::First => Overlap::First,
            wire::DaylightOverlap::Last => Overlap::Last,
            wire::DaylightOverlap::Both => Overlap::Both,
        },
    }
}
