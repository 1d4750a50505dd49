//! `segno recurring pause`, `resume` and `delete`.

use segno_api::recurring::{PauseRecurring, RecurringState};

use super::arguments::{One, Pause};
use crate::exit::Failure;
use crate::output::{Output, Table};

/// Pauses one.
pub async fn pause(arguments: Pause, output: &Output) -> Result<(), Failure> {
    let resumes_at = output.optional_moment(arguments.until)?;
    let pause = PauseRecurring { note: arguments.note, resumes_at, ..PauseRecurring::default() };
    told(&arguments.connection.client(output)?.pause_recurring(&arguments.id, &pause).await?, output)
}

/// Lets one go on.
pub async fn resume(arguments: One, output: &Output) -> Result<(), Failure> {
    told(&arguments.connection.client(output)?.resume_recurring(&arguments.id).await?, output)
}

/// Deletes one.
pub async fn delete(arguments: One, output: &Output) -> Result<(), Failure> {
    arguments.connection.client(output)?.delete_recurring(&arguments.id).await?;
    let deleted = serde_json::json!({ "deleted": arguments.id });
    output.print(&deleted, Table::default().line(&arguments.id, "deleted"))
}

fn told(state: &RecurringState, output: &Output) -> Result<(), Failure> {
    let text = match state.next_execution_at {
        Some(next) => format!("fires next at {}", output.time(next)),
        None => "paused".to_owned(),
    };
    output.print(state, Table::default().line(&state.id, text))
}
