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

use std::fs::{self, File};
use std::io::{IsTerminal as _, Read as _, Write as _, stdin};
use std::path::Path;

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
        (None, None) if stdin().is_terminal() && arguments.parquet.is_none() => {
            return console::run(client, request, arguments.explain, output).await;
        }
        (None, None) => SqlQuery { query: Some(read()?), ..request },
    };
    if let Some(path) = arguments.parquet {
        return to_parquet(&client, &request, &path, output).await;
    }
    let found = client.sql(&request).await?;
    let form = if arguments.csv { answer::Form::Csv } else { answer::Form::Chosen };
    answer::print(&found, form, output)?;
    if arguments.explain {
        answer::explain(&found, output);
    }
    Ok(())
}

/// Writes an answer to a new file.
async fn to_parquet(
    client: &segno_api::Client,
    request: &SqlQuery,
    path: &Path,
    output: &Output,
) -> Result<(), Failure> {
    let failed = |error| Failure::File { place: path.display().to_string(), error };
    // Before the query runs, which may take a while.
    let mut file = File::create_new(path).map_err(failed)?;
    let written = match client.sql_parquet(request).await {
        Ok((bytes, is_truncated)) => {
            file.write_all(&bytes).and_then(|()| file.sync_all()).map(|()| is_truncated).map_err(failed)
        }
        Err(error) => Err(error.into()),
    };
    match written {
        Ok(true) => {
            output.warn("there are more rows than the file has; raise --max-rows or narrow the query");
            Ok(())
        }
        Ok(false) => Ok(()),
        Err(failure) => {
            // It was made by this call, and is no answer.
            let _ = fs::remove_file(path);
            Err(failure)
        }
    }
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
