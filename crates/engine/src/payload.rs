//! User data at rest: JSON text of bounded size.

use std::fmt;

use serde::de::{DeserializeOwned, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use smol_str::SmolStr;

use crate::codec;
use crate::error::{Code, Error};
use crate::limits::MAX_PAYLOAD_BYTES;

/// JSON text. Cheap to clone, and as long as it is very short it takes no memory of its own; opaque to stores.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(SmolStr);

impl Payload {
    /// Encodes a value.
    ///
    /// # Errors
    /// `payload-too-large` beyond [`MAX_PAYLOAD_BYTES`], `payload-not-json` when the value has no JSON form.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        codec::with_scratch(|scratch| {
            serde_json::to_writer(&mut *scratch, value).map_err(|error| {
                Error::new(
                    Code::PayloadNotJson,
                    format!("a {} has no JSON form: {error}", std::any::type_name::<T>()),
                )
            })?;
            Self::checked(std::str::from_utf8(scratch).expect("JSON is written as UTF-8"))
        })
    }

    /// Takes JSON text from outside.
    ///
    /// # Errors
    /// `payload-not-json` when it does not parse, `payload-too-large` beyond [`MAX_PAYLOAD_BYTES`].
    pub fn from_json(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        serde_json::from_str::<&RawValue>(&text)
            .map_err(|error| Error::new(Code::PayloadNotJson, format!("the text is not JSON: {error}")))?;
        Self::checked(&text)
    }

    fn checked(text: &str) -> Result<Self, Error> {
        check_size(text)?;
        Ok(Payload(text.into()))
    }

    /// One that was read as part of something else may be of any size.
    pub(crate) fn check_size(&self) -> Result<(), Error> {
        check_size(&self.0)
    }

    /// The JSON `null`.
    pub fn null() -> Self {
        Payload("null".into())
    }

    /// Decodes into a type.
    ///
    /// # Errors
    /// `payload-mismatch` when the JSON does not fit.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_str(&self.0).map_err(|error| {
            Error::new(
                Code::PayloadMismatch,
                format!("the stored JSON does not fit {}: {error}", std::any::type_name::<T>()),
            )
        })
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_size(text: &str) -> Result<(), Error> {
    if text.len() <= MAX_PAYLOAD_BYTES {
        return Ok(());
    }
    let message = format!(
        "the payload has {} bytes, the limit is {MAX_PAYLOAD_BYTES}; store large data elsewhere and pass a reference",
        text.len()
    );
    Err(Error::new(Code::PayloadTooLarge, message))
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As a value in a user's type, a payload is the JSON itself, passed through untouched. In stored (binary) form it is
/// its text.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
            raw.serialize(serializer)
        } else {
            serializer.serialize_str(&self.0)
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let raw = Box::<RawValue>::deserialize(deserializer)?;
            Ok(Payload(raw.get().into()))
        } else {
            deserializer.deserialize_str(TextVisitor)
        }
    }
}

/// Takes text as it lies in the input, which saves memory in between.
struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Payload;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Payload, E> {
        Ok(Payload(text.into()))
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Payload, E> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.visit_str(text),
            Err(_) => Err(E::invalid_value(Unexpected::Bytes(bytes), &self)),
        }
    }
}
