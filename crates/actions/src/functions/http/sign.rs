//! Signatures as Standard Webhooks have them: HMAC-SHA256 over id, time and body.

use segno::{Category, Failure};

use super::super::secret::Secret;
use crate::signature;

/// The value of `webhook-signature` for a message with this id and time.
///
/// # Errors
/// A configuration failure with the code `secret-unavailable` when the secret begins with `whsec_` and the rest is not
/// base64.
pub fn sign(secret: &Secret, id: &str, timestamp_s: u64, body: &[u8]) -> Result<String, Failure> {
    let key = signature::standard_key(secret.expose())
        .ok_or_else(|| unusable("what follows whsec_ is not base64"))?;
    Ok(signature::standard(&key, id, timestamp_s, body))
}

fn unusable(problem: &str) -> Failure {
    let message = format!("the signing secret cannot be used: {problem}");
    Failure::new(Category::Configuration, message).code("secret-unavailable")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::SecretReference;

    async fn secret(text: &str) -> Secret {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        SecretReference::File(file.path().to_owned()).resolve().await.unwrap()
    }

    /// The example of the Standard Webhooks specification.
    #[tokio::test]
    async fn the_signature_is_that_of_the_specification() {
        let body = br#"{"test": 2432232314}"#;
        let (id, timestamp_s) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330);
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let encoded = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").await;
        assert_eq!(sign(&encoded, id, timestamp_s, body).unwrap(), expected);
        let plain = secret("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").await;
        assert_ne!(sign(&plain, id, timestamp_s, body).unwrap(), expected);
    }

    #[tokio::test]
    async fn a_bad_secret_is_not_shown() {
        let failure = sign(&secret("whsec_canary!").await, "id", 0, b"").unwrap_err();
        assert!(failure.has_code("secret-unavailable") && !failure.message.contains("canary"));
    }
}
