//! A call that is ready to be started: where it goes and all that bounds it. What is decided here is stored, and holds
//! whatever becomes of the declaration later.

use segno::limits::MAX_NAME_BYTES;
use segno::{Category, Failure, Payload, Retry};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::names::{CallName, Namespace, PoolName, Scope, Tag, Tenant};
use super::settle::Settle;

/// Longest key that stands in an instance id as it is; longer ones are hashed.
const MAX_PLAIN_KEY_BYTES: usize = 256;

/// Where the work of a call goes, decided when the call is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// To a node, which runs the function itself.
    Local {
        /// Only to nodes with this tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<Tag>,
    },
    /// The same under [`node_tag`]: to nodes that share their places fairly between tenants.
    Node {
        /// Only to nodes with this tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<Tag>,
    },
    /// To a worker elsewhere, under [`remote_tag`].
    Remote {
        /// Only to workers that ask for this tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<Tag>,
    },
    /// To a worker's URL, under [`push_tag`].
    Push {
        /// Only by nodes with this tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<Tag>,
    },
    /// To any worker of a pool, under [`pool_tag`].
    Pool {
        /// The pool.
        pool: PoolName,
    },
}

/// Input of the orchestration `invoke`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Invocation {
    /// Whose function it is.
    pub namespace: Namespace,
    /// Whose function it is.
    pub tenant: Tenant,
    /// The function.
    pub function: CallName,
    /// Its input.
    pub input: Payload,
    /// Where the work goes.
    pub route: Route,
    /// When to try again.
    pub retry: Retry,
    /// Longest time of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Longest time of all attempts and the pauses between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Longest silence of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout_ms: Option<u64>,
    /// Whether what a node has begun and lost is given up rather than begun again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gives_up_when_lost: bool,
    /// What is told how it ended, in the commit that ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settle: Option<Settle>,
}

impl Invocation {
    /// Whose function it is.
    pub fn scope(&self) -> Scope {
        Scope { namespace: self.namespace.clone(), tenant: self.tenant.clone() }
    }

    /// The routing tag of its work item.
    pub fn routing_tag(&self) -> Option<String> {
        match &self.route {
            Route::Local { tag } => tag.as_ref().map(ToString::to_string),
            Route::Node { tag } => Some(node_tag(&self.scope(), &self.function, tag.as_ref())),
            Route::Remote { tag } => Some(remote_tag(&self.scope(), &self.function, tag.as_ref())),
            Route::Push { tag } => Some(push_tag(&self.scope(), &self.function, tag.as_ref())),
            Route::Pool { pool } => Some(pool_tag(&self.scope(), pool)),
        }
    }
}

/// Input of the activity `function`: what a worker gets to see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// Whose function it is.
    pub namespace: Namespace,
    /// Whose function it is.
    pub tenant: Tenant,
    /// The function.
    pub function: CallName,
    /// Its input.
    pub input: Payload,
    /// Longest time of this attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether what a node has begun and lost is given up rather than begun again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gives_up_when_lost: bool,
    /// The kind whose [`Issuer`](super::Issuer) completes the input when the call is handed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
}

impl Call {
    /// Whose function it is.
    pub fn scope(&self) -> Scope {
        Scope { namespace: self.namespace.clone(), tenant: self.tenant.clone() }
    }

    /// Refuses a call of another scope than the one that its instance belongs to.
    ///
    /// # Errors
    /// A configuration failure with the code `scope-mismatch`.
    pub fn check_instance(&self, instance: &str) -> Result<(), Failure> {
        check_instance(&self.scope(), instance)
    }
}

/// Refuses work that carries another scope than the instance that it runs in belongs to. Data can be written by hand; the
/// id was checked by whatever started the instance.
pub(super) fn check_instance(scope: &Scope, instance: &str) -> Result<(), Failure> {
    if scope.owns(instance) {
        return Ok(());
    }
    let message = format!(
        "the call is for namespace {:?}, tenant {:?}, and its instance {instance:?} does not belong there; start \
         invoke under an id of invocation_id",
        scope.namespace.as_str(),
        scope.tenant.as_str()
    );
    Err(Failure::new(Category::Configuration, message).code("scope-mismatch"))
}

/// The routing tag of calls that a worker elsewhere takes: `remote:{namespace}/{tenant}/{function}`, and `#{tag}` behind
/// it if there is a tag. No part can contain a separator, so two different calls never have the same tag; and no tag
/// of a local call can look like it, because a [`Tag`] has no colon. It has at most 250 bytes.
pub fn remote_tag(scope: &Scope, function: &CallName, tag: Option<&Tag>) -> String {
    let tag = tag.map(|tag| format!("#{tag}")).unwrap_or_default();
    format!("remote:{}{function}{tag}", scope.id_prefix())
}

/// The routing tag of calls that are pushed to a worker's URL:
/// `pushed:{namespace}/{tenant}/{function}`, or `pushed#{tag}:{namespace}/{tenant}/{function}` if
/// there is a tag. A function has a tag of its own, so that a node which has enough calls of it
/// under way leaves it out of its fetch. As with [`remote_tag`], two different calls never have the
/// same, and no tag of a local call can look like it. It has at most 250 bytes.
pub fn push_tag(scope: &Scope, function: &CallName, tag: Option<&Tag>) -> String {
    format!("{}{}{function}", push_prefix(tag), scope.id_prefix())
}

/// The routing tag of calls that a node runs itself, where nodes share their places between tenants:
/// `node:{namespace}/{tenant}/{function}`, or `node#{tag}:{namespace}/{tenant}/{function}` if there
/// is a tag. It has the form of [`push_tag`], for the same reason.
pub fn node_tag(scope: &Scope, function: &CallName, tag: Option<&Tag>) -> String {
    format!("{}{}{function}", node_prefix(tag), scope.id_prefix())
}

/// How [`node_tag`] begins for all functions and tenants.
pub fn node_prefix(tag: Option<&Tag>) -> String {
    tag.map_or_else(|| "node:".to_owned(), |tag| format!("node#{tag}:"))
}

/// The routing tag of all calls of a pool, whatever their function: `pool:{namespace}/{tenant}/{pool}`, or
/// `pool-sha256:{hash}` of that where it would be longer than a tag may be.
pub fn pool_tag(scope: &Scope, pool: &PoolName) -> String {
    let tag = format!("pool:{}{pool}", scope.id_prefix());
    if tag.len() <= MAX_NAME_BYTES { tag } else { format!("pool-sha256:{}", sha256(&tag)) }
}

/// How [`push_tag`] begins for all functions and tenants: what a node that pushes serves, which
/// cannot know them beforehand.
pub fn push_prefix(tag: Option<&Tag>) -> String {
    tag.map_or_else(|| "pushed:".to_owned(), |tag| format!("pushed#{tag}:"))
}

/// What the tags of a scope have behind [`push_prefix`] and [`node_prefix`]: `{namespace}/{tenant}/`.
/// `None` for a tag that neither [`push_tag`] nor [`node_tag`] has made. Neither part can contain a
/// slash, nor a [`Tag`] a colon.
pub fn tag_scope(tag: &str) -> Option<&str> {
    let (_, named) = tag.split_once(':')?;
    let (end, _) = named.match_indices('/').nth(1)?;
    named.get(..=end)
}

/// The routing tag that calls of all functions had together before each function had its own. Calls
/// that were made then still have it, and so have their later attempts.
pub fn shared_push_tag(tag: Option<&Tag>) -> String {
    tag.map_or_else(|| "push:".to_owned(), |tag| format!("push:#{tag}"))
}

/// The instance id of the call that a caller knows by this key. The same key is the same instance, so starting twice is
/// starting once; different keys are different instances.
///
/// The form is `{namespace}/{tenant}/invoke:{key}`, or `{namespace}/{tenant}/invoke-sha256:{hash}` for a key that is
/// empty, longer than 256 bytes, or has spaces or control characters.
pub fn invocation_id(scope: &Scope, key: &str) -> String {
    keyed_id(scope, "invoke", key)
}

/// The same for an orchestration that an action or an occurrence has started: `{namespace}/{tenant}/start:{key}`.
pub fn start_id(scope: &Scope, key: &str) -> String {
    keyed_id(scope, "start", key)
}

pub(crate) fn keyed_id(scope: &Scope, kind: &str, key: &str) -> String {
    let is_plain = (1..=MAX_PLAIN_KEY_BYTES).contains(&key.len())
        && !key.chars().any(|c| c.is_control() || c.is_whitespace());
    let prefix = scope.id_prefix();
    if is_plain {
        return format!("{prefix}{kind}:{key}");
    }
    format!("{prefix}{kind}-sha256:{}", sha256(key))
}

pub(super) fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use segno::limits::MAX_INSTANCE_ID_BYTES;
    use std::collections::BTreeSet;

    #[test]
    fn remote_tags_have_a_fixed_form_and_fit() {
        let scope = Scope::new("eu", "acme").unwrap();
        let function = CallName::new("send.mail").unwrap();
        let gpu = Tag::new("gpu").unwrap();
        assert_eq!(remote_tag(&scope, &function, None), "remote:eu/acme/send.mail");
        assert_eq!(remote_tag(&scope, &function, Some(&gpu)), "remote:eu/acme/send.mail#gpu");
        assert_eq!(push_tag(&scope, &function, None), "pushed:eu/acme/send.mail");
        assert_eq!(push_tag(&scope, &function, Some(&gpu)), "pushed#gpu:eu/acme/send.mail");
        assert_eq!(node_tag(&scope, &function, None), "node:eu/acme/send.mail");
        assert_eq!(node_tag(&scope, &function, Some(&gpu)), "node#gpu:eu/acme/send.mail");
        for tag in [None, Some(&gpu)] {
            assert!(node_tag(&scope, &function, tag).starts_with(&node_prefix(tag)));
            assert_eq!(tag_scope(&node_tag(&scope, &function, tag)), Some("eu/acme/"));
            let prefix = push_prefix(tag);
            assert!(push_tag(&scope, &function, tag).starts_with(&prefix));
            for other in [None, Some(&Tag::new("gpu-2").unwrap()), Some(&Tag::new("gp").unwrap())] {
                let is_same = tag.is_none() && other.is_none();
                assert_eq!(push_tag(&scope, &function, other).starts_with(&prefix), is_same);
                assert!(!shared_push_tag(other).starts_with(&prefix));
                assert_eq!(tag_scope(&shared_push_tag(other)), None);
            }
            assert_eq!(tag_scope(&push_tag(&scope, &function, tag)), Some("eu/acme/"));
        }
        let shared = ("push:".to_owned(), "push:#gpu".to_owned());
        assert_eq!(
            (shared_push_tag(None), shared_push_tag(Some(&gpu))),
            shared,
            "they are in stored histories"
        );
        let longest = "x".repeat(64);
        let (scope, function) =
            (Scope::new(&longest, &longest).unwrap(), CallName::new(longest.as_str()).unwrap());
        let tag = Tag::new("x".repeat(48)).unwrap();
        for tag in [remote_tag(&scope, &function, Some(&tag)), push_tag(&scope, &function, Some(&tag))] {
            assert_eq!(tag.len(), 250);
            assert!(tag.len() <= MAX_NAME_BYTES);
        }
    }

    #[test]
    fn a_pool_has_one_tag_for_all_functions() {
        let scope = Scope::new("eu", "acme").unwrap();
        let pool = |name: &str| PoolName::new(name).unwrap();
        assert_eq!(pool_tag(&scope, &pool("cloud-01")), "pool:eu/acme/cloud-01");
        let slug = "x".repeat(64);
        let longest = Scope::new(&slug, &slug).unwrap();
        let names = ["A".repeat(128), "a".repeat(128), "a".repeat(127), "a".repeat(100)];
        let tags: BTreeSet<String> = names.iter().map(|name| pool_tag(&longest, &pool(name))).collect();
        assert_eq!(tags.len(), names.len());
        assert!(tags.iter().all(|tag| tag.len() <= MAX_NAME_BYTES), "{tags:?}");
        assert!(tags.iter().any(|tag| tag.starts_with("pool-sha256:")));
    }

    #[test]
    fn a_key_is_one_instance() {
        let scope = Scope::default();
        assert_eq!(invocation_id(&scope, "order-7"), "default/default/invoke:order-7");
        let long = "k".repeat(10_000);
        let keys = ["a", "a ", " a", "a\n", "", "invoke:a", "a/b", "ä", "sha256:00", &long, &long[1..]];
        let ids: BTreeSet<String> = keys.iter().map(|key| invocation_id(&scope, key)).collect();
        assert_eq!(ids.len(), keys.len());
        assert!(ids.iter().all(|id| id.len() <= MAX_INSTANCE_ID_BYTES), "{ids:?}");
        let longest = Scope::new(&"x".repeat(64), &"x".repeat(64)).unwrap();
        assert!(invocation_id(&longest, &"k".repeat(256)).len() <= MAX_INSTANCE_ID_BYTES);
        assert_ne!(invocation_id(&Scope::new("a", "b").unwrap(), "x"), invocation_id(&scope, "x"));
    }

    #[test]
    fn an_invocation_is_stored_in_a_form_that_does_not_change() {
        let invocation = Invocation {
            namespace: Namespace::new("eu").unwrap(),
            tenant: Tenant::new("acme").unwrap(),
            function: CallName::new("mail").unwrap(),
            input: Payload::from_json(r#"{"a": 1.50}"#).unwrap(),
            route: Route::Remote { tag: Some(Tag::new("gpu").unwrap()) },
            retry: Retry::never(),
            timeout_ms: Some(5),
            deadline_ms: None,
            heartbeat_timeout_ms: None,
            gives_up_when_lost: false,
            settle: None,
        };
        let text = serde_json::to_string(&invocation).unwrap();
        let expected = concat!(
            r#"{"namespace":"eu","tenant":"acme","function":"mail","input":{"a": 1.50},"#,
            r#""route":{"remote":{"tag":"gpu"}},"retry":{"max":1,"first":0,"factor":1.0,"cap":0,"jitter":0.0},"#,
            r#""timeout_ms":5}"#
        );
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Invocation>(expected).unwrap(), invocation);
        for settle in [
            r#"{"kind":"action","id":"00000000-0000-0000-0000-000000000007","keep_ms":2592000000}"#,
            r#"{"kind":"recurring","id":"7","time":"2026-02-10T14:00:00Z","keep_ms":604800000}"#,
        ] {
            let stored = expected.replace("5}", &format!(r#"5,"settle":{settle}}}"#));
            let read: Invocation = serde_json::from_str(&stored).unwrap();
            assert!(read.settle.is_some(), "{stored}");
            assert_eq!(serde_json::to_string(&read).unwrap(), stored);
        }
        let pooled = expected
            .replace(r#"{"remote":{"tag":"gpu"}}"#, r#"{"pool":{"pool":"Cloud-01"}}"#)
            .replace(r#""mail""#, r#""New-EntraUser""#);
        let read: Invocation = serde_json::from_str(&pooled).unwrap();
        assert_eq!(read.routing_tag().as_deref(), Some("pool:eu/acme/Cloud-01"));
        assert_eq!(serde_json::to_string(&read).unwrap(), pooled);
        let on_a_node = expected.replace(r#"{"remote":{"tag":"gpu"}}"#, r#"{"node":{}}"#);
        let read: Invocation = serde_json::from_str(&on_a_node).unwrap();
        assert_eq!(read.routing_tag().as_deref(), Some("node:eu/acme/mail"));
        assert_eq!(serde_json::to_string(&read).unwrap(), on_a_node);
    }
}
