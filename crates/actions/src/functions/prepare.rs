//! How a request becomes an invocation: lookup, check of the input, defaults, route. Nothing is stored here.

use std::sync::Arc;

use segno::{Payload, Retry};
use serde::{Deserialize, Serialize};

use super::catalogue::{CallerKind, Functions, Origin, VersionedFunction};
use super::duration::HumanDuration;
use super::error::FunctionError;
use super::function::{CallLimits, Executor, RetryPolicy};
use super::invocation::{Invocation, Route};
use super::names::{FunctionName, Scope, Tag};
use super::remote::RemoteSettings;
use super::schema::threads::{self, Patience};
use super::schema::{InputSchema, Unchecked, Violation};

/// A wish to run a function. What it leaves out is as the function's declaration says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvokeRequest {
    /// The function.
    pub function: FunctionName,
    /// Its input; `null` if left out.
    #[serde(default = "Payload::null")]
    pub input: Payload,
    /// Only workers with this tag take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Tag>,
    /// When to try again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// Longest time of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
    /// Longest time of all attempts and the pauses between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<HumanDuration>,
    /// Longest silence of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_timeout: Option<HumanDuration>,
}

impl InvokeRequest {
    /// A request with this input and everything else as declared.
    pub fn new(function: FunctionName, input: Payload) -> Self {
        InvokeRequest {
            function,
            input,
            tag: None,
            retry: None,
            timeout: None,
            deadline: None,
            heartbeat_timeout: None,
        }
    }
}

/// What a call that is made again takes from the recorded one. All else in that is another time's decision, or text that a
/// caller once wrote.
#[derive(Deserialize)]
struct Recorded {
    function: FunctionName,
    input: Payload,
}

impl Functions {
    /// Makes an invocation of the input of an `invoke` that was started before: the same function with the same input, and
    /// everything else as the declaration has it now.
    ///
    /// # Errors
    /// Those of [`Functions::prepare`], and `invalid-invocation` when what was recorded is no call.
    pub async fn prepare_again(
        &self,
        scope: &Scope,
        recorded: &Payload,
        input: Option<Payload>,
    ) -> Result<Invocation, FunctionError> {
        let recorded: Recorded = recorded.decode().map_err(|error| FunctionError::InvalidInvocation {
            field: "input",
            problem: format!("what was recorded is no call of a function: {error}"),
        })?;
        self.prepare(scope, InvokeRequest::new(recorded.function, input.unwrap_or(recorded.input))).await
    }

    /// Makes an invocation of a request; start [`crate::functions::INVOKE`] with it.
    ///
    /// # Errors
    /// `unknown-function`, `invalid-input` with every place that does not fit, `schema-too-costly` when the input cannot
    /// be checked within limits, `unavailable` when too many of the tenant wait to be checked, `invalid-invocation` for a setting,
    /// `function-not-permitted` for a stored function that may not run here, `store` when the store cannot be read.
    pub async fn prepare(&self, scope: &Scope, request: InvokeRequest) -> Result<Invocation, FunctionError> {
        let mut found = self.find(scope, &request.function).await?;
        self.check_input(scope, &mut found, &request.input).await?;
        let function = found.function;
        let limits = CallLimits {
            retry: request.retry.as_ref(),
            timeout: request.timeout,
            deadline: request.deadline,
            heartbeat_timeout: request.heartbeat_timeout,
        };
        limits
            .check(&function.executor)
            .map_err(|(field, problem)| FunctionError::InvalidInvocation { field, problem })?;
        let tag = request.tag.or(function.tag.clone());
        let route = match &function.executor {
            Executor::Remote(RemoteSettings { push: Some(_) }) => Route::Push { tag },
            Executor::Remote(RemoteSettings { push: None }) => Route::Remote { tag },
            Executor::Rust(_) | Executor::Process(_) | Executor::Http(_) => self.inner.nodes.route(tag),
        };
        let retry = request.retry.as_ref().or(function.retry.as_ref());
        let as_ms = |duration: Option<HumanDuration>| duration.map(HumanDuration::as_ms);
        Ok(Invocation {
            namespace: scope.namespace.clone(),
            tenant: scope.tenant.clone(),
            function: request.function.into(),
            input: request.input,
            route,
            retry: retry.map_or_else(Retry::never, RetryPolicy::to_retry),
            timeout_ms: as_ms(request.timeout.or(function.effective_timeout())),
            deadline_ms: as_ms(request.deadline.or(function.deadline)),
            heartbeat_timeout_ms: as_ms(request.heartbeat_timeout.or(function.heartbeat_timeout)),
            gives_up_when_lost: false,
            settle: None,
        })
    }

    /// Compiling and checking are left to the threads for that. The schema is taken out of what was found.
    async fn check_input(
        &self,
        scope: &Scope,
        found: &mut VersionedFunction,
        input: &Payload,
    ) -> Result<(), FunctionError> {
        let (of, input) = (format!("function {}", found.name), input.clone());
        match found.origin {
            Origin::Configured => {
                let Some(declared) = self.inner.configured.get(&found.name).cloned() else { return Ok(()) };
                if declared.schema.is_none() {
                    return Ok(());
                }
                let check = move || {
                    let schema = declared.schema.as_ref();
                    schema.map_or(Ok(()), |schema| check_against(schema, &of, &input))
                };
                self.on_schema_thread(scope, check).await
            }
            Origin::Stored { .. } => {
                self.inner.policy.check(scope, &found.function)?;
                let Some(schema) = found.function.input_schema.take() else { return Ok(()) };
                let (inner, owner) = (Arc::clone(&self.inner), scope.clone());
                let check = move || {
                    let compiled = inner.schemas.get(&owner, &schema)?;
                    check_against(&compiled, &of, &input)
                };
                self.on_schema_thread(scope, check).await
            }
        }
    }

    /// Checks the input of an orchestration against the schema that it declares, under the limits for functions.
    ///
    /// # Errors
    /// `invalid-input` with every place that does not fit; `schema-too-costly`, also for a schema over a limit; `unavailable` when
    /// too many of the tenant wait to be checked.
    pub async fn check_orchestration_input(
        &self,
        scope: &Scope,
        (name, schema): (&str, &Payload),
        input: &Payload,
    ) -> Result<(), FunctionError> {
        let of = format!("orchestration {name}");
        let (inner, owner, schema, input) =
            (Arc::clone(&self.inner), scope.clone(), schema.clone(), input.clone());
        let check = move || {
            let costly = |problem: String| FunctionError::TooCostly { of: of.clone(), problem };
            let schema = serde_json::from_str(schema.as_str()).map_err(|error| costly(error.to_string()))?;
            let compiled = inner.schemas.get(&owner, &schema).map_err(|error| costly(error.to_string()))?;
            check_against(&compiled, &of, &input)
        };
        self.on_schema_thread(scope, check).await
    }

    /// Runs what belongs to a tenant on a thread that compiles schemas and checks inputs.
    pub(super) async fn on_schema_thread<T: Send + 'static>(
        &self,
        scope: &Scope,
        work: impl FnOnce() -> Result<T, FunctionError> + Send + 'static,
    ) -> Result<T, FunctionError> {
        let patience = match self.caller {
            CallerKind::Client => Patience::Caller,
            CallerKind::Scheduler => Patience::Scheduler(&*self.inner.clock),
        };
        threads::shared().run(scope, patience, work).await?
    }
}

/// Checks an input against the schema of a function or an orchestration.
fn check_against(schema: &InputSchema, of: &str, input: &Payload) -> Result<(), FunctionError> {
    let violations = match serde_json::from_str(input.as_str()) {
        Ok(input) => schema.violations(&input).map_err(|Unchecked { cost }| FunctionError::TooCostly {
            of: of.to_owned(),
            problem: cost.to_string(),
        })?,
        Err(error) => vec![Violation { path: String::new(), reason: error.to_string() }],
    };
    if violations.is_empty() {
        return Ok(());
    }
    Err(FunctionError::InvalidInput { of: of.to_owned(), violations })
}
