//! `segno functions …`, `segno workers` and `segno logs`: what can be called, who runs it, and what it wrote.

use segno_api::function::{FunctionLog, FunctionOrigin};
use segno_api::{Client, client::Expected};
use serde_json::Value;

use super::arguments::{Functions, FunctionsVerb, Logs, Workers};
use super::start::json;
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows, Table, counted};

/// Does what was asked.
pub async fn run(arguments: Functions, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    match arguments.verb {
        FunctionsVerb::List { paging } => list(&client, &paging, output).await,
        FunctionsVerb::Show { name } => {
            let function = client.function(&name).await?;
            let declaration: Value = serde_json::from_str(function.declaration.text()).unwrap_or_default();
            output.text(&function, &format!("{declaration:#}\n"))
        }
        FunctionsVerb::Put { name, declaration, version } => {
            let declaration = json("DECLARATION", &declaration)?;
            let expected = match version {
                Some(version) => Expected::Version(version),
                None => as_it_is(&client, &name).await?,
            };
            let function = client.put_function(&name, &declaration, expected).await?;
            let done = match expected {
                Expected::Absent => "created",
                Expected::Version(_) => "replaced",
            };
            output.print(&function, Table::default().line(&function.name, done))
        }
        FunctionsVerb::Delete { name } => {
            client.delete_function(&name, None).await?;
            output.print(&serde_json::json!({ "deleted": name }), Table::default().line(&name, "deleted"))
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

async fn list(client: &Client, paging: &Paging, output: &Output) -> Result<(), Failure> {
    let page = paging.gather(|request| async move {
        let page = client.functions(request).await?;
        Ok(Page::of(page.functions, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["name", "executor", "declared", "description"]);
    for function in &page.items {
        let declaration: Value = serde_json::from_str(function.declaration.text()).unwrap_or_default();
        let text = |field: &str| declaration[field].as_str().unwrap_or_default().to_owned();
        let declared = match function.origin {
            FunctionOrigin::Stored => "through the API",
            FunctionOrigin::Configured => "in the server",
        };
        rows.add([function.name.clone(), text("executor"), declared.to_owned(), text("description")]);
    }
    output.list(&page, &rows)
}

/// Who is connected.
pub async fn workers(arguments: Workers, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let client = &client;
    let page = arguments.paging.gather(|request| async move {
        let page = client.workers(request).await?;
        Ok(Page::of(page.workers, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["worker", "pools", "functions", "tags", "in flight", "last seen", "node"]);
    for worker in &page.items {
        rows.add([
            worker.worker.clone(),
            worker.pools.join(" "),
            worker.functions.join(" "),
            worker.tags.join(" "),
            worker.in_flight.to_string(),
            output.time(worker.last_seen_at),
            worker.node.clone(),
        ]);
    }
    output.list(&page, &rows)
}

/// What tools wrote.
pub async fn logs(arguments: Logs, output: &Output) -> Result<(), Failure> {
    let (client, id) = (arguments.connection.client(output)?, arguments.id.as_str());
    let client = &client;
    let page = arguments.paging.gather(|request| async move {
        let page = client.logs(id, request).await?;
        Ok(Page::of(page.logs, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    if page.items.is_empty() && page.next_cursor.is_none() {
        output.hint(&format!("no tool of {id} wrote to stderr"));
    }
    let shown: String = page.items.iter().map(shown_log).collect();
    output.list_as(&page, &shown)
}

/// What a tool wrote in one attempt, for people.
pub fn shown_log(log: &FunctionLog) -> String {
    let cut = if log.is_cut { ", the end of it" } else { "" };
    let end = if log.text.ends_with('\n') { "" } else { "\n" };
    let size = counted(log.total_bytes, "byte");
    format!("call {}, attempt {}: {size}{cut}\n{}{end}", log.call, log.attempt, log.text)
}
