//! What a sender does: the headers that make a request believable. For tests of a route, and for senders in Rust.

use hmac::Mac;

use super::error::HookError;
use super::verification::{Scheme, Verification};
use super::verify::{
    GITHUB_SIGNATURE, STANDARD_ID, STANDARD_SIGNATURE, STANDARD_TIMESTAMP, STRIPE_SIGNATURE,
};
use crate::signature::{mac, standard, standard_key, to_hex};

/// The headers that a sender adds so that a route believes it. `id` names the message, where the scheme has a name for it.
///
/// # Errors
/// `invalid-hook` when the secret begins with `whsec_`, the scheme is that of Standard Webhooks, and the rest is not base64.
pub fn signed_headers(
    verification: &Verification,
    secret: &str,
    id: &str,
    now_s: u64,
    body: &[u8],
) -> Result<Vec<(String, String)>, HookError> {
    let hex = |parts: &[&[u8]]| to_hex(&mac(secret.as_bytes(), parts).finalize().into_bytes());
    let headers = match verification {
        Verification::None => Vec::new(),
        Verification::By(Scheme::SharedSecret { header, .. }) => vec![(header.as_str(), secret.to_owned())],
        Verification::By(Scheme::Github { .. }) => {
            vec![(GITHUB_SIGNATURE, format!("sha256={}", hex(&[body])))]
        }
        Verification::By(Scheme::Stripe { .. }) => {
            let signature = hex(&[now_s.to_string().as_bytes(), b".", body]);
            vec![(STRIPE_SIGNATURE, format!("t={now_s},v1={signature}"))]
        }
        Verification::By(Scheme::StandardWebhooks { .. }) => {
            let key = standard_key(secret)
                .ok_or_else(|| HookError::invalid("secret", "what follows whsec_ is not base64"))?;
            vec![
                (STANDARD_ID, id.to_owned()),
                (STANDARD_TIMESTAMP, now_s.to_string()),
                (STANDARD_SIGNATURE, standard(&key, id, now_s, body)),
            ]
        }
    };
    Ok(headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
