//! `segno start`: starts an instance.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use segno_api::Json;
use segno_api::instance::{self, StartInstance};

use super::arguments::{OnConflict, Start};
use super::wait;
use crate::exit::Failure;
use crate::output::{Output, Table};

/// Does it.
pub async fn run(arguments: Start, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let labels = labels(&arguments.labels)?;
    let request = StartInstance {
        orchestration: arguments.orchestration,
        version: arguments.version,
        id: arguments.id,
        input: json("--input", &arguments.input)?,
        labels,
        start_at: arguments.at.map(|at| output.moment(at)),
        on_conflict: match arguments.on_conflict {
            OnConflict::Reject => instance::OnConflict::Reject,
            OnConflict::UseExisting => instance::OnConflict::UseExisting,
            OnConflict::Replace => instance::OnConflict::Replace,
        },
    };
    let started = client.start(&request, arguments.idempotency_key.as_deref(), Duration::ZERO).await?;
    if arguments.wait {
        output.hint(&format!("started {}", started.id));
        return wait::until_ended(&client, &started.id, arguments.timeout, output).await;
    }
    let what = if started.created { "started" } else { "was there already" };
    output.print(&started, Table::default().line(&started.id, what))
}

/// Labels from the command line.
///
/// # Errors
/// When one is not `KEY=VALUE`.
pub fn labels(given: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let parsed = given.iter().map(|label| match label.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Failure::Refused(format!("--label {label}: write KEY=VALUE"))),
    });
    parsed.collect()
}

/// JSON from the command line, from a file or from standard input.
///
/// # Errors
/// When it cannot be read or is not JSON.
pub fn json(flag: &str, text: &str) -> Result<Json, Failure> {
    let unreadable = |error: std::io::Error| Failure::Refused(format!("{flag} {text}: {error}"));
    let text = match text.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(unreadable)?,
        None if text == "-" => {
            let mut read = String::new();
            std::io::stdin().read_to_string(&mut read).map_err(unreadable)?;
            read
        }
        None => text.to_owned(),
    };
    Json::from_text(text.trim().to_owned()).map_err(|error| {
        Failure::Refused(format!("{flag} is not JSON: {error}; a text needs quotes, as in '\"Ada\"'"))
    })
}
