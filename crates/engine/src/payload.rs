//! User data at rest: JSON text of bounded size that every reader can show.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeOwned, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use smol_str::SmolStr;

use crate::codec;
use crate::error::{Code, Error};
use crate::json_rule::{self, Broken};
use crate::limits::{MAX_ENVELOPE_BYTES, MAX_ENVELOPE_DEPTH, MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH};

thread_local! {
    /// Whether the value that is being encoded has payloads inside, which may be as deep and as large as a payload may be.
    static ENCLOSES: Cell<bool> = const { Cell::new(false) };
}

/// JSON text. Cheap to clone, and as long as it is very short it takes no memory of its own; opaque to stores.
///
/// Whatever comes in by [`Payload::encode`] and [`Payload::from_json`] keeps one rule: at most [`MAX_PAYLOAD_BYTES`] and
/// [`MAX_PAYLOAD_DEPTH`] levels, numbers that are finite as a double, surrogates in pairs. So every reader can show it. Digits
/// of numbers and the order of names stay as they are written. What was stored before there was a rule is read as it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(SmolStr);

impl Payload {
    /// Encodes a value. Payloads inside it are taken as they are; the value may add [`MAX_ENVELOPE_DEPTH`] levels and
    /// [`MAX_ENVELOPE_BYTES`] to theirs.
    ///
    /// # Errors
    /// `payload-too-large` beyond [`MAX_PAYLOAD_BYTES`], `payload-too-deep` beyond [`MAX_PAYLOAD_DEPTH`], `payload-not-json`
    /// when the value has no JSON form that every reader can take.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, Error> {
        match Self::write(value)? {
            (payload, None) => Ok(payload),
            (_, Some(broken)) => Err(broken.into()),
        }
    }

    /// Encodes a value, and returns how it breaks the rule for the caller to judge.
    pub(crate) fn write<T: Serialize + ?Sized>(value: &T) -> Result<(Self, Option<Broken>), Error> {
        codec::with_scratch(|scratch| {
            ENCLOSES.set(false);
            serde_json::to_writer(&mut *scratch, value).map_err(|error| {
                Error::new(
                    Code::PayloadNotJson,
                    format!("a {} has no JSON form: {error}", std::any::type_name::<T>()),
                )
            })?;
            let text = std::str::from_utf8(scratch).expect("JSON is written as UTF-8");
            let (bytes, levels) = match ENCLOSES.get() {
                true => (MAX_BYTES_AT_REST, MAX_DEPTH_AT_REST),
                false => (MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH),
            };
            check_size(text, bytes)?;
            Ok((Payload(text.into()), json_rule::check(text, levels).err()))
        })
    }

    /// Takes JSON text from outside.
    ///
    /// # Errors
    /// `payload-not-json` when it does not parse or not every reader could take it, `payload-too-large` beyond
    /// [`MAX_PAYLOAD_BYTES`], `payload-too-deep` beyond [`MAX_PAYLOAD_DEPTH`].
    pub fn from_json(text: impl AsRef<str>) -> Result<Self, Error> {
        let text = text.as_ref();
        check_size(text, MAX_PAYLOAD_BYTES)?;
        let payload = Self::stored(text)?;
        json_rule::check(text, MAX_PAYLOAD_DEPTH)?;
        Ok(payload)
    }

    /// Takes JSON text from the store, where there may be some from before there was a rule.
    pub(crate) fn stored(text: &str) -> Result<Self, Error> {
        serde_json::from_str::<&RawValue>(text)
            .map_err(|error| Error::new(Code::PayloadNotJson, format!("the text is not JSON: {error}")))?;
        Ok(Payload(text.into()))
    }

    /// Checks one that was read as part of something else, and so may break the rule.
    ///
    /// # Errors
    /// Those of [`Payload::from_json`].
    pub fn check(&self) -> Result<(), Error> {
        check_size(&self.0, MAX_PAYLOAD_BYTES)?;
        Ok(json_rule::check(&self.0, MAX_PAYLOAD_DEPTH)?)
    }

    /// Checks JSON text of any size by the rule for payloads. It may then be parsed into values.
    ///
    /// # Errors
    /// `payload-not-json`, `payload-too-deep`.
    pub fn check_text(json: &str) -> Result<(), Error> {
        Ok(json_rule::check(json, MAX_PAYLOAD_DEPTH)?)
    }

    /// Refuses JSON text, such as the body of a request, that has a name in it which the parser of this program takes for an order.
    /// It must not be parsed into values. [`Payload::from_json`] and [`Payload::check`] refuse it as well.
    ///
    /// # Errors
    /// `payload-not-json`.
    pub fn check_names(json: &[u8]) -> Result<(), Error> {
        Ok(json_rule::check_names(json)?)
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

/// Deepest nesting of what is stored.
const MAX_DEPTH_AT_REST: usize = MAX_PAYLOAD_DEPTH + MAX_ENVELOPE_DEPTH;

/// Largest text that is stored, in bytes.
const MAX_BYTES_AT_REST: usize = MAX_PAYLOAD_BYTES + MAX_ENVELOPE_BYTES;

impl From<Broken> for Error {
    fn from(broken: Broken) -> Self {
        let code = match broken {
            Broken::TooDeep { .. } => Code::PayloadTooDeep,
            Broken::NumberTooLarge { .. } | Broken::LoneSurrogate { .. } | Broken::ReservedName { .. } => {
                Code::PayloadNotJson
            }
        };
        Error::new(code, broken.to_string())
    }
}

fn check_size(text: &str, max_bytes: usize) -> Result<(), Error> {
    if text.len() <= max_bytes {
        return Ok(());
    }
    let message = format!(
        "the payload has {} bytes, the limit is {max_bytes}; store large data elsewhere and pass a reference",
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
/// its text. Reading does not check the rule: what is stored must be readable, and what is new is checked where it
/// comes in.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            ENCLOSES.set(true);
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn nested(levels: usize) -> Value {
        (1..levels).fold(json!([]), |inner, _| json!([inner]))
    }

    #[test]
    fn every_way_in_has_the_same_limit_of_nesting() {
        assert_eq!(Payload::encode(&nested(100)).unwrap().as_str(), nested(100).to_string());
        assert_eq!(Payload::encode(&nested(101)).unwrap_err().code(), Code::PayloadTooDeep);
        Payload::from_json(nested(100).to_string()).unwrap().check().unwrap();
        assert_eq!(Payload::from_json(nested(101).to_string()).unwrap_err().code(), Code::PayloadTooDeep);
    }

    /// What a node was given fits into what it makes of it, up to what readers take.
    #[test]
    fn a_payload_may_stand_in_a_larger_value() {
        let mut payload = Payload::from_json(nested(100).to_string()).unwrap();
        for _ in 0..MAX_ENVELOPE_DEPTH {
            payload = Payload::encode(&[payload]).unwrap();
        }
        payload.decode::<Value>().unwrap();
        assert_eq!(Payload::encode(&[payload]).unwrap_err().code(), Code::PayloadTooDeep);
        assert_eq!(
            Payload::encode(&nested(101)).unwrap_err().code(),
            Code::PayloadTooDeep,
            "nothing is left behind"
        );
    }

    #[test]
    fn the_limit_of_size_is_that_of_the_payload_inside_and_a_little_around_it() {
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        let largest = Payload::from_json(text(MAX_PAYLOAD_BYTES)).unwrap();
        assert_eq!(Payload::encode(&largest).unwrap(), largest);
        let over = Payload::from_json(text(MAX_PAYLOAD_BYTES + 1)).unwrap_err();
        assert_eq!(over.code(), Code::PayloadTooLarge);
        assert_eq!(Payload::encode(&"x".repeat(MAX_PAYLOAD_BYTES - 1)).unwrap_err().code(), over.code());
        let around = |bytes: usize| Payload::encode(&("x".repeat(bytes - "[\"\",]".len()), &largest));
        assert_eq!(around(MAX_ENVELOPE_BYTES).unwrap().as_str().len(), MAX_BYTES_AT_REST);
        assert_eq!(around(MAX_ENVELOPE_BYTES + 1).unwrap_err().code(), over.code());
    }

    #[test]
    fn text_is_kept_digit_by_digit_and_checked_also_inside_a_value() {
        let text = r#"{"a":123456789012345678901234567890,"a":1.50,"z":"\u0000\ud83d\ude00"}"#;
        let payload = Payload::from_json(text).unwrap();
        assert_eq!(payload.as_str(), text);
        let inside = Payload::encode(&(1, &payload)).unwrap();
        assert_eq!(inside.as_str(), format!("[1,{text}]"));
        let stored: Payload = serde_json::from_str("[1e400]").unwrap();
        assert_eq!(Payload::encode(&[stored]).unwrap_err().code(), Code::PayloadNotJson);
    }
}
