//! Events of instances: their histories.

use futures_util::stream::{self, BoxStream, StreamExt as _};
use segno::client::EventList;
use segno::limits::MAX_PAGE_ROWS;
use segno::store::HistoryQuery;
use segno_api::history::HistoryEvent;
use segno_ledger::sql::{ColumnKind as Kind, Pushdown, Row, Rows, Scan, Table, TableInfo, Value};

use super::archived_events::{self, Delivered};
use super::listing::{self, Fields};
use super::{UNREADABLE, column, instances, pushed};
use crate::app::{Refused, Tenant};
use crate::problem::Refusal;
use crate::routes::instances::view;

/// The events of all executions that are stored or archived.
pub static EVENTS: TableInfo = TableInfo {
    name: "events",
    doc: "Recorded events of instances, of all executions that are stored or archived.",
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
        pushed(
            "instance_created_at",
            Kind::Time,
            Pushdown::Range,
            "When the instance was created: tells two of the same id apart",
        ),
        column("archived", Kind::Flag, "Whether retention has moved it from the store to the archive"),
        UNREADABLE,
    ],
    key: &["instance", "instance_created_at", "execution", "id"],
    newest_first: None,
};

/// The events of a tenant's instances.
pub struct Events(pub Tenant);

/// Where the next page of an execution begins.
#[derive(Clone)]
struct Place {
    instance: String,
    created_at_ms: u64,
    execution: u64,
    after: u64,
}

impl Table for Events {
    fn info(&self) -> &'static TableInfo {
        &EVENTS
    }

    fn scan(&self, scan: Scan) -> Rows {
        let execution = match scan.equals("execution") {
            Some(Value::Integer(number)) => match u64::try_from(*number) {
                Ok(number) => Some(number),
                Err(_) => return stream::empty().boxed(),
            },
            _ => None,
        };
        let instances = match scan.equals_text("instance").map(str::to_owned) {
            Some(id) => named(self.0.clone(), id),
            None => instances::ids(&self.0),
        };
        let delivered = self.0.has_archive().then(Delivered::default);
        let (tenant, live) = (self.0.clone(), scan.clone());
        let of_live = delivered.clone();
        let of_instance = move |instance: Result<(String, u64), Refusal>| match instance {
            Ok(instance) => of_instance(tenant.clone(), instance, execution, (live.clone(), of_live.clone())),
            Err(refusal) => stream::iter([Err(refusal)]).boxed(),
        };
        let rows = instances.flat_map(of_instance);
        // After the live ones: what retention moves meanwhile is in the archive before it leaves the store.
        let archived = match delivered {
            Some(delivered) => archived_events::rows(self.0.clone(), scan, delivered),
            None => stream::empty().boxed(),
        };
        rows.chain(archived).map(|page| page.map_err(|refusal| Refused(refusal).into())).boxed()
    }
}

/// The live instance of an id, if there is one.
fn named(tenant: Tenant, id: String) -> listing::Ids<(String, u64)> {
    let found = async move {
        match if_stored(tenant.instance(&id).await) {
            Ok(found) => found.map(|found| Ok((id, found.created_at_ms))),
            Err(refusal) => Some(Err(refusal)),
        }
    };
    stream::once(found).filter_map(std::future::ready).boxed()
}

/// The events of a live instance; none when it is there no more.
fn of_instance(
    tenant: Tenant,
    (instance, created_at_ms): (String, u64),
    execution: Option<u64>,
    (scan, delivered): (Scan, Option<Delivered>),
) -> BoxStream<'static, Result<Vec<Row>, Refusal>> {
    let executions = async move {
        let numbers = match execution {
            Some(number) => vec![number],
            None => if_stored(tenant.executions(&instance).await)?.unwrap_or_default(),
        };
        Ok(stream::iter(numbers).flat_map(move |execution| {
            let begin = Place { instance: instance.clone(), created_at_ms, execution, after: 0 };
            of_execution(tenant.clone(), begin, scan.clone(), delivered.clone())
        }))
    };
    let unfolded = stream::once(executions).flat_map(|found: Result<_, Refusal>| match found {
        Ok(events) => events.boxed(),
        Err(refusal) => stream::iter([Err(refusal)]).boxed(),
    });
    unfolded.boxed()
}

fn of_execution(
    tenant: Tenant,
    begin: Place,
    scan: Scan,
    delivered: Option<Delivered>,
) -> BoxStream<'static, Result<Vec<Row>, Refusal>> {
    let pages = stream::try_unfold(Some(begin), move |place| {
        let (tenant, scan, delivered) = (tenant.clone(), scan.clone(), delivered.clone());
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
            let last = page.events.last().map(|event| event.event_id);
            if let (Some(delivered), Some(last)) = (&delivered, last) {
                delivered.note_live((&place.instance, place.created_at_ms, place.execution), last);
            }
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
        "instance_created_at" => Value::integer(Some(place.created_at_ms)),
        "archived" => Value::flag(false),
        _ => Value::Null,
    }
}
