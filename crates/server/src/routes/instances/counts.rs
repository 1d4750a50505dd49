//! How many instances there are, by state, name or failure.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use segno::client::Instance;
use segno::clock;
use segno_api::counts::{CountBy, CountInstances, InstanceCounts, NamedCount};
use segno_api::instance::ListInstances;

use super::list::{self, failure_code};
use super::view;
use crate::access::timestamp;
use crate::app::{App, InstanceFilter, Tenant};
use crate::extract::Query;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;
use crate::stats::OTHERS;

/// Instances that are looked at unless the request says otherwise, and at most.
const DEFAULT_EXAMINED: usize = 10_000;
const MAX_EXAMINED: usize = 100_000;

/// After this time a count ends with what it has.
const COUNT_TIME: Duration = Duration::from_secs(10);

/// Instances that are read at once: their results are in memory until they are counted.
const PAGE_ROWS: usize = 200;

/// Names of an answer; the others are summed.
const MAX_NAMES: usize = 100;

/// Instances in one state, by its name on the wire.
fn status_name(found: &Instance) -> String {
    let status = serde_json::to_value(view::status(found.status)).unwrap_or_default();
    status.as_str().unwrap_or_default().to_owned()
}

/// How many instances there are, by state, name or failure. The newest are looked at first, found by an index for `status`,
/// `orchestration`, `function`, `label` and times of creation; `truncated` says when older ones were not looked at.
#[utoipa::path(get, path = "/v1/counts", tag = "overview", params(ScopeParameters, CountInstances), responses(
    (status = 200, body = InstanceCounts),
))]
pub async fn counts(
    State(app): State<App>,
    tenant: Tenant,
    Query(request): Query<CountInstances>,
) -> Result<Json<InstanceCounts>, Refusal> {
    let limit = match request.limit {
        None => DEFAULT_EXAMINED,
        Some(limit) if (1..=MAX_EXAMINED).contains(&limit) => limit,
        Some(_) => return Err(Refusal::field("limit", format!("must be 1 to {MAX_EXAMINED}"))),
    };
    let (by, request) = listing_of(request);
    let (mut filter, wanted) = list::filter_of(request)?;
    let until_ms = app.clock.now_ms().saturating_add(clock::duration_ms(COUNT_TIME));
    let (mut named, mut examined, mut oldest_ms) = (BTreeMap::<String, u64>::new(), 0, None);
    loop {
        let rows = PAGE_ROWS.min(limit - examined);
        let page = tenant.instances(InstanceFilter { limit: rows, ..filter.clone() }).await?;
        examined += page.instances.len() + page.unreadable.len();
        oldest_ms = page.instances.last().map(|found| found.created_at_ms).or(oldest_ms);
        for found in page.instances.iter().filter(|found| wanted.fits(found, app.clock.now_ms())) {
            let name = match by {
                CountBy::Status => Some(status_name(found)),
                CountBy::Orchestration => found.orchestration.clone(),
                CountBy::Function => tenant.function_of(&found.labels).map(str::to_owned),
                CountBy::Failure => failure_code(found),
            };
            name.into_iter().for_each(|name| *named.entry(name).or_default() += 1);
        }
        filter.cursor = page.next;
        if filter.cursor.is_none() || examined >= limit || app.clock.now_ms() >= until_ms {
            break;
        }
        // A store in this process answers without a pause.
        tokio::task::yield_now().await;
    }
    let total = named.values().sum();
    Ok(Json(InstanceCounts {
        counts: most_first(named),
        total,
        examined: examined as u64,
        truncated: filter.cursor.is_some(),
        oldest: oldest_ms.map(timestamp),
    }))
}

fn listing_of(request: CountInstances) -> (CountBy, ListInstances) {
    let listing = ListInstances {
        prefix: request.prefix,
        status: request.status,
        orchestration: request.orchestration,
        function: request.function,
        label: request.label,
        created_from: request.created_from,
        created_before: request.created_before,
        failure: request.failure,
        ended_from: request.ended_from,
        ended_before: request.ended_before,
        ..ListInstances::default()
    };
    (request.by, listing)
}

fn most_first(named: BTreeMap<String, u64>) -> Vec<NamedCount> {
    let mut counts: Vec<_> = named.into_iter().map(|(name, count)| NamedCount { name, count }).collect();
    counts.sort_by_key(|named| (Reverse(named.count), named.name.clone()));
    let rest = counts.split_off(counts.len().min(MAX_NAMES));
    let count = rest.iter().map(|named| named.count).sum();
    if count > 0 {
        counts.push(NamedCount { name: OTHERS.to_owned(), count });
    }
    counts
}
