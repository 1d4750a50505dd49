//! Receiving: from a request to a commit that has all of it.

use std::time::Duration;

use segno::store::{ErrorKind, Expect, RecordBatch, RecordWrite};
use uuid::Uuid;

use super::catalogue::{Hooks, Route};
use super::decide::{Decision, decide};
use super::error::HookError;
use super::event::{Outcome, StoredEvent};
use super::incoming::Incoming;
use super::payload::Payload;
use super::records::{BODY, KEY, PAYLOAD, decode, key_id, payload_id, put, put_bytes};
use super::verify::Unverified;
use crate::action::{Action, ActionTrigger, OnRestart};
use crate::functions::{Scope, Secret, SecretReference, compute};
use crate::moment::timestamp;
use crate::target::Target;

/// How often a commit is tried that meets a key which is gone when it is looked at.
const MAX_TRIES: usize = 10;

/// Why a request is not taken. Nothing of it is kept.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// The route takes no requests.
    #[error("the hook is disabled")]
    Disabled,
    /// The body is too large.
    #[error("the body has more than {limit} bytes")]
    TooLarge {
        /// How large it may be.
        limit: usize,
    },
    /// The body is of the wrong type.
    #[error("the hook takes {taken}")]
    WrongType {
        /// What is taken.
        taken: String,
    },
    /// It does not come from whom it should.
    #[error("{}", .0.detail)]
    Unverified(Unverified),
    /// No secret that can be read verifies it, and there is one that cannot be read.
    #[error("a secret of the hook cannot be read at the moment")]
    SecretUnavailable,
    /// Something else went wrong.
    #[error(transparent)]
    Error(#[from] HookError),
}

impl Refused {
    /// Why, in a word: for metrics and events.
    pub fn reason(&self) -> &'static str {
        match self {
            Refused::Disabled => "disabled",
            Refused::TooLarge { .. } => "too_large",
            Refused::WrongType { .. } => "wrong_type",
            Refused::Unverified(unverified) => unverified.reason,
            Refused::SecretUnavailable => "secret_unavailable",
            Refused::Error(_) => "error",
        }
    }
}

/// A request that was taken, and is on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Id of the payload; of the first one if it has come before.
    pub id: Uuid,
    /// What became of it.
    pub outcome: Outcome,
}

/// The first payload with a key.
#[derive(serde::Serialize, serde::Deserialize)]
struct First {
    payload: Uuid,
}

impl Hooks {
    /// How large a body of a route may be.
    pub fn max_body_bytes(&self, route: &Route) -> usize {
        let most = self.inner.settings.max_body_bytes;
        route.hook.max_body_bytes.map_or(most, |bytes| bytes.min(most))
    }

    /// What can be known before the body is read.
    ///
    /// # Errors
    /// When the route is disabled, or the body will be too large or of the wrong type.
    pub fn admit(
        &self,
        route: &Route,
        announced_bytes: Option<u64>,
        content_type: Option<&str>,
    ) -> Result<(), Refused> {
        let admitted = self.admitted(route, announced_bytes, content_type);
        admitted.map_err(|refused| self.refuse(route, refused))
    }

    fn admitted(
        &self,
        route: &Route,
        announced_bytes: Option<u64>,
        content_type: Option<&str>,
    ) -> Result<(), Refused> {
        let limit = self.max_body_bytes(route);
        let is_too_large =
            announced_bytes.is_some_and(|bytes| usize::try_from(bytes).map_or(true, |b| b > limit));
        let refused = if !route.hook.enabled {
            Refused::Disabled
        } else if is_too_large {
            Refused::TooLarge { limit }
        } else if !route.hook.takes(content_type) {
            let taken: Vec<&str> = route.hook.content_types.iter().map(String::as_str).collect();
            Refused::WrongType { taken: taken.join(", ") }
        } else {
            return Ok(());
        };
        Err(refused)
    }

    /// Takes a request: verifies it, decides what becomes of it, and commits all of it at once.
    ///
    /// # Errors
    /// Says why it is refused; then nothing of it is kept but an event.
    pub async fn receive(&self, route: &Route, incoming: Incoming) -> Result<Accepted, Refused> {
        self.admit(route, Some(incoming.body.len() as u64), incoming.content_type())?;
        self.verify(route, &incoming).await.map_err(|refused| self.refuse(route, refused))?;
        Ok(self.accept(route, &incoming).await?)
    }

    /// Whether a request would be taken now. Nothing is received, logged or counted.
    ///
    /// # Errors
    /// Why it would be refused.
    pub async fn would_take(&self, route: &Route, incoming: &Incoming) -> Result<(), Refused> {
        self.admitted(route, Some(incoming.body.len() as u64), incoming.content_type())?;
        self.verify(route, incoming).await
    }

    fn refuse(&self, route: &Route, refused: Refused) -> Refused {
        self.inner.log.refused(&route.scope, &route.name, refused.reason());
        refused
    }

    async fn verify(&self, route: &Route, incoming: &Incoming) -> Result<(), Refused> {
        let (mut secrets, mut unread) = (Vec::new(), None);
        for reference in route.hook.verification.secrets() {
            match self.read_secret(&route.scope, reference).await {
                Ok(secret) => secrets.push(secret),
                Err(problem) => unread = Some(problem),
            }
        }
        let now_s = self.inner.clock.now_ms() / 1_000;
        let verified = route.hook.verification.verify(&secrets, incoming, now_s);
        if let Some(error) = &unread {
            let is_verified = verified.is_ok();
            tracing::error!(hook = %route.name, error, is_verified, "a secret of a webhook cannot be read");
        }
        // The secret that could not be read may be the one that this request was signed with.
        verified.map_err(|unverified| match unread {
            Some(_) if unverified.depends_on_secrets() => Refused::SecretUnavailable,
            _ => Refused::Unverified(unverified),
        })
    }

    /// Reads a secret. What a route may read is up to the node, and may have changed since it was declared.
    async fn read_secret(&self, scope: &Scope, reference: &SecretReference) -> Result<Secret, String> {
        self.check_secret(scope, reference).map_err(|error| error.to_string())?;
        reference.resolve().await.map_err(|failure| failure.message.clone())
    }

    async fn accept(&self, route: &Route, incoming: &Incoming) -> Result<Accepted, HookError> {
        for _ in 0..MAX_TRIES {
            let (accepted, writes, key) = match route.hook.is_quick_for(incoming.seen_bytes()) {
                true => self.planned(route, incoming)?,
                false => {
                    let (hooks, route, incoming) = (self.clone(), route.clone(), incoming.clone());
                    let scope = route.scope.clone();
                    compute(&scope, move || hooks.planned(&route, &incoming)).await??
                }
            };
            match self.inner.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await {
                Ok(_) => {
                    self.inner.log.stored(&route.scope);
                    return Ok(accepted);
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    if let Some(first) = self.first_with(route, key.as_deref()).await? {
                        return self.deduplicated(route, incoming, first).await;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        let problem = "the key of this payload comes and goes; try again";
        Err(HookError::invalid("dedup", problem))
    }

    /// Everything that one commit stores, and the key by which the payload is recognised. It has no `await` in it, so that
    /// what is read of a large body is in memory for one request of a thread only.
    fn planned(
        &self,
        route: &Route,
        incoming: &Incoming,
    ) -> Result<(Accepted, Vec<RecordWrite>, Option<String>), HookError> {
        let Route { scope, name, hook, .. } = route;
        let now_ms = self.inner.clock.now_ms();
        let id = self.new_id(now_ms);
        let mut payload = Payload {
            id,
            route: name.clone(),
            received_at: timestamp(now_ms),
            content_type: incoming.content_type().map(str::to_owned),
            body_bytes: incoming.body.len() as u64,
            headers: incoming.kept_headers(&hook.kept_headers()),
            params: incoming.kept_params(),
            outcome: Outcome::Stored,
            actions: Vec::new(),
        };
        let mut writes = Vec::new();
        let decision = decide(hook, &payload.seen(scope, &incoming.body));
        let (outcome, key) = match (decision, hook.target()) {
            (Decision::Call { key, input }, Some(target)) => {
                let action = self.action_of(&payload, &target, (id, input), &incoming.body);
                match action.insertion(scope) {
                    Ok(insertion) => writes.extend(insertion),
                    Err(error) => {
                        payload.outcome = Outcome::dispatch_error(&error.to_string());
                        return self.kept(route, incoming, payload, writes, None);
                    }
                }
                payload.remember(id);
                let (function, orchestration) = (hook.function.clone(), hook.orchestration.clone());
                (Outcome::Routed { action: id, function, orchestration }, key)
            }
            (Decision::Call { key, .. } | Decision::Store { key }, _) => (Outcome::Stored, key),
            (Decision::Filtered, _) => (Outcome::Filtered, None),
            (Decision::Fail { reason }, _) => (Outcome::dispatch_error(&reason), None),
        };
        payload.outcome = outcome;
        self.kept(route, incoming, payload, writes, key)
    }

    fn kept(
        &self,
        route: &Route,
        incoming: &Incoming,
        payload: Payload,
        mut writes: Vec<RecordWrite>,
        key: Option<String>,
    ) -> Result<(Accepted, Vec<RecordWrite>, Option<String>), HookError> {
        let Route { scope, name, hook, .. } = route;
        let life = Some(self.retention(route));
        let id = payload_id(scope, name, payload.id);
        writes.push(put((PAYLOAD, id.clone()), Expect::Absent, life, &payload)?);
        writes.push(put_bytes((BODY, id), Expect::Absent, life, incoming.body.clone()));
        if let (Some(key), Some(dedup)) = (&key, &hook.dedup) {
            let first = First { payload: payload.id };
            let window = Some(dedup.window.get());
            writes.push(put((KEY, key_id(scope, name, key)), Expect::Absent, window, &first)?);
        }
        writes.push(self.event(scope, self.event_about(&payload, payload.outcome.clone()))?);
        Ok((Accepted { id: payload.id, outcome: payload.outcome }, writes, key))
    }

    /// The action that calls the function of a payload, or starts its orchestration.
    pub(super) fn action_of(
        &self,
        payload: &Payload,
        target: &Target,
        (id, input): (Uuid, segno::Payload),
        body: &[u8],
    ) -> Action {
        let trigger = ActionTrigger::Webhook { raw_payload: body.to_vec(), received_at: payload.received_at };
        let now = timestamp(self.inner.clock.now_ms());
        let label = format!("hook {}", payload.route);
        let action = match target {
            Target::Function(function) => Action::new(id, &label, function.as_str(), trigger, now),
            Target::Orchestration(name) => Action::new(id, &label, "", trigger, now).starting(name.clone()),
        };
        Action { tool_input: input, on_restart: OnRestart::Resume, ..action }
    }

    /// An event about a payload.
    pub(super) fn event_about(&self, payload: &Payload, outcome: Outcome) -> StoredEvent {
        StoredEvent {
            payload: Some(payload.id),
            content_type: payload.content_type.clone(),
            body_bytes: payload.body_bytes,
            ..self.event_of(&payload.route, outcome)
        }
    }

    /// How long payloads of a route are kept.
    fn retention(&self, route: &Route) -> Duration {
        route.hook.retention.map_or(self.inner.settings.retention, |retention| retention.get())
    }

    /// The payload that came first with a key, if there is one.
    async fn first_with(&self, route: &Route, key: Option<&str>) -> Result<Option<Uuid>, HookError> {
        let Some(key) = key else { return Ok(None) };
        let record = self.inner.store.get_record(KEY, &key_id(&route.scope, &route.name, key)).await?;
        record.as_ref().map(|record| decode::<First>(record).map(|first| first.payload)).transpose()
    }

    async fn deduplicated(
        &self,
        route: &Route,
        incoming: &Incoming,
        first: Uuid,
    ) -> Result<Accepted, HookError> {
        let outcome = Outcome::Deduplicated { first };
        let event = StoredEvent {
            content_type: incoming.content_type().map(str::to_owned),
            body_bytes: incoming.body.len() as u64,
            payload: Some(first),
            ..self.event_of(&route.name, outcome.clone())
        };
        let writes = vec![self.event(&route.scope, event)?];
        self.inner.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await?;
        self.inner.log.stored(&route.scope);
        Ok(Accepted { id: first, outcome })
    }
}
