//! How events and work items are stored: one format byte, then MessagePack with field names.
//!
//! The form is self-describing, so a newer build can read what an older one wrote and add fields. The byte tells a
//! future build that changes the form altogether what it has before it.

use std::cell::Cell;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// MessagePack with field names.
const FORMAT_MESSAGEPACK: u8 = 1;

/// A longer buffer is not used again, so that one large value does not hold its memory for ever.
const LONGEST_KEPT_BYTES: usize = 64 * 1024;

thread_local! {
    /// Where values are encoded before it is known how much memory they need.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Encodes something in a buffer that is used again and again.
pub(crate) fn with_scratch<T>(encode: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut scratch = SCRATCH.take();
    scratch.clear();
    let encoded = encode(&mut scratch);
    if scratch.capacity() <= LONGEST_KEPT_BYTES {
        SCRATCH.set(scratch);
    }
    encoded
}

/// Encodes a stored value.
pub(crate) fn encode<T: Serialize>(value: &T) -> Bytes {
    with_scratch(|scratch| {
        scratch.push(FORMAT_MESSAGEPACK);
        rmp_serde::encode::write_named(scratch, value)
            .expect("stored types are plain data and a Vec takes any number of bytes");
        Bytes::copy_from_slice(scratch)
    })
}

/// Decodes a stored value; the error is the reason why it is unreadable.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    match bytes.split_first() {
        Some((&FORMAT_MESSAGEPACK, body)) => rmp_serde::from_slice(body).map_err(|error| error.to_string()),
        Some((format, _)) => Err(format!("unknown format {format}; a newer build may have written it")),
        None => Err("it is empty".to_owned()),
    }
}
