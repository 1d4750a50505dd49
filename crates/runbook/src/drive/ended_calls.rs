//! Calls that have ended are deleted after a while: a large batch makes a million of them, and a
//! query that calls a function one every interval. The commit that consumes results of steps writes
//! one record with the ids of their jobs, due when they are to be deleted. A call of a data source
//! or a notice has a record of its own, written before it is made.

use std::time::Duration;

use segno::clock::duration_ms;
use segno::store::{ErrorKind, Expect, ProviderError, Record, RecordBatch, RecordWrite};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};

use super::holder::Services;
use super::place::BatchPlace;
use super::upkeep::put;

/// Kind of the records with jobs whose calls are to be deleted.
pub const ENDED_CALLS: &str = "runbook_ended_calls";

/// What stands in ids in place of a batch when a call is of none.
const JOBS: &str = "jobs";

/// Calls that one commit deletes.
const CALLS_PER_COMMIT: usize = 100;

/// When calls that could not be deleted are tried again, and how often.
const TRY_AGAIN: Duration = Duration::from_secs(60 * 60);
const MAX_TRIES: u32 = 24;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Body {
    /// Ids of jobs.
    jobs: Vec<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    tries: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The record of jobs whose calls have ended. `part` is unique in the batch.
pub(super) fn write(place: &BatchPlace, part: u64, jobs: Vec<String>, due_at_ms: u64) -> RecordWrite {
    let id = format!("{}{due_at_ms:020}-{part:020}", place.folder());
    put(ENDED_CALLS, &id, Expect::Anything, due_at_ms, encode(&Body { jobs, tries: 0 }))
}

/// The record of a call that is not of a step. A job that is written again replaces its record.
pub(super) fn write_job(scope: &Scope, job: &str, due_at_ms: u64) -> RecordWrite {
    let (id, body) = (
        format!("{}{JOBS}/{job}", scope.id_prefix()),
        encode(&Body { jobs: vec![job.to_owned()], tries: 0 }),
    );
    put(ENDED_CALLS, &id, Expect::Anything, due_at_ms, body)
}

/// The scope of a record.
fn scope_of(id: &str) -> Option<Scope> {
    let mut parts = id.splitn(3, '/');
    Scope::new(parts.next()?, parts.next()?).ok()
}

fn encode(body: &Body) -> Vec<u8> {
    serde_json::to_vec(body).expect("ids of jobs are text")
}

/// Deletes the calls of a due record.
pub(super) async fn delete(services: &Services, record: Record) -> Result<(), ProviderError> {
    let Body { jobs, tries } = serde_json::from_slice(&record.body).unwrap_or_default();
    let Some(scope) = scope_of(&record.id) else { return Ok(()) };
    let store = &*services.store;
    let mut left = Vec::new();
    for jobs in jobs.chunks(CALLS_PER_COMMIT) {
        let id = |job: &String| services.calls.instance_id(&scope, job);
        let ids: Vec<String> = jobs.iter().map(id).collect();
        match store.delete_instances_atomic(&ids, false).await {
            Ok(_) => {}
            // One has children, or has not ended: each by itself.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                for job in jobs {
                    match store.delete_instance(&id(job), false).await {
                        Err(error) if error.kind() == ErrorKind::Conflict => left.push(job.clone()),
                        Err(error) if error.kind() == ErrorKind::NotFound => {}
                        other => drop(other?),
                    }
                }
            }
            Err(error) => return Err(error),
        }
    }
    let write = if left.is_empty() || tries >= MAX_TRIES {
        RecordWrite::Delete { kind: ENDED_CALLS.to_owned(), id: record.id, expect: Expect::Anything }
    } else {
        let due_at_ms = store.now_ms().await?.saturating_add(duration_ms(TRY_AGAIN));
        let body = encode(&Body { jobs: left, tries: tries + 1 });
        put(ENDED_CALLS, &record.id, Expect::Anything, due_at_ms, body)
    };
    store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::BatchId;

    #[test]
    fn jobs_are_stored_in_a_form_that_does_not_change() {
        let place = BatchPlace::new(Scope::new("eu", "acme").unwrap(), BatchId(42));
        let RecordWrite::Put { id, body, due_at_ms, .. } =
            write(&place, 7, vec!["step-1".to_owned(), "step-2-poll-1".to_owned()], 5)
        else {
            panic!("it is written");
        };
        assert_eq!(id, "eu/acme/00000000000000000042/00000000000000000005-00000000000000000007");
        assert_eq!((due_at_ms, &*body), (Some(5), &br#"{"jobs":["step-1","step-2-poll-1"]}"#[..]));
        assert_eq!(scope_of(&id), Some(place.scope.clone()));
        let RecordWrite::Put { id, body, .. } = write_job(&place.scope, "query-wave-7", 5) else {
            panic!("it is written");
        };
        assert_eq!(
            (id.as_str(), &*body),
            ("eu/acme/jobs/query-wave-7", &br#"{"jobs":["query-wave-7"]}"#[..])
        );
        assert_eq!(scope_of(&id), Some(place.scope));
    }
}
