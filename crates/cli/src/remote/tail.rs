//! `segno tail`: the events of an instance as they happen, or what happens to all of them.

use std::time::Duration;

use segno::clock::{self, SystemClock};
use segno_api::change::{BatchChange, Change, FollowChanges};
use segno_api::client::EventStream;
use segno_api::history::HistoryEvent;
use segno_api::{Client, ClientError, Problem};
use serde::Deserialize;

use super::arguments::Tail;
use super::batch;
use super::history::shortened;
use crate::code;
use crate::exit::Failure;
use crate::output::Output;

/// Pause before a stream that ended is opened again; doubled each time until an event comes.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

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
pub async fn run(arguments: Tail, output: &Output) -> Result<(), Failure> {
    let Tail { id, prefix, status, orchestration, function, label, connection } = arguments;
    let client = connection.client(output)?;
    let source = match id {
        Some(id) => Source::Instance(id),
        None => Source::All(FollowChanges { prefix, status, orchestration, function, label, batch: None }),
    };
    let mut last = None;
    let mut pause = FIRST_PAUSE;
    let mut stream = source.open(&client, None).await?;
    loop {
        loop {
            match stream.next().await {
                Ok(Some(event)) if event.name == "end" => return Ok(()),
                Ok(Some(event)) if event.name == "revoked" => return Err(revoked(&event.data)),
                Ok(Some(event)) => {
                    pause = FIRST_PAUSE;
                    last = Some(event.id.clone());
                    match event.name.as_str() {
                        "listening" => {}
                        "lagged" => {
                            output.warn("some changes are missing here; `segno list` shows how things stand");
                        }
                        _ => output.item(&event.data, || line(&event.data, output))?,
                    }
                }
                // The server stopped or the connection broke: on after the last event.
                Ok(None) => break,
                Err(error) if error.is_temporary() => break,
                Err(error) => return Err(error.into()),
            }
        }
        clock::sleep(&SystemClock, pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        stream = reopened(&source, &client, last.as_deref(), output).await?;
    }
}

/// Opens the stream again. A server that answered before may restart, however long that takes; that it does not answer is
/// reported, because silence looks like an instance at rest.
async fn reopened(
    source: &Source,
    client: &Client,
    last: Option<&str>,
    output: &Output,
) -> Result<EventStream, Failure> {
    match source.open(client, last).await {
        Err(error) if error.is_temporary() => {
            output.warn(&format!("{error}; trying again until it answers, press Ctrl-C to stop"));
            let stream = source.open(&client.clone().retry_for(Duration::MAX), last).await?;
            output.warn("the server answers again");
            Ok(stream)
        }
        other => Ok(other?),
    }
}

/// What the last event of a stream tells whose caller may not have it any more.
#[derive(Deserialize)]
struct Revoked {
    code: String,
    detail: String,
}

/// The same failure as that of a request with the key.
fn revoked(data: &str) -> Failure {
    let Revoked { code, detail } = serde_json::from_str(data).unwrap_or_else(|_| Revoked {
        code: "unauthorized".to_owned(),
        detail: "the server ended the stream because the key does not allow it any more".to_owned(),
    });
    let status = if code == "forbidden" { 403 } else { 401 };
    Failure::Server(ClientError::Problem(Box::new(Problem {
        page: code::page(&code),
        title: String::new(),
        status,
        code,
        detail,
        error: None,
        errors: Vec::new(),
        request_id: None,
    })))
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
