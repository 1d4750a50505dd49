//! Slugs: names that can stand in ids, tags and paths without being escaped.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use super::error::FunctionError;
use super::limits::{MAX_SLUG_BYTES, MAX_TAG_BYTES};

/// How much of a bad name an error shows.
const SHOWN_CHARS: usize = 80;

fn check(what: &'static str, text: &str, max_bytes: usize) -> Result<(), FunctionError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let problem = if text.is_empty() {
        "it is empty".to_owned()
    } else if text.len() > max_bytes {
        format!("it has {} bytes", text.len())
    } else if let Some(bad) = text.chars().find(|c| !allowed(*c)) {
        format!("it contains {bad:?}")
    } else if text.starts_with(['-', '_', '.']) {
        format!("it begins with {:?}", &text[..1])
    } else {
        return Ok(());
    };
    Err(FunctionError::InvalidName {
        what,
        text: text.chars().take(SHOWN_CHARS).collect(),
        problem,
        max_bytes,
    })
}

macro_rules! slug {
    ($(#[doc = $doc:literal])+ $name:ident, $what:literal, $max_bytes:expr) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Checks a text.
            ///
            /// # Errors
            /// `invalid-function-name`, which says what is allowed.
            pub fn new(text: impl Into<String>) -> Result<Self, FunctionError> {
                let text = text.into();
                check($what, &text, $max_bytes)?;
                Ok($name(text))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = FunctionError;

            fn from_str(text: &str) -> Result<Self, FunctionError> {
                Self::new(text)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

slug! {
    /// The name of a function, unique within a namespace and tenant.
    FunctionName, "function name", MAX_SLUG_BYTES
}
slug! {
    /// The name of a webhook's route, unique within a namespace and tenant.
    HookName, "route name", MAX_SLUG_BYTES
}
slug! {
    /// A namespace.
    Namespace, "namespace", MAX_SLUG_BYTES
}
slug! {
    /// A tenant of a namespace.
    Tenant, "tenant", MAX_SLUG_BYTES
}
slug! {
    /// A tag that says which workers take a call.
    Tag, "tag", MAX_TAG_BYTES
}

/// Whose resources: a namespace and a tenant. Both are `default` unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The namespace.
    pub namespace: Namespace,
    /// The tenant.
    pub tenant: Tenant,
}

impl Scope {
    /// A scope from its two names.
    ///
    /// # Errors
    /// `invalid-function-name` when one is not a slug.
    pub fn new(namespace: &str, tenant: &str) -> Result<Self, FunctionError> {
        Ok(Scope { namespace: Namespace::new(namespace)?, tenant: Tenant::new(tenant)? })
    }

    /// What every id of this scope begins with: `namespace/tenant/`. Slugs have no slash, so one scope is one prefix.
    pub fn id_prefix(&self) -> String {
        format!("{}/{}/", self.namespace, self.tenant)
    }

    /// Whether an instance or record of this id belongs to this scope.
    pub fn owns(&self, id: &str) -> bool {
        id.starts_with(&self.id_prefix())
    }
}

impl Default for Scope {
    fn default() -> Self {
        Scope { namespace: Namespace("default".to_owned()), tenant: Tenant("default".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_slugs() {
        for good in ["a", "7", "send-mail", "eu.billing_2", "0-1", &"x".repeat(64)] {
            assert_eq!(FunctionName::new(good).unwrap().as_str(), good);
        }
        for (bad, says) in [
            ("", "it is empty"),
            ("Send", "it contains 'S'"),
            ("a b", "it contains ' '"),
            ("a/b", "it contains '/'"),
            ("..", "it begins with \".\""),
            ("-rf", "it begins with \"-\""),
            ("_x", "it begins with \"_\""),
            ("é", "it contains 'é'"),
            ("a\n", "it contains '\\n'"),
            (&"x".repeat(65), "it has 65 bytes"),
        ] {
            let error = FunctionName::new(bad).unwrap_err();
            assert_eq!(error.code(), "invalid-function-name");
            let text = error.to_string();
            assert!(text.contains(says) && text.contains("lowercase letters, digits"), "{bad:?}: {text}");
        }
    }

    #[test]
    fn a_bad_name_is_refused_where_it_is_read() {
        let error = serde_json::from_str::<FunctionName>(r#""A""#).unwrap_err().to_string();
        assert!(error.contains("cannot be a function name"), "{error}");
        assert!(Tag::new("x".repeat(48)).is_ok() && Tag::new("x".repeat(49)).is_err());
        assert_eq!(Scope::default().id_prefix(), "default/default/");
        for (id, is_owned) in [("eu/acme/x", true), ("eu/acme/", true), ("eu/acme2/x", false), ("x", false)] {
            assert_eq!(Scope::new("eu", "acme").unwrap().owns(id), is_owned, "{id}");
        }
    }
}
