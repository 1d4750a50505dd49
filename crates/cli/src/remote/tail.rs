//! `segno tail`: the events of an instance as they happen, or what happens to all of them.

use segno_api::change::{Change, FollowChanges};
use segno_api::client::EventStream;
use segno_api::history::HistoryEvent;
use segno_api::{Client, ClientError};

use super::arguments::Tail;
use super::history::{clock_time, shortened, shown_time};
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::write;

/// Connections that broke before an event came, until we give up.
const MAX_TRIES: u32 = 5;

/// What is followed.
enum Source {
    Instance(String),
    All(FollowChanges),
}

impl Source {
    async fn open(&self, client: &Client, after: Option<&str>) -> Result<EventStream, ClientError> {
        match self {
            Source::Instance(id) => client.events(id, after).await,
            Source::All(filter) => client.changes(filter, after).await,
        }
    }
}

/// Does it.
pub async fn run(arguments: Tail, format: Format) -> Result<(), Failure> {
    let Tail { id, prefix, status, orchestration, label, connection } = arguments;
    let client = connection.client()?;
    let source = match id {
        Some(id) => Source::Instance(id),
        None => Source::All(FollowChanges { prefix, status, orchestration, label }),
    };
    let mut last = None;
    let mut tries = 0;
    loop {
        let mut stream = source.open(&client, last.as_deref()).await?;
        loop {
            match stream.next().await {
                Ok(Some(event)) if event.name == "end" => return Ok(()),
                Ok(Some(event)) if event.name == "revoked" => {
                    return Err(Failure::Serving(format!("the server ended the stream: {}", event.data)));
                }
                Ok(Some(event)) => {
                    tries = 0;
                    last = Some(event.id.clone());
                    match event.name.as_str() {
                        "listening" => {}
                        "lagged" => {
                            eprintln!("some changes are missing here; `segno list` shows how things stand")
                        }
                        _ => write(line(&event.data, format).as_bytes())?,
                    }
                }
                // The server stopped or the connection broke: on after the last event.
                Ok(None) | Err(_) if tries < MAX_TRIES => {
                    tries += 1;
                    break;
                }
                Ok(None) => return Err(Failure::Serving("the server ended the stream".to_owned())),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn line(data: &str, format: Format) -> String {
    if format != Format::Text {
        return format!("{data}\n");
    }
    if let Ok(change) = serde_json::from_str::<Change>(data) {
        let name = serde_json::to_value(change.change).unwrap_or_default();
        let name = name.as_str().unwrap_or_default();
        let orchestration = change.orchestration.unwrap_or_default();
        return format!("{}  {name:<16}  {orchestration:<20}  {}\n", shown_time(change.at), change.id);
    }
    match serde_json::from_str::<HistoryEvent>(data) {
        Ok(event) => {
            let (at, data) = (clock_time(&event), shortened(event.data.text()));
            format!("{at}  {:>4}  {:<28}  {data}\n", event.id, event.kind)
        }
        Err(_) => format!("{data}\n"),
    }
}
