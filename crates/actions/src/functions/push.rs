//! Handing a call to the URL of a worker elsewhere. It is an HTTP call like any other: signed, guarded, bounded.

use std::time::Duration;

use reqwest::StatusCode;
use segno::{Category, Failure, Payload};

use super::catalogue::Functions;
use super::function::Executor;
use super::http::{self, HttpCall, Subject};
use super::invoke::failure;
use super::names::{CallName, Scope};

/// What is handed to a worker.
pub struct PushDelivery<'a> {
    /// The function.
    pub function: &'a CallName,
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
    /// Sends a call to the worker that its function names.
    ///
    /// # Errors
    /// Failures as of the executor `http`; `function-is-remote` when the function is not pushed any more.
    pub async fn push(&self, scope: &Scope, delivery: PushDelivery<'_>) -> Result<Pushed, Failure> {
        let name = delivery.function.in_catalogue().map_err(|error| failure(&error))?;
        let function = self.function_of(scope, &name).await?;
        let push = match function.executor {
            Executor::Remote(remote) => remote.push,
            _ => None,
        };
        let Some(push) = push else {
            let message = format!(
                "function {} is not pushed any more since this call was made, so no node sends it; call it again",
                delivery.function
            );
            return Err(Failure::new(Category::Configuration, message).code("function-is-remote"));
        };
        let call = HttpCall {
            settings: &push.to_http(),
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
