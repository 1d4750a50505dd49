//! Instances that are calls of batches or tasks of DAG runs: the batch or the run decides about them. Calls of data sources, previews and notices
//! are no part of a batch, and are steered like those of others.

use segno_actions::pools::Room;

use crate::problem::{Code, Refusal};

/// How an instance is steered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    /// It is cancelled.
    Cancel,
    /// It is paused.
    Pause,
    /// It is resumed.
    Resume,
    /// It is restarted, or started again under another id.
    Restart,
    /// Its next attempts are made at once.
    Retry,
    /// It is deleted.
    Delete,
}

/// What ids of jobs begin with that are no jobs of batches.
const FREE_JOBS: [&str; 3] = ["query-", "preview-", "notify-"];

/// Whether an instance, without its namespace and tenant, is the call of a batch or a run. That of a job whose id was hashed is
/// taken for one.
pub fn is_reserved(id: &str) -> bool {
    let job = id.split_once(':').map_or("", |(_, job)| job);
    Room::of(id).is_some() && !FREE_JOBS.iter().any(|prefix| job.starts_with(prefix))
}

/// Refuses to steer the call of a batch or a run.
///
/// # Errors
/// `reserved-id` with the request to make instead.
pub fn check_steerable(id: &str, steering: Steering) -> Result<(), Refusal> {
    if !is_reserved(id) {
        return Ok(());
    }
    let job = id.split_once(':').map_or("", |(_, job)| job);
    if Room::of(id) == Some(Room::LEDGER) {
        let advice = advice_for_task(job, steering);
        let detail =
            format!("{id:?} is a task of a DAG run, which decides about its tasks by itself; {advice}");
        return Err(Refusal::new(Code::ReservedId, detail));
    }
    let advice = advice(job, steering);
    let detail = format!("{id:?} is a call of a batch, which decides about its calls by itself; {advice}");
    Err(Refusal::new(Code::ReservedId, detail))
}

/// What to do instead, for a call with the id of a job: `step-1042-retry-1`, `init-7`, `rollback-…`, `removed-…`.
fn advice(job: &str, steering: Steering) -> String {
    let mut words = job.split('-');
    let (kind, id) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let request = match (steering, kind) {
        (Steering::Cancel, "step") => format!("`cancel_step` with step_execution_id {id}"),
        (Steering::Cancel, _) => "`cancel_batch`".to_owned(),
        (Steering::Pause, _) => "`pause_batch`".to_owned(),
        (Steering::Resume, _) => "`resume_batch`".to_owned(),
        (Steering::Restart, "init") => "`retry_init`".to_owned(),
        (Steering::Restart, "rollback") => "`retry_rollback`".to_owned(),
        (Steering::Restart, "removed") => format!("`retry_removal` with batch_member_id {id}"),
        (Steering::Restart, _) => "`retry_members`".to_owned(),
        (Steering::Retry, _) => {
            return "its next attempt is made at the time that its runbook sets".to_owned();
        }
        (Steering::Delete, _) => return "it is kept as long as its batch may look after it".to_owned(),
    };
    format!("request {request} by POST /v1/batches/{{id}}/requests")
}

/// What to do instead, for a task with this dispatch id: `dispatch:{run}:{task}:{attempt}`.
fn advice_for_task(dispatch: &str, steering: Steering) -> String {
    // Segments are escaped, so the run is what stands before the next colon.
    let run = dispatch.strip_prefix("dispatch:").and_then(|rest| rest.split(':').next()).unwrap_or("{id}");
    match steering {
        Steering::Cancel => format!("cancel the run by POST /v1/runs/{run}/cancel"),
        Steering::Pause | Steering::Resume => {
            "pause or resume its DAG by POST /v1/dags/{name}/pause".to_owned()
        }
        Steering::Restart => format!("clear the task by POST /v1/runs/{run}/clear, and it runs again"),
        Steering::Retry => "its next attempt is made at the time that its DAG sets".to_owned(),
        Steering::Delete => "it is kept as long as its run may look after it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_names_the_request_of_the_batch() {
        for (id, steering, words) in [
            ("runbook:step-1042-retry-1", Steering::Cancel, "`cancel_step` with step_execution_id 1042"),
            ("runbook:init-7", Steering::Cancel, "`cancel_batch`"),
            ("runbook:init-7", Steering::Restart, "`retry_init`"),
            ("runbook:step-1", Steering::Restart, "`retry_members`"),
            ("runbook:removed-501-0", Steering::Restart, "`retry_removal` with batch_member_id 501"),
            ("runbook-sha256:00ff", Steering::Restart, "`retry_members`"),
            ("runbook:step-1", Steering::Pause, "`pause_batch`"),
            ("runbook:step-1", Steering::Delete, "is kept"),
            ("dag:dispatch:run_1:extract:2", Steering::Cancel, "POST /v1/runs/run_1/cancel"),
            ("dag:dispatch:run_1:a%3Ab:2", Steering::Restart, "POST /v1/runs/run_1/clear"),
            ("dag-sha256:00ff", Steering::Cancel, "/v1/runs/{id}/cancel"),
            ("dag:dispatch:run_1:extract:2", Steering::Delete, "is kept"),
        ] {
            let refused = check_steerable(id, steering).unwrap_err();
            assert_eq!(refused.code(), "reserved-id");
            assert!(refused.detail().contains(words), "{refused}");
        }
        for id in [
            "runbooks:1",
            "runbook:query-guests-1",
            "runbook:preview-7",
            "runbook:notify-00000000000000000007-0000",
        ] {
            assert!(check_steerable(id, Steering::Delete).is_ok(), "{id}");
        }
    }
}
