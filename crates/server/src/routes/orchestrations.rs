//! Orchestrations that the nodes have, with the schemas that they declare.

use axum::Json;
use segno::Payload;
use segno::published::PublishedOrchestration;
use segno_actions::Listed;
use segno_api::orchestration::{Orchestration, OrchestrationList};

use super::paging::{self, Chunk, Found, Page, Row, limit};
use crate::app::Tenant;
use crate::extract::{Path, Query};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Orchestrations that a node has, or had within the last day, by name.
#[utoipa::path(get, path = "/v1/orchestrations", tag = "instances", params(ScopeParameters, Page), responses(
    (status = 200, body = OrchestrationList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<OrchestrationList>, Refusal> {
    let tenant = &tenant;
    let read = |after: Option<String>, rows| async move {
        let after = paging::text_of(after.as_deref())?;
        Ok(Chunk::of(tenant.orchestrations(after.as_deref(), rows).await?, rows))
    };
    let show = |found: PublishedOrchestration| {
        Ok(Row::new(paging::of_text(&found.name), Listed::Readable(shown(found)?)))
    };
    let Found { rows, next_cursor, .. } =
        paging::page(limit(page.limit)?, page.cursor.clone(), read, show).await?;
    Ok(Json(OrchestrationList { orchestrations: rows, next_cursor }))
}

/// One orchestration with its schemas.
#[utoipa::path(get, path = "/v1/orchestrations/{name}", tag = "instances", params(
    ("name" = String, Path, description = "Name of the orchestration"), ScopeParameters,
), responses((status = 200, body = Orchestration)))]
pub async fn get(tenant: Tenant, Path(name): Path<String>) -> Result<Json<Orchestration>, Refusal> {
    Ok(Json(shown(tenant.orchestration(&name).await?)?))
}

fn shown(found: PublishedOrchestration) -> Result<Orchestration, Refusal> {
    let json = |schema: Payload| {
        segno_api::Json::from_text(schema.as_str().to_owned()).map_err(|error| {
            Refusal::new(crate::problem::Code::Internal, format!("a stored schema is not JSON: {error}"))
        })
    };
    let messages = found.schemas.messages.into_iter().map(|(name, schema)| Ok((name, json(schema)?)));
    Ok(Orchestration {
        name: found.name,
        versions: found.versions,
        input_schema: found.schemas.input.map(json).transpose()?,
        messages: messages.collect::<Result<_, Refusal>>()?,
    })
}
