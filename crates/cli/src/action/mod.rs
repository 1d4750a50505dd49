//! `segno action …`: functions called once, at a time.

pub mod arguments;

use jiff::Timestamp;
use segno_api::action::{Action, ActionStatus, ActionTrigger, CreateAction, OnRestart};

use crate::exit::Failure;
use crate::output::{Output, Page, Rows, Table, target};
use crate::remote::start::json;
use arguments::{ActionArguments, ActionVerb, Add, List};

/// Does what was asked.
pub async fn run(arguments: ActionArguments, output: &Output) -> Result<(), Failure> {
    let action = match arguments.verb {
        ActionVerb::List(arguments) => return list(arguments, output).await,
        ActionVerb::Add(arguments) => add(arguments, output).await?,
        ActionVerb::Show(one) => one.connection.client(output)?.action(&one.id).await?,
        ActionVerb::Cancel(one) => one.connection.client(output)?.cancel_action(&one.id).await?,
        ActionVerb::Run(one) => one.connection.client(output)?.run_action(&one.id).await?,
    };
    output.print(&action, shown(&action, output))
}

async fn add(arguments: Add, output: &Output) -> Result<Action, Failure> {
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
        next_tick_at: Some(output.moment(arguments.at)?),
        recurrence_secs: every.map(|every| every.as_secs()),
        on_restart: match arguments.on_restart {
            arguments::OnRestart::Fail => OnRestart::Fail,
            arguments::OnRestart::Resume => OnRestart::Resume,
        },
    };
    Ok(arguments.connection.client(output)?.create_action(&request).await?)
}

async fn list(arguments: List, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let states: Vec<&str> = arguments.status.iter().map(|state| state.name()).collect();
    let states = states.join(",");
    let (client, state) = (&client, Some(states.as_str()).filter(|states| !states.is_empty()));
    let page = arguments.paging.gather(|request| async move {
        let page = client.actions(state, request).await?;
        Ok(Page::of(page.actions, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["id", "label", "target", "status", "due", "updated"]);
    for action in &page.items {
        rows.add([
            action.id.clone(),
            action.label.clone(),
            target(action.orchestration.as_deref(), &action.tool_name),
            status(action).0.to_owned(),
            output.time(due(action)),
            output.time(action.updated_at),
        ]);
    }
    output.list(&page, &rows)
}

/// When an action is due: one of a webhook as soon as it is made, which for a replay is long after the payload came.
fn due(action: &Action) -> Timestamp {
    match &action.trigger {
        ActionTrigger::Scheduled { next_tick_at } => *next_tick_at,
        ActionTrigger::Webhook { .. } => action.created_at,
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

fn shown(action: &Action, output: &Output) -> Table {
    let (status, detail) = status(action);
    let mut table = Table::default()
        .line("id", &action.id)
        .line("label", &action.label)
        .line(
            if action.orchestration.is_some() { "orchestration" } else { "function" },
            action.orchestration.as_ref().unwrap_or(&action.tool_name),
        )
        .line("input", action.tool_input.text())
        .line("due", output.time(due(action)))
        .line("status", status);
    if let ActionTrigger::Webhook { received_at, .. } = &action.trigger {
        table = table.line("payload received", output.time(*received_at));
    }
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
    if action.archived {
        table = table.line("archived", "yes: its time in the store is over");
    }
    table
}
