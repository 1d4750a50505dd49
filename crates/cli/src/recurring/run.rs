//! `segno recurring run`: once more, now, out of schedule.

use clap::Args;
use segno_api::recurring::RunRecurring;

use crate::exit::Failure;
use crate::output::{Output, Table};
use crate::remote::connection::Connection;

/// What to run.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Id or name of the recurring action.
    pub id: String,
    /// Names the run: a second one with the same key changes nothing.
    #[arg(long = "run-key", value_name = "TEXT")]
    pub run_key: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Does it.
pub async fn run(arguments: RunArguments, output: &Output) -> Result<(), Failure> {
    let request = RunRecurring { key: arguments.run_key };
    let done = arguments.connection.client(output)?.run_recurring(&arguments.id, &request).await?;
    let decision = match done.created {
        true => done.decision.clone(),
        false => format!("{} before, under the same key", done.decision),
    };
    let mut table = Table::default()
        .line("id", &done.id)
        .line("decision", decision)
        .line("time", output.exact_time(done.time));
    for (name, value) in [("instance", &done.instance), ("detail", &done.detail)] {
        if let Some(value) = value {
            table = table.line(name, value);
        }
    }
    output.print(&done, table)
}
