//! Batches of runbooks: members, phases, steps, and requests about them.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use segno_actions::Listed;
use segno_api::batch::{
    Batch, BatchAction, BatchDetails, BatchList, BatchRequest, BatchStatus, CreateBatch, Explanation, Member,
    MemberDetails, MemberList, MemberStatus, PutMembers, RemoveMembers, RequestState,
};
use segno_api::several;
use segno_runbook::names::NameKind;
use segno_runbook::rows::{InitId, MemberId, PhaseId, RowKey, StepId, WorkKey};
use serde::Deserialize;
use utoipa::IntoParams;

use super::paging::{self, Chunk, Found, Page, Row, cursor, limit, named};
use crate::access::Caller;
use crate::app::{Requester, Tenant};
use crate::extract::{Body, Path, Query};
use crate::idempotency::RepeatSafe;
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Largest body with members in bytes: a CSV file of 10 MiB as JSON text.
pub const MAX_MEMBERS_BODY_BYTES: usize = 24 * 1024 * 1024;

/// Which batches.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct BatchQuery {
    /// Only batches of this runbook.
    pub runbook: Option<String>,
    /// Only batches in one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`.
    #[serde(default, deserialize_with = "several::deserialize")]
    #[param(inline)]
    pub status: Vec<BatchStatus>,
    /// At most this many.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Which members of a batch.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct MemberQuery {
    /// Only the member with this key; letter case does not matter.
    pub key: Option<String>,
    /// Only members in one of these states, repeated or with commas: `status=failed&status=cancelled`, `status=failed,cancelled`.
    #[serde(default, deserialize_with = "several::deserialize")]
    #[param(inline)]
    pub status: Vec<MemberStatus>,
    /// At most this many.
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// Which row of a batch.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RowQuery {
    /// `phase-108`, `member-501`, `step-1042` or `init-7`; the batch itself by default.
    pub row: Option<String>,
}

/// Whether a list shows a row in this state: any if it asks for none.
fn is_one_of<S: PartialEq>(status: S, wanted: &[S]) -> bool {
    wanted.is_empty() || wanted.contains(&status)
}

fn requester(repeat: &RepeatSafe, caller: &Caller) -> Requester {
    Requester { key: repeat.id().map(str::to_owned), by: caller.key_id().map(str::to_owned) }
}

/// Creates a batch. It begins once all its members are stored.
#[utoipa::path(post, path = "/v1/batches", tag = "batches", params(ScopeParameters), request_body = CreateBatch, responses(
    (status = 201, body = Batch),
))]
pub async fn create(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Body(request): Body<CreateBatch>,
) -> Result<Response, Refusal> {
    let batch = tenant.create_batch(request, requester(&repeat, &caller)).await?;
    let location = tenant.location(&format!("/v1/batches/{}", batch.id));
    Ok((StatusCode::CREATED, location, Json(batch)).into_response())
}

/// Batches, newest first.
#[utoipa::path(get, path = "/v1/batches", tag = "batches", params(ScopeParameters, BatchQuery), responses(
    (status = 200, body = BatchList),
))]
pub async fn list(tenant: Tenant, Query(query): Query<BatchQuery>) -> Result<Json<BatchList>, Refusal> {
    let (tenant, runbook) = (&tenant, query.runbook.as_deref());
    named("runbook", runbook, |name| NameKind::Runbook.check(name))?;
    let read = |before: Option<String>, rows| async move {
        let before = cursor(before.as_deref(), |text| text.parse().ok())?;
        Ok(Chunk::of(tenant.batches(runbook, before, rows).await?, rows))
    };
    let show = |row: Listed<Batch>| match &row {
        Listed::Readable(batch) => {
            let matches = is_one_of(batch.status, &query.status);
            Ok(Row { matches, ..Row::new(batch.id.to_string(), row) })
        }
        Listed::Unreadable(unreadable) => Ok(Row::new(unreadable.id.clone(), row)),
    };
    let Found { rows: batches, unreadable, next_cursor } =
        paging::page(limit(query.limit)?, query.cursor, read, show).await?;
    Ok(Json(BatchList { batches, unreadable, next_cursor }))
}

/// A batch with its phases and init steps, and why it waits.
#[utoipa::path(get, path = "/v1/batches/{id}", tag = "batches", params(
    ("id" = u64, Path, description = "Id of the batch"), ScopeParameters,
), responses((status = 200, body = BatchDetails)))]
pub async fn get(tenant: Tenant, Path(id): Path<u64>) -> Result<Json<BatchDetails>, Refusal> {
    Ok(Json(tenant.batch(id).await?))
}

/// Why a row of a batch waits, what will wake it, and when.
#[utoipa::path(get, path = "/v1/batches/{id}/explain", tag = "batches", params(
    ("id" = u64, Path, description = "Id of the batch"), ScopeParameters, RowQuery,
), responses((status = 200, body = Explanation)))]
pub async fn explain(
    tenant: Tenant,
    Path(id): Path<u64>,
    Query(query): Query<RowQuery>,
) -> Result<Json<Explanation>, Refusal> {
    let key = match query.row.as_deref() {
        None | Some("batch") => RowKey::Batch,
        Some(row) => row_key(row).ok_or_else(|| {
            let problem = "write phase-108, member-501, step-1042 or init-7";
            Refusal::field("row", format!("{row:?} is no row of a batch; {problem}"))
        })?,
    };
    Ok(Json(tenant.explain_row(id, &key).await?))
}

fn row_key(text: &str) -> Option<RowKey> {
    let (kind, id) = text.split_once('-')?;
    let id: u64 = id.parse().ok()?;
    Some(match kind {
        "phase" => RowKey::Phase(PhaseId(id)),
        "member" => RowKey::Member(MemberId(id)),
        "step" => WorkKey::Step(StepId(id)).into(),
        "init" => WorkKey::Init(InitId(id)).into(),
        _ => return None,
    })
}

/// Members of a batch, in the order in which they were added.
#[utoipa::path(get, path = "/v1/batches/{id}/members", tag = "batches", params(
    ("id" = u64, Path, description = "Id of the batch"), ScopeParameters, MemberQuery,
), responses((status = 200, body = MemberList)))]
pub async fn members(
    tenant: Tenant,
    Path(id): Path<u64>,
    Query(query): Query<MemberQuery>,
) -> Result<Json<MemberList>, Refusal> {
    let (tenant, page) = (&tenant, Page { limit: query.limit, cursor: query.cursor });
    if let Some(key) = &query.key {
        limit(page.limit)?;
        let member = tenant.member_of_key(id, key).await?;
        let members = member.into_iter().filter(|member| is_one_of(member.status, &query.status)).collect();
        return Ok(Json(MemberList { members, unreadable: Vec::new(), next_cursor: None }));
    }
    let read = |after: Option<String>, rows| async move {
        let after = cursor(after.as_deref(), |text| text.parse().ok())?;
        Ok(Chunk::of(tenant.members(id, after, rows).await?, rows))
    };
    let show = |row: Listed<Member>| match &row {
        Listed::Readable(member) => {
            let matches = is_one_of(member.status, &query.status);
            Ok(Row { matches, ..Row::new(member.id.to_string(), row) })
        }
        Listed::Unreadable(unreadable) => Ok(Row::new(unreadable.id.clone(), row)),
    };
    let Found { rows: members, unreadable, next_cursor } =
        paging::page(limit(page.limit)?, page.cursor, read, show).await?;
    Ok(Json(MemberList { members, unreadable, next_cursor }))
}

/// A member with its steps in all phases.
#[utoipa::path(get, path = "/v1/batches/{id}/members/{member}", tag = "batches", params(
    ("id" = u64, Path, description = "Id of the batch"),
    ("member" = u64, Path, description = "Id of the member"), ScopeParameters,
), responses((status = 200, body = MemberDetails)))]
pub async fn member(
    tenant: Tenant,
    Path((id, member)): Path<(u64, u64)>,
) -> Result<Json<MemberDetails>, Refusal> {
    Ok(Json(tenant.member(id, member).await?))
}

/// Adds members to a batch, updates those that exist, and takes back those that had left. Late members catch up on phases that
/// were due.
#[utoipa::path(post, path = "/v1/batches/{id}/members", tag = "batches", params(
    ("id" = u64, Path, description = "Id of the batch"), ScopeParameters,
), request_body = PutMembers, responses(
    (status = 200, body = BatchRequest),
    (status = 202, description = "It is stored and will be applied", body = BatchRequest),
))]
pub async fn put_members(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
    Body(request): Body<PutMembers>,
) -> Result<Response, Refusal> {
    Ok(answer(tenant.put_members(id, request, requester(&repeat, &caller)).await?))
}

/// Removes members from a batch: their open steps are cancelled, then the removal steps of the runbook run.
#[utoipa::path(post, path = "/v1/batches/{id}/members/remove", tag = "batches", params(
    ("id" = u64, Path, description = "Id of the batch"), ScopeParameters,
), request_body = RemoveMembers, responses(
    (status = 200, body = BatchRequest),
    (status = 202, description = "It is stored and will be applied", body = BatchRequest),
))]
pub async fn remove_members(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
    Body(request): Body<RemoveMembers>,
) -> Result<Response, Refusal> {
    Ok(answer(tenant.remove_members(id, request.keys, requester(&repeat, &caller)).await?))
}

/// Requests something of a batch: advance, approve, pause, resume, cancel, retry, skip. The request is stored, and the answer
/// waits up to 10 s for it to be applied.
#[utoipa::path(post, path = "/v1/batches/{id}/requests", tag = "batches", params(
    ("id" = u64, Path, description = "Id of the batch"), ScopeParameters,
), request_body = BatchAction, responses(
    (status = 200, body = BatchRequest),
    (status = 202, description = "It is stored and will be applied", body = BatchRequest),
))]
pub async fn request(
    tenant: Tenant,
    repeat: RepeatSafe,
    Extension(caller): Extension<Caller>,
    Path(id): Path<u64>,
    Body(action): Body<BatchAction>,
) -> Result<Response, Refusal> {
    Ok(answer(tenant.request_of_batch(id, action, requester(&repeat, &caller)).await?))
}

/// A request about a batch, and what became of it.
#[utoipa::path(get, path = "/v1/batches/{id}/requests/{key}", tag = "batches", params(
    ("id" = u64, Path, description = "Id of the batch"),
    ("key" = String, Path, description = "Key of the request"), ScopeParameters,
), responses((status = 200, body = BatchRequest)))]
pub async fn get_request(
    tenant: Tenant,
    Path((id, key)): Path<(u64, String)>,
) -> Result<Json<BatchRequest>, Refusal> {
    Ok(Json(tenant.batch_request(id, &key).await?))
}

fn answer(request: BatchRequest) -> Response {
    let status = match request.state {
        RequestState::Waiting => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    (status, Json(request)).into_response()
}
