//! Following a stream of events through broken connections and restarts of the server.

use std::time::Duration;

use segno::clock::{self, SystemClock};
use segno_api::change::FollowChanges;
use segno_api::client::{EventStream, StreamEvent};
use segno_api::{Client, ClientError, Problem};
use serde::Deserialize;

use crate::code;
use crate::exit::Failure;
use crate::output::Output;

/// Pause before a stream that ended is opened again; doubled each time until an event comes.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What is followed.
pub enum Source {
    /// The history of an instance.
    Instance(String),
    /// What happens to all instances and batches that match.
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

/// A stream that is opened again whenever it breaks, after the last event.
pub struct Following {
    client: Client,
    source: Source,
    /// `None` after it has broken.
    stream: Option<EventStream>,
    last: Option<String>,
    pause: Duration,
}

impl Following {
    /// Opens the stream.
    ///
    /// # Errors
    /// When the server refuses, or does not answer the first time.
    pub async fn begin(client: Client, source: Source) -> Result<Self, Failure> {
        let stream = Some(source.open(&client, None).await?);
        Ok(Following { client, source, stream, last: None, pause: FIRST_PAUSE })
    }

    /// The next event. May be dropped while it waits: nothing is lost.
    ///
    /// # Errors
    /// When the key does not allow it any more, or the server refuses.
    pub async fn next(&mut self, output: &Output) -> Result<StreamEvent, Failure> {
        loop {
            if self.stream.is_none() {
                clock::sleep(&SystemClock, self.pause).await;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                self.stream = Some(self.reopened(output).await?);
            }
            let Some(stream) = &mut self.stream else { continue };
            match stream.next().await {
                Ok(Some(event)) if event.name == "revoked" => return Err(revoked(&event.data)),
                Ok(Some(event)) => {
                    self.pause = FIRST_PAUSE;
                    if !event.id.is_empty() {
                        self.last = Some(event.id.clone());
                    }
                    return Ok(event);
                }
                // The server stopped or the connection broke: on after the last event.
                Ok(None) => self.stream = None,
                Err(error) if error.is_temporary() => self.stream = None,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Opens the stream again. A server that answered before may restart, however long that takes;
    /// that it does not answer is reported, because silence looks like rest.
    async fn reopened(&self, output: &Output) -> Result<EventStream, Failure> {
        let last = self.last.as_deref();
        match self.source.open(&self.client, last).await {
            Err(error) if error.is_temporary() => {
                output.warn(&format!("{error}; trying again until it answers, press Ctrl-C to stop"));
                let stream = self.source.open(&self.client.clone().retry_for(Duration::MAX), last).await?;
                output.warn("the server answers again");
                Ok(stream)
            }
            other => Ok(other?),
        }
    }
}

/// The data of the last event of a stream whose caller may not have it any more.
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
