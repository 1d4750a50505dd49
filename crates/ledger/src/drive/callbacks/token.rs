//! Task tokens: `<payload>.<mac>`, both in base64url. The payload names the attempt and the expiry, the MAC is HMAC-SHA256 under a
//! key that all nodes of a store share.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// Longest token in bytes: names of tenants, runs and tasks are bounded.
const MAX_TOKEN_BYTES: usize = 4 * 1024;

/// What the key is derived for, so that it is none of another purpose.
const PURPOSE: &[u8] = b"segno task token v1";

/// What a token is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskToken {
    /// The tenant.
    pub tenant: String,
    /// The workspace: our namespace.
    pub workspace: String,
    /// The run.
    pub run_id: String,
    /// The task.
    pub task_key: String,
    /// The number of the attempt.
    pub attempt: u32,
    /// The id of the attempt.
    pub attempt_id: String,
    /// The end of its validity, in Unix milliseconds.
    pub expires_at_ms: u64,
}

impl TaskToken {
    /// Whose task it is; nothing when the names are none.
    pub fn scope(&self) -> Option<Scope> {
        Scope::new(&self.workspace, &self.tenant).ok()
    }
}

/// A text that is no token of this store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidToken;

/// Signs and verifies tokens. Cheap to clone.
#[derive(Clone)]
pub struct TaskTokens {
    key: [u8; 32],
}

impl TaskTokens {
    /// The tokens of a store, whose secret is any that all its nodes share.
    pub fn new(store_secret: &[u8]) -> Self {
        let mut mac = mac_of(store_secret);
        mac.update(PURPOSE);
        TaskTokens { key: mac.finalize().into_bytes().into() }
    }

    /// A token as text.
    pub fn sign(&self, token: &TaskToken) -> String {
        let payload = serde_json::to_vec(token).expect("a token has texts and numbers");
        let mut mac = mac_of(&self.key);
        mac.update(&payload);
        let mac = mac.finalize().into_bytes();
        format!("{}.{}", URL_SAFE_NO_PAD.encode(payload), URL_SAFE_NO_PAD.encode(mac))
    }

    /// The token that a text stands for, also when it has expired.
    ///
    /// # Errors
    /// [`InvalidToken`] for a text that was not signed by this store.
    pub fn verify(&self, text: &str) -> Result<TaskToken, InvalidToken> {
        self.verified(text).ok_or(InvalidToken)
    }

    fn verified(&self, text: &str) -> Option<TaskToken> {
        let (payload, signature) = text.split_once('.').filter(|_| text.len() <= MAX_TOKEN_BYTES)?;
        let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let mut mac = mac_of(&self.key);
        mac.update(&payload);
        // This compares in constant time.
        mac.verify_slice(&signature).ok()?;
        serde_json::from_slice(&payload).ok()
    }
}

fn mac_of(key: &[u8]) -> Hmac<Sha256> {
    Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> TaskToken {
        TaskToken {
            tenant: "acme".to_owned(),
            workspace: "prod".to_owned(),
            run_id: "run_1".to_owned(),
            task_key: "extract".to_owned(),
            attempt: 2,
            attempt_id: "att_1".to_owned(),
            expires_at_ms: 5,
        }
    }

    #[test]
    fn nodes_of_a_store_verify_each_others_tokens_and_no_others() {
        let (one, two) = (TaskTokens::new(b"secret"), TaskTokens::new(b"secret"));
        let text = one.sign(&token());
        assert_eq!(two.verify(&text), Ok(token()));
        assert_eq!(TaskTokens::new(b"other").verify(&text), Err(InvalidToken));
    }

    #[test]
    fn no_changed_byte_is_accepted() {
        let tokens = TaskTokens::new(b"secret");
        let text = tokens.sign(&token());
        for place in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(tokens.verify(&changed), Err(InvalidToken), "{place}");
        }
        for text in ["", ".", "a.b", &text[1..], &format!("{text}="), &"x.".repeat(20_000)] {
            assert_eq!(tokens.verify(text), Err(InvalidToken));
        }
    }
}
