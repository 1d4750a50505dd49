//! `segno show`: an instance, and a drawing of what it did.

use std::time::Duration;

use segno::clock::SystemClock;
use segno_api::history::{HistoryEvent, UnreadableEvents};
use segno_api::instance::{Failure, Instance};
use serde::Serialize;

use super::arguments::One;
use super::history::{self, shortened};
use super::list::{kind, status};
use super::{call, timeline};
use crate::exit;
use crate::output::{Output, Table};

#[derive(Serialize)]
struct Shown {
    instance: Instance,
    events: Vec<HistoryEvent>,
    /// Events that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<UnreadableEvents>,
}

/// Does it.
pub async fn run(arguments: One, output: &Output) -> Result<(), exit::Failure> {
    let client = arguments.connection.client(output)?;
    let instance = client.instance(&arguments.id, Duration::ZERO).await?;
    let history::Whole { events, unreadable, .. } =
        history::all(&client, &arguments.id, Some(instance.execution)).await?;
    let now_ms = i64::try_from(SystemClock::shared().now_ms()).unwrap_or(i64::MAX);
    let drawing = timeline::draw(&events, now_ms);
    let legend = timeline::legend(&drawing);
    let mut table = table(&instance, output);
    if let Some(call) = &instance.call {
        table = call::lines(table, call, output);
    }
    for lost in &unreadable {
        table = table.line("unreadable", format!("{}: {}", history::numbers(lost), lost.reason));
    }
    let text = format!("{}\n{drawing}{legend}", table.to_text(output.colours));
    output.text(&Shown { instance, events, unreadable }, &text)
}

/// A failure in one line, with its code, which has a page. Messages of the engine end with it already.
fn failure(failure: &Failure) -> String {
    let code = failure.code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
    let code = if failure.message.ends_with(&code) { "" } else { &code };
    format!("{}: {}{code}", failure.category, failure.message)
}

fn table(instance: &Instance, output: &Output) -> Table {
    let mut table = Table::default().line("id", &instance.id);
    let version = instance.version.as_deref().unwrap_or_default();
    match (&instance.function, &instance.orchestration) {
        (Some(function), _) => table = table.line("function", function),
        (None, Some(orchestration)) => {
            table = table.line("orchestration", format!("{orchestration} {version}"));
        }
        (None, None) => {}
    }
    if instance.kind.is_some() {
        table = table.line("kind", kind(instance.kind));
    }
    table = table.line("status", status(instance.status));
    let optional = [
        ("result", instance.result.as_ref().map(|result| shortened(result.text()))),
        ("failure", instance.failure.as_ref().map(failure)),
        ("pause reason", instance.pause_reason.clone()),
        ("custom status", instance.custom_status.as_ref().map(|status| shortened(status.text()))),
        ("unreadable", instance.unreadable.clone()),
        ("parent", instance.parent.clone()),
        ("execution", (instance.execution > 1).then(|| instance.execution.to_string())),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            table = table.line(name, value);
        }
    }
    for (key, value) in &instance.labels {
        table = table.line("label", format!("{key}={value}"));
    }
    table = table.line("created", output.time(instance.created_at));
    if let Some(at) = instance.start_at {
        table = table.line("starts", output.time(at));
    }
    if instance.archived {
        table = table.line("archived", "yes: retention has moved it out of the store");
    }
    match instance.completed_at {
        Some(at) => table.line("ended", output.time(at)),
        None => table.line("updated", output.time(instance.updated_at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_shown_once() {
        for message in ["it is gone", "it is gone [lost]"] {
            let code = Some("lost".to_owned());
            let failed = Failure {
                category: "application".to_owned(),
                message: message.to_owned(),
                code,
                retryable: false,
                details: None,
            };
            assert_eq!(failure(&failed), "application: it is gone [lost]");
        }
    }
}
