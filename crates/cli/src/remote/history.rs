//! `segno history`: the events of an instance.

use segno_api::client::PageRequest;
use segno_api::history::{HistoryEvent, UnreadableEvents};
use segno_api::{Client, Unreadable};

use super::arguments::History;
use crate::exit::Failure;
use crate::output::{Output, Page, Rows};

/// Longest data of an event that is shown to people, in characters.
const MAX_SHOWN: usize = 100;

/// Most executions that are named, the newest ones.
const MAX_EXECUTIONS: usize = 5;

/// Prints the events, and on stderr what is left out of the table.
pub async fn run(arguments: History, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let whole = all(&client, &arguments.id, arguments.execution).await?;
    let execution = whole.execution;
    let unreadable = whole.unreadable.iter().map(row).collect();
    let page = Page::of(whole.events, unreadable, None);
    let mut is_cut = false;
    let mut rows = Rows::new(["event", "at", "kind", "data"]);
    for event in &page.items {
        let whole = event.data.text();
        let data = if arguments.full { whole.to_owned() } else { shortened(whole) };
        is_cut |= data != whole;
        rows.add([event.id.to_string(), output.exact_time(event.at), event.kind.clone(), data]);
    }
    output.list(&page, &rows)?;
    if is_cut {
        output.hint(&format!("data is cut after {MAX_SHOWN} characters; pass --full to see all of it"));
    }
    if !output.format.is_for_programs() {
        hint_of_others(&client, &arguments.id, execution, output).await?;
    }
    Ok(())
}

/// Tells which other executions there are.
async fn hint_of_others(client: &Client, id: &str, shown: u64, output: &Output) -> Result<(), Failure> {
    // The newest ones, because an instance that continues as new has thousands.
    let newest = PageRequest { limit: Some(MAX_EXECUTIONS + 1), cursor: None };
    let page = client.executions(id, newest).await?;
    let numbers = page.executions.iter().map(|one| one.execution).filter(|one| *one != shown);
    let mut others: Vec<u64> = numbers.collect();
    let are_left_out = page.next_cursor.is_some() || others.len() > MAX_EXECUTIONS;
    others.truncate(MAX_EXECUTIONS);
    others.reverse();
    let earlier = if are_left_out { "earlier ones (`segno executions`), " } else { "" };
    if !others.is_empty() {
        let others: Vec<String> = others.iter().map(u64::to_string).collect();
        output.hint(&format!(
            "this is execution {shown}; there are others, to be shown with --execution: {earlier}{}",
            others.join(", ")
        ));
    }
    Ok(())
}

/// All events of an execution.
///
/// # Errors
/// Those of the server.
pub async fn all(client: &Client, id: &str, execution: Option<u64>) -> Result<Whole, Failure> {
    let mut page = client.history(id, execution, 0).await?;
    let (mut events, mut unreadable) = (page.events, page.unreadable);
    while let Some(after) = page.next_after {
        page = client.history(id, Some(page.execution), after).await?;
        events.append(&mut page.events);
        unreadable.append(&mut page.unreadable);
    }
    Ok(Whole { execution: page.execution, events, unreadable })
}

/// Events that cannot be read, as a row of a list.
fn row(lost: &UnreadableEvents) -> Unreadable {
    Unreadable { id: numbers(lost), reason: lost.reason.clone() }
}

/// Which events cannot be read, for people.
pub fn numbers(lost: &UnreadableEvents) -> String {
    let first = lost.after + 1;
    match lost.before.map(|before| before - 1) {
        Some(last) if last == first => format!("event {first}"),
        Some(last) => format!("events {first} to {last}"),
        None => format!("all events from {first} on"),
    }
}

/// The history of an execution.
pub struct Whole {
    /// Which execution.
    pub execution: u64,
    /// Its events, ascending.
    pub events: Vec<HistoryEvent>,
    /// Events that cannot be read.
    pub unreadable: Vec<UnreadableEvents>,
}

/// Data in one line that fits a terminal.
pub fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
