//! How a route knows that a request comes from whom it should: what can be declared.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::error::HookError;
use super::hook::is_header_name;
use super::limits::{DEFAULT_TOLERANCE, MAX_SECRETS, MAX_TOLERANCE};
use crate::functions::{HumanDuration, SecretReference};

/// The header of a shared secret, unless the route names another.
const DEFAULT_SECRET_HEADER: &str = "x-webhook-secret";

/// What a route that lets everybody in says.
const NONE: &str = "none";

/// How a route knows that a request comes from whom it should. All schemes take several secrets at once, so that one can
/// be replaced while both are in use, and compare in constant time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// Not at all. It has to be said: `"verification": "none"`.
    None,
    /// By a scheme.
    By(Scheme),
}

/// A scheme of verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Scheme {
    /// A header has the secret itself.
    SharedSecret {
        /// Which header.
        #[serde(default = "default_secret_header")]
        header: String,
        /// Where the secrets are.
        secrets: Vec<SecretReference>,
    },
    /// `X-Hub-Signature-256`, as GitHub signs.
    Github {
        /// Where the secrets are.
        secrets: Vec<SecretReference>,
    },
    /// `Stripe-Signature`, as Stripe signs.
    Stripe {
        /// Where the secrets are.
        secrets: Vec<SecretReference>,
        /// How far its time may be from ours, both ways.
        #[serde(default = "default_tolerance")]
        tolerance: HumanDuration,
    },
    /// `webhook-id`, `webhook-timestamp` and `webhook-signature`, as the Standard Webhooks specification has it.
    StandardWebhooks {
        /// Where the secrets are.
        secrets: Vec<SecretReference>,
        /// How far its time may be from ours, both ways.
        #[serde(default = "default_tolerance")]
        tolerance: HumanDuration,
    },
}

fn default_secret_header() -> String {
    DEFAULT_SECRET_HEADER.to_owned()
}

fn default_tolerance() -> HumanDuration {
    DEFAULT_TOLERANCE
}

impl Verification {
    /// Where its secrets are.
    pub fn secrets(&self) -> &[SecretReference] {
        match self {
            Verification::None => &[],
            Verification::By(
                Scheme::SharedSecret { secrets, .. }
                | Scheme::Github { secrets }
                | Scheme::Stripe { secrets, .. }
                | Scheme::StandardWebhooks { secrets, .. },
            ) => secrets,
        }
    }

    /// The header that has a secret in it, which must not be kept.
    pub(super) fn secret_header(&self) -> Option<&str> {
        match self {
            Verification::By(Scheme::SharedSecret { header, .. }) => Some(header),
            _ => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), HookError> {
        let Verification::By(scheme) = self else { return Ok(()) };
        let secrets = self.secrets();
        if secrets.is_empty() || secrets.len() > MAX_SECRETS {
            let problem = format!("name 1 to {MAX_SECRETS} secrets, as in [{{\"env\": \"NAME\"}}]");
            return Err(HookError::invalid("verification.secrets", problem));
        }
        let different: BTreeSet<String> = secrets.iter().map(ToString::to_string).collect();
        if different.len() < secrets.len() {
            return Err(HookError::invalid("verification.secrets", "a secret is named twice"));
        }
        match scheme {
            Scheme::SharedSecret { header, .. } if !is_header_name(header) => {
                let problem = format!("{header:?} is no name of a header; write it in lowercase");
                Err(HookError::invalid("verification.header", problem))
            }
            Scheme::Stripe { tolerance, .. } | Scheme::StandardWebhooks { tolerance, .. }
                if *tolerance > MAX_TOLERANCE || tolerance.as_ms() < 1_000 =>
            {
                let problem = format!("must be from 1s to {MAX_TOLERANCE}");
                Err(HookError::invalid("verification.tolerance", problem))
            }
            _ => Ok(()),
        }
    }
}

impl Serialize for Verification {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Verification::None => serializer.serialize_str(NONE),
            Verification::By(scheme) => scheme.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Verification {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        match value {
            Value::String(text) if text == NONE => Ok(Verification::None),
            Value::Object(_) => {
                serde_json::from_value(value).map(Verification::By).map_err(serde::de::Error::custom)
            }
            _ => Err(serde::de::Error::custom("expected \"none\", or an object with type and secrets")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<Verification, String> {
        let read: Verification = serde_json::from_value(value).map_err(|error| error.to_string())?;
        read.check().map_err(|error| error.to_string())?;
        Ok(read)
    }

    #[test]
    fn each_scheme_is_read_and_written() {
        let secrets = json!([{ "env": "A" }, { "file": "/run/b" }]);
        for (declared, stored) in [
            (json!("none"), json!("none")),
            (
                json!({ "type": "github", "secrets": secrets }),
                json!({ "type": "github", "secrets": secrets }),
            ),
            (
                json!({ "type": "shared_secret", "secrets": secrets }),
                json!({ "type": "shared_secret", "header": "x-webhook-secret", "secrets": secrets }),
            ),
            (
                json!({ "type": "stripe", "secrets": secrets }),
                json!({ "type": "stripe", "secrets": secrets, "tolerance": "5m" }),
            ),
            (
                json!({ "type": "standard_webhooks", "secrets": secrets, "tolerance": "10s" }),
                json!({ "type": "standard_webhooks", "secrets": secrets, "tolerance": "10s" }),
            ),
        ] {
            let read = read(declared).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), stored);
            assert_eq!(serde_json::from_value::<Verification>(stored).unwrap(), read);
        }
    }

    #[test]
    fn mistakes_say_what_to_write() {
        let one = json!([{ "env": "A" }]);
        for (declared, says) in [
            (json!("off"), "expected \"none\", or an object"),
            (json!(null), "expected \"none\", or an object"),
            (json!({ "type": "github" }), "missing field `secrets`"),
            (json!({ "type": "github", "secrets": [] }), "name 1 to 8 secrets"),
            (json!({ "type": "github", "secrets": ["plain"] }), "plain"),
            (json!({ "type": "gitlab", "secrets": one }), "unknown variant `gitlab`"),
            (json!({ "type": "github", "secrets": [{ "env": "A" }, { "env": "A" }] }), "named twice"),
            (json!({ "type": "shared_secret", "secrets": one, "header": "X Y" }), "no name of a header"),
            (json!({ "type": "stripe", "secrets": one, "tolerance": "2d" }), "from 1s to"),
            (json!({ "type": "stripe", "secrets": one, "tolerance": "0s" }), "from 1s to"),
        ] {
            let error = read(declared.clone()).unwrap_err();
            assert!(error.contains(says), "{declared}: {error}");
        }
    }
}
