//! Events of instances: their histories.

use futures_util::stream::{self, BoxStream, StreamExt as _};
use segno::client::EventList;
use segno::limits::MAX_PAGE_ROWS;
use segno::store::HistoryQuery;
use segno_api::history::HistoryEvent;
use segno_ledger::sql::{ColumnKind as Kind, Pushdown, Row, Rows, Scan, Table, TableInfo, Value};

use super::listing::{self, Fields};
use super::{UNREADABLE, column, instances, pushed};
use crate::app::{Refused, Tenant};
use crate::problem::Refusal;
use crate::routes::instances::view;

/// The events of all executions that are stored.
pub static EVENTS: TableInfo = TableInfo {
    name: "events",
    doc: "Recorded events of instances, of all executions that are stored.",
    columns: &[
        pushed("instance", Kind::Text, Pushdown::Equal, "Id of the instance"),
        pushed("execution", Kind::Integer, Pushdown::Equal, "Number of the execution, from 1"),
        column("id", Kind::Integer, "Place in the history of the execution, from 1"),
        column("at", Kind::Time, "When it was recorded"),
        column("kind", Kind::Text, "What happened; the kinds are in the guide, page \"history format\""),
        column("name", Kind::Text, "The activity, step, signal or orchestration that it is about"),
        column(
            "source",
            Kind::Integer,
            "The event that it ends: of an ActivityCompleted, the ActivityScheduled",
        ),
        column("data", Kind::Json, "The fields of the kind"),
        UNREADABLE,
    ],
    key: &["instance", "execution", "id"],
    newest_first: None,
};

/// The events of a tenant's instances.
pub struct Events(pub Tenant);

/// Where the next page of an execution begins.
#[derive(Clone)]
struct Place {
    instance: String,
    execution: u64,
    after: u64,
}

impl Table for Events {
    fn info(&self) -> &'static TableInfo {
        &EVENTS
    }

    fn scan(&self, scan: Scan) -> Rows {
        let named = scan.equals_text("instance").map(str::to_owned);
        let instances = match named {
            Some(id) => stream::iter([Ok(id)]).boxed(),
            None => instances::ids(&self.0),
        };
        let execution = match scan.equals("execution") {
            Some(Value::Integer(number)) => match u64::try_from(*number) {
                Ok(number) => Some(number),
                Err(_) => return stream::empty().boxed(),
            },
            _ => None,
        };
        let tenant = self.0.clone();
        let of_instance = move |instance: Result<String, Refusal>| match instance {
            Ok(instance) => of_instance(tenant.clone(), instance, execution, scan.clone()),
            Err(refusal) => stream::iter([Err(refusal)]).boxed(),
        };
        let rows = instances.flat_map(of_instance);
        rows.map(|page| page.map_err(|refusal| Refused(refusal).into())).boxed()
    }
}

/// The events of an instance; none when it is there no more.
fn of_instance(
    tenant: Tenant,
    instance: String,
    execution: Option<u64>,
    scan: Scan,
) -> BoxStream<'static, Result<Vec<Row>, Refusal>> {
    let executions = async move {
        let numbers = match execution {
            Some(number) => vec![number],
            None => if_stored(tenant.executions(&instance).await)?.unwrap_or_default(),
        };
        Ok(stream::iter(numbers).flat_map(move |execution| {
            let begin = Place { instance: instance.clone(), execution, after: 0 };
            of_execution(tenant.clone(), begin, scan.clone())
        }))
    };
    let unfolded = stream::once(executions).flat_map(|found: Result<_, Refusal>| match found {
        Ok(events) => events.boxed(),
        Err(refusal) => stream::iter([Err(refusal)]).boxed(),
    });
    unfolded.boxed()
}

fn of_execution(tenant: Tenant, begin: Place, scan: Scan) -> BoxStream<'static, Result<Vec<Row>, Refusal>> {
    let pages = stream::try_unfold(Some(begin), move |place| {
        let (tenant, scan) = (tenant.clone(), scan.clone());
        async move {
            let Some(place) = place else { return Ok(None) };
            let query = HistoryQuery {
                instance_id: place.instance.clone(),
                execution_id: place.execution,
                after_event_id: place.after,
                limit: MAX_PAGE_ROWS,
            };
            let Some(page) = if_stored(tenant.history(query).await)? else { return Ok(None) };
            let rows = rows(&place, &page, &scan)?;
            Ok::<_, Refusal>(Some((rows, page.next.map(|after| Place { after, ..place }))))
        }
    });
    pages.boxed()
}

/// What was deleted while the query reads has no rows.
fn if_stored<T>(found: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
    match found {
        Err(refusal) if listing::is_absence(&refusal) => Ok(None),
        found => found.map(Some),
    }
}

fn rows(place: &Place, page: &EventList, scan: &Scan) -> Result<Vec<Row>, Refusal> {
    let has_fields = ["name", "source", "data"].into_iter().any(|name| scan.wants(name));
    let mut rows = Vec::with_capacity(page.events.len());
    for event in &page.events {
        let shown = has_fields.then(|| view::event(event)).transpose()?;
        let fields: Option<Fields> =
            shown.as_ref().and_then(|shown: &HistoryEvent| serde_json::from_str(shown.data.text()).ok());
        let field = |name: &str, kind| {
            let raw = fields.as_ref().and_then(|fields| fields.get(name));
            raw.map_or(Value::Null, |raw| listing::value(raw.get(), kind))
        };
        let cell = |name: &&str| match *name {
            "id" => Value::integer(Some(event.event_id)),
            "at" => Value::integer(Some(event.at_ms)),
            "kind" => Value::Text(event.kind.name().to_owned()),
            "name" => field("name", Kind::Text),
            "source" => field("source", Kind::Integer),
            "data" => Value::text(shown.as_ref().map(|shown| shown.data.text())),
            name => of_place(place, name),
        };
        rows.push(scan.columns.iter().map(cell).collect());
    }
    for lost in &page.unreadable {
        let cell = |name: &&str| match *name {
            "id" => Value::integer(Some(lost.after_event_id.saturating_add(1))),
            "unreadable" => Value::Text(lost.reason.clone()),
            name => of_place(place, name),
        };
        rows.push(scan.columns.iter().map(cell).collect());
    }
    Ok(rows)
}

fn of_place(place: &Place, name: &str) -> Value {
    match name {
        "instance" => Value::Text(place.instance.clone()),
        "execution" => Value::integer(Some(place.execution)),
        _ => Value::Null,
    }
}
