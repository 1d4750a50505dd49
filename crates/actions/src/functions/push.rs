//! Handing a call to the URL of a worker elsewhere. It is an HTTP call like any other: signed, guarded, bounded.

use std::time::Duration;

use reqwest::StatusCode;
use segno::{Category, Failure, Payload};

use super::catalogue::Functions;
use super::function::Executor;
use super::http::{self, HttpCall, Subject};
use super::invoke::failure;
use super::names::{CallName, Scope};
use super::remote::Push;

/// Where the calls of a function are sent, as it is declared now.
pub struct PushTarget(Push);

impl PushTarget {
    /// At most so many calls at once.
    pub fn max_in_flight(&self) -> usize {
        self.0.max_in_flight.map_or(usize::MAX, usize::from)
    }
}

/// What is handed to a worker.
pub struct PushDelivery<'a> {
    /// Where to.
    pub target: &'a PushTarget,
    /// The same for every attempt and delivery of the call.
    pub idempotency_key: &'a str,
    /// What the worker gets to see.
    pub body: &'a str,
    /// Within this time the worker must have answered.
    pub timeout: Duration,
}

/// What a worker said to a call that was pushed to it.
#[derive(Debug, Clone, PartialEq)]
pub enum Pushed {
    /// It is done, and this is the result.
    Done(Payload),
    /// The worker has taken it over and answers later (202).
    Accepted,
}

impl Functions {
    /// Where the calls of a function are sent.
    ///
    /// # Errors
    /// `unknown-function`; `function-is-remote` when the function is not pushed any more.
    pub async fn push_target(&self, scope: &Scope, function: &CallName) -> Result<PushTarget, Failure> {
        let name = function.in_catalogue().map_err(|error| failure(&error))?;
        let declared = self.function_of(scope, &name).await?;
        let push = match declared.executor {
            Executor::Remote(remote) => remote.push,
            _ => None,
        };
        push.map(PushTarget).ok_or_else(|| {
            let message = format!(
                "function {function} is not pushed any more since this call was made, so no node sends it; call it again"
            );
            Failure::new(Category::Configuration, message).code("function-is-remote")
        })
    }

    /// Sends a call to the worker of its function.
    ///
    /// # Errors
    /// Failures as of the executor `http`.
    pub async fn push(&self, delivery: PushDelivery<'_>) -> Result<Pushed, Failure> {
        let call = HttpCall {
            settings: &delivery.target.0.to_http(),
            clients: &self.inner.clients,
            idempotency_key: delivery.idempotency_key,
            timeout: Some(delivery.timeout),
            clock: &*self.inner.clock,
            subject: Subject::Function,
        };
        let answer = http::run(call, delivery.body).await?;
        Ok(if answer.status == StatusCode::ACCEPTED { Pushed::Accepted } else { Pushed::Done(answer.body) })
    }
}
