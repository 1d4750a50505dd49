//! One attempt of a piece of work: its columns when it is sent, polled, reported on and ended.

use jiff::Timestamp;

use super::limits::{LOOK_AFTER_SEC, MAX_ERROR_BYTES};
use crate::rows::{CallState, Work, WorkStatus, later};

/// The id of a job: of the piece of work, its retry and its poll.
pub(super) fn job_id(base: &str, work: &Work) -> String {
    let mut id = base.to_owned();
    if work.retry_count > 0 {
        id.push_str(&format!("-retry-{}", work.retry_count));
    }
    if work.poll_count > 0 {
        id.push_str(&format!("-poll-{}", work.poll_count));
    }
    id
}

/// An error message as rows keep it.
pub(super) fn kept_message(message: &str) -> String {
    if message.len() <= MAX_ERROR_BYTES {
        return message.to_owned();
    }
    let end = (0..=MAX_ERROR_BYTES).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &message[..end])
}

impl Work {
    /// `pending` → `dispatched`.
    pub(super) fn send(&mut self, base: &str, now: Timestamp, dispatch_timeout_sec: u64) {
        self.status = WorkStatus::Dispatched;
        self.job_id = Some(job_id(base, self));
        self.dispatched_at = Some(now);
        self.completed_at = None;
        self.retry_after = None;
        self.await_call(now, dispatch_timeout_sec);
    }

    /// `polling` → `polling`, with a job at work.
    pub(super) fn poll(&mut self, base: &str, now: Timestamp, dispatch_timeout_sec: u64) {
        self.poll_count += 1;
        self.last_polled_at = Some(now);
        self.job_id = Some(job_id(base, self));
        self.await_call(now, dispatch_timeout_sec);
    }

    /// A job was sent, and no worker has it yet.
    pub(super) fn await_call(&mut self, now: Timestamp, dispatch_timeout_sec: u64) {
        self.call_state = Some(CallState::Waiting);
        self.unleased_since = Some(now);
        self.check_at = Some(next_look(now, now, dispatch_timeout_sec));
    }

    fn end_call(&mut self) {
        self.call_state = None;
        self.unleased_since = None;
        self.check_at = None;
    }

    /// → `succeeded`
    pub(super) fn succeed(&mut self, result_json: String, now: Timestamp) {
        self.end_call();
        self.status = WorkStatus::Succeeded;
        self.result_json = Some(result_json);
        self.error_message = None;
        self.completed_at = Some(now);
    }

    /// → `polling`, without a job at work.
    pub(super) fn wait_for_poll(&mut self, now: Timestamp) {
        self.end_call();
        self.status = WorkStatus::Polling;
        self.poll_started_at.get_or_insert(now);
        self.last_polled_at.get_or_insert(now);
    }

    /// → `failed`, `poll_timeout`
    pub(super) fn fail(&mut self, status: WorkStatus, message: &str, now: Timestamp) {
        self.end_call();
        self.status = status;
        self.error_message = Some(kept_message(message));
        self.retry_after = None;
        self.completed_at = Some(now);
    }

    /// → `cancelled`, `skipped`
    pub(super) fn give_up(&mut self, status: WorkStatus, now: Timestamp) {
        self.end_call();
        self.status = status;
        self.retry_after = None;
        self.completed_at = Some(now);
    }

    /// → `pending`, as another attempt. It polls anew: the time-out counts from its own first poll.
    pub(super) fn retry(&mut self, retry_after: Option<Timestamp>) {
        self.end_call();
        self.status = WorkStatus::Pending;
        self.retry_count += 1;
        self.retry_after = retry_after;
        self.job_id = None;
        self.dispatched_at = None;
        self.completed_at = None;
        self.result_json = None;
        self.poll_started_at = None;
        self.last_polled_at = None;
        self.poll_count = 0;
    }

    /// → `pending` after it had ended, with all its retries. A job that was never sent needs no new id.
    pub(super) fn reset(&mut self, max_retries: u32) {
        let was_sent = self.job_id.is_some() || self.retry_count > 0;
        self.retry(None);
        if !was_sent {
            self.retry_count = 0;
        }
        self.error_message = None;
        self.retry_limit = self.retry_count + max_retries;
    }

    /// A worker was seen at the call.
    pub(super) fn see_lease(&mut self, now: Timestamp, dispatch_timeout_sec: u64) {
        self.call_state = Some(CallState::Leased);
        self.unleased_since = None;
        self.check_at = Some(next_look(now, now, dispatch_timeout_sec));
    }

    /// No worker was seen at the call. Returns whether that has been so for too long.
    pub(super) fn see_no_lease(&mut self, now: Timestamp, dispatch_timeout_sec: u64) -> bool {
        self.call_state = Some(CallState::Waiting);
        let since = *self.unleased_since.get_or_insert(now);
        self.check_at = Some(next_look(now, since, dispatch_timeout_sec));
        self.is_unleased_for(now, dispatch_timeout_sec)
    }

    /// Whether no worker has had the call for so long.
    pub(super) fn is_unleased_for(&self, now: Timestamp, sec: u64) -> bool {
        self.unleased_since.is_some_and(|since| later(since, sec) <= now)
    }
}

/// When a call is looked after next: when it may have been without a lease for too long, or earlier.
fn next_look(now: Timestamp, unleased_since: Timestamp, dispatch_timeout_sec: u64) -> Timestamp {
    let too_long = later(unleased_since, dispatch_timeout_sec);
    too_long.min(later(now, LOOK_AFTER_SEC)).max(later(now, 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::definition::{Retry, StepDefinition};

    fn work() -> Work {
        let step = StepDefinition {
            name: "create-user".to_owned(),
            worker_id: "cloud-01".to_owned(),
            function: "New-EntraUser".to_owned(),
            params: BTreeMap::new(),
            output_params: BTreeMap::new(),
            on_failure: None,
            poll: None,
            retry: Retry::default(),
        };
        Work::pending(&step, 0, step.function.clone(), "{}".to_owned())
    }

    #[test]
    fn every_attempt_has_its_own_job_id() {
        for (retry_count, poll_count, id) in [
            (0, 0, "step-1042"),
            (0, 3, "step-1042-poll-3"),
            (1, 0, "step-1042-retry-1"),
            (1, 3, "step-1042-retry-1-poll-3"),
        ] {
            assert_eq!(job_id("step-1042", &Work { retry_count, poll_count, ..work() }), id);
        }
    }

    #[test]
    fn time_counts_only_while_no_worker_has_the_call() {
        let at = |sec: i64| Timestamp::from_second(sec).unwrap();
        let mut work = work();
        work.send("step-1", at(0), 1_800);
        assert_eq!(work.due_at(), Some(at(600)));
        assert!(!work.see_no_lease(at(600), 1_800));
        work.see_lease(at(1_200), 1_800);
        assert!(!work.see_no_lease(at(1_800), 1_800), "the lease was lost at most 600 s ago");
        assert!(!work.see_no_lease(at(3_599), 1_800));
        assert_eq!(work.due_at(), Some(at(3_600)));
        assert!(work.see_no_lease(at(3_600), 1_800));
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let message = "ä".repeat(MAX_ERROR_BYTES);
        let kept = kept_message(&message);
        assert!(kept.len() <= MAX_ERROR_BYTES + "…".len() && kept.ends_with("ä…"));
        assert_eq!(kept_message("short"), "short");
    }
}
