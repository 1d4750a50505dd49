//! How webhooks are stored.
//!
//! | kind | id | life | what |
//! |---|---|---|---|
//! | `segno.hook` | `namespace/tenant/route` | for ever | a declaration |
//! | `segno.hook-payload` | `namespace/tenant/route/uuid` | the route's retention | a payload without its body |
//! | `segno.hook-body` | the same | the same | the body, byte for byte |
//! | `segno.hook-key` | `namespace/tenant/route/sha256` | the route's window | the payload that came first with a key |
//! | `segno.hook-event` | `namespace/tenant/uuid` | the node's retention | an event |

use std::time::Duration;

use bytes::Bytes;
use segno::store::{Expect, Record, RecordWrite};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::error::HookError;
use crate::functions::{HookName, Scope};
use crate::signature::to_hex;

/// Kind of the records that are routes.
pub(super) const HOOK: &str = "segno.hook";
/// Kind of the records that are payloads without their bodies.
pub(super) const PAYLOAD: &str = "segno.hook-payload";
/// Kind of the records that are bodies.
pub(super) const BODY: &str = "segno.hook-body";
/// Kind of the records that are keys of payloads.
pub(super) const KEY: &str = "segno.hook-key";
/// Kind of the records that are events.
pub(super) const EVENT: &str = "segno.hook-event";

/// The form in which they are stored.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Stored<T> {
    format: u32,
    value: T,
}

/// The id of a route.
pub(super) fn hook_id(scope: &Scope, name: &HookName) -> String {
    format!("{}{name}", scope.id_prefix())
}

/// What the ids of all payloads of a route begin with.
pub(super) fn payload_prefix(scope: &Scope, name: &HookName) -> String {
    format!("{}{name}/", scope.id_prefix())
}

/// The id of a payload and of its body.
pub(super) fn payload_id(scope: &Scope, name: &HookName, id: Uuid) -> String {
    format!("{}{id}", payload_prefix(scope, name))
}

/// The id of a key. Senders choose keys, so they are hashed.
pub(super) fn key_id(scope: &Scope, name: &HookName, key: &str) -> String {
    format!("{}{}", payload_prefix(scope, name), to_hex(&Sha256::digest(key.as_bytes())))
}

/// The id of an event.
pub(super) fn event_id(scope: &Scope, id: Uuid) -> String {
    format!("{}{id}", scope.id_prefix())
}

/// The UUID at the end of an id.
pub(super) fn uuid_of(record: &Record) -> Result<Uuid, HookError> {
    let last = record.id.rsplit('/').next().unwrap_or_default();
    last.parse().map_err(|_| unreadable(record, "its id is no UUID".to_owned()))
}

/// A write of something that has a JSON form.
pub(super) fn put<T: Serialize>(
    (kind, id): (&str, String),
    expect: Expect,
    time_to_live: Option<Duration>,
    value: &T,
) -> Result<RecordWrite, HookError> {
    let body = serde_json::to_vec(&Stored { format: FORMAT, value })
        .map_err(|error| HookError::invalid("hook", format!("it has no JSON form: {error}")))?;
    Ok(put_bytes((kind, id), expect, time_to_live, body.into()))
}

/// A write of bytes.
pub(super) fn put_bytes(
    (kind, id): (&str, String),
    expect: Expect,
    time_to_live: Option<Duration>,
    body: Bytes,
) -> RecordWrite {
    RecordWrite::Put { kind: kind.to_owned(), id, expect, due_at_ms: None, time_to_live, body }
}

/// Reads what [`put`] wrote.
pub(super) fn decode<T: DeserializeOwned>(record: &Record) -> Result<T, HookError> {
    let stored: Stored<T> =
        serde_json::from_slice(&record.body).map_err(|error| unreadable(record, error.to_string()))?;
    if stored.format != FORMAT {
        let reason = format!("its format is {}, this version reads {FORMAT}", stored.format);
        return Err(unreadable(record, reason));
    }
    Ok(stored.value)
}

fn unreadable(record: &Record, reason: String) -> HookError {
    HookError::Unreadable { what: format!("the record {} {:?}", record.kind, record.id), reason }
}
