//! Messages as they go over the wire.

use std::collections::BTreeMap;

use fe2o3_amqp::types::messaging::annotations::OwnedKey;
use fe2o3_amqp::types::messaging::{
    ApplicationProperties, Body, Data, Header, Message as WireMessage, MessageAnnotations, MessageId,
    Properties,
};
use fe2o3_amqp::types::primitives::{SimpleValue, Symbol, Timestamp as WireTime, Value};
use jiff::Timestamp;
use segno::clock::duration_ms;
use sha2::{Digest as _, Sha256};

use segno_runbook::bus::{JSON, Message};

/// Body of a received message.
pub(super) type WireBody = Body<Value>;

/// When Service Bus is to deliver a message, and when it has taken it.
const SCHEDULED: &str = "x-opt-scheduled-enqueue-time";
const ENQUEUED: &str = "x-opt-enqueued-time";
/// When the lock of a delivery ends.
const LOCKED_UNTIL: &str = "x-opt-locked-until";

/// A message that was received.
pub(super) struct FromWire {
    pub(super) message: Message,
    pub(super) delivery_count: u32,
    pub(super) enqueued_at: Timestamp,
    pub(super) locked_until_ms: Option<u64>,
}

/// A message to send.
pub(super) fn to_wire(message: &Message) -> WireMessage<Data> {
    let mut properties = Properties::builder()
        .message_id(message.message_id.clone())
        .content_type(message.content_type.as_str())
        .build();
    properties.subject.clone_from(&message.subject);
    let mut header = Header { durable: true, ..Header::default() };
    header.ttl = message.time_to_live.map(|life| u32::try_from(duration_ms(life)).unwrap_or(u32::MAX));
    let mut of_application = ApplicationProperties::builder();
    for (name, value) in &message.properties {
        of_application = of_application.insert(name.as_str(), value.as_str());
    }
    let builder = WireMessage::builder()
        .header(header)
        .properties(properties)
        .application_properties(of_application.build());
    let builder = match message.scheduled_at {
        None => builder,
        Some(at) => {
            let at = Value::Timestamp(WireTime::from_milliseconds(at.as_millisecond()));
            builder.message_annotations(
                MessageAnnotations::builder().insert(Symbol::from(SCHEDULED), at).build(),
            )
        }
    };
    builder.data(message.body.as_bytes()).build()
}

/// Reads a message. Nothing in it can make this fail: what is no text becomes what cannot be parsed.
pub(super) fn from_wire(wire: WireMessage<WireBody>, now_ms: u64) -> FromWire {
    let body = text(wire.body);
    let properties = wire.properties.unwrap_or_default();
    let message_id = properties.message_id.map_or_else(|| digest(&body), |id| id_text(&id));
    let content_type = properties.content_type.map(Symbol::into_inner).unwrap_or_else(|| JSON.to_owned());
    let of_application: BTreeMap<String, String> = wire
        .application_properties
        .map(|properties| properties.0.into_iter().filter_map(property).collect())
        .unwrap_or_default();
    let annotations = wire.message_annotations.unwrap_or_default();
    let time = |name: &str| match annotations.0.get(&OwnedKey::Symbol(Symbol::from(name))) {
        Some(Value::Timestamp(at)) => Some(at.milliseconds()),
        _ => None,
    };
    let enqueued = time(ENQUEUED).and_then(|at_ms| Timestamp::from_millisecond(at_ms).ok());
    FromWire {
        message: Message {
            message_id,
            content_type,
            subject: properties.subject,
            properties: of_application,
            body,
            time_to_live: None,
            scheduled_at: None,
        },
        delivery_count: wire.header.map_or(0, |header| header.delivery_count).saturating_add(1),
        enqueued_at: enqueued.unwrap_or_else(|| segno_runbook::drive::timestamp(now_ms)),
        locked_until_ms: time(LOCKED_UNTIL).and_then(|at_ms| u64::try_from(at_ms).ok()),
    }
}

fn text(body: WireBody) -> String {
    match body {
        Body::Data(parts) => {
            let bytes: Vec<u8> = parts.into_iter().flat_map(|part| part.0.into_vec()).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        Body::Value(value) => match value.0 {
            Value::String(text) => text,
            Value::Binary(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            _ => String::new(),
        },
        Body::Sequence(_) | Body::Empty => String::new(),
    }
}

fn id_text(id: &MessageId) -> String {
    match id {
        MessageId::Ulong(number) => number.to_string(),
        MessageId::Uuid(uuid) => hex(uuid.as_inner()),
        MessageId::Binary(bytes) => hex(bytes),
        MessageId::String(text) => text.clone(),
    }
}

fn property((name, value): (String, SimpleValue)) -> Option<(String, String)> {
    let text = match value {
        SimpleValue::String(text) => text,
        SimpleValue::Symbol(symbol) => symbol.into_inner(),
        SimpleValue::Bool(value) => value.to_string(),
        SimpleValue::Int(value) => value.to_string(),
        SimpleValue::Long(value) => value.to_string(),
        SimpleValue::Uint(value) => value.to_string(),
        SimpleValue::Ulong(value) => value.to_string(),
        _ => return None,
    };
    Some((name, text))
}

/// The id of a message that has none: the same text is the same message.
fn digest(body: &str) -> String {
    format!("sha256-{}", hex(&Sha256::digest(body.as_bytes())))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
