//! `segno list`: instances, newest first.

use segno_api::instance::{Kind, ListInstances, Status};
use segno_server::HumanDuration;

use super::arguments::List;
use crate::exit::Failure;
use crate::output::{Output, Page, Rows};

/// Does it.
pub async fn run(arguments: List, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let (filter, ends) = (arguments.filter, arguments.ends);
    let request = ListInstances {
        prefix: filter.prefix,
        status: filter.status,
        orchestration: filter.orchestration,
        function: filter.function,
        label: filter.label,
        created_from: output.optional_moment(filter.created_from)?,
        created_before: output.optional_moment(filter.created_before)?,
        failure: ends.failure,
        ended_from: output.optional_moment(ends.ended_from)?,
        ended_before: output.optional_moment(ends.ended_before)?,
        longer_than_ms: ends.longer_than.map(HumanDuration::as_ms),
        shorter_than_ms: ends.shorter_than.map(HumanDuration::as_ms),
        ..ListInstances::default()
    };
    let (client, request) = (&client, &request);
    let page = arguments.paging.gather(|page| async move {
        let request = ListInstances { limit: page.limit, cursor: page.cursor, ..request.clone() };
        let page = client.instances(&request).await?;
        Ok(Page::of(page.instances, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["id", "name", "kind", "status", "created", "ended"]);
    for instance in &page.items {
        rows.add([
            instance.id.clone(),
            instance.shown_name().unwrap_or_default().to_owned(),
            kind(instance.kind).to_owned(),
            status(instance.status),
            output.time(instance.created_at),
            output.time_or_none(instance.completed_at),
        ]);
    }
    output.list(&page, &rows)
}

/// What made an instance, for people.
pub fn kind(kind: Option<Kind>) -> &'static str {
    kind.map_or("workflow", Kind::as_str)
}

/// A state as it is written in the API.
pub fn status(status: Status) -> String {
    serde_json::to_value(status).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
