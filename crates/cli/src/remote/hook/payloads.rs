//! Looking at what came in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use segno_api::Client;
use segno_api::client::ListPayloads;
use segno_api::hook::{HookOutcome, HookPayloadDetail};

use super::arguments::Payloads;
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Rows, Table, print, print_rows, print_text, short_time, warn_of_unreadable};

/// Rows of one request.
const PAGE: usize = 1_000;

/// Lists payloads.
pub async fn list(client: &Client, which: Payloads, format: Format) -> Result<(), Failure> {
    let mut payloads = Vec::new();
    let mut request = ListPayloads { since: which.since, until: which.until, ..ListPayloads::default() };
    while payloads.len() < which.limit {
        request.limit = Some((which.limit - payloads.len()).min(PAGE));
        let page = client.hook_payloads(&which.name, &request).await?;
        warn_of_unreadable(&page.unreadable);
        payloads.extend(page.payloads);
        request.cursor = page.next_cursor;
        if request.cursor.is_none() {
            break;
        }
    }
    let mut rows = Rows::new(["id", "received", "bytes", "type", "outcome"]);
    for payload in &payloads {
        rows.add([
            payload.id.clone(),
            short_time(payload.received_at),
            payload.body_bytes.to_string(),
            payload.content_type.clone().unwrap_or_default(),
            shown(&payload.outcome),
        ]);
    }
    print_rows(format, &payloads, &rows)
}

/// Shows a payload.
pub async fn inspect(client: &Client, name: &str, id: &str, format: Format) -> Result<(), Failure> {
    let detail = client.hook_payload(name, id).await?;
    print_text(format, &detail, &described(&detail))
}

fn described(detail: &HookPayloadDetail) -> String {
    let payload = &detail.payload;
    let mut table = Table::default()
        .line("payload", &payload.id)
        .line("received", short_time(payload.received_at))
        .line("outcome", shown(&payload.outcome))
        .section("headers");
    for (name, value) in &detail.headers {
        table = table.line(name, value);
    }
    table = table.section("parameters");
    for (name, value) in &detail.params {
        table = table.line(name, value);
    }
    table = table.section("actions");
    for action in &detail.actions {
        let end = action.result.as_ref().map(|result| result.text().to_owned());
        let end = end.or(action.reason.clone()).unwrap_or_default();
        table = table.line(&action.id, format!("{} {end}", action.status).trim());
    }
    let bytes = STANDARD.decode(&detail.body_base64).unwrap_or_default();
    let (form, body) = match String::from_utf8(bytes) {
        Ok(text) => ("", text),
        Err(_) => (" in base64", detail.body_base64.clone()),
    };
    format!("{}\nbody, {} bytes{form}\n{body}\n", table.to_text(), payload.body_bytes)
}

/// Calls the function of a payload again.
pub async fn replay(client: &Client, name: &str, id: &str, format: Format) -> Result<(), Failure> {
    let replayed = client.replay_hook_payload(name, id).await?;
    print(format, &replayed, Table::default().line("action", &replayed.action))
}

/// Shows events.
pub async fn events(
    client: &Client,
    name: Option<&str>,
    limit: usize,
    format: Format,
) -> Result<(), Failure> {
    let events = client.hook_events(name, Some(limit), None).await?.events;
    let mut rows = Rows::new(["seq", "at", "hook", "bytes", "payload", "outcome"]);
    for event in &events {
        rows.add([
            event.seq.to_string(),
            short_time(event.at),
            event.route.clone(),
            event.body_bytes.to_string(),
            event.payload.clone().unwrap_or_default(),
            shown(&event.outcome),
        ]);
    }
    print_rows(format, &events, &rows)
}

fn shown(outcome: &HookOutcome) -> String {
    let times = outcome.count.filter(|count| *count > 1).map(|count| format!(" {count} times"));
    let parts =
        [&outcome.function, &outcome.orchestration, &outcome.first, &outcome.reason].into_iter().flatten();
    let parts: Vec<String> = parts.cloned().collect();
    format!("{} {}{}", outcome.kind, parts.join(" "), times.unwrap_or_default()).trim().to_owned()
}
