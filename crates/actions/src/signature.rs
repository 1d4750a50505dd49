//! HMAC-SHA256, as webhooks are signed: of what is sent, and of what comes in.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What a secret of Standard Webhooks begins with whose rest is the key in base64.
const KEY_PREFIX: &str = "whsec_";

/// Length of a code.
pub(crate) const MAC_BYTES: usize = 32;

/// The code of some parts, one after the other. Comparing with it takes the same time however much is right.
pub(crate) fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac
}

/// The key of a secret of Standard Webhooks; `None` when it begins with `whsec_` and the rest is not base64.
pub(crate) fn standard_key(secret: &str) -> Option<Vec<u8>> {
    match secret.strip_prefix(KEY_PREFIX) {
        Some(encoded) => STANDARD.decode(encoded).ok(),
        None => Some(secret.as_bytes().to_vec()),
    }
}

/// The value of `webhook-signature` for a message of Standard Webhooks.
pub(crate) fn standard(key: &[u8], id: &str, timestamp_s: u64, body: &[u8]) -> String {
    let mac = mac(key, &[format!("{id}.{timestamp_s}.").as_bytes(), body]);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// Bytes as lowercase hexadecimal text.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes of hexadecimal text; `None` when it is none.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// A code of HMAC-SHA256 in hexadecimal; `None` when it is not 64 digits.
pub(crate) fn mac_from_hex(text: &str) -> Option<Vec<u8>> {
    from_hex(text).filter(|bytes| bytes.len() == MAC_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_goes_there_and_back() {
        assert_eq!(from_hex(&to_hex(&[0, 15, 255])), Some(vec![0, 15, 255]));
        for bad in ["0", "0g", "+1", "äö", " 0"] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
    }
}
