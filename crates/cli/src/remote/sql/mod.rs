//! `segno sql`: read-only queries over live tables.
//!
//! | file | what |
//! |---|---|
//! | `arguments` | what can be said |
//! | `answer` | answers as tables, CSV and documents |
//! | `console` | queries typed one after the other |
//! | `completion` | what Tab offers |

mod answer;
pub mod arguments;
mod completion;
mod console;

use std::io::{IsTerminal as _, Read as _, stdin};

use arguments::SqlArguments;
use segno_api::sql::SqlQuery;

use crate::exit::Failure;
use crate::output::{Output, Page, Rows};

/// Longest query that is read from standard input, in bytes; the server has the same limit.
const MAX_QUERY_BYTES: u64 = 64 * 1024 + 1;

/// Does what was asked.
pub async fn run(arguments: SqlArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    if arguments.queries {
        return list(&client, output).await;
    }
    let request = SqlQuery {
        max_rows: arguments.max_rows,
        timeout_seconds: arguments.timeout.map(|timeout| timeout.as_ms().div_ceil(1_000)),
        ..SqlQuery::default()
    };
    let request = match (arguments.sql, arguments.query) {
        (Some(text), _) if text == "-" => SqlQuery { query: Some(read()?), ..request },
        (Some(text), _) => SqlQuery { query: Some(text), ..request },
        (None, Some(name)) => SqlQuery { shipped: Some(name), ..request },
        (None, None) if stdin().is_terminal() => {
            return console::run(client, request, arguments.explain, output).await;
        }
        (None, None) => SqlQuery { query: Some(read()?), ..request },
    };
    let found = client.sql(&request).await?;
    let form = if arguments.csv { answer::Form::Csv } else { answer::Form::Chosen };
    answer::print(&found, form, output)?;
    if arguments.explain {
        answer::explain(&found, output);
    }
    Ok(())
}

fn read() -> Result<String, Failure> {
    let mut text = String::new();
    let read = stdin().take(MAX_QUERY_BYTES).read_to_string(&mut text);
    read.map_err(|error| Failure::File { place: "the query on standard input".to_owned(), error })?;
    Ok(text)
}

/// The shipped queries.
async fn list(client: &segno_api::Client, output: &Output) -> Result<(), Failure> {
    let shipped = client.sql_catalogue().await?.shipped;
    let mut rows = Rows::new(["name", "description"]);
    for query in &shipped {
        rows.add([query.name.clone(), query.description.clone()]);
    }
    output.list(&Page::whole(shipped), &rows)
}
