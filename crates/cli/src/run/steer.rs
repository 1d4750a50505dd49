//! `segno run cancel|pause|resume`.

use segno_api::Client;
use segno_api::run::{CancelRun, RunChanged};

use crate::exit::Failure;
use crate::output::{Output, Table};

/// Cancels a run.
pub async fn cancel(
    client: &Client,
    id: &str,
    reason: Option<String>,
    output: &Output,
) -> Result<(), Failure> {
    shown(&client.cancel_run(id, &CancelRun { reason }).await?, "cancel", output)
}

/// Pauses a run.
pub async fn pause(client: &Client, id: &str, output: &Output) -> Result<(), Failure> {
    shown(&client.pause_run(id).await?, "pause", output)
}

/// Resumes a run.
pub async fn resume(client: &Client, id: &str, output: &Output) -> Result<(), Failure> {
    shown(&client.resume_run(id).await?, "resume", output)
}

/// What became of a request.
pub fn shown(changed: &RunChanged, request: &str, output: &Output) -> Result<(), Failure> {
    let state = if changed.is_visible { "applied" } else { "stored; it will be applied" };
    let table = Table::default().line("run", &changed.id).line("request", request).line("state", state);
    output.print(changed, table)
}
