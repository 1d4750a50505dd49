//! `segno list`: instances, newest first.

use segno_api::Client;
use segno_api::instance::{Instance, ListInstances, Status};

use super::arguments::List;
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Rows, print_rows, short_time};

/// Rows of one request.
const PAGE_ROWS: usize = 1_000;

/// Does it.
pub async fn run(arguments: List, format: Format) -> Result<(), Failure> {
    let client = arguments.connection.client()?;
    let filter = arguments.filter;
    let request = ListInstances {
        prefix: filter.prefix,
        status: filter.status,
        orchestration: filter.orchestration,
        label: filter.label,
        created_from: filter.created_from,
        created_before: filter.created_before,
        ..ListInstances::default()
    };
    let found = all(&client, request, arguments.limit).await?;
    let mut rows = Rows::new(["id", "orchestration", "status", "created", "ended"]);
    for instance in &found {
        rows.add([
            instance.id.clone(),
            instance.orchestration.clone().unwrap_or_default(),
            status(instance.status),
            short_time(instance.created_at),
            instance.completed_at.map_or_else(String::new, short_time),
        ]);
    }
    print_rows(format, &found, &rows)
}

async fn all(client: &Client, mut request: ListInstances, limit: usize) -> Result<Vec<Instance>, Failure> {
    let mut found = Vec::new();
    while found.len() < limit {
        request.limit = Some((limit - found.len()).min(PAGE_ROWS));
        let page = client.instances(&request).await?;
        found.extend(page.instances);
        match page.next_cursor {
            Some(cursor) => request.cursor = Some(cursor),
            None => break,
        }
    }
    Ok(found)
}

/// A state as it is written in the API.
pub fn status(status: Status) -> String {
    serde_json::to_value(status).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
