//! `segno invoke`: calls a function.

use std::time::Duration;

use segno_api::invocation::{Invoke as Request, RetryPolicy};

use super::arguments::Invoke;
use super::connection::telling_why_it_waits;
use super::start::{json, pairs};
use super::wait;
use crate::exit::Failure;
use crate::output::{Output, Table};

/// Does it.
pub async fn run(arguments: Invoke, output: &Output) -> Result<(), Failure> {
    let client = telling_why_it_waits(arguments.connection.client(output)?, output);
    let request = Request {
        key: arguments.call_key,
        tag: arguments.tag,
        pool: arguments.pool,
        timeout: arguments.attempt_timeout.map(|time| time.to_string()),
        deadline: arguments.deadline.map(|time| time.to_string()),
        retry: arguments.attempts.map(|attempts| RetryPolicy {
            attempts,
            initial_delay: None,
            factor: None,
            max_delay: None,
        }),
        labels: pairs("--label", &arguments.labels)?,
        ..Request::new(arguments.function, json("--input", &arguments.input)?)
    };
    let started = client.invoke(&request, Duration::ZERO).await?;
    if arguments.no_wait {
        let what = if started.created { "called" } else { "was called already" };
        return output.print(&started, Table::default().line(&started.id, what));
    }
    wait::until_ended(&client, &started.id, arguments.timeout, output).await
}
