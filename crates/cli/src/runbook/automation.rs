//! `segno runbook enable|disable|approve-removal|reject-removal|preview`: members from a query.

use std::path::Path;

use segno_api::Client;
use segno_api::automation::{
    Automation, DecideRemoval, PendingRemoval, PreviewRunbook, QueryResult, RemovalDecided, RunbookPreview,
    SetAutomation,
};
use segno_runbook::limits::MAX_RUNBOOK_BYTES;
use segno_runbook::names::NameKind;
use segno_runbook::yaml::{INVALID_RUNBOOK, parse};
use segno_server::schedule::Zones;

use super::arguments::{Preview, Removal};
use crate::documents::read;
use crate::exit::Failure;
use crate::output::{Output, Rows, Table, counted as row_count};

/// Members of a pending removal that are named on one line.
const NAMED: usize = 3;

/// Switches the query of a runbook on or off.
pub async fn switch(
    client: &Client,
    name: &str,
    switch: SetAutomation,
    output: &Output,
) -> Result<(), Failure> {
    let automation = client.set_automation(name, switch).await?;
    let table = Table::default()
        .line("runbook", name)
        .line("automation", if automation.enabled { "enabled" } else { "disabled" });
    output.print(&automation, table)
}

/// Approves a removal that was shown.
pub async fn approve(client: &Client, removal: &Removal, output: &Output) -> Result<(), Failure> {
    let automation = client.approve_removal(&removal.name, DecideRemoval { set: removal.set }).await?;
    print(&removal.name, &automation, output)
}

/// Keeps the members of a removal that was shown.
pub async fn reject(client: &Client, removal: &Removal, output: &Output) -> Result<(), Failure> {
    let automation = client.reject_removal(&removal.name, DecideRemoval { set: removal.set }).await?;
    print(&removal.name, &automation, output)
}

/// Runs the query of a published runbook, or of a file, and changes nothing.
pub async fn preview(client: &Client, arguments: &Preview, output: &Output) -> Result<(), Failure> {
    let named = &arguments.runbook;
    let is_file = named == "-" || Path::new(named).is_file() || NameKind::Runbook.check(named).is_err();
    let (name, yaml_content) = match is_file {
        false => (named.clone(), None),
        true => {
            let bytes = read(Path::new(named), MAX_RUNBOOK_BYTES)?;
            let text = String::from_utf8(bytes).map_err(|_| {
                Failure::invalid(INVALID_RUNBOOK, format!("{named} is not UTF-8; save it as UTF-8"))
            })?;
            let parsed = parse(text.as_bytes(), &Zones::bundled());
            let parsed = parsed.map_err(|error| Failure::invalid(INVALID_RUNBOOK, error.to_string()))?;
            (parsed.definition.name, Some(text))
        }
    };
    let preview = client.preview_runbook(&name, &PreviewRunbook { yaml_content }).await?;
    for problem in &preview.problems {
        output.warn(problem);
    }
    output.text(&preview, &shown(&preview, output))
}

fn shown(preview: &RunbookPreview, output: &Output) -> String {
    let changes = [
        (preview.added, "added"),
        (preview.changed, "changed"),
        (preview.removed, "removed"),
        (preview.held, "removed after approval"),
    ];
    let table = Table::default()
        .line("rows", preview.rows.to_string())
        .line("batches", preview.batches.to_string())
        .line("would be", counted(&changes));
    let mut groups = Rows::new(["batch start", "rows"]);
    for group in &preview.groups {
        groups.add([output.time(group.batch_start_time), group.rows.to_string()]);
    }
    let mut samples = Rows::new(["member", "batch start", "data"]);
    for sample in &preview.samples {
        samples.add([
            sample.member_key.clone(),
            output.time_or_none(sample.batch_start_time),
            serde_json::Value::Object(sample.data.clone()).to_string(),
        ]);
    }
    let colours = output.colours;
    format!("{}\n{}\n{}", table.to_text(colours), groups.to_text(colours), samples.to_text(colours))
}

fn print(name: &str, automation: &Automation, output: &Output) -> Result<(), Failure> {
    output.print(automation, lines(Table::default().line("runbook", name), name, automation, output))
}

/// Adds what is known of a query to a table.
pub fn lines(mut table: Table, name: &str, automation: &Automation, output: &Output) -> Table {
    table = table.line("automation", if automation.enabled { "enabled" } else { "disabled" });
    if automation.running {
        table = table.line("query", "runs now");
    } else if let Some(next) = automation.next_run_at {
        table = table.line("next query", output.time(next));
    }
    if let Some(last) = automation.last_run_at {
        table = table.line("last query", output.time(last));
    }
    if let Some(result) = &automation.last_result {
        table = table.line("found", found(result));
    }
    if let Some(error) = &automation.last_error {
        let text = format!("{} [{}] at {}", error.message, error.code, output.time(error.at));
        table = table.line("last error", text);
    }
    if let Some(pending) = &automation.pending_removal {
        table = table.line("missing", missing(pending));
        let next = match pending.approved {
            true => "approved; the next query removes them".to_owned(),
            false => format!("segno runbook approve-removal {name} --set {}, or reject-removal", pending.set),
        };
        table = table.line("removal", next);
    }
    if let Some(decided) = &automation.last_decision {
        table = table.line("last decision", decision(decided, output));
    }
    table
}

/// Who decided what about a removal, and when.
fn decision(decided: &RemovalDecided, output: &Output) -> String {
    let verdict = if decided.approved { "approved" } else { "rejected" };
    let by = decided.by.as_deref().map(|key| format!(" by key {key}")).unwrap_or_default();
    let members = row_count(decided.count, "member");
    format!("removal {} of {members} {verdict}{by} at {}", decided.set, output.time(decided.at))
}

fn found(result: &QueryResult) -> String {
    let rows = format!("{} in {}", row_count(result.rows, "row"), batches(result.batches));
    let created = format!("{} created", batches(result.created));
    let changes = [(result.added, "added"), (result.changed, "changed"), (result.removed, "removed")];
    let created = (result.created > 0).then_some(created);
    let changed = changes.iter().any(|(count, _)| *count > 0).then(|| counted(&changes));
    let skipped = (result.skipped > 0).then(|| format!("{} skipped", row_count(result.skipped, "row")));
    let told: Vec<String> = created.into_iter().chain(changed).chain(skipped).collect();
    if told.is_empty() { rows } else { format!("{rows}; {}", told.join(", ")) }
}

fn batches(count: u64) -> String {
    format!("{count} {}", if count == 1 { "batch" } else { "batches" })
}

/// Counts that are not zero, in words.
fn counted(counts: &[(u64, &str)]) -> String {
    let told: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if told.is_empty() { "nothing".to_owned() } else { told.join(", ") }
}

fn missing(pending: &PendingRemoval) -> String {
    let mut names: Vec<String> = pending
        .sample
        .iter()
        .take(NAMED)
        .map(|held| format!("{} (batch {})", held.member_key, held.batch_id))
        .collect();
    if pending.count > names.len() as u64 {
        names.push("…".to_owned());
    }
    format!("{} of {} members: {}", pending.count, pending.of, names.join(", "))
}
