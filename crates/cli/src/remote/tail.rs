//! `segno tail`: the events of an instance as they happen, or what happens to all of them.

use segno_api::change::{BatchChange, Change, FollowChanges};
use segno_api::history::HistoryEvent;

use super::arguments::Tail;
use super::batch;
use super::following::{Following, Source};
use super::history::shortened;
use crate::exit::Failure;
use crate::output::Output;

/// Does it.
pub async fn run(arguments: Tail, output: &Output) -> Result<(), Failure> {
    let Tail { id, prefix, status, orchestration, function, label, connection } = arguments;
    let client = connection.client(output)?;
    let source = match id {
        Some(id) => Source::Instance(id),
        None => Source::All(FollowChanges { prefix, status, orchestration, function, label, batch: None }),
    };
    let mut following = Following::begin(client, source).await?;
    loop {
        let event = following.next(output).await?;
        match event.name.as_str() {
            "end" => return Ok(()),
            "listening" => {}
            "lagged" => {
                output.warn("some changes are missing here; `segno list` shows how things stand");
            }
            _ => output.item(&event.data, || line(&event.data, output))?,
        }
    }
}

fn line(data: &str, output: &Output) -> String {
    if let Ok(change) = serde_json::from_str::<Change>(data) {
        let name = serde_json::to_value(change.change).unwrap_or_default();
        let name = name.as_str().unwrap_or_default();
        let what = change.function.or(change.orchestration).unwrap_or_default();
        return format!("{}  {name:<16}  {what:<20}  {}\n", output.exact_time(change.at), change.id);
    }
    if let Ok(change) = serde_json::from_str::<BatchChange>(data) {
        let batch = format!("batch {}", change.batch);
        let (at, rows) = (output.exact_time(change.at), batch::changed_rows(&change));
        return format!("{at}  {batch:<16}  {:<20}  {rows}\n", change.runbook);
    }
    match serde_json::from_str::<HistoryEvent>(data) {
        Ok(event) => {
            let (at, data) = (output.exact_time(event.at), shortened(event.data.text()));
            format!("{at}  {:>4}  {:<28}  {data}\n", event.id, event.kind)
        }
        Err(_) => format!("{data}\n"),
    }
}
