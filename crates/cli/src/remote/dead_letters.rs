//! `segno dead-letters …`: what was given up, and the way back.

use clap::{Args, Subcommand, ValueEnum};
use segno_api::Client;
use segno_api::dead_letter::{DeadLetter, GivenUp, ListDeadLetters};

use super::connection::Connection;
use super::history::shortened;
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table};

/// What to do with dead letters.
#[derive(Debug, Args)]
pub struct DeadLettersArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: DeadLettersVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub enum DeadLettersVerb {
    /// List dead letters, newest first.
    #[command(after_help = "Example:\n  segno dead-letters list --what activity")]
    List {
        /// Only of this instance.
        #[arg(long, value_name = "ID")]
        instance: Option<String>,
        /// Only of this sort.
        #[arg(long, value_enum)]
        what: Option<What>,
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a dead letter with what it carried.
    #[command(after_help = "Example:\n  segno dead-letters show ID")]
    Show {
        /// Id of the dead letter.
        id: String,
    },
    /// Put back what was given up, once: send the message again, or begin the next execution of the instance.
    #[command(after_help = "Example:\n  segno dead-letters resubmit ID")]
    Resubmit {
        /// Id of the dead letter.
        id: String,
    },
    /// Delete a dead letter.
    #[command(after_help = "Example:\n  segno dead-letters discard ID")]
    Discard {
        /// Id of the dead letter.
        id: String,
    },
}

/// What was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Messages that their instances could not take.
    Message,
    /// Turns that were delivered too often.
    Turn,
    /// Activities and calls that could not be read or were delivered too often.
    Activity,
}

/// Does what was asked.
pub async fn run(arguments: DeadLettersArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    match arguments.verb {
        DeadLettersVerb::List { instance, what, paging } => {
            let what = what.map(|what| match what {
                What::Message => GivenUp::Message,
                What::Turn => GivenUp::Turn,
                What::Activity => GivenUp::Activity,
            });
            let filter = ListDeadLetters { instance, what, ..ListDeadLetters::default() };
            list(&client, &filter, &paging, output).await
        }
        DeadLettersVerb::Show { id } => {
            let letter = client.dead_letter(&id).await?;
            output.print(&letter, table(&letter, output))
        }
        DeadLettersVerb::Resubmit { id } => {
            let done = client.resubmit_dead_letter(&id).await?;
            let what = match done.execution {
                Some(execution) => format!("execution {execution} begins"),
                None => "the message is sent again".to_owned(),
            };
            output.print(&done, Table::default().line(&done.instance, what))
        }
        DeadLettersVerb::Discard { id } => {
            client.discard_dead_letter(&id).await?;
            let discarded = serde_json::json!({ "discarded": id });
            output.print(&discarded, Table::default().line(&id, "discarded"))
        }
    }
}

async fn list(
    client: &Client,
    filter: &ListDeadLetters,
    paging: &Paging,
    output: &Output,
) -> Result<(), Failure> {
    let page = paging.gather(|page| async move {
        let request = ListDeadLetters { limit: page.limit, cursor: page.cursor, ..filter.clone() };
        let page = client.dead_letters(&request).await?;
        Ok(Page::of(page.dead_letters, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["id", "what", "instance", "given up", "deliveries", "reason"]);
    for letter in &page.items {
        rows.add([
            letter.id.clone(),
            what(letter.what).to_owned(),
            letter.instance.clone(),
            output.time(letter.given_up_at),
            letter.deliveries.to_string(),
            shortened(&letter.reason),
        ]);
    }
    output.list(&page, &rows)
}

fn what(what: GivenUp) -> &'static str {
    match what {
        GivenUp::Message => "message",
        GivenUp::Turn => "turn",
        GivenUp::Activity => "activity",
    }
}

fn table(letter: &DeadLetter, output: &Output) -> Table {
    let way_back = match letter.what {
        GivenUp::Message => "sends the message again",
        GivenUp::Turn => "begins the next execution of the instance",
        GivenUp::Activity => "begins the next execution of the instance, if it has failed",
    };
    let optional = [
        ("execution", letter.execution.map(|execution| execution.to_string())),
        ("name", letter.name.clone()),
        ("payload", letter.payload.as_ref().map(|payload| shortened(payload.text()))),
        ("unreadable body", letter.raw.as_deref().map(shortened)),
    ];
    let mut table = Table::default()
        .line("id", &letter.id)
        .line("what", what(letter.what))
        .line("instance", &letter.instance);
    for (name, value) in optional {
        if let Some(value) = value {
            table = table.line(name, value);
        }
    }
    table
        .line("reason", &letter.reason)
        .line("deliveries", letter.deliveries.to_string())
        .line("given up", output.time(letter.given_up_at))
        .line("kept until", output.time_or_none(letter.expires_at))
        .line("resubmit", way_back)
}
