//! What became of recurring actions, what will, and running what did not.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use segno_actions::Listed;
use segno_actions::action::ActionError;
use segno_actions::recurring::{Backfill, HistoryEntry};
use segno_actions::schedule::{Preview, Schedule, preview as times_of};
use segno_api::recurring::{
    BackfillRecurring, Backfilled, PreviewTime, RecurringExplanation, RecurringFields, RecurringHistory,
    RecurringPreview,
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::super::paging::{self, Chunk, Found, Page, Row, cursor, limit};
use super::{fields, view};
use crate::access::timestamp;
use crate::app::{App, Tenant};
use crate::extract::{Body, Path, Query};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Times of a preview when a request does not say.
const DEFAULT_TIMES: usize = 10;

/// Most times of a preview.
const MAX_TIMES: usize = 1_000;

/// Occurrences of a backfill when a request does not say.
const DEFAULT_BACKFILL: usize = 100;

/// Which times.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PreviewQuery {
    /// After this time; now without it.
    pub from: Option<Timestamp>,
    /// How many; 10 without it.
    #[param(minimum = 1, maximum = 1000)]
    pub count: Option<usize>,
}

/// Which time.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuery {
    /// The scheduled time in question.
    pub time: Timestamp,
}

/// What became of its occurrences and why, newest first.
#[utoipa::path(get, path = "/v1/recurring/{id}/history", tag = "recurring", params(
    ("id" = String, Path, description = "Id or name of the recurring action"), ScopeParameters, Page,
), responses((status = 200, body = RecurringHistory)))]
pub async fn history(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<RecurringHistory>, Refusal> {
    let (tenant, id) = (&tenant, &id);
    let read = |after: Option<String>, rows| async move {
        let earlier_than = cursor(after.as_deref(), |text| text.parse::<Timestamp>().ok())?;
        let found = tenant.recurring_history(id, earlier_than, rows).await;
        Ok(Chunk::of(found.map_err(|error| tenant.refused(error))?, rows))
    };
    let show = |entry: Listed<HistoryEntry>| match entry {
        Listed::Readable(entry) => Ok(Row::new(entry.time.to_string(), Listed::Readable(view::entry(entry)))),
        Listed::Unreadable(row) => Ok(Row::new(row.id.clone(), Listed::Unreadable(row))),
    };
    let Found { rows: entries, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
    Ok(Json(RecurringHistory { entries, unreadable, next_cursor }))
}

/// Why it did or did not run at a time.
#[utoipa::path(get, path = "/v1/recurring/{id}/explain", tag = "recurring", params(
    ("id" = String, Path, description = "Id or name of the recurring action"), ScopeParameters, ExplainQuery,
), responses((status = 200, body = RecurringExplanation)))]
pub async fn explain(
    tenant: Tenant,
    Path(id): Path<String>,
    Query(query): Query<ExplainQuery>,
) -> Result<Json<RecurringExplanation>, Refusal> {
    let explained = tenant.explain_recurring(&id, query.time).await;
    let explained = explained.map_err(|error| tenant.refused(error))?;
    Ok(Json(RecurringExplanation {
        time: explained.time,
        runs: explained.runs,
        text: explained.text,
        next: explained.next,
        paused_at: explained.paused_at,
        resumes_at: explained.resumes_at,
        created_at: explained.created_at,
        entry: explained.entry.map(view::entry),
    }))
}

/// Its next times, with what daylight saving does to them.
#[utoipa::path(get, path = "/v1/recurring/{id}/preview", tag = "recurring", params(
    ("id" = String, Path, description = "Id or name of the recurring action"), ScopeParameters, PreviewQuery,
), responses((status = 200, body = RecurringPreview)))]
pub async fn preview(
    State(app): State<App>,
    tenant: Tenant,
    Path(id): Path<String>,
    Query(query): Query<PreviewQuery>,
) -> Result<Json<RecurringPreview>, Refusal> {
    let refused = |error: ActionError| tenant.refused(error);
    let action = tenant.recurring(&id).await.map_err(refused)?;
    let schedule = tenant.schedule_of(&action).map_err(refused)?;
    shown(&tenant, app.clock.now_ms(), schedule, query).await
}

/// The next times of a schedule that is not stored. A field that a creation refuses is refused; what is called may be left
/// out, and a schedule that is over or never comes has no times.
#[utoipa::path(post, path = "/v1/recurring/preview", tag = "recurring", params(ScopeParameters, PreviewQuery),
    request_body = RecurringFields, responses((status = 200, body = RecurringPreview)))]
pub async fn preview_unsaved(
    State(app): State<App>,
    tenant: Tenant,
    Query(query): Query<PreviewQuery>,
    Body(request): Body<RecurringFields>,
) -> Result<Json<RecurringPreview>, Refusal> {
    let schedule = match fields::names_a_call(&request) {
        true => {
            let new = fields::new(request)?;
            if let Some(name) = &new.action_template.orchestration {
                tenant.check_known(name.as_str()).await?;
            }
            tenant.check_new_recurring(new).await
        }
        false => tenant.check_schedule(fields::draft(request)?),
    };
    let schedule = schedule.map_err(|error| tenant.refused(error))?;
    shown(&tenant, app.clock.now_ms(), schedule, query).await
}

/// Runs what lies in the past and was not run.
#[utoipa::path(post, path = "/v1/recurring/{id}/backfill", tag = "recurring", params(
    ("id" = String, Path, description = "Id or name of the recurring action"), ScopeParameters,
), request_body = BackfillRecurring, responses((status = 200, body = Backfilled)))]
pub async fn backfill(
    tenant: Tenant,
    Path(id): Path<String>,
    Body(request): Body<BackfillRecurring>,
) -> Result<Json<Backfilled>, Refusal> {
    let backfill = Backfill {
        start: request.start,
        end: request.end,
        limit: request.limit.unwrap_or(DEFAULT_BACKFILL),
        dry_run: request.dry_run,
    };
    let refused = |error: ActionError| tenant.refused(error);
    // It may have been asked for by its name.
    let id = tenant.recurring(&id).await.map_err(refused)?.id;
    let lines = tenant.backfill_recurring(&id, backfill).await.map_err(refused)?;
    Ok(Json(view::backfilled(id, lines)))
}

async fn shown(
    tenant: &Tenant,
    now_ms: u64,
    schedule: Schedule,
    query: PreviewQuery,
) -> Result<Json<RecurringPreview>, Refusal> {
    let count = query.count.unwrap_or(DEFAULT_TIMES);
    if !(1..=MAX_TIMES).contains(&count) {
        return Err(Refusal::field("count", format!("must be 1 to {MAX_TIMES}")));
    }
    let from = query.from.unwrap_or_else(|| timestamp(now_ms));
    let zones = tenant.zones().version().to_owned();
    // Searching rare times takes long, so it is done by threads that tenants share fairly, not by those that serve.
    let search = move || {
        let Preview { lines, next_after } = times_of(&schedule, from, count);
        let times =
            lines.into_iter().map(|line| PreviewTime { time: line.time, local: line.local, note: line.note });
        let times = times.collect();
        RecurringPreview {
            schedule: schedule.describe(),
            warnings: schedule.warnings(),
            zones,
            times,
            next_after,
        }
    };
    tenant.compute(search).await.map(Json)
}
