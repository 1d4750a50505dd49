//! `segno runbook publish|delete|list|show`: runbooks on a server.

use segno_api::Client;
use segno_api::automation::Automation;
use segno_api::runbook::{OverdueBehavior, PublishRunbook, RunbookVersion, VersionMoves};
use segno_runbook::limits::MAX_RUNBOOK_BYTES;
use segno_runbook::yaml::{INVALID_RUNBOOK, parse};
use segno_server::schedule::Zones;

use super::arguments::{Publish, Show};
use super::automation;
use super::moves::{self, Tense};
use crate::documents::read;
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table};

/// Publishes a file.
pub async fn publish(client: &Client, arguments: &Publish, output: &Output) -> Result<(), Failure> {
    let bytes = read(&arguments.file, MAX_RUNBOOK_BYTES)?;
    let file = arguments.file.display();
    let yaml_content = String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        Failure::invalid(INVALID_RUNBOOK, format!("{file} is not UTF-8 at byte {place}; save it as UTF-8"))
    })?;
    let overdue_behavior =
        if arguments.ignore_overdue { OverdueBehavior::Ignore } else { OverdueBehavior::Rerun };
    let request = PublishRunbook { yaml_content, overdue_behavior, rerun_init: arguments.rerun_init };
    if arguments.dry_run {
        return plan(client, &request, output).await;
    }
    let published = client.publish_runbook(&request).await?;
    let mut table = facts(&published, output);
    let moves = published.moves.clone().unwrap_or_default();
    table = moves::lines(table, &moves);
    moves::warn(&moves, overdue_behavior, Tense::Done, output);
    let text = with_tables(table, &moves, &published.warnings, output);
    output.text(&published, &text)
}

/// Shows what publishing would do.
async fn plan(client: &Client, request: &PublishRunbook, output: &Output) -> Result<(), Failure> {
    let parsed = parse(request.yaml_content.as_bytes(), &Zones::bundled());
    let parsed = parsed.map_err(|error| Failure::invalid(INVALID_RUNBOOK, error.to_string()))?;
    let plan = client.plan_publishing(&parsed.definition.name, request).await?;
    let state = if plan.is_new { "not published; this is a dry run" } else { "active already" };
    let table = Table::default()
        .line("runbook", &plan.name)
        .line("version", plan.version.to_string())
        .line("state", state);
    let table = moves::lines(table, &plan.moves);
    moves::warn(&plan.moves, request.overdue_behavior, Tense::Planned, output);
    let text = with_tables(table, &plan.moves, &plan.warnings, output);
    output.text(&plan, &text)
}

/// Facts with the phases of open batches that change, and with warnings.
fn with_tables(table: Table, moves: &VersionMoves, warnings: &[String], output: &Output) -> String {
    let mut text = table.to_text(output.colours);
    if !moves.phases.is_empty() {
        text = format!("{text}\n{}", moves::rows(moves).to_text(output.colours));
    }
    if !warnings.is_empty() {
        let mut rows = Rows::new(["warning"]);
        warnings.iter().for_each(|warning| rows.add([warning.clone()]));
        text = format!("{text}\n{}", rows.to_text(output.colours));
    }
    text
}

/// Deletes a runbook, or one of its versions.
pub async fn delete(
    client: &Client,
    name: &str,
    version: Option<u32>,
    output: &Output,
) -> Result<(), Failure> {
    let what = match version {
        None => {
            client.delete_runbook(name).await?;
            format!("runbook {name}")
        }
        Some(version) => {
            client.delete_runbook_version(name, version).await?;
            format!("runbook {name} version {version}")
        }
    };
    let deleted = serde_json::json!({ "deleted": name, "version": version });
    output.print(&deleted, Table::default().line(what, "deleted"))
}

/// Lists runbooks.
pub async fn list(client: &Client, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.runbooks(request).await?;
        Ok(Page::of(page.runbooks, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["runbook", "version", "published", "automation", "description"]);
    for runbook in &page.items {
        rows.add([
            runbook.name.clone(),
            runbook.active_version.to_string(),
            output.time(runbook.updated_at),
            state(&runbook.automation).to_owned(),
            runbook.description.clone().unwrap_or_default(),
        ]);
    }
    output.list(&page, &rows)
}

/// Shows a runbook: its versions, one version, or a text.
pub async fn show(client: &Client, arguments: Show, output: &Output) -> Result<(), Failure> {
    let Show { name, version, yaml } = arguments;
    let version = match (version, yaml) {
        (None, true) => Some(client.runbook(&name).await?.active_version),
        (version, _) => version,
    };
    if let Some(version) = version {
        let version = client.runbook_version(&name, version).await?;
        return match yaml {
            true => output.text(&version, version.yaml_content.as_deref().unwrap_or_default()),
            false => output.print(&version, facts(&version, output)),
        };
    }
    let runbook = client.runbook(&name).await?;
    let versions = client.runbook_versions(&name, None).await?;
    let mut table = Table::default().line("runbook", &runbook.name);
    if let Some(description) = &runbook.description {
        table = table.line("description", description);
    }
    let table = table
        .line("active version", runbook.active_version.to_string())
        .line("first published", output.time(runbook.created_at));
    let table = automation::lines(table, &runbook.name, &runbook.automation, output);
    let mut rows = Rows::new(["version", "published", "overdue phases", "init", "active"]);
    for version in &versions.versions {
        rows.add([
            version.version.to_string(),
            output.time(version.created_at),
            overdue(version).to_owned(),
            init(version).to_owned(),
            if version.is_active { "yes" } else { "no" }.to_owned(),
        ]);
    }
    let text = format!("{}\n{}", table.to_text(output.colours), rows.to_text(output.colours));
    output.text(&serde_json::json!({ "runbook": runbook, "versions": versions.versions }), &text)?;
    if versions.next_cursor.is_some() {
        output.hint("there are more versions; show one of them with --version");
    }
    Ok(())
}

/// The query of a runbook in a word or two.
fn state(automation: &Automation) -> &'static str {
    match automation {
        Automation { unreadable: Some(_), .. } => "unknown",
        Automation { last_error: Some(_), enabled: true, .. } => "failing",
        Automation { pending_removal: Some(pending), .. } if !pending.approved => "approval wanted",
        Automation { enabled: true, .. } => "enabled",
        Automation { enabled: false, .. } => "disabled",
    }
}

fn facts(version: &RunbookVersion, output: &Output) -> Table {
    Table::default()
        .line("runbook", &version.name)
        .line("version", version.version.to_string())
        .line("active", if version.is_active { "yes" } else { "no" })
        .line("published", output.time(version.created_at))
        .line("overdue phases", overdue(version))
        .line("init", init(version))
}

fn overdue(version: &RunbookVersion) -> &'static str {
    match version.overdue_behavior {
        OverdueBehavior::Rerun => "run at once",
        OverdueBehavior::Ignore => "skipped",
    }
}

fn init(version: &RunbookVersion) -> &'static str {
    if version.rerun_init { "runs again" } else { "runs once" }
}
