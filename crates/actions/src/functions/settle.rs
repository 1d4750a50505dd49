//! How a call ended, reported to the room that asked for it.
//!
//! A call carries a [`Settle`]: the kind of thing that waits for the outcome, its id, and data of that kind. The
//! commit that ends the call also has the record writes of the [`Settler`] that is registered for the kind: both are
//! stored, or neither. This module knows no kind; rooms register theirs with
//! [`FunctionsBuilder::settler`](super::FunctionsBuilder::settler).
//!
//! An instance can end without a settler: it was deleted, its code could not be run, or the node that ended it has no
//! settler for the kind. So every room also checks what waits, at a stored time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use segno::store::{ProviderError, Store};
use segno::{Context, Epilogue, Failure, InstanceEnd, Payload};
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::catalogue::Functions;
use super::error::FunctionError;
use super::limits::MAX_SETTLE_WRITES;
use super::names::{Namespace, Scope, Tenant};

/// Fields of the stored form that are not data, so that no field of the data may have their names.
const OWN_FIELDS: [&str; 5] = ["namespace", "tenant", "kind", "id", "issues"];

/// What a call is made for, as it is stored with the call: `{"kind": …, "id": …}` and the fields of the data beside them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settle {
    kind: String,
    id: String,
    /// Whether the [`Issuer`](super::Issuer) of the kind completes the input when the call is handed out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    issues: bool,
    #[serde(flatten)]
    data: Fields,
}

impl Settle {
    /// For something of this kind and id. A settler is registered under the kind.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Settle { kind: kind.into(), id: id.into(), issues: false, data: Fields::default() }
    }

    /// The same with data: a struct or map, whose fields are stored in its order.
    ///
    /// # Errors
    /// `invalid-invocation` when it is neither, or has a field named `namespace`, `tenant`, `kind` or `id`.
    pub fn with(mut self, data: &impl Serialize) -> Result<Self, FunctionError> {
        let wrong = |problem: String| FunctionError::InvalidInvocation { field: "settle", problem };
        let text = serde_json::to_string(data).map_err(|error| wrong(error.to_string()))?;
        let fields: Fields = serde_json::from_str(&text)
            .map_err(|error| wrong(format!("the data must be an object with fields: {error}")))?;
        if let Some((name, _)) = fields.0.iter().find(|(name, _)| OWN_FIELDS.contains(&name.as_str())) {
            return Err(wrong(format!("the data has a field {name:?}, which is reserved; rename it")));
        }
        self.data = fields;
        Ok(self)
    }

    /// The same with an input that the [`Issuer`](super::Issuer) of the kind completes when the call is handed out.
    #[must_use]
    pub fn issuing(self) -> Self {
        Settle { issues: true, ..self }
    }

    /// The kind whose issuer completes the input, if one does.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.issues.then_some(self.kind.as_str())
    }

    /// What kind of thing waits for the outcome.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Which one of the kind.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The data.
    ///
    /// # Errors
    /// [`SettleError::Unusable`] when it does not fit the type.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, SettleError> {
        let fields = self.data.0.iter().map(|(name, value)| (name.as_str(), value));
        T::deserialize(MapDeserializer::new(fields)).map_err(|error: serde_json::Error| {
            SettleError::Unusable(format!("what a call of kind {:?} was made for: {error}", self.kind))
        })
    }
}

/// Fields of data in the order in which they are stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Fields(Vec<(String, Value)>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// A [`Settle`] with its scope: what an orchestration is started with that is not `invoke`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settlement {
    namespace: Namespace,
    tenant: Tenant,
    #[serde(flatten)]
    settle: Settle,
}

impl Settlement {
    pub(crate) fn new(scope: &Scope, settle: Settle) -> Self {
        Settlement { namespace: scope.namespace.clone(), tenant: scope.tenant.clone(), settle }
    }
}

/// The end of a call, as a settler sees it.
pub struct CallEnd<'a> {
    /// Whose call it was. The instance belongs to this scope: that was checked.
    pub scope: &'a Scope,
    /// The instance that has ended.
    pub instance: &'a str,
    /// What the call was made for.
    pub settle: &'a Settle,
    /// How it ended.
    pub outcome: &'a Result<Payload, Failure>,
    /// The time of the end, in Unix milliseconds.
    pub now_ms: u64,
    /// For reading the few records that the writes depend on. A settler commits nothing by itself.
    pub store: &'a Arc<dyn Store>,
}

/// Makes the record writes that report the end of a call.
///
/// It runs inside the turn that ends the call, possibly several times: its writes must follow from the end and from what it
/// reads each time. It makes at most [`MAX_SETTLE_WRITES`](super::limits::MAX_SETTLE_WRITES) writes. Writes to a record that other calls
/// settle too make these calls end one after the other; a record of its own per call does not.
#[async_trait]
pub trait Settler: Send + Sync + 'static {
    /// The writes, and what to do once they are committed.
    ///
    /// # Errors
    /// [`SettleError::Store`] that is retryable keeps the call from ending, and the settler is called again. With any other
    /// error the call ends without writes, and the error is logged.
    async fn settle(&self, end: CallEnd<'_>) -> Result<Epilogue, SettleError>;
}

/// Why a settler made no writes.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettleError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] ProviderError),
    /// The stored data is of no use.
    #[error("{0}")]
    Unusable(String),
}

/// Settlers by kind.
pub(super) type Settlers = BTreeMap<&'static str, Arc<dyn Settler>>;

/// The settling of one call that has not ended yet.
struct Settling {
    functions: Functions,
    scope: Scope,
    instance: String,
    settle: Settle,
}

impl Functions {
    /// Makes the writes of the settler part of the commit that ends the instance of this context.
    pub(super) fn settle_at_end(&self, ctx: &Context, scope: Scope, settle: Settle) {
        let instance = ctx.instance_id().to_owned();
        let settling = Arc::new(Settling { functions: self.clone(), scope, instance, settle });
        ctx.at_end(move |outcome| {
            let settling = Arc::clone(&settling);
            async move { settling.epilogue(&outcome).await }
        });
    }

    /// The same for an orchestration that was started with a [`Settlement`].
    pub(super) async fn settle_start(&self, end: InstanceEnd) -> Result<Epilogue, ProviderError> {
        let InstanceEnd { instance, settle, outcome } = end;
        let settlement = match settle.decode::<Settlement>() {
            Ok(settlement) => settlement,
            Err(error) => {
                tracing::warn!(%instance, %error, "an instance has ended that was started for something unknown");
                return Ok(Epilogue::default());
            }
        };
        let scope = Scope { namespace: settlement.namespace, tenant: settlement.tenant };
        // Data can be written by hand; the id was checked by what has started the instance.
        if !scope.owns(&instance) {
            tracing::warn!(%instance, "an instance has ended that was started for another tenant");
            return Ok(Epilogue::default());
        }
        let instance = instance.to_string();
        let settling = Settling { functions: self.clone(), scope, instance, settle: settlement.settle };
        settling.epilogue(&outcome).await
    }
}

impl Settling {
    /// What is written when the instance ends. Only a store that is away keeps it from ending: the room that waits for
    /// the outcome checks the instance by itself.
    async fn epilogue(&self, outcome: &Result<Payload, Failure>) -> Result<Epilogue, ProviderError> {
        let (instance, kind) = (&self.instance, self.settle.kind());
        let inner = &self.functions.inner;
        let Some(settler) = inner.settlers.get(kind) else {
            tracing::warn!(instance, kind, "a call has ended of a kind that this node has no settler for");
            return Ok(Epilogue::default());
        };
        let end = CallEnd {
            scope: &self.scope,
            instance,
            settle: &self.settle,
            outcome,
            now_ms: inner.clock.now_ms(),
            store: &inner.store,
        };
        match settler.settle(end).await {
            Ok(epilogue) if epilogue.writes.len() <= MAX_SETTLE_WRITES => Ok(epilogue),
            Ok(epilogue) => {
                let writes = epilogue.writes.len();
                tracing::error!(
                    instance,
                    kind,
                    writes,
                    "a settler makes more than {MAX_SETTLE_WRITES} writes"
                );
                Ok(Epilogue::default())
            }
            Err(SettleError::Store(error)) if error.is_retryable() => Err(error),
            Err(error) => {
                tracing::warn!(instance, kind, %error, "the outcome of a call could not be settled");
                Ok(Epilogue::default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Data {
        time: String,
        keep_ms: u64,
    }

    #[test]
    fn what_a_call_is_made_for_is_stored_in_a_form_that_does_not_change() {
        let scope = Scope::new("eu", "acme").unwrap();
        let time = "2026-02-10T14:00:00Z".to_owned();
        for (settle, text) in [
            (
                Settle::new("action", "7").with(&json!({"keep_ms": 5})).unwrap(),
                r#""kind":"action","id":"7","keep_ms":5}"#,
            ),
            (
                Settle::new("recurring", "7").with(&Data { time, keep_ms: 5 }).unwrap(),
                r#""kind":"recurring","id":"7","time":"2026-02-10T14:00:00Z","keep_ms":5}"#,
            ),
            (Settle::new("batch", "7"), r#""kind":"batch","id":"7"}"#),
        ] {
            let alone = format!("{{{text}");
            assert_eq!(serde_json::to_string(&settle).unwrap(), alone);
            assert_eq!(serde_json::from_str::<Settle>(&alone).unwrap(), settle);
            let started = format!(r#"{{"namespace":"eu","tenant":"acme",{text}"#);
            let settlement = Settlement::new(&scope, settle);
            assert_eq!(serde_json::to_string(&settlement).unwrap(), started);
            assert_eq!(serde_json::from_str::<Settlement>(&started).unwrap(), settlement);
        }
    }

    #[test]
    fn data_keeps_its_order_and_comes_back_typed() {
        let stored =
            r#"{"kind":"x","id":"1","z":{"b":1,"a":[null]},"time":"t","keep_ms":18446744073709551615}"#;
        let settle: Settle = serde_json::from_str(stored).unwrap();
        assert_eq!(settle.data::<Data>().unwrap(), Data { time: "t".to_owned(), keep_ms: u64::MAX });
        let names: Vec<&str> = settle.data.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["z", "time", "keep_ms"]);
        let missing = Settle::new("x", "1").data::<Data>().unwrap_err().to_string();
        assert!(missing.contains("\"x\"") && missing.contains("time"), "{missing}");
    }

    #[test]
    fn data_that_cannot_stand_beside_kind_and_id_is_refused() {
        for (data, words) in [
            (json!({"id": 1}), "\"id\", which is reserved"),
            (json!({"kind": 1}), "\"kind\""),
            (json!({"tenant": 1}), "\"tenant\""),
            (json!({"namespace": 1}), "\"namespace\""),
            (json!([1]), "object with fields"),
            (json!(1), "object with fields"),
        ] {
            let error = Settle::new("x", "1").with(&data).unwrap_err();
            assert_eq!(error.code(), "invalid-invocation");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
