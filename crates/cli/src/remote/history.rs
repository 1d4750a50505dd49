//! `segno history`: the events of an instance.

use segno_api::Client;
use segno_api::history::HistoryEvent;

use super::arguments::History;
use crate::exit::Failure;
use crate::output::{Output, Page, Rows};

/// Longest data of an event that is shown to people, in characters.
const MAX_SHOWN: usize = 100;

/// Does it.
pub async fn run(arguments: History, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let page = Page::whole(all(&client, &arguments.id, arguments.execution).await?);
    let mut rows = Rows::new(["event", "at", "kind", "data"]);
    for event in &page.items {
        rows.add([
            event.id.to_string(),
            output.exact_time(event.at),
            event.kind.clone(),
            shortened(event.data.text()),
        ]);
    }
    output.list(&page, &rows)
}

/// All events of an execution.
///
/// # Errors
/// Those of the server.
pub async fn all(client: &Client, id: &str, execution: Option<u64>) -> Result<Vec<HistoryEvent>, Failure> {
    let mut page = client.history(id, execution, 0).await?;
    let mut events = page.events;
    while let Some(after) = page.next_after {
        page = client.history(id, Some(page.execution), after).await?;
        events.append(&mut page.events);
    }
    Ok(events)
}

/// Data in one line that fits a terminal.
pub fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
