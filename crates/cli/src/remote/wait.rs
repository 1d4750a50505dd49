//! `segno wait`: waits for the end of an instance and prints its result.

use std::time::Duration;

use segno::clock::SystemClock;
use segno_api::instance::{Instance, Status};
use segno_api::{Client, ClientError};
use segno_server::HumanDuration;

use super::arguments::Wait;
use super::connection::RETRY_FOR;
use super::list::status;
use crate::exit::Failure;
use crate::output::Output;

/// One request waits so long, then asks again.
const ONE_WAIT: Duration = Duration::from_secs(50);

/// Does it.
pub async fn run(arguments: Wait, output: &Output) -> Result<(), Failure> {
    until_ended(&arguments.connection.client(output)?, &arguments.id, arguments.timeout, output).await
}

/// Waits for the end of an instance and prints its result.
///
/// # Errors
/// When it does not complete, or not in time, or when the server does not tell.
pub async fn until_ended(
    client: &Client,
    id: &str,
    longest: Option<HumanDuration>,
    output: &Output,
) -> Result<(), Failure> {
    let clock = SystemClock::shared();
    let deadline_ms = longest.map(|longest| clock.now_ms().saturating_add(longest.as_ms()));
    // The first answer does not wait: an address that is wrong is reported soon. After that the server may restart.
    let first = match longest.map(|longest| longest.get()) {
        Some(longest) if longest < RETRY_FOR => client.clone().retry_for(longest),
        _ => client.clone(),
    };
    let mut found = first.instance(id, Duration::ZERO).await;
    loop {
        match &found {
            Ok(instance) if has_ended(instance) => return ended(instance, output),
            Ok(_) => {}
            Err(error) if error.is_temporary() && deadline_ms.is_some() => {}
            Err(_) => return found.map(drop).map_err(Failure::from),
        }
        let left = deadline_ms.map(|at| Duration::from_millis(at.saturating_sub(clock.now_ms())));
        if let Some(longest) = longest
            && left.is_some_and(|left| left.is_zero())
        {
            return Err(not_ended(id, longest, found));
        }
        let patient = client.clone().retry_for(left.unwrap_or(Duration::MAX));
        found = patient.instance(id, left.unwrap_or(ONE_WAIT).min(ONE_WAIT)).await;
    }
}

/// The time is over: what the last answer told, or that there was none.
fn not_ended(id: &str, longest: HumanDuration, last: Result<Instance, ClientError>) -> Failure {
    match last {
        Ok(instance) => {
            let status = status(instance.status);
            Failure::TimedOut(format!("{id} has not ended within {longest}; its status is {status}"))
        }
        Err(error) => {
            // A server that is busy or stops has answered, and still does not know.
            let silent = if error.status().is_some() { "" } else { "the server did not answer, so " };
            let unknown = format!("{silent}whether {id} ended within {longest} is not known");
            Failure::Unanswered { error, unknown }
        }
    }
}

fn has_ended(instance: &Instance) -> bool {
    matches!(instance.status, Status::Completed | Status::Failed | Status::Cancelled)
}

fn ended(instance: &Instance, output: &Output) -> Result<(), Failure> {
    let result = instance.result.as_ref().map_or("null", |result| result.text());
    if instance.status == Status::Completed {
        return output.text(instance, &format!("{result}\n"));
    }
    if output.format.is_for_programs() {
        output.text(instance, "")?;
    }
    let why = instance.failure.as_ref().map_or_else(String::new, |failure| format!(": {}", failure.message));
    let how = if instance.status == Status::Cancelled { "was cancelled" } else { "failed" };
    Err(Failure::NotCompleted(format!("{} {how}{why}", instance.id)))
}
