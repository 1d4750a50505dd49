//! Live events (server-sent events).

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};

use super::instances::repeated;
use super::{Client, ClientError};
use crate::change::FollowChanges;

/// Longest event that is taken, in bytes.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamEvent {
    /// Its id, to go on after it; empty for events without one.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its data, JSON.
    pub data: String,
}

/// Events as they come.
pub struct EventStream {
    response: Response,
    buffer: Vec<u8>,
}

impl Client {
    /// The events of an instance, from the first one or from the one after an id.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn events(&self, id: &str, after: Option<&str>) -> Result<EventStream, ClientError> {
        let call = self.request(Method::GET, &["v1", "instances", id, "events"], Duration::ZERO);
        self.follow(call, after).await
    }

    /// What happens to instances, from now on or from the event after an id. The first event is named `listening`, changes
    /// are named `change`; after `lagged` some are missing.
    ///
    /// # Errors
    /// `too-many-streams` when the server has no room for more.
    pub async fn changes(
        &self,
        filter: &FollowChanges,
        after: Option<&str>,
    ) -> Result<EventStream, ClientError> {
        let call = self.request(Method::GET, &["v1", "events"], Duration::ZERO).query(filter);
        self.follow(repeated(call, &filter.status, &filter.label), after).await
    }

    async fn follow(&self, call: RequestBuilder, after: Option<&str>) -> Result<EventStream, ClientError> {
        /// A stream lasts as long as its reader follows it.
        const FOR_EVER: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
        let mut call = call.timeout(FOR_EVER);
        if let Some(after) = after {
            call = call.header("last-event-id", after);
        }
        Ok(EventStream { response: self.open(call).await?, buffer: Vec::new() })
    }
}

impl EventStream {
    /// The next event; `None` when the stream is over.
    ///
    /// # Errors
    /// When the connection breaks; connect again after the last id.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, ClientError> {
        loop {
            if let Some(event) = self.take() {
                return Ok(Some(event));
            }
            if self.buffer.len() > MAX_EVENT_BYTES {
                let reason = format!("an event has more than {MAX_EVENT_BYTES} bytes");
                return Err(ClientError::Unreadable { status: 200, reason });
            }
            match self.response.chunk().await.map_err(ClientError::Unreachable)? {
                Some(bytes) => self.buffer.extend_from_slice(&bytes),
                None => return Ok(None),
            }
        }
    }

    /// Takes the first whole event out of the buffer; what is a comment only is passed over.
    fn take(&mut self) -> Option<StreamEvent> {
        loop {
            let end = self.buffer.windows(2).position(|pair| pair == b"\n\n")?;
            let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
            let event = parse(&String::from_utf8_lossy(&block));
            if event != StreamEvent::default() {
                return Some(event);
            }
        }
    }
}

fn parse(block: &str) -> StreamEvent {
    let mut event = StreamEvent::default();
    let mut data = Vec::new();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => event.id = value.to_owned(),
            "event" => event.name = value.to_owned(),
            "data" => data.push(value),
            _ => {}
        }
    }
    event.data = data.join("\n");
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_comments_passed_over() {
        let event = parse("id: 1-2\nevent: TimerFired\ndata: {\"a\":\ndata: 1}\n\n");
        let expected = StreamEvent {
            id: "1-2".to_owned(),
            name: "TimerFired".to_owned(),
            data: "{\"a\":\n1}".to_owned(),
        };
        assert_eq!(event, expected);
        assert_eq!(parse(":\n\n"), StreamEvent::default());
    }
}
