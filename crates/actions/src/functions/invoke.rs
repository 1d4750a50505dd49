//! The built-in orchestration `invoke` and its one activity `function`.
//!
//! Whatever is outside the engine and wants a function run starts `invoke` under an id that follows from its own key
//! ([`super::invocation_id`]): starting it twice is starting it once.

use std::sync::Arc;
use std::time::Duration;

use segno::clock;
use segno::store::ErrorKind;
use segno::{Activity, ActivityContext, Category, Context, Failure, Orchestration, Payload, RegistryBuilder};

use super::catalogue::{Functions, Inner, Origin};
use super::error::FunctionError;
use super::function::{Executor, Function};
use super::http::{self, HttpCall, Subject};
use super::invocation::{Call, Invocation, Route, check_instance};
use super::names::{FunctionName, Scope};
use super::process::{self, Tool};

/// The orchestration that runs one function.
pub const INVOKE: Orchestration<Invocation, Payload> = Orchestration::new("invoke");

/// The activity that runs one attempt of a function.
pub const FUNCTION: Activity<Call, Payload> = Activity::new("function");

/// Orchestrations that only Segno itself starts. Their inputs are made here, after all checks; an input from outside
/// would get around them. Every door that takes the name of an orchestration refuses these.
const BUILT_IN: [&str; 1] = ["invoke"];

/// Name of the change that has `invoke` compare its scope with its instance. Recorded executions went past it.
const CHECKS_SCOPE: &str = "checks-scope";

/// How much longer than its own timeout the engine gives an attempt that a node runs: the executor ends it by itself, in
/// order and with a better message. This is for one that does not.
const TIMEOUT_MARGIN: Duration = Duration::from_secs(90);

/// Pause before a store that did not answer is asked again.
pub(super) const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Whether an orchestration of this name is one that only Segno itself starts.
pub fn is_built_in(orchestration: &str) -> bool {
    BUILT_IN.contains(&orchestration)
}

impl Functions {
    /// Adds the orchestration `invoke`, the activity `function`, and what settles the ends of orchestrations that rooms have
    /// started, to a registry.
    #[must_use]
    pub fn register(&self, registry: RegistryBuilder) -> RegistryBuilder {
        let (starting, running, settling) = (self.clone(), self.clone(), self.clone());
        let invoke = move |ctx, invocation| {
            let functions = starting.clone();
            async move { functions.invoke(ctx, invocation).await }
        };
        let registry = registry.settler(move |end| {
            let functions = settling.clone();
            async move { functions.settle_start(end).await }
        });
        registry.orchestration(INVOKE, invoke).activity(FUNCTION, move |ctx, call| {
            let functions = running.clone();
            async move { functions.run(ctx, call).await }
        })
    }

    /// The orchestration. Whatever asked for the call is told how it ended, also when it was cancelled.
    async fn invoke(&self, ctx: Context, mut invocation: Invocation) -> Result<Payload, Failure> {
        let (scope, settle) = (invocation.scope(), invocation.settle.take());
        let issuer = settle.as_ref().and_then(|settle| settle.issuer().map(str::to_owned));
        let checked = check_instance(&scope, ctx.instance_id());
        if let (Ok(()), Some(settle)) = (&checked, settle) {
            self.settle_at_end(&ctx, scope, settle);
        }
        // An execution that was recorded before goes on as recorded; the activity refuses what it asks for.
        if checked.is_err() && ctx.patched(CHECKS_SCOPE) {
            checked?;
        }
        call(&ctx, invocation, issuer).await
    }

    /// Runs one attempt of a call.
    async fn run(&self, ctx: ActivityContext, mut call: Call) -> Result<Payload, Failure> {
        call.check_instance(ctx.instance_id())?;
        if call.gives_up_when_lost {
            self.inner.begin_here(&ctx).await?;
        }
        let name = call.function.in_catalogue().map_err(|error| failure(&error))?;
        let function = self.function_of(&call.scope(), &name).await?;
        let inner = &self.inner;
        let timeout = call.timeout_ms.map(Duration::from_millis);
        self.hand_out(&mut call)?;
        match &function.executor {
            Executor::Rust(_) => inner.run_rust(ctx, &name, call.input, timeout).await,
            Executor::Process(settings) => {
                let (clock, store) = (&*inner.clock, &*inner.store);
                let tool = Tool { settings, ctx: &ctx, timeout, clock, store };
                process::run(tool, &call.input).await
            }
            Executor::Http(settings) => {
                let (clients, clock) = (&inner.clients, &*inner.clock);
                let (idempotency_key, subject) = (ctx.idempotency_key(), Subject::Function);
                let request = HttpCall { settings, clients, idempotency_key, timeout, clock, subject };
                let cancellation = ctx.cancellation_token();
                tokio::select! {
                    biased;
                    reason = cancellation.cancelled() => Err(Failure::cancelled(reason)),
                    answer = http::run(request, call.input.as_str()) => answer.map(|answer| answer.body),
                }
            }
            Executor::Remote(_) => {
                let message = format!(
                    "function {} has become remote after this call was made, so no node runs it; call it again",
                    call.function
                );
                Err(Failure::new(Category::Configuration, message).code("function-is-remote"))
            }
        }
    }

    /// The declaration as it is now. A store that is away is waited for: it is no fault of the function, and whoever waits
    /// for the call has set a deadline.
    pub(super) async fn function_of(&self, scope: &Scope, name: &FunctionName) -> Result<Function, Failure> {
        loop {
            match self.find(scope, name).await {
                Ok(found) => {
                    if matches!(found.origin, Origin::Stored { .. }) {
                        self.inner.policy.check(scope, &found.function).map_err(|error| failure(&error))?;
                    }
                    return Ok(found.function);
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    tracing::warn!(function = %name, %error, "a function could not be looked up; trying again");
                    clock::sleep(&*self.inner.clock, STORE_PAUSE).await;
                }
                Err(error) => return Err(failure(&error)),
            }
        }
    }
}

impl Inner {
    async fn run_rust(
        self: &Arc<Self>,
        ctx: ActivityContext,
        function: &FunctionName,
        input: Payload,
        timeout: Option<Duration>,
    ) -> Result<Payload, Failure> {
        let Some(code) = self.code.get(function) else {
            return Err(failure(&FunctionError::Unknown { function: function.to_string() }));
        };
        let work = code(ctx, input);
        let Some(timeout) = timeout else { return work.await };
        clock::timeout(&*self.clock, timeout, work).await.unwrap_or_else(|| {
            let ms = clock::duration_ms(timeout);
            let message = format!("function {function} took longer than {ms} ms");
            Err(Failure::new(Category::Timeout, message).code("attempt-timeout"))
        })
    }
}

/// An error of the catalogue that an attempt met. Trying again gives the same answer.
pub(super) fn failure(error: &FunctionError) -> Failure {
    Failure::new(Category::Configuration, error.to_string()).code(error.code())
}

async fn call(ctx: &Context, invocation: Invocation, issuer: Option<String>) -> Result<Payload, Failure> {
    let tag = invocation.routing_tag();
    let margin = match invocation.route {
        Route::Local { .. } | Route::Node { .. } => TIMEOUT_MARGIN,
        Route::Remote { .. } | Route::Push { .. } | Route::Pool { .. } => Duration::ZERO,
    };
    let call = Call {
        namespace: invocation.namespace,
        tenant: invocation.tenant,
        function: invocation.function,
        input: invocation.input,
        timeout_ms: invocation.timeout_ms,
        gives_up_when_lost: invocation.gives_up_when_lost,
        issuer,
    };
    let mut activity = ctx.activity(FUNCTION, call).retry(invocation.retry);
    if let Some(ms) = invocation.timeout_ms {
        activity = activity.timeout(Duration::from_millis(ms) + margin);
    }
    if let Some(ms) = invocation.deadline_ms {
        activity = activity.deadline(Duration::from_millis(ms));
    }
    if let Some(ms) = invocation.heartbeat_timeout_ms {
        activity = activity.heartbeat_timeout(Duration::from_millis(ms));
    }
    if let Some(tag) = tag {
        activity = activity.tag(tag);
    }
    activity.await
}
