//! Listing.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use axum::Json;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use segno::client::Instance;
use segno::limits::MAX_LABELS;
use segno::store::{ExecutionStatus, InstanceCursor, UnreadableInstance};
use segno_actions::Listed;
use segno_actions::functions::CallName;
use segno_api::instance::{InstanceList, ListInstances, Status};

use super::super::paging::{self, Chunk, Row, limit};
use super::view;
use crate::app::{InstanceFilter, Tenant};
use crate::extract::Query;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Instances, newest first.
#[utoipa::path(get, path = "/v1/instances", tag = "instances", params(ScopeParameters, ListInstances), responses(
    (status = 200, body = InstanceList),
))]
pub async fn list(
    tenant: Tenant,
    Query(request): Query<ListInstances>,
) -> Result<Json<InstanceList>, Refusal> {
    let rows = limit(request.limit)?;
    let cursor = request.cursor.clone();
    let (filter, wanted) = filter_of(request)?;
    let filter = InstanceFilter { limit: rows, ..filter };
    let (tenant, filter, now_ms) = (&tenant, &filter, tenant.now_ms());
    let read = |after: Option<String>, limit| async move {
        let cursor = after.as_deref().map(decode_cursor).transpose()?;
        let page = tenant.instances(InstanceFilter { cursor, limit, ..filter.clone() }).await?;
        let (is_last, damaged) = (page.next.is_none(), page.damaged.clone());
        Ok(Chunk { rows: in_order(page), is_last, damaged })
    };
    let show = |found: Found| {
        let cursor = encode_cursor(&found.place());
        let matches = match &found {
            Found::Readable(found) => wanted.fits(found, now_ms),
            // Of one that cannot be read that is not known, so it is shown.
            Found::Unreadable(_) => true,
        };
        let row = Row::new(
            cursor,
            match found {
                Found::Readable(found) => Listed::Readable(view::instance(tenant, *found)?),
                Found::Unreadable(row) => {
                    let reason = format!("its row cannot be read: {}", row.reason);
                    Listed::Unreadable(segno_actions::Unreadable { id: row.instance_id, reason })
                }
            },
        );
        Ok(Row { matches, ..row })
    };
    let found = paging::page(rows, cursor, read, show).await?;
    let paging::Found { rows: instances, unreadable, next_cursor } = found;
    Ok(Json(InstanceList { instances, unreadable, next_cursor }))
}

/// What of a filter the indexes find, and what is looked for row by row.
///
/// # Errors
/// When a field cannot be read.
pub fn filter_of(request: ListInstances) -> Result<(InstanceFilter, Wanted), Refusal> {
    let wanted = Wanted::of(&request);
    let statuses = wanted.states(request.status);
    let filter = InstanceFilter {
        prefix: request.prefix,
        statuses,
        orchestration: request.orchestration,
        function: request.function.as_deref().map(|name| parse_function("function", name)).transpose()?,
        labels: parse_labels("label", &request.label)?,
        parent: request.parent,
        created_from_ms: request.created_from.map(unix_ms),
        created_before_ms: request.created_before.map(unix_ms),
        cursor: None,
        limit: 0,
    };
    Ok((filter, wanted))
}

/// The code of an instance's failure, or its category without one.
pub fn failure_code(found: &Instance) -> Option<String> {
    let failure = found.failure()?;
    Some(failure.code.clone().unwrap_or_else(|| failure.category.to_string()))
}

/// What of a filter is looked for row by row.
pub struct Wanted {
    failure: Option<String>,
    ended_from_ms: Option<u64>,
    ended_before_ms: Option<u64>,
    longer_than_ms: Option<u64>,
    shorter_than_ms: Option<u64>,
}

impl Wanted {
    /// What of a request is looked for row by row.
    pub fn of(request: &ListInstances) -> Self {
        Wanted {
            failure: request.failure.clone(),
            ended_from_ms: request.ended_from.map(unix_ms),
            ended_before_ms: request.ended_before.map(unix_ms),
            longer_than_ms: request.longer_than_ms,
            shorter_than_ms: request.shorter_than_ms,
        }
    }

    /// Whether any row is looked for, so that the indexes find all.
    pub fn is_all(&self) -> bool {
        let times = [self.ended_from_ms, self.ended_before_ms, self.longer_than_ms, self.shorter_than_ms];
        self.failure.is_none() && times.iter().all(Option::is_none)
    }

    /// The states to look in: those that are given, or else the only ones in which there can be such instances.
    pub fn states(&self, given: Vec<Status>) -> BTreeSet<ExecutionStatus> {
        match given.is_empty() {
            true => self.statuses().into_iter().collect(),
            false => given.into_iter().map(view::engine_status).collect(),
        }
    }

    /// The only states in which there can be such instances; all if there are none. States have an index.
    fn statuses(&self) -> Vec<ExecutionStatus> {
        use ExecutionStatus::{Cancelled, Completed, Failed};
        match (&self.failure, self.ended_from_ms.or(self.ended_before_ms)) {
            (Some(_), _) => vec![Failed, Cancelled],
            (None, Some(_)) => vec![Completed, Failed, Cancelled],
            (None, None) => Vec::new(),
        }
    }

    /// Whether a row is looked for.
    pub fn fits(&self, found: &Instance, now_ms: u64) -> bool {
        let ended_ms = found.completed_at_ms;
        let took_ms =
            ended_ms.unwrap_or(now_ms).saturating_sub(found.start_at_ms.unwrap_or(found.created_at_ms));
        self.failure.as_ref().is_none_or(|wanted| failure_code(found).as_ref() == Some(wanted))
            && self.ended_from_ms.is_none_or(|from| ended_ms.is_some_and(|at| at >= from))
            && self.ended_before_ms.is_none_or(|before| ended_ms.is_some_and(|at| at < before))
            && self.longer_than_ms.is_none_or(|least| took_ms > least)
            && self.shorter_than_ms.is_none_or(|most| took_ms < most)
    }
}

/// A row of the listing.
enum Found {
    Readable(Box<Instance>),
    Unreadable(UnreadableInstance),
}

impl Found {
    fn place(&self) -> InstanceCursor {
        let (created_at_ms, id) = match self {
            Found::Readable(found) => (found.created_at_ms, &found.id),
            Found::Unreadable(row) => (row.created_at_ms, &row.instance_id),
        };
        InstanceCursor { created_at_ms, instance_id: id.clone() }
    }
}

/// All rows of a page, newest first; of equal age, by id.
fn in_order(page: segno::client::InstanceList) -> Vec<Found> {
    let readable = page.instances.into_iter().map(|found| Found::Readable(Box::new(found)));
    let mut rows: Vec<Found> = readable.chain(page.unreadable.into_iter().map(Found::Unreadable)).collect();
    rows.sort_by_cached_key(|row| {
        let InstanceCursor { created_at_ms, instance_id } = row.place();
        (Reverse(created_at_ms), instance_id)
    });
    rows
}

/// The name of a function, of the catalogue or of a pool.
///
/// # Errors
/// When it cannot be one.
pub fn parse_function(field: &str, name: &str) -> Result<CallName, Refusal> {
    CallName::new(name).map_err(|error| Refusal::field(field, error.to_string()))
}

/// Labels as `key=value`, all of which must hold.
///
/// # Errors
/// When there is no `=` in one, one is Segno's own, or they are more than an instance can have.
pub fn parse_labels(field: &str, texts: &[String]) -> Result<BTreeSet<(String, String)>, Refusal> {
    if texts.len() > MAX_LABELS {
        let detail =
            format!("is given {} times, and no instance has more than {MAX_LABELS} labels", texts.len());
        return Err(Refusal::field(field, detail));
    }
    let labels = texts.iter().map(|text| match text.split_once('=') {
        Some((key, _)) if segno::is_reserved_label(key) => {
            let problem = format!(
                "labels that begin with {:?} are reserved for Segno; use function to find the calls of one",
                segno::RESERVED_LABEL_PREFIX
            );
            Err(Refusal::field(field, problem))
        }
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Refusal::field(field, "must be key=value")),
    });
    labels.collect()
}

/// Milliseconds since 1970; times before it are 1970.
pub fn unix_ms(at: jiff::Timestamp) -> u64 {
    u64::try_from(at.as_millisecond()).unwrap_or(0)
}

/// A cursor as text that callers give back.
pub fn encode_cursor(cursor: &InstanceCursor) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {}", cursor.created_at_ms, cursor.instance_id))
}

/// A cursor that a caller gave back.
///
/// # Errors
/// When it is not one.
pub fn decode_cursor(cursor: &str) -> Result<InstanceCursor, Refusal> {
    let decoded = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let parts = decoded.as_deref().and_then(|text| {
        let (created_at_ms, id) = text.split_once(' ')?;
        Some(InstanceCursor { created_at_ms: created_at_ms.parse().ok()?, instance_id: id.to_owned() })
    });
    parts.ok_or_else(Refusal::broken_cursor)
}
