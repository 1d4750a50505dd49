//! How events and work items are stored: one format byte, then MessagePack with field names.
//!
//! The form is self-describing, so a newer build can read what an older one wrote and add fields. The byte tells a
//! future build that changes the form altogether what it has before it.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// MessagePack with field names.
const FORMAT_MESSAGEPACK: u8 = 1;

/// Encodes a stored value.
pub(crate) fn encode<T: Serialize>(value: &T) -> Bytes {
    let mut bytes = Vec::with_capacity(128);
    bytes.push(FORMAT_MESSAGEPACK);
    rmp_serde::encode::write_named(&mut bytes, value)
        .expect("stored types are plain data and a Vec takes any number of bytes");
    Bytes::from(bytes)
}

/// Decodes a stored value; the error says why it cannot be read.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match bytes.split_first() {
        Some((&FORMAT_MESSAGEPACK, body)) => rmp_serde::from_slice(body).map_err(|error| error.to_string()),
        Some((format, _)) => Err(format!("unknown format {format}; a newer build may have written it")),
        None => Err("it is empty".to_owned()),
    }
}
