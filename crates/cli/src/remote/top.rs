//! `segno top` and `segno queues`: what the server is doing.

use std::io::{IsTerminal, stdout};
use std::time::Duration;

use segno::clock::{self, SystemClock};
use segno_api::system::{Queues, System};
use segno_api::{Client, ClientError};
use serde::Serialize;

use super::arguments::Nothing;
use crate::exit::Failure;
use crate::output::{Output, Table, count};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Look {
    system: System,
    queues: Queues,
}

/// Lengths of the queues.
pub async fn queues(arguments: Nothing, output: &Output) -> Result<(), Failure> {
    let queues = arguments.connection.client(output)?.queues().await?;
    output.print(&queues, queue_lines(Table::default(), &queues))
}

/// Counts, rates and queues: once, or again and again on a terminal.
pub async fn run(arguments: Nothing, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let mut now = look(&client).await?;
    if output.format.is_for_programs() || !stdout().is_terminal() {
        return output.print(&now, table(&now, None));
    }
    let clock = SystemClock::shared();
    // A server that answered before may restart, however long that takes: each look is one try.
    let client = client.retry_for(Duration::ZERO);
    let (mut before, mut silent) = (None, None);
    loop {
        // Clears the screen and goes to its first line.
        print!("\x1b[2J\x1b[H");
        let ended = |look: &Look| {
            look.system.counts.completed + look.system.counts.failed + look.system.counts.cancelled
        };
        let rate = before.map(|before| ended(&now).saturating_sub(before));
        output.print(&now, table(&now, rate))?;
        if let Some(reason) = &silent {
            output.warn(&format!("these numbers are old: {reason}"));
        }
        before = Some(ended(&now));
        clock::sleep(&*clock, EVERY).await;
        match look(&client).await {
            Ok(look) => (now, silent) = (look, None),
            Err(error) if error.is_temporary() => (before, silent) = (None, Some(error.to_string())),
            Err(error) => return Err(error.into()),
        }
    }
}

async fn look(client: &Client) -> Result<Look, ClientError> {
    Ok(Look { system: client.system().await?, queues: client.queues().await? })
}

fn table(look: &Look, ended_per_second: Option<u64>) -> Table {
    let (system, counts) = (&look.system, &look.system.counts);
    let mut table = Table::default()
        .line("node", &system.node)
        .line("version", &system.version)
        .line("store", &system.store)
        .section("instances")
        .line("pending", count(counts.pending))
        .line("running", count(counts.running))
        .line("paused", count(counts.paused))
        .line("completed", count(counts.completed))
        .line("failed", count(counts.failed))
        .line("cancelled", count(counts.cancelled));
    if let Some(rate) = ended_per_second {
        table = table.line("ended per second", count(rate));
    }
    queue_lines(table.section("queues"), &look.queues)
}

fn queue_lines(table: Table, queues: &Queues) -> Table {
    table
        .line("messages", count(queues.orchestrator))
        .line("activities", count(queues.worker))
        .line("delayed", count(queues.delayed))
        .line("being worked on", count(queues.locked))
}
