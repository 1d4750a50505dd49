//! Whether a request comes from whom it should. Pure, over the raw bytes, and in constant time.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::Mac;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::incoming::Incoming;
use super::limits::MAX_SIGNATURES;
use super::verification::{Scheme, Verification};
use crate::functions::{HumanDuration, Secret};
use crate::signature::{MAC_BYTES, mac, mac_from_hex, standard_key};

/// The header that GitHub signs in.
pub(super) const GITHUB_SIGNATURE: &str = "x-hub-signature-256";
/// The header that Stripe signs in.
pub(super) const STRIPE_SIGNATURE: &str = "stripe-signature";
/// The headers of Standard Webhooks.
pub(super) const STANDARD_ID: &str = "webhook-id";
pub(super) const STANDARD_TIMESTAMP: &str = "webhook-timestamp";
pub(super) const STANDARD_SIGNATURE: &str = "webhook-signature";

/// Reasons that depend on the secrets of the route, not on the form of the request.
const WRONG_SIGNATURE: &str = "wrong_signature";
const WRONG_SECRET: &str = "wrong_secret";

/// Why a request could not be verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unverified {
    /// A short name, for metrics and events.
    pub reason: &'static str,
    /// What is wrong, for the sender. It says nothing about the secret.
    pub detail: String,
}

impl Unverified {
    pub(super) fn missing(detail: impl Into<String>) -> Self {
        Unverified { reason: "missing_signature", detail: detail.into() }
    }

    fn malformed(detail: impl Into<String>) -> Self {
        Unverified { reason: "malformed_signature", detail: detail.into() }
    }

    /// Whether another secret than those that were tried might have verified the request.
    pub(super) fn depends_on_secrets(&self) -> bool {
        matches!(self.reason, WRONG_SIGNATURE | WRONG_SECRET)
    }

    fn wrong() -> Self {
        let detail = "the signature is not that of the body with any secret of this route";
        Unverified { reason: WRONG_SIGNATURE, detail: detail.to_owned() }
    }
}

impl Verification {
    /// Whether a request comes from whom it should, at this time.
    ///
    /// # Errors
    /// Says what is missing or wrong.
    pub(super) fn verify(
        &self,
        secrets: &[Secret],
        incoming: &Incoming,
        now_s: u64,
    ) -> Result<(), Unverified> {
        match self {
            Verification::None => Ok(()),
            Verification::By(Scheme::SharedSecret { header, .. }) => shared_secret(header, secrets, incoming),
            Verification::By(Scheme::Github { .. }) => github(secrets, incoming),
            Verification::By(Scheme::Stripe { tolerance, .. }) => {
                stripe(secrets, incoming, *tolerance, now_s)
            }
            Verification::By(Scheme::StandardWebhooks { tolerance, .. }) => {
                standard_webhooks(secrets, incoming, *tolerance, now_s)
            }
        }
    }
}

fn shared_secret(header: &str, secrets: &[Secret], incoming: &Incoming) -> Result<(), Unverified> {
    // Hashes have one length, so that not even the length of the secret shows.
    let given = Sha256::digest(incoming.headers.one(header)?.as_bytes());
    let matches = |secret: &Secret| bool::from(Sha256::digest(secret.expose().as_bytes()).ct_eq(&given));
    if any(secrets, matches) {
        return Ok(());
    }
    let detail = format!("the header {header} does not have a secret of this route");
    Err(Unverified { reason: WRONG_SECRET, detail })
}

fn github(secrets: &[Secret], incoming: &Incoming) -> Result<(), Unverified> {
    let header = incoming.headers.one(GITHUB_SIGNATURE)?;
    let signature = header.strip_prefix("sha256=").and_then(mac_from_hex).ok_or_else(|| {
        Unverified::malformed(format!("{GITHUB_SIGNATURE} must be sha256= and 64 hexadecimal digits"))
    })?;
    let parts: [&[u8]; 1] = [&incoming.body];
    signed(any(secrets, |secret| is_signed(secret.expose().as_bytes(), &parts, &signature)))
}

fn stripe(
    secrets: &[Secret],
    incoming: &Incoming,
    tolerance: HumanDuration,
    now_s: u64,
) -> Result<(), Unverified> {
    let header = incoming.headers.one(STRIPE_SIGNATURE)?;
    let malformed = || {
        Unverified::malformed(format!("{STRIPE_SIGNATURE} must be t=<seconds>,v1=<64 hexadecimal digits>"))
    };
    let (mut times, mut signatures) = (Vec::new(), Vec::new());
    for item in header.split(',') {
        match item.trim().split_once('=').ok_or_else(malformed)? {
            ("t", time) => times.push(time),
            ("v1", signature) => signatures.extend(mac_from_hex(signature)),
            // Other versions are signed with what is out of date, or is not there yet.
            _ => {}
        }
    }
    let ([time], 1..=MAX_SIGNATURES) = (times.as_slice(), signatures.len()) else { return Err(malformed()) };
    within(time, tolerance, now_s)?;
    let parts: [&[u8]; 3] = [time.as_bytes(), b".", &incoming.body];
    signed(any_signature(secrets, &signatures, |secret| Some(secret.expose().as_bytes().to_vec()), &parts))
}

fn standard_webhooks(
    secrets: &[Secret],
    incoming: &Incoming,
    tolerance: HumanDuration,
    now_s: u64,
) -> Result<(), Unverified> {
    let (id, time) = (incoming.headers.one(STANDARD_ID)?, incoming.headers.one(STANDARD_TIMESTAMP)?);
    let header = incoming.headers.one(STANDARD_SIGNATURE)?;
    let versioned = header.split_ascii_whitespace().filter_map(|item| item.strip_prefix("v1,"));
    let decoded = versioned.filter_map(|text| STANDARD.decode(text).ok());
    let signatures: Vec<Vec<u8>> = decoded.filter(|bytes| bytes.len() == MAC_BYTES).collect();
    if id.is_empty() || !(1..=MAX_SIGNATURES).contains(&signatures.len()) {
        let detail = format!("{STANDARD_SIGNATURE} must be v1,<32 bytes in base64>, several apart by spaces");
        return Err(Unverified::malformed(detail));
    }
    within(time, tolerance, now_s)?;
    let parts: [&[u8]; 5] = [id.as_bytes(), b".", time.as_bytes(), b".", &incoming.body];
    signed(any_signature(secrets, &signatures, |secret| standard_key(secret.expose()), &parts))
}

/// Whether the time of a signature is near enough, be it in the past or in the future.
fn within(time: &str, tolerance: HumanDuration, now_s: u64) -> Result<(), Unverified> {
    let is_number = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
    let Some(signed_s) = time.parse::<u64>().ok().filter(|_| is_number) else {
        return Err(Unverified::malformed("the time of the signature must be whole Unix seconds"));
    };
    let tolerance_s = tolerance.as_ms() / 1_000;
    if signed_s.abs_diff(now_s) <= tolerance_s {
        return Ok(());
    }
    let (seconds, direction) =
        (signed_s.abs_diff(now_s), if signed_s < now_s { "old" } else { "in the future" });
    let detail = format!("the signature is {seconds} s {direction}, and the route takes {tolerance_s} s");
    Err(Unverified { reason: "outside_window", detail })
}

fn any_signature(
    secrets: &[Secret],
    signatures: &[Vec<u8>],
    key: impl Fn(&Secret) -> Option<Vec<u8>>,
    parts: &[&[u8]],
) -> bool {
    any(secrets, |secret| {
        key(secret).is_some_and(|key| any(signatures, |signature| is_signed(&key, parts, signature)))
    })
}

/// Whether one fits. All are tried, so that time does not tell which.
fn any<T>(items: &[T], fits: impl Fn(&T) -> bool) -> bool {
    items.iter().fold(false, |found, item| fits(item) | found)
}

fn is_signed(key: &[u8], parts: &[&[u8]], signature: &[u8]) -> bool {
    mac(key, parts).verify_slice(signature).is_ok()
}

fn signed(is_signed: bool) -> Result<(), Unverified> {
    if is_signed { Ok(()) } else { Err(Unverified::wrong()) }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
