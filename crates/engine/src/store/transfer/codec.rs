//! The bytes of an item: a byte for its kind, then a MessagePack array of its fields. Documented in
//! `docs/backup-format.md`; equal items have equal bytes, so a checksum over them is one over the content.

use bytes::Bytes;
use semver::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::content::{
    ContentHeader, ContentItem, ExecutionContent, InstanceContent, MessageContent, WorkItemContent,
};
use crate::store::{
    ErrorKind, ExecutionStatus, OrchestratorMessage, ProviderError, Record, ScheduledActivityIdentifier,
    StartGuard, StoredEvent, TimerIdentifier, WorkerMessage,
};

// Kinds. Numbers are never reused.
const HEADER: u8 = 1;
const INSTANCE: u8 = 2;
const EXECUTION: u8 = 3;
const EVENT: u8 = 4;
const MESSAGE: u8 = 5;
const WORK_ITEM: u8 = 6;
const RECORD: u8 = 7;

/// Appends the bytes of an item.
pub fn encode_item(item: &ContentItem, out: &mut Vec<u8>) {
    match item {
        ContentItem::Header(header) => write(
            out,
            HEADER,
            &(
                header.taken_at_ms,
                header.last_message_id,
                header.last_work_item_id,
                header.last_record_version,
            ),
        ),
        ContentItem::Instance(instance) => write(
            out,
            INSTANCE,
            &(
                &instance.instance_id,
                &instance.orchestration_name,
                &instance.orchestration_version,
                &instance.parent_instance_id,
                instance.current_execution_id,
                instance.created_at_ms,
                instance.updated_at_ms,
                instance.revision,
                &instance.custom_status,
                instance.custom_status_version,
                &instance.labels,
            ),
        ),
        ContentItem::Execution(execution) => write(
            out,
            EXECUTION,
            &(
                execution.execution_id,
                status_number(execution.status),
                &execution.output,
                &execution.pinned_version,
                execution.incarnation,
                execution.started_at_ms,
                execution.completed_at_ms,
            ),
        ),
        ContentItem::Event(event) => write(out, EVENT, &(event.event_id, &event.data)),
        ContentItem::Message(content) => {
            let message = &content.message;
            let timer = message.timer.map(|timer| (timer.execution_id, timer.timer_id));
            write(
                out,
                MESSAGE,
                &(
                    content.id,
                    &message.instance,
                    message.visible_at_ms,
                    timer,
                    guard_number(message.guard),
                    &message.body,
                    content.attempts,
                    content.holds_instance,
                ),
            );
        }
        ContentItem::WorkItem(content) => {
            let (message, activity) = (&content.message, &content.message.activity);
            write(
                out,
                WORK_ITEM,
                &(
                    content.id,
                    &activity.instance,
                    activity.execution_id,
                    activity.activity_id,
                    &message.session_id,
                    &message.tag,
                    message.visible_at_ms,
                    &message.body,
                    content.delayed_until_ms,
                    content.attempts,
                ),
            );
        }
        ContentItem::Record(record) => write(
            out,
            RECORD,
            &(&record.kind, &record.id, record.version, record.due_at_ms, record.expires_at_ms, &record.body),
        ),
    }
}

fn write(out: &mut Vec<u8>, kind: u8, fields: &impl Serialize) {
    out.push(kind);
    rmp_serde::encode::write(out, fields).expect("plain fields are written to memory");
}

/// The item that these bytes are.
///
/// # Errors
/// `Corrupt` when they are none.
pub fn decode_item(bytes: &[u8]) -> Result<ContentItem, ProviderError> {
    let (kind, fields) = bytes.split_first().ok_or_else(|| corrupt("it is empty"))?;
    match *kind {
        HEADER => {
            let (taken_at_ms, last_message_id, last_work_item_id, last_record_version) = read(fields)?;
            Ok(ContentItem::Header(ContentHeader {
                taken_at_ms,
                last_message_id,
                last_work_item_id,
                last_record_version,
            }))
        }
        INSTANCE => decode_instance(fields),
        EXECUTION => decode_execution(fields),
        EVENT => {
            let (event_id, data) = read(fields)?;
            Ok(ContentItem::Event(StoredEvent { event_id, data }))
        }
        MESSAGE => decode_message(fields),
        WORK_ITEM => decode_work_item(fields),
        RECORD => {
            let (kind, id, version, due_at_ms, expires_at_ms, body) = read(fields)?;
            let record = Record { kind, id, version, due_at_ms, expires_at_ms, body };
            Ok(ContentItem::Record(Box::new(record)))
        }
        unknown => Err(corrupt(format!("its kind {unknown} is unknown"))),
    }
}

fn corrupt(what: impl std::fmt::Display) -> ProviderError {
    ProviderError::new(
        ErrorKind::Corrupt,
        "decode_item",
        format!("an item of a content does not decode: {what}"),
    )
}

fn read<T: DeserializeOwned>(fields: &[u8]) -> Result<T, ProviderError> {
    let mut rest = fields;
    let value = T::deserialize(&mut rmp_serde::Deserializer::new(&mut rest)).map_err(corrupt)?;
    if rest.is_empty() { Ok(value) } else { Err(corrupt("it has more fields than it should")) }
}

fn decode_instance(fields: &[u8]) -> Result<ContentItem, ProviderError> {
    type Fields = (
        String,
        Option<Arc<str>>,
        Option<Arc<str>>,
        Option<String>,
        u64,
        u64,
        u64,
        u64,
        Option<Bytes>,
        u64,
        BTreeMap<String, String>,
    );
    let fields: Fields = read(fields)?;
    Ok(ContentItem::Instance(Box::new(InstanceContent {
        instance_id: fields.0,
        orchestration_name: fields.1,
        orchestration_version: fields.2,
        parent_instance_id: fields.3,
        current_execution_id: fields.4,
        created_at_ms: fields.5,
        updated_at_ms: fields.6,
        revision: fields.7,
        custom_status: fields.8,
        custom_status_version: fields.9,
        labels: fields.10,
    })))
}

fn decode_execution(fields: &[u8]) -> Result<ContentItem, ProviderError> {
    type Fields = (u64, u8, Option<Bytes>, Option<Version>, Option<u64>, u64, Option<u64>);
    let fields: Fields = read(fields)?;
    Ok(ContentItem::Execution(Box::new(ExecutionContent {
        execution_id: fields.0,
        status: status_of(fields.1).ok_or_else(|| corrupt(format!("its state {} is unknown", fields.1)))?,
        output: fields.2,
        pinned_version: fields.3,
        incarnation: fields.4,
        started_at_ms: fields.5,
        completed_at_ms: fields.6,
    })))
}

fn decode_message(fields: &[u8]) -> Result<ContentItem, ProviderError> {
    type Fields = (u64, String, Option<u64>, Option<(u64, u64)>, u8, Bytes, u32, bool);
    let (id, instance, visible_at_ms, timer, guard, body, attempts, holds_instance): Fields = read(fields)?;
    let timer = timer.map(|(execution_id, timer_id)| TimerIdentifier { execution_id, timer_id });
    let guard = guard_of(guard).ok_or_else(|| corrupt(format!("its guard {guard} is unknown")))?;
    let message = OrchestratorMessage { instance, visible_at_ms, timer, guard, body };
    Ok(ContentItem::Message(Box::new(MessageContent { id, message, attempts, holds_instance })))
}

fn decode_work_item(fields: &[u8]) -> Result<ContentItem, ProviderError> {
    type Fields =
        (u64, String, u64, u64, Option<String>, Option<String>, Option<u64>, Bytes, Option<u64>, u32);
    let fields: Fields = read(fields)?;
    let activity =
        ScheduledActivityIdentifier { instance: fields.1, execution_id: fields.2, activity_id: fields.3 };
    let message = WorkerMessage {
        activity,
        session_id: fields.4,
        tag: fields.5,
        visible_at_ms: fields.6,
        body: fields.7,
    };
    let (delayed_until_ms, attempts) = (fields.8, fields.9);
    let item = WorkItemContent { id: fields.0, message, delayed_until_ms, attempts };
    Ok(ContentItem::WorkItem(Box::new(item)))
}

/// The number of a state. Never reused.
fn status_number(status: ExecutionStatus) -> u8 {
    match status {
        ExecutionStatus::Pending => 1,
        ExecutionStatus::Running => 2,
        ExecutionStatus::Paused => 3,
        ExecutionStatus::Completed => 4,
        ExecutionStatus::Failed => 5,
        ExecutionStatus::Cancelled => 6,
        ExecutionStatus::ContinuedAsNew => 7,
    }
}

fn status_of(number: u8) -> Option<ExecutionStatus> {
    ExecutionStatus::ALL.into_iter().find(|status| status_number(*status) == number)
}

/// The number of a guard. Never reused.
fn guard_number(guard: StartGuard) -> u8 {
    match guard {
        StartGuard::None => 0,
        StartGuard::IfAbsent => 1,
        StartGuard::IfPresent => 2,
    }
}

fn guard_of(number: u8) -> Option<StartGuard> {
    [StartGuard::None, StartGuard::IfAbsent, StartGuard::IfPresent]
        .into_iter()
        .find(|guard| guard_number(*guard) == number)
}

#[cfg(test)]
#[path = "codec_tests.rs"]
mod tests;
