//! The outbox: jobs of pools that are reached over the bus, and messages of the topic
//! `orchestrator-events`. They are written in the commit of the rows, and sent after it.
//!
//! | id after the tenant's prefix | what | until |
//! |---|---|---|
//! | `jobs/{pool}/{batch}/{job}` | a job; it is the call, there is no instance | its result is taken, or it is cancelled |
//! | `events/{batch}/{message}` | a message for all who listen | it was sent |
//!
//! A row is due while it has to be sent. The id of its message never changes, so what is sent twice
//! is one message for a bus that detects duplicates, and one result for the batch.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use segno::store::{Expect, Record, RecordWrite};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::inbox::plain;
use super::place::BatchPlace;
use super::post::timestamp;
use crate::bus::Message;
use crate::message::{EventMessage, JobMessage};
use crate::step::Dispatch;

/// Kind of the rows of the outbox.
pub const OUTBOX: &str = "runbook_outbox";

/// Largest body of a message with a list of members, in bytes. Longer lists are split.
pub const MAX_EVENT_BYTES: usize = 200_000;

/// How long the row of a job that was sent is kept: as long as a message may wait for a worker.
pub(crate) const KEEP_SENT: Duration = Duration::from_hours(14 * 24);

/// Property that names the kind of a message.
pub const MESSAGE_TYPE: &str = "MessageType";
/// Property by which workers receive the jobs of their pool.
pub const WORKER_ID: &str = "WorkerId";
/// Property of a job with its function.
const FUNCTION_NAME: &str = "FunctionName";
/// Value of `MessageType` of jobs.
const JOB: &str = "job";
/// Property that tells who sent an event.
pub const SENDER: &str = "Sender";
/// Its value in events that this program sends. They are about rows that have changed already.
pub const SEGNO: &str = "segno";

/// Whether the messages of the topic `orchestrator-events` are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announcements {
    /// They are.
    Sent,
    /// Nobody listens to them.
    Unsent,
}

/// The bus, as batches know it: of one tenant, behind the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outbox {
    /// Whose jobs and messages go there.
    pub scope: Scope,
    /// Whether messages of the topic `orchestrator-events` are sent.
    pub announcements: Announcements,
}

/// A row of the outbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutboxRow {
    /// What is sent.
    pub message: Message,
    /// When it was written.
    pub queued_at: Timestamp,
    /// When it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
}

/// What the ids of all jobs of a pool begin with.
pub fn jobs_folder(scope: &Scope, pool: &str) -> String {
    format!("{}jobs/{}/", scope.id_prefix(), plain(pool))
}

/// What the ids of all events of a tenant begin with.
pub fn events_folder(scope: &Scope) -> String {
    format!("{}events/", scope.id_prefix())
}

/// Id of the row of a job.
pub(super) fn job_row_id(place: &BatchPlace, pool: &str, job_id: &str) -> String {
    format!("{}{:020}/{}", jobs_folder(&place.scope, pool), place.batch.0, plain(job_id))
}

/// The batch of a row of a pool's folder.
pub(crate) fn batch_of_row(folder: &str, scope: &Scope, id: &str) -> Option<BatchPlace> {
    let (batch, _) = id.strip_prefix(folder)?.split_once('/')?;
    Some(BatchPlace::new(scope.clone(), crate::rows::BatchId(batch.parse().ok()?)))
}

/// Removes the row of a job.
pub(super) fn delete_job(place: &BatchPlace, pool: &str, job_id: &str) -> RecordWrite {
    let id = job_row_id(place, pool, job_id);
    RecordWrite::Delete { kind: OUTBOX.to_owned(), id, expect: Expect::Anything }
}

/// The message of a job. Its id is the job's.
pub(super) fn job_message(job: &Dispatch) -> Result<Message, serde_json::Error> {
    let body = serde_json::to_string(&JobMessage {
        job_id: job.job_id.clone(),
        batch_id: job.batch_id,
        worker_id: job.worker_id.clone(),
        function_name: job.function_name.clone(),
        parameters: RawValue::from_string(job.params_json.clone())?,
        correlation_data: job.correlation_data.clone(),
    })?;
    let message = Message::json(job.job_id.as_str(), body);
    Ok(message
        .property(MESSAGE_TYPE, JOB)
        .property(WORKER_ID, job.worker_id.as_str())
        .property(FUNCTION_NAME, job.function_name.as_str()))
}

impl OutboxRow {
    /// A row that is to be sent.
    pub fn unsent(message: Message, queued_at: Timestamp) -> Self {
        OutboxRow { message, queued_at, sent_at: None }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When it is none of this program.
    pub fn read(record: &Record) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&record.body)
    }

    /// Writes the row. It is due until it was sent.
    pub(crate) fn write(&self, id: String, expect: Expect, due_at_ms: Option<u64>) -> RecordWrite {
        RecordWrite::Put {
            kind: OUTBOX.to_owned(),
            id,
            expect,
            due_at_ms,
            time_to_live: due_at_ms.is_none().then_some(KEEP_SENT),
            body: serde_json::to_vec(self).expect("messages are JSON with text keys").into(),
        }
    }
}

impl Outbox {
    /// Whether events of a tenant's batches are sent.
    pub(super) fn announces(&self, scope: &Scope) -> bool {
        self.announcements == Announcements::Sent && self.scope == *scope
    }

    /// Rows for events, with ids that begin with `id`.
    pub(super) fn event_writes<'a>(
        &self,
        place: &BatchPlace,
        id: &str,
        events: impl Iterator<Item = &'a EventMessage>,
        now_ms: u64,
    ) -> Vec<RecordWrite> {
        let folder = format!("{}{:020}/", events_folder(&self.scope), place.batch.0);
        let messages = events.flat_map(|event| split(event, MAX_EVENT_BYTES)).enumerate();
        let write = |(number, event): (usize, EventMessage)| {
            let id = format!("{id}-{number}");
            let row = OutboxRow::unsent(event_message(&id, &event), timestamp(now_ms));
            row.write(format!("{folder}{}", plain(&id)), Expect::Anything, Some(now_ms))
        };
        messages.map(write).collect()
    }
}

fn event_message(id: &str, event: &EventMessage) -> Message {
    let body = serde_json::to_string(event).expect("events are JSON with text keys");
    Message::json(id, body).property(MESSAGE_TYPE, event.message_type()).property(SENDER, SEGNO)
}

/// The messages that an event is sent as: `phase-due` with many members is split, so that each body
/// stays within a limit.
fn split(event: &EventMessage, max_bytes: usize) -> Vec<EventMessage> {
    let EventMessage::PhaseDue { member_ids, .. } = event else { return vec![event.clone()] };
    let with = |ids: &[crate::rows::MemberId]| {
        let mut part = event.clone();
        if let EventMessage::PhaseDue { member_ids, .. } = &mut part {
            *member_ids = ids.to_vec();
        }
        part
    };
    let bytes = |event: &EventMessage| serde_json::to_vec(event).map_or(0, |body| body.len());
    let room = max_bytes.saturating_sub(bytes(&with(&[])));
    // The longest number and its comma.
    let each = member_ids.iter().map(|id| id.0.to_string().len() + 1).max().unwrap_or(1);
    member_ids.chunks((room / each).max(1)).map(with).collect()
}

/// A commit may name a record once: of several writes of a row, the last one counts.
pub(super) fn keep_last(writes: &mut Vec<RecordWrite>) {
    let mut last: HashMap<String, usize> = HashMap::new();
    for (index, write) in writes.iter().enumerate() {
        if let (OUTBOX, id) = write.key() {
            last.insert(id.to_owned(), index);
        }
    }
    let mut index = 0;
    writes.retain(|write| {
        let is_last = match write.key() {
            (OUTBOX, id) => last.get(id) == Some(&index),
            _ => true,
        };
        index += 1;
        is_last
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::CorrelationData;
    use crate::rows::{BatchId, MemberId, PhaseId, StepId, WorkKey};

    fn place() -> BatchPlace {
        BatchPlace::new(Scope::new("eu", "acme").unwrap(), BatchId(42))
    }

    fn phase_due(members: u64) -> EventMessage {
        EventMessage::PhaseDue {
            runbook_name: "contoso".to_owned(),
            runbook_version: 3,
            batch_id: BatchId(42),
            phase_execution_id: PhaseId(108),
            phase_name: "prepare".to_owned(),
            offset_minutes: 7_200,
            due_at: None,
            member_ids: (0..members).map(|id| MemberId(u64::MAX - id)).collect(),
        }
    }

    #[test]
    fn a_job_is_stored_in_a_form_that_does_not_change() {
        let job = Dispatch {
            work: WorkKey::Step(StepId(1_042)),
            job_id: "step-1042".to_owned(),
            batch_id: BatchId(42),
            worker_id: "cloud-01".to_owned(),
            function_name: "New-EntraUser".to_owned(),
            params_json: r#"{"UserPrincipalName":"a@b"}"#.to_owned(),
            correlation_data: CorrelationData {
                step_execution_id: Some(StepId(1_042)),
                init_execution_id: None,
                is_init_step: false,
                runbook_name: "wave-mailbox-move".to_owned(),
                runbook_version: 3,
            },
            dispatch_timeout_sec: 1_800,
        };
        let row = OutboxRow::unsent(job_message(&job).unwrap(), timestamp(5));
        let stored = r#"{"message":{"messageId":"step-1042","contentType":"application/json","properties":{"FunctionName":"New-EntraUser","MessageType":"job","WorkerId":"cloud-01"},"body":"{\"jobId\":\"step-1042\",\"batchId\":42,\"workerId\":\"cloud-01\",\"functionName\":\"New-EntraUser\",\"parameters\":{\"UserPrincipalName\":\"a@b\"},\"correlationData\":{\"stepExecutionId\":1042,\"initExecutionId\":null,\"isInitStep\":false,\"runbookName\":\"wave-mailbox-move\",\"runbookVersion\":3}}"},"queuedAt":"1970-01-01T00:00:00.005Z"}"#;
        assert_eq!(serde_json::to_string(&row).unwrap(), stored);
        let id = job_row_id(&place(), "cloud-01", "step-1042");
        assert_eq!(id, "eu/acme/jobs/cloud-01/00000000000000000042/step-1042");
        let folder = jobs_folder(&place().scope, "cloud-01");
        assert_eq!(batch_of_row(&folder, &place().scope, &id), Some(place()));
    }

    #[test]
    fn phase_due_is_split_below_its_limit_and_loses_no_member() {
        for (members, parts) in [(0, 0), (1, 1), (9_000, 1), (30_000, 4)] {
            let messages = split(&phase_due(members), MAX_EVENT_BYTES);
            assert_eq!(messages.len(), parts, "{members}");
            let mut found = Vec::new();
            for message in messages {
                assert!(serde_json::to_string(&message).unwrap().len() < MAX_EVENT_BYTES);
                let EventMessage::PhaseDue { member_ids, .. } = message else { unreachable!("split") };
                found.extend(member_ids);
            }
            assert_eq!(found.len() as u64, members);
            assert!(found.windows(2).all(|pair| pair[0] > pair[1]), "in order, each once");
        }
    }

    #[test]
    fn of_several_writes_of_a_row_the_last_counts() {
        let row = OutboxRow::unsent(Message::json("step-1", "{}"), timestamp(5));
        let sent = row.write(job_row_id(&place(), "p", "step-1"), Expect::Anything, Some(1));
        let other = row.write(job_row_id(&place(), "p", "step-2"), Expect::Anything, Some(1));
        let mut writes = vec![sent, other.clone(), delete_job(&place(), "p", "step-1")];
        keep_last(&mut writes);
        assert_eq!(writes, [other, delete_job(&place(), "p", "step-1")]);
    }

    #[test]
    fn events_of_one_commit_have_ids_of_their_own() {
        let outbox = Outbox { scope: place().scope, announcements: Announcements::Sent };
        let events = [phase_due(1), phase_due(30_000)];
        let writes = outbox.event_writes(&place(), "batch-42-7", events.iter(), 5);
        let ids: std::collections::BTreeSet<_> = writes.iter().map(|write| write.key().1).collect();
        assert_eq!(ids.len(), 5);
        assert!(ids.contains("eu/acme/events/00000000000000000042/batch-42-7-4"), "{ids:?}");
        assert!(!outbox.announces(&Scope::new("eu", "other").unwrap()));
    }
}
