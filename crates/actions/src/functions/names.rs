//! Names that can stand in ids, tags and paths without being escaped: slugs, and names of pools, which keep their case.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use super::error::FunctionError;
use super::limits::{MAX_POOL_NAME_BYTES, MAX_SLUG_BYTES, MAX_TAG_BYTES};

/// How much of a bad name an error shows.
const SHOWN_CHARS: usize = 80;

/// What the names of functions are called in errors.
pub(super) const FUNCTION_NAME: &str = "function name";
pub(super) const CALL_NAME: &str = "name of a function in a pool";

/// Which letters a name may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Letters {
    /// Lowercase letters of ASCII.
    Lowercase,
    /// Letters of ASCII in either case, which makes a difference.
    AnyCase,
}

impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Letters::Lowercase => "lowercase letters",
            Letters::AnyCase => "letters",
        })
    }
}

fn check(what: &'static str, text: &str, letters: Letters, max_bytes: usize) -> Result<(), FunctionError> {
    let is_letter = |c: char| match letters {
        Letters::Lowercase => c.is_ascii_lowercase(),
        Letters::AnyCase => c.is_ascii_alphabetic(),
    };
    let allowed = |c: char| is_letter(c) || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
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
        letters,
        max_bytes,
    })
}

macro_rules! name {
    ($(#[doc = $doc:literal])+ $name:ident, $what:expr, $letters:expr, $max_bytes:expr) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Checks a text.
            ///
            /// # Errors
            /// `invalid-function-name` for one of a function, `invalid-name` for others: they say what is allowed.
            pub fn new(text: impl Into<String>) -> Result<Self, FunctionError> {
                let text = text.into();
                check($what, &text, $letters, $max_bytes)?;
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

name! {
    /// The name of a function, unique within a namespace and tenant.
    FunctionName, FUNCTION_NAME, Letters::Lowercase, MAX_SLUG_BYTES
}
name! {
    /// The name of a webhook's route, unique within a namespace and tenant.
    HookName, "route name", Letters::Lowercase, MAX_SLUG_BYTES
}
name! {
    /// A namespace.
    Namespace, "namespace", Letters::Lowercase, MAX_SLUG_BYTES
}
name! {
    /// A tenant of a namespace.
    Tenant, "tenant", Letters::Lowercase, MAX_SLUG_BYTES
}
name! {
    /// A tag that says which workers take a call.
    Tag, "tag", Letters::Lowercase, MAX_TAG_BYTES
}

name! {
    /// The name of a pool of workers. It keeps its case.
    PoolName, "pool name", Letters::AnyCase, MAX_POOL_NAME_BYTES
}
name! {
    /// The name of a function as a call has it: one of the catalogue, or one that only the workers of a pool know, which
    /// keeps its case (`New-EntraUser`). Every [`FunctionName`] is one.
    CallName, CALL_NAME, Letters::AnyCase, MAX_POOL_NAME_BYTES
}

impl From<FunctionName> for CallName {
    fn from(name: FunctionName) -> Self {
        CallName(name.0)
    }
}

impl CallName {
    /// The function of the catalogue with this name.
    ///
    /// # Errors
    /// `invalid-function-name` when no function of the catalogue can have it.
    pub fn in_catalogue(&self) -> Result<FunctionName, FunctionError> {
        FunctionName::new(self.as_str())
    }
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
    /// `invalid-name` when one is not a slug.
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
    fn names_of_pools_keep_their_case() {
        for good in ["New-EntraUser", "cloud-01", "A.b_c", "7", &"X".repeat(128)] {
            assert_eq!(PoolName::new(good).unwrap().as_str(), good);
            assert_eq!(CallName::new(good).unwrap().as_str(), good);
        }
        assert_ne!(PoolName::new("a").unwrap(), PoolName::new("A").unwrap());
        let longest = FunctionName::new("x".repeat(64)).unwrap();
        assert_eq!(CallName::from(longest.clone()).in_catalogue().unwrap(), longest);
        assert!(CallName::new("Send").unwrap().in_catalogue().is_err());
        for bad in ["", "a b", "a/b", "a:b", "-x", "Grüße", &"x".repeat(129)] {
            let error = PoolName::new(bad).unwrap_err();
            assert_eq!(error.code(), "invalid-name");
            let error = error.to_string();
            assert!(error.contains("1 to 128 letters, digits"), "{bad:?}: {error}");
            assert!(error.contains("cannot be a pool name") && error.ends_with("[invalid-name]"), "{error}");
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
