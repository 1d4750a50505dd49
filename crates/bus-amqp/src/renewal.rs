//! Renewal of locks at Service Bus: requests to the management node of a subscription.

use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::definitions::DeliveryTag;
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body, Message as WireMessage, Properties,
};
use fe2o3_amqp::types::primitives::{Array, OrderedMap, SimpleValue, Uuid, Value};
use fe2o3_amqp::{Receiver, Sender};

use segno_runbook::bus::BusError;

use crate::connect::failed;

/// The operation.
const RENEW: &str = "com.microsoft:renew-lock";
/// Its argument: the tokens of the locks.
const TOKENS: &str = "lock-tokens";
/// Its result: the new ends of the locks.
const EXPIRATIONS: &str = "expirations";
/// The lock has ended.
const GONE: i32 = 410;

/// A link to the management node of a subscription, and one for its answers.
pub(super) struct Management {
    requests: Sender,
    answers: Receiver,
    reply_to: String,
    asked: u64,
}

impl Management {
    /// Opens the links. `number` is another one for each session.
    pub(super) async fn attach(
        session: &mut SessionHandle<()>,
        address: &str,
        number: u64,
    ) -> Result<Self, BusError> {
        let no_node = |error: &dyn std::fmt::Display| failed("locks cannot be renewed", error);
        let reply_to = format!("segno-renewal-{number}");
        let requests = Sender::attach(session, format!("{reply_to}-requests"), address).await;
        let requests = requests.map_err(|error| no_node(&error))?;
        let answers = Receiver::builder().name(format!("{reply_to}-answers")).source(address);
        let answers = answers.target(reply_to.as_str()).attach(session).await;
        let answers = answers.map_err(|error| no_node(&error))?;
        Ok(Management { requests, answers, reply_to, asked: 0 })
    }

    /// Renews a lock. Returns its new end in Unix milliseconds; `None` if it has ended.
    pub(super) async fn renew(&mut self, tag: &DeliveryTag) -> Result<Option<u64>, BusError> {
        let no_answer = |error: &dyn std::fmt::Display| failed("a lock could not be renewed", error);
        self.asked += 1;
        let properties = Properties::builder().message_id(self.asked).reply_to(self.reply_to.as_str());
        let mut body: OrderedMap<String, Array<Uuid>> = OrderedMap::new();
        body.insert(TOKENS.to_owned(), Array::from(vec![Uuid::from(token(tag))]));
        let request = WireMessage::builder()
            .properties(properties.build())
            .application_properties(ApplicationProperties::builder().insert("operation", RENEW).build())
            .body(AmqpValue(body))
            .build();
        self.requests.send(request).await.map_err(|error| no_answer(&error))?;
        let answer = self.answers.recv::<Body<Value>>().await.map_err(|error| no_answer(&error))?;
        self.answers.accept(&answer).await.map_err(|error| no_answer(&error))?;
        let properties = answer.message().application_properties.as_ref();
        let status = |name: &str| match properties.and_then(|properties| properties.get(name)) {
            Some(SimpleValue::Int(status)) => Some(*status),
            _ => None,
        };
        match status("statusCode").or_else(|| status("status-code")) {
            Some(200 | 202) => match expiration(answer.body()) {
                Some(until_ms) => Ok(Some(until_ms)),
                None => Err(no_answer(&"the answer has no time")),
            },
            Some(GONE) => Ok(None),
            other => Err(no_answer(&format!("the broker answered with the status {other:?}"))),
        }
    }
}

/// The token of a lock is its delivery tag, as .NET writes the bytes of a GUID: the first three of
/// its five groups are in little-endian order.
fn token(tag: &DeliveryTag) -> [u8; 16] {
    let mut bytes = [0_u8; 16];
    let tag = &tag[tag.len().saturating_sub(16)..];
    bytes[16 - tag.len()..].copy_from_slice(tag);
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    bytes
}

/// The first time of an answer.
fn expiration(body: &Body<Value>) -> Option<u64> {
    let Body::Value(AmqpValue(Value::Map(map))) = body else { return None };
    let found = map.get(&Value::String(EXPIRATIONS.to_owned()))?;
    let first = match found {
        Value::Array(times) => times.0.first(),
        Value::List(times) => times.first(),
        _ => None,
    };
    match first {
        Some(Value::Timestamp(at)) => u64::try_from(at.milliseconds()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_tag_is_the_token_with_three_groups_reversed() {
        let tag: Vec<u8> = (0..16).collect();
        let expected = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        assert_eq!(token(&DeliveryTag::from(tag)), expected);
        assert_eq!(token(&DeliveryTag::from(vec![1, 2]))[14..], [1, 2]);
    }
}
