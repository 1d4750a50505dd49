//! `segno functions …`, `segno workers` and `segno logs`: what can be called, who runs it, and what it wrote.

use segno_api::function::{Function, FunctionLog, FunctionOrigin};
use segno_api::worker::Worker;
use segno_api::{Client, client::Expected};
use serde_json::Value;

use super::arguments::{Functions, FunctionsVerb, Nothing, One};
use super::start::json;
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Rows, Table, print, print_rows, print_text, short_time, warn_of_unreadable};

/// Does what was asked.
pub async fn run(arguments: Functions, format: Format) -> Result<(), Failure> {
    let client = arguments.connection.client()?;
    match arguments.verb {
        FunctionsVerb::List => list(&client, format).await,
        FunctionsVerb::Show { name } => {
            let function = client.function(&name).await?;
            let declaration: Value = serde_json::from_str(function.declaration.text()).unwrap_or_default();
            print_text(format, &function, &format!("{declaration:#}\n"))
        }
        FunctionsVerb::Put { name, declaration, version } => {
            let declaration = json("DECLARATION", &declaration)?;
            let expected = match version {
                Some(version) => Expected::Version(version),
                None => as_it_is(&client, &name).await?,
            };
            let function = client.put_function(&name, &declaration, expected).await?;
            print(format, &function, Table::default().line(&function.name, "stored"))
        }
        FunctionsVerb::Delete { name } => {
            client.delete_function(&name, None).await?;
            print(format, &serde_json::json!({ "deleted": name }), Table::default().line(&name, "deleted"))
        }
    }
}

/// What is there now, to be replaced.
async fn as_it_is(client: &Client, name: &str) -> Result<Expected, Failure> {
    match client.function(name).await {
        Ok(function) => Ok(function.version.map_or(Expected::Absent, Expected::Version)),
        Err(error) if error.status() == Some(404) => Ok(Expected::Absent),
        Err(error) => Err(error.into()),
    }
}

async fn list(client: &Client, format: Format) -> Result<(), Failure> {
    let mut functions: Vec<Function> = Vec::new();
    let mut cursor = None;
    loop {
        let page = client.functions(cursor.as_deref()).await?;
        warn_of_unreadable(&page.unreadable);
        functions.extend(page.functions);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut rows = Rows::new(["name", "executor", "declared", "description"]);
    for function in &functions {
        let declaration: Value = serde_json::from_str(function.declaration.text()).unwrap_or_default();
        let text = |field: &str| declaration[field].as_str().unwrap_or_default().to_owned();
        let declared = match function.origin {
            FunctionOrigin::Stored => "through the API",
            FunctionOrigin::Configured => "in the server",
        };
        rows.add([function.name.clone(), text("executor"), declared.to_owned(), text("description")]);
    }
    print_rows(format, &functions, &rows)
}

/// Who is connected.
pub async fn workers(arguments: Nothing, format: Format) -> Result<(), Failure> {
    let client = arguments.connection.client()?;
    let mut workers: Vec<Worker> = Vec::new();
    let mut cursor = None;
    loop {
        let page = client.workers(cursor.as_deref()).await?;
        warn_of_unreadable(&page.unreadable);
        workers.extend(page.workers);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let mut rows = Rows::new(["worker", "functions", "tags", "in flight", "last seen", "node"]);
    for worker in &workers {
        rows.add([
            worker.worker.clone(),
            worker.functions.join(" "),
            worker.tags.join(" "),
            worker.in_flight.to_string(),
            short_time(worker.last_seen_at),
            worker.node.clone(),
        ]);
    }
    print_rows(format, &workers, &rows)
}

/// What tools wrote.
pub async fn logs(arguments: One, format: Format) -> Result<(), Failure> {
    let logs = arguments.connection.client()?.logs(&arguments.id).await?.logs;
    let shown: String = logs.iter().map(shown).collect();
    print_text(format, &logs, &shown)
}

fn shown(log: &FunctionLog) -> String {
    let cut = if log.is_cut { ", the end of it" } else { "" };
    let end = if log.text.ends_with('\n') { "" } else { "\n" };
    format!("call {}, attempt {}: {} bytes{cut}\n{}{end}", log.call, log.attempt, log.total_bytes, log.text)
}
