//! `segno action …`: functions called once, at a time.

pub mod arguments;

use jiff::Timestamp;
use segno::clock::SystemClock;
use segno_api::action::{Action, ActionStatus, ActionTrigger, CreateAction, OnRestart};

use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Rows, Table, print, print_rows, short_time, warn_of_unreadable};
use crate::remote::start::json;
use arguments::{ActionArguments, ActionVerb, Add, List};

/// Does what was asked.
pub async fn run(arguments: ActionArguments, format: Format) -> Result<(), Failure> {
    let action = match arguments.verb {
        ActionVerb::List(arguments) => return list(arguments, format).await,
        ActionVerb::Add(arguments) => add(arguments).await?,
        ActionVerb::Show(one) => one.connection.client()?.action(&one.id).await?,
        ActionVerb::Cancel(one) => one.connection.client()?.cancel_action(&one.id).await?,
        ActionVerb::Run(one) => one.connection.client()?.run_action(&one.id).await?,
    };
    print(format, &action, shown(&action))
}

async fn add(arguments: Add) -> Result<Action, Failure> {
    let every = arguments.every.map(|every| every.get());
    if every.is_some_and(|every| every.subsec_nanos() != 0 || every.as_secs() == 0) {
        return Err(Failure::Refused("--every: must be whole seconds, at least one".to_owned()));
    }
    let request = CreateAction {
        namespace: None,
        tenant: None,
        label: arguments.label,
        tool_name: arguments.function,
        orchestration: arguments.orchestration,
        tool_input: Some(json("--input", &arguments.input)?),
        next_tick_at: Some(arguments.at.resolve(&SystemClock)),
        recurrence_secs: every.map(|every| every.as_secs()),
        on_restart: match arguments.on_restart {
            arguments::OnRestart::Fail => OnRestart::Fail,
            arguments::OnRestart::Resume => OnRestart::Resume,
        },
    };
    Ok(arguments.connection.client()?.create_action(&request).await?)
}

async fn list(arguments: List, format: Format) -> Result<(), Failure> {
    let client = arguments.connection.client()?;
    let mut found: Vec<Action> = Vec::new();
    let mut cursor = None;
    loop {
        let page = client.actions(arguments.status.as_deref(), cursor.as_deref()).await?;
        warn_of_unreadable(&page.unreadable);
        found.extend(page.actions);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut rows = Rows::new(["id", "label", "function", "status", "due", "updated"]);
    for action in &found {
        rows.add([
            action.id.clone(),
            action.label.clone(),
            action.orchestration.clone().unwrap_or_else(|| action.tool_name.clone()),
            status(action).0.to_owned(),
            short_time(due(action)),
            short_time(action.updated_at),
        ]);
    }
    print_rows(format, &found, &rows)
}

fn due(action: &Action) -> Timestamp {
    match &action.trigger {
        ActionTrigger::Scheduled { next_tick_at } => *next_tick_at,
        ActionTrigger::Webhook { received_at, .. } => *received_at,
    }
}

fn status(action: &Action) -> (&'static str, String) {
    match &action.status {
        ActionStatus::Pending => ("pending", String::new()),
        ActionStatus::Running => ("running", String::new()),
        ActionStatus::Completed { result } => ("completed", result.text().to_owned()),
        ActionStatus::Failed { reason } => ("failed", reason.clone()),
    }
}

fn shown(action: &Action) -> Table {
    let (status, detail) = status(action);
    let mut table = Table::default()
        .line("id", &action.id)
        .line("label", &action.label)
        .line(
            if action.orchestration.is_some() { "orchestration" } else { "function" },
            action.orchestration.as_ref().unwrap_or(&action.tool_name),
        )
        .line("input", action.tool_input.text())
        .line("due", short_time(due(action)))
        .line("status", status);
    if !detail.is_empty() {
        table = table.line(if status == "failed" { "reason" } else { "result" }, detail);
    }
    if let Some(every) = action.recurrence {
        table = table.line("every", format!("{every} s"));
    }
    if let Some(instance) = &action.instance {
        table = table.line("instance", instance);
    }
    if let Some(note) = &action.note {
        table = table.line("note", note);
    }
    table
}
