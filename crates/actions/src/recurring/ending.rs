//! Why a recurring action does not fire any more, and the event of the log that says so.

/// It has fired as often as it may.
pub(super) const MAX_EXECUTIONS: &str = "max_executions is reached";

/// Its calendar leaves out all that is left.
pub(super) const ALL_EXCLUDED: &str = "exclude leaves no further occurrence";

/// Its one time has passed.
pub(super) const ONCE: &str = "its one time has passed";

/// Its end has come.
pub(super) const ENDS_AT: &str = "ends_at is reached";

/// There is nothing left in its schedule.
pub(super) const NO_NEXT: &str = "the schedule has no further occurrence";

/// Too many of its calls have failed in a row.
pub(super) fn after_failures(failures: u32) -> String {
    format!("{AFTER_FAILURES} {failures} failures in a row")
}

const AFTER_FAILURES: &str = "paused after";

/// The event of the log for a reason.
pub(super) fn event(reason: &str) -> &'static str {
    match reason {
        ENDS_AT => "recurring.expired",
        MAX_EXECUTIONS => "recurring.max_executions",
        ALL_EXCLUDED | ONCE | NO_NEXT => "recurring.no_next",
        _ if reason.starts_with(AFTER_FAILURES) => "recurring.pause_after_failures",
        // Its schedule cannot be read any more.
        _ => "recurring.invalid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_an_event_of_its_own() {
        assert_eq!(event(ENDS_AT), "recurring.expired");
        assert_eq!(event(MAX_EXECUTIONS), "recurring.max_executions");
        assert_eq!(event(&after_failures(3)), "recurring.pause_after_failures");
        assert_eq!(event(NO_NEXT), "recurring.no_next");
        assert_eq!(event("timezone: there is no such zone"), "recurring.invalid");
    }
}
