//! `segno recurring pause`, `resume` and `delete`.

use segno::clock::SystemClock;
use segno_api::recurring::{PauseRecurring, RecurringState};

use super::arguments::{One, Pause};
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Table, print};

/// Pauses one.
pub async fn pause(arguments: Pause, format: Format) -> Result<(), Failure> {
    let resumes_at = arguments.until.map(|until| until.resolve(&SystemClock));
    let pause = PauseRecurring { note: arguments.note, resumes_at, ..PauseRecurring::default() };
    told(&arguments.connection.client()?.pause_recurring(&arguments.id, &pause).await?, format)
}

/// Lets one go on.
pub async fn resume(arguments: One, format: Format) -> Result<(), Failure> {
    told(&arguments.connection.client()?.resume_recurring(&arguments.id).await?, format)
}

/// Deletes one.
pub async fn delete(arguments: One, format: Format) -> Result<(), Failure> {
    arguments.connection.client()?.delete_recurring(&arguments.id).await?;
    let deleted = serde_json::json!({ "deleted": arguments.id });
    print(format, &deleted, Table::default().line(&arguments.id, "deleted"))
}

fn told(state: &RecurringState, format: Format) -> Result<(), Failure> {
    let text = match state.next_execution_at {
        Some(next) => format!("fires next at {next}"),
        None => "paused".to_owned(),
    };
    print(format, state, Table::default().line(&state.id, text))
}
