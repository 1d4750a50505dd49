//! The envelope of an event, and batches of them as bytes: one object of the log is one JSON array.
//!
//! An event of an unknown type, or of a known type that this version cannot read, keeps its bytes
//! and is skipped. So an older node may fold and rewrite a log that a newer one has written to.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::EventData;
use crate::ids::Ulid;

/// An event as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Envelope {
    /// Its id; the order of ids is the order of events.
    pub event_id: Ulid,
    /// Its type in PascalCase.
    pub event_type: Arc<str>,
    /// The version of the type.
    pub event_version: u32,
    /// When it was written, by the writer's clock. Metadata: it decides nothing.
    pub timestamp: Timestamp,
    /// What wrote it.
    pub source: Arc<str>,
    /// The tenant.
    pub tenant_id: Arc<str>,
    /// The workspace: our namespace.
    pub workspace_id: Arc<str>,
    /// Two events with one key are one fact.
    pub idempotency_key: Arc<str>,
    /// The run that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<Arc<str>>,
    /// The event that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causation_id: Option<Arc<str>>,
    /// What it says.
    pub data: Data,
}

/// The parts of an envelope that do not follow from the event itself.
#[derive(Clone, Debug)]
pub struct Header {
    /// The tenant.
    pub tenant_id: Arc<str>,
    /// The workspace.
    pub workspace_id: Arc<str>,
    /// When it is written.
    pub timestamp: Timestamp,
}

impl Envelope {
    /// The version of all event types so far.
    const VERSION: u32 = 1;

    /// The envelope of an event.
    pub fn new(header: &Header, event_id: Ulid, data: impl Into<EventData>) -> Self {
        let data = data.into();
        Envelope {
            event_id,
            event_type: data.event_type().into(),
            event_version: Envelope::VERSION,
            timestamp: header.timestamp,
            source: format!("segno-ledger/{}/{}", header.tenant_id, header.workspace_id).into(),
            tenant_id: Arc::clone(&header.tenant_id),
            workspace_id: Arc::clone(&header.workspace_id),
            idempotency_key: data.idempotency_key().into(),
            correlation_id: data.run_id().cloned(),
            causation_id: None,
            data: Data::Read(data),
        }
    }

    /// The bytes of a batch, as one object of the log.
    pub fn encode_batch(batch: &[Envelope]) -> Vec<u8> {
        serde_json::to_vec(batch).expect("envelopes have text keys only, and writing to memory does not fail")
    }

    /// The events of an object of the log. Events of unknown types are kept.
    pub fn decode_batch(bytes: &[u8]) -> Result<Vec<Envelope>, InvalidBatch> {
        serde_json::from_slice(bytes).map_err(|error| InvalidBatch(error.to_string()))
    }

    /// What it says, if this version can read it.
    pub fn event(&self) -> Option<&EventData> {
        match &self.data {
            Data::Read(data) => Some(data),
            Data::Unread(_) => None,
        }
    }

    /// The run that it is about: as the event says, for events that this version cannot read as the
    /// envelope says.
    pub fn run_id(&self) -> Option<&Arc<str>> {
        match &self.data {
            Data::Read(data) => data.run_id().or(self.correlation_id.as_ref()),
            Data::Unread(_) => self.correlation_id.as_ref(),
        }
    }
}

/// Bytes that are not a batch of envelopes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a batch of events: {0}")]
pub struct InvalidBatch(pub String);

/// What an event says.
#[derive(Clone, Debug)]
pub enum Data {
    /// An event of this version.
    Read(EventData),
    /// One that is skipped.
    Unread(Unread),
}

/// An event that this version cannot read: kept byte by byte, and skipped by the fold.
#[derive(Clone, Debug)]
pub struct Unread {
    /// Its JSON.
    pub json: Box<RawValue>,
    /// Why it cannot be read.
    pub problem: String,
}

impl Serialize for Data {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Data::Read(data) => data.serialize(serializer),
            Data::Unread(unread) => unread.json.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?;
        Ok(match EventData::read(json.get()) {
            Ok(data) => Data::Read(data),
            Err(error) => Data::Unread(Unread { json: json.to_owned(), problem: error.to_string() }),
        })
    }
}
