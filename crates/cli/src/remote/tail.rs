//! `segno tail`: the events of an instance as they happen.

use segno_api::history::HistoryEvent;

use super::arguments::One;
use super::history::{clock_time, shortened};
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::write;

/// Connections that broke before an event came, until we give up.
const MAX_TRIES: u32 = 5;

/// Does it.
pub async fn run(arguments: One, format: Format) -> Result<(), Failure> {
    let client = arguments.connection.client()?;
    let mut last = None;
    let mut tries = 0;
    loop {
        let mut stream = client.events(&arguments.id, last.as_deref()).await?;
        loop {
            match stream.next().await {
                Ok(Some(event)) if event.name == "end" => return Ok(()),
                Ok(Some(event)) => {
                    tries = 0;
                    last = Some(event.id.clone());
                    write(line(&event.data, format).as_bytes())?;
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
    match (format, serde_json::from_str::<HistoryEvent>(data)) {
        (Format::Text, Ok(event)) => {
            format!(
                "{}  {:>4}  {:<28}  {}\n",
                clock_time(&event),
                event.id,
                event.kind,
                shortened(event.data.text())
            )
        }
        _ => format!("{data}\n"),
    }
}
