//! Looking at what came in.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use segno_api::Client;
use segno_api::client::ListPayloads;
use segno_api::hook::{HookOutcome, HookPayloadDetail};

use super::arguments::Payloads;
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table, counted};

/// Lists payloads.
pub async fn list(client: &Client, which: Payloads, output: &Output) -> Result<(), Failure> {
    let (since, until) = (output.optional_moment(which.since)?, output.optional_moment(which.until)?);
    let name = which.name.as_str();
    let page = which.paging.gather(|request| async move {
        let request = ListPayloads { since, until, limit: request.limit, cursor: request.cursor };
        let page = client.hook_payloads(name, &request).await?;
        Ok(Page::of(page.payloads, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["id", "received", "bytes", "type", "outcome"]);
    for payload in &page.items {
        rows.add([
            payload.id.clone(),
            output.time(payload.received_at),
            payload.body_bytes.to_string(),
            payload.content_type.clone().unwrap_or_default(),
            shown(&payload.outcome),
        ]);
    }
    output.list(&page, &rows)
}

/// Shows a payload.
pub async fn inspect(client: &Client, name: &str, id: &str, output: &Output) -> Result<(), Failure> {
    let detail = client.hook_payload(name, id).await?;
    output.text(&detail, &described(&detail, output))
}

fn described(detail: &HookPayloadDetail, output: &Output) -> String {
    let payload = &detail.payload;
    let mut table = Table::default()
        .line("payload", &payload.id)
        .line("received", output.time(payload.received_at))
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
    let size = counted(payload.body_bytes, "byte");
    format!("{}\nbody, {size}{form}\n{body}\n", table.to_text(output.colours))
}

/// Calls the function of a payload again.
pub async fn replay(client: &Client, name: &str, id: &str, output: &Output) -> Result<(), Failure> {
    let replayed = client.replay_hook_payload(name, id).await?;
    let table = Table::default()
        .line("payload", &replayed.id)
        .line("action", &replayed.action)
        .line("due", "now")
        .line("to see its end", format!("{} action show {}", output.command.program(), replayed.action));
    output.print(&replayed, table)
}

/// Shows events.
pub async fn events(
    client: &Client,
    name: Option<&str>,
    paging: &Paging,
    output: &Output,
) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.hook_events(name, request.limit, request.cursor.as_deref()).await?;
        Ok(Page::of(page.events, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["seq", "at", "hook", "bytes", "payload", "outcome"]);
    for event in &page.items {
        rows.add([
            event.seq.to_string(),
            output.time(event.at),
            event.route.clone(),
            event.body_bytes.to_string(),
            event.payload.clone().unwrap_or_default(),
            shown(&event.outcome),
        ]);
    }
    output.list(&page, &rows)
}

fn shown(outcome: &HookOutcome) -> String {
    let times = outcome.count.filter(|count| *count > 1).map(|count| format!(" {count} times"));
    let parts =
        [&outcome.function, &outcome.orchestration, &outcome.first, &outcome.reason].into_iter().flatten();
    let parts: Vec<String> = parts.cloned().collect();
    format!("{} {}{}", outcome.kind, parts.join(" "), times.unwrap_or_default()).trim().to_owned()
}
