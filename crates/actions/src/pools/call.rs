//! A call through a pool: from a request to an invocation that is ready to start.

use segno::{Payload, Retry};

use super::catalogue::Pools;
use super::pool::Transport;
use crate::functions::{
    CallLimits, CallName, FunctionError, Functions, HumanDuration, Invocation, InvokeRequest, PoolName,
    RetryPolicy, Route, Scope,
};

/// A wish to run a function of a pool. The pool decides where it is run.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolCall {
    /// The pool.
    pub pool: PoolName,
    /// The function.
    pub function: CallName,
    /// Its input.
    pub input: Payload,
    /// When to try again; once without it.
    pub retry: Option<RetryPolicy>,
    /// Longest time of one attempt; as the pool says without it.
    pub timeout: Option<HumanDuration>,
    /// Longest time of all attempts and the pauses between them.
    pub deadline: Option<HumanDuration>,
    /// Longest silence of an attempt.
    pub heartbeat_timeout: Option<HumanDuration>,
}

impl PoolCall {
    /// A call with everything else as the pool says.
    pub fn new(pool: PoolName, function: CallName, input: Payload) -> Self {
        PoolCall {
            pool,
            function,
            input,
            retry: None,
            timeout: None,
            deadline: None,
            heartbeat_timeout: None,
        }
    }
}

impl Pools {
    /// Makes an invocation of a call; start [`INVOKE`](crate::functions::INVOKE) with it. A local pool calls the function of
    /// the catalogue whose name is that of the call in lowercase.
    ///
    /// # Errors
    /// `unknown-pool`, `function-not-in-pool`, `pool-is-bus`, `pool-paused` for a local pool, `invalid-invocation`
    /// for a setting, and those of [`Functions::prepare`] for a local pool.
    pub async fn prepare(
        &self,
        functions: &Functions,
        scope: &Scope,
        call: PoolCall,
    ) -> Result<Invocation, FunctionError> {
        let found = self.find(scope, &call.pool).await?;
        found.check_function(&call.function)?;
        let timeout = call.timeout.or(found.pool.timeout);
        match found.pool.transport {
            Transport::Queue => queued(scope, PoolCall { timeout, ..call }),
            Transport::Local => {
                // Nodes take these calls with all others, so they cannot wait in the queue.
                if self.state(scope, &call.pool).await?.paused.is_some() {
                    return Err(FunctionError::PoolPaused { pool: call.pool.to_string() });
                }
                let request = InvokeRequest {
                    retry: call.retry,
                    timeout,
                    deadline: call.deadline,
                    heartbeat_timeout: call.heartbeat_timeout,
                    ..InvokeRequest::new(call.function.as_str().to_lowercase().parse()?, call.input)
                };
                functions.prepare(scope, request).await
            }
            Transport::Bus => Err(FunctionError::BusPool { pool: call.pool.to_string() }),
        }
    }
}

fn queued(scope: &Scope, call: PoolCall) -> Result<Invocation, FunctionError> {
    let limits = CallLimits {
        retry: call.retry.as_ref(),
        timeout: call.timeout,
        deadline: call.deadline,
        heartbeat_timeout: call.heartbeat_timeout,
    };
    limits.check_values().map_err(|(field, problem)| FunctionError::InvalidInvocation { field, problem })?;
    let as_ms = |duration: Option<HumanDuration>| duration.map(HumanDuration::as_ms);
    Ok(Invocation {
        namespace: scope.namespace.clone(),
        tenant: scope.tenant.clone(),
        function: call.function,
        input: call.input,
        route: Route::Pool { pool: call.pool },
        retry: call.retry.as_ref().map_or_else(Retry::never, RetryPolicy::to_retry),
        timeout_ms: as_ms(call.timeout),
        deadline_ms: as_ms(call.deadline),
        heartbeat_timeout_ms: as_ms(call.heartbeat_timeout),
        gives_up_when_lost: false,
        settle: None,
    })
}
