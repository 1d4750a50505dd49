//! `segno wait`: waits for the end of an instance and prints its result.

use std::time::Duration;

use segno::clock::SystemClock;
use segno_api::Client;
use segno_api::instance::{Instance, Status};

use super::arguments::Wait;
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::print_text;

/// One request waits so long, then asks again.
const ONE_WAIT: Duration = Duration::from_secs(50);

/// Does it.
pub async fn run(arguments: Wait, format: Format) -> Result<(), Failure> {
    until_ended(&arguments.connection.client()?, &arguments.id, arguments.timeout, format).await
}

/// Waits for the end of an instance and prints its result.
///
/// # Errors
/// When it does not complete, or not in time.
pub async fn until_ended(
    client: &Client,
    id: &str,
    seconds: Option<u64>,
    format: Format,
) -> Result<(), Failure> {
    let clock = SystemClock::shared();
    let deadline_ms = seconds.map(|seconds| clock.now_ms().saturating_add(seconds.saturating_mul(1_000)));
    // The first answer does not wait: an address that is wrong is reported soon. After that the server may restart.
    let mut found = client.instance(id, Duration::ZERO).await;
    loop {
        match found {
            Ok(instance) if has_ended(&instance) => return ended(&instance, format),
            Err(error) if !error.is_temporary() || deadline_ms.is_none() => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
        let left = deadline_ms.map(|at| Duration::from_millis(at.saturating_sub(clock.now_ms())));
        if left.is_some_and(|left| left.is_zero()) {
            let text = format!("{id} has not ended within {} s; it goes on", seconds.unwrap_or_default());
            return Err(Failure::TimedOut(text));
        }
        let patient = client.clone().retry_for(left.unwrap_or(Duration::MAX));
        found = patient.instance(id, left.unwrap_or(ONE_WAIT).min(ONE_WAIT)).await;
    }
}

fn has_ended(instance: &Instance) -> bool {
    matches!(instance.status, Status::Completed | Status::Failed | Status::Cancelled)
}

fn ended(instance: &Instance, format: Format) -> Result<(), Failure> {
    let result = instance.result.as_ref().map_or("null", |result| result.text());
    if instance.status == Status::Completed {
        return print_text(format, instance, &format!("{result}\n"));
    }
    if format == Format::Json {
        print_text(format, instance, "")?;
    }
    let why = instance.failure.as_ref().map_or_else(String::new, |failure| format!(": {}", failure.message));
    let how = if instance.status == Status::Cancelled { "was cancelled" } else { "failed" };
    Err(Failure::NotCompleted(format!("{} {how}{why}", instance.id)))
}
