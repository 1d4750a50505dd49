//! Encoding what orchestration code hands to the engine, so that a replay decides as the first run did.
//!
//! Histories from before there was a rule about payloads hold commands that break it. Refusing them now would make the
//! replay diverge from the record. So a refusal is recorded as a patch of the engine's own: a history that has none was
//! written without the rule, and is replayed without it.

use serde::Serialize;

use super::execution::Shared;
use crate::error::Error;
use crate::payload::Payload;

/// The patch that an execution records when it first refuses a payload.
const PAYLOAD_RULE: &str = "segno.payload-rule";

impl Shared {
    /// Encodes a value of the code.
    pub(crate) fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Payload, Error> {
        match Payload::write(value)? {
            (_, Some(broken)) if self.journal().patched(PAYLOAD_RULE) => Err(broken.into()),
            (payload, _) => Ok(payload),
        }
    }
}
