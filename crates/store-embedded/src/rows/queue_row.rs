//! Rows of the two queues, of abandoned entries, of events, and of records.

use std::borrow::Cow;

use bytes::Bytes;

use segno::store::core::peek_lock::Standing;
use segno::store::core::worker_queue::ItemLock;
use segno::store::{
    LockToken, OrchestratorMessage, Record, ScheduledActivityIdentifier, StartGuard, StoredEvent,
    TimerIdentifier, WorkerMessage,
};

use crate::rows::codec::{Decoder, Encoder, Undecodable};

/// First byte of every row of this file.
const ROW_VERSION: u8 = 1;

/// A message of the orchestrator queue, visible at its time.
pub(crate) fn encode_message(message: &OrchestratorMessage, visible_at_ms: u64) -> Bytes {
    let mut row = Encoder::new(ROW_VERSION);
    row.text(&message.instance);
    row.u64(visible_at_ms);
    row.option(message.timer, |row, timer| {
        row.u64(timer.execution_id);
        row.u64(timer.timer_id);
    });
    row.u8(match message.guard {
        StartGuard::None => 0,
        StartGuard::IfAbsent => 1,
        StartGuard::IfPresent => 2,
    });
    row.bytes(&message.body);
    row.finish_beside_others()
}

pub(crate) fn decode_message(bytes: &Bytes) -> Result<OrchestratorMessage, Undecodable> {
    let row = &mut Decoder::new(bytes, ROW_VERSION)?;
    Ok(OrchestratorMessage {
        instance: row.text()?,
        visible_at_ms: Some(row.u64()?),
        timer: row.option(|row| Ok(TimerIdentifier { execution_id: row.u64()?, timer_id: row.u64()? }))?,
        guard: match row.u8()? {
            0 => StartGuard::None,
            1 => StartGuard::IfAbsent,
            2 => StartGuard::IfPresent,
            _ => return Err(Undecodable("unknown guard")),
        },
        body: row.kept_bytes()?,
    })
}

/// An activity of the worker queue, and when it is visible.
pub(crate) fn encode_activity(message: &WorkerMessage, visible_at_ms: u64) -> Bytes {
    let mut row = Encoder::new(ROW_VERSION);
    row.text(&message.activity.instance);
    row.u64(message.activity.execution_id);
    row.u64(message.activity.activity_id);
    row.option(message.session_id.as_deref(), Encoder::text);
    row.option(message.tag.as_deref(), Encoder::text);
    row.option(message.visible_at_ms, Encoder::u64);
    row.u64(visible_at_ms);
    row.bytes(&message.body);
    row.finish_beside_others()
}

pub(crate) fn decode_activity(bytes: &Bytes) -> Result<(WorkerMessage, u64), Undecodable> {
    let row = &mut Decoder::new(bytes, ROW_VERSION)?;
    let instance = row.text()?;
    let activity =
        ScheduledActivityIdentifier { instance, execution_id: row.u64()?, activity_id: row.u64()? };
    let (session_id, tag) = (row.option(Decoder::text)?, row.option(Decoder::text)?);
    let (own_visible_at_ms, visible_at_ms) = (row.option(Decoder::u64)?, row.u64()?);
    let body = row.kept_bytes()?;
    Ok((WorkerMessage { activity, session_id, tag, visible_at_ms: own_visible_at_ms, body }, visible_at_ms))
}

/// The state of a queue entry that was fetched before, and the lock on it if that outlives the
/// process. Without a lock the row is as it was before there were any.
pub(crate) fn encode_standing(standing: Standing, lock: Option<ItemLock>) -> Bytes {
    let mut row = Encoder::new(ROW_VERSION);
    row.u64(standing.visible_at_ms);
    row.u32(standing.attempts);
    if let Some(lock) = lock {
        row.u64(lock.token.0);
        row.u64(lock.until_ms);
    }
    row.finish_beside_others()
}

pub(crate) fn decode_standing(id: u64, bytes: &Bytes) -> Result<(Standing, Option<ItemLock>), Undecodable> {
    let row = &mut Decoder::new(bytes, ROW_VERSION)?;
    let standing = Standing { id, visible_at_ms: row.u64()?, attempts: row.u32()? };
    let lock = match row.is_at_end() {
        true => None,
        false => Some(ItemLock { token: LockToken(row.u64()?), until_ms: row.u64()? }),
    };
    Ok((standing, lock))
}

/// The events of one commit.
pub(crate) fn encode_events(events: &[StoredEvent]) -> Bytes {
    let mut row = Encoder::new(ROW_VERSION);
    for event in events {
        row.u64(event.event_id);
        row.bytes(&event.data);
    }
    row.finish_beside_others()
}

/// A row of events that is this long gets no more of them.
pub(crate) const LONG_EVENTS_BYTES: usize = 16 * 1024;

/// Adds the events of a row to the row before it, if that is short; `false` when it is not.
pub(crate) fn join_events(row: &mut Cow<'_, [u8]>, more: &[u8]) -> bool {
    let is_joined = row.len() < LONG_EVENTS_BYTES && row.first() == more.first();
    if is_joined {
        row.to_mut().extend_from_slice(&more[1..]);
    }
    is_joined
}

/// Adds the events of a row to those of the rows before.
pub(crate) fn decode_events(bytes: &Bytes, events: &mut Vec<StoredEvent>) -> Result<(), Undecodable> {
    let row = &mut Decoder::new(bytes, ROW_VERSION)?;
    while !row.is_at_end() {
        events.push(StoredEvent { event_id: row.u64()?, data: row.bytes()? });
    }
    Ok(())
}

/// What is stored of a record beyond its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordRow {
    pub(crate) version: u64,
    pub(crate) due_at_ms: Option<u64>,
    pub(crate) expires_at_ms: Option<u64>,
    pub(crate) body: Bytes,
}

impl RecordRow {
    /// What callers see of it.
    pub(crate) fn into_record(self, kind: &str, id: &str) -> Record {
        Record {
            kind: kind.to_owned(),
            id: id.to_owned(),
            version: self.version,
            due_at_ms: self.due_at_ms,
            expires_at_ms: self.expires_at_ms,
            body: self.body,
        }
    }

    /// Whether the record still exists at this time.
    pub(crate) fn lives(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_none_or(|expires_at_ms| expires_at_ms > now_ms)
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut row = Encoder::new(ROW_VERSION);
        row.u64(self.version);
        row.option(self.due_at_ms, Encoder::u64);
        row.option(self.expires_at_ms, Encoder::u64);
        row.bytes(&self.body);
        row.finish()
    }

    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, Undecodable> {
        let row = &mut Decoder::new(bytes, ROW_VERSION)?;
        Ok(RecordRow {
            version: row.u64()?,
            due_at_ms: row.option(Decoder::u64)?,
            expires_at_ms: row.option(Decoder::u64)?,
            body: row.bytes()?,
        })
    }
}
