//! What is refused of a recurring action, and with which field. Checked where it comes in, before anything is stored.

use std::collections::BTreeMap;
use std::time::Duration;

use segno::clock::duration_ms;
use segno::{RESERVED_LABEL_PREFIX, is_reserved_label};

use super::model::RecurringAction;
use super::named;
use crate::action::ActionError;
use crate::free_text;
use crate::functions::HumanDuration;
use crate::options::ActionOptions;
use crate::schedule::{Schedule, ScheduleError};
use crate::template::Template;

/// Longest name, action type, label and metadata value in bytes.
const MAX_TEXT_BYTES: usize = 256;

/// Longest description and note in bytes.
const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;

/// Most labels, and most metadata.
const MAX_LABELS: usize = 64;

/// Most occurrences that may be caught up with.
const MAX_CATCH_UP: u32 = 1_000;

/// Longest window of anything: 31 days.
const MAX_WINDOW: HumanDuration = HumanDuration::from_secs(31 * 24 * 60 * 60);

/// The names that a dedup key may use.
const DEDUP_NAMES: [&str; 2] = ["recurring_id", "execution_time"];

impl From<ScheduleError> for ActionError {
    fn from(error: ScheduleError) -> Self {
        ActionError::invalid(error.field(), error.problem())
    }
}

impl RecurringAction {
    /// Checks what types cannot.
    pub(super) fn check(&self, schedule: &Schedule, options: &ActionOptions) -> Result<(), ActionError> {
        self.check_template()?;
        self.check_size()?;
        self.check_without_call(schedule, options)
    }

    /// The same for all but what is called.
    pub(super) fn check_without_call(
        &self,
        schedule: &Schedule,
        options: &ActionOptions,
    ) -> Result<(), ActionError> {
        self.check_texts()?;
        self.check_reserved()?;
        self.check_policy(schedule)?;
        let field = if self.schedule.every.is_some() { "every" } else { "cron_expr" };
        match schedule.smallest_gap() {
            Some(gap) if gap < options.min_interval => {
                let problem = format!(
                    "two occurrences are {} apart; they must be at least {} apart (actions.min_interval_seconds)",
                    HumanDuration::from_millis(duration_ms(gap)),
                    HumanDuration::from_millis(duration_ms(options.min_interval))
                );
                Err(ActionError::invalid(field, problem))
            }
            _ => Ok(()),
        }
    }

    fn check_template(&self) -> Result<(), ActionError> {
        let template = &self.action_template;
        if template.provider.is_empty() && template.orchestration.is_none() {
            return Err(ActionError::invalid("provider", "is empty; name the function to call"));
        }
        self.target()?;
        bounded("action_type", &template.action_type, MAX_TEXT_BYTES)?;
        template.payload.check().map_err(|error| ActionError::invalid("payload", error.to_string()))?;
        let is_object = template.payload.as_str().trim_start().starts_with('{');
        if !template.action_type.is_empty() && !is_object {
            return Err(ActionError::invalid("payload", "must be a JSON object, as in {\"to\": \"team\"}"));
        }
        check_pairs("metadata", &template.metadata)?;
        if let Some(key) = &template.dedup_key {
            if key.trim().is_empty() {
                return Err(ActionError::invalid("dedup_key", "is empty; leave it out"));
            }
            let parsed =
                Template::parse(key).map_err(|error| ActionError::invalid("dedup_key", error.to_string()))?;
            if let Some(unknown) = parsed.wanted().names().find(|root| !DEDUP_NAMES.contains(root)) {
                let problem =
                    format!("there is no name {unknown:?}; there are {}", DEDUP_NAMES.join(" and "));
                return Err(ActionError::invalid("dedup_key", problem));
            }
        }
        Ok(())
    }

    pub(super) fn check_texts(&self) -> Result<(), ActionError> {
        if let Some(name) = &self.name {
            if name.trim().is_empty() {
                return Err(ActionError::invalid("name", "is empty; leave it out"));
            }
            bounded("name", name, MAX_TEXT_BYTES)?;
        }
        check_pairs("labels", &self.labels)
    }

    /// Checks the free texts that a change has set. Those that were stored before the rule stay as they are.
    pub(super) fn check_free_texts(&self, before: Option<&RecurringAction>) -> Result<(), ActionError> {
        for (field, text, stored) in [
            ("description", &self.description, before.map(|before| &before.description)),
            ("pause_note", &self.pause_note, before.map(|before| &before.pause_note)),
        ] {
            let changed = text.as_deref().filter(|_| stored != Some(text));
            if let Some(problem) = changed.and_then(|text| free_text::problem(text, MAX_DESCRIPTION_BYTES)) {
                return Err(ActionError::invalid(field, problem));
            }
        }
        Ok(())
    }

    /// Refuses what is Segno's own. One that was stored with it before can still be paused.
    fn check_reserved(&self) -> Result<(), ActionError> {
        self.name.as_deref().map_or(Ok(()), named::check_name)?;
        if let Some(key) = self.labels.keys().find(|key| is_reserved_label(key)) {
            let field: String = format!("labels.{key}").chars().take(MAX_TEXT_BYTES).collect();
            let problem = format!("begins with {RESERVED_LABEL_PREFIX:?}, which is reserved for Segno");
            return Err(ActionError::invalid(field, problem));
        }
        Ok(())
    }

    fn check_policy(&self, schedule: &Schedule) -> Result<(), ActionError> {
        let policy = &self.policy;
        for (field, is_zero) in [
            ("max_executions", policy.max_executions == Some(0)),
            ("pause_after_failures", policy.pause_after_failures == Some(0)),
            ("catch_up_limit", policy.catch_up_limit == 0),
            ("dedup_window", policy.dedup_window.get() == Duration::ZERO),
        ] {
            if is_zero {
                return Err(ActionError::invalid(
                    field,
                    "must be more than nothing; leave it out for the default",
                ));
            }
        }
        if policy.catch_up_limit > MAX_CATCH_UP {
            return Err(ActionError::invalid("catch_up_limit", format!("must be at most {MAX_CATCH_UP}")));
        }
        for (field, window) in
            [("catch_up_window", policy.catch_up_window), ("dedup_window", policy.dedup_window)]
        {
            if window > MAX_WINDOW {
                return Err(ActionError::invalid(field, format!("must be at most {MAX_WINDOW}")));
            }
        }
        let Some(jitter) = policy.jitter else { return Ok(()) };
        if jitter > MAX_WINDOW || schedule.smallest_gap().is_some_and(|gap| jitter.get() >= gap) {
            // Else an occurrence could be due before the one before it.
            let problem = "must be shorter than the shortest time between two occurrences";
            return Err(ActionError::invalid("jitter", problem));
        }
        Ok(())
    }
}

fn check_pairs(field: &str, pairs: &BTreeMap<String, String>) -> Result<(), ActionError> {
    if pairs.len() > MAX_LABELS {
        return Err(ActionError::invalid(
            field,
            format!("has {} entries, the limit is {MAX_LABELS}", pairs.len()),
        ));
    }
    for (key, value) in pairs {
        bounded(&format!("{field}.{key}"), key, MAX_TEXT_BYTES)?;
        bounded(&format!("{field}.{key}"), value, MAX_TEXT_BYTES)?;
    }
    Ok(())
}

fn bounded(field: &str, text: &str, max_bytes: usize) -> Result<(), ActionError> {
    if text.len() <= max_bytes && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let field: String = field.chars().take(MAX_TEXT_BYTES).collect();
    Err(ActionError::invalid(field, format!("must be printable text of at most {max_bytes} bytes")))
}
