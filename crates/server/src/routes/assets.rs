//! Assets of published DAGs: who makes and reads them, what was made last, and what is made of what.

use axum::Json;
use segno_api::asset::{Asset, AssetLineage, AssetList};
use segno_ledger::drive::TraceQuery;
use serde::Deserialize;
use utoipa::IntoParams;

use super::paging::{self, Found, Page, limit};
use crate::app::Tenant;
use crate::extract::{Path, Query};
use crate::problem::Refusal;
use crate::scope::ScopeParameters;

/// Which lineage.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct LineageQuery {
    /// Of this partition, with the runs that have made what it is made of; of the asset as a whole without it.
    pub partition: Option<String>,
    /// At most so many edges away.
    #[param(minimum = 1)]
    pub depth: Option<u32>,
}

/// Assets of published DAGs, by key, with what was made last of each.
#[utoipa::path(get, path = "/v1/assets", tag = "assets", params(ScopeParameters, Page), responses(
    (status = 200, body = AssetList),
))]
pub async fn list(tenant: Tenant, Query(page): Query<Page>) -> Result<Json<AssetList>, Refusal> {
    let rows = limit(page.limit)?;
    let after = paging::text_of(page.cursor.as_deref())?;
    let (assets, is_complete) = tenant.assets(after.as_deref(), rows + 1).await?;
    let Found { rows: assets, unreadable, next_cursor } =
        paging::of_rows(rows, assets, |asset: &Asset| paging::of_text(&asset.asset))?;
    Ok(Json(AssetList { assets, is_complete, unreadable, next_cursor }))
}

/// An asset.
#[utoipa::path(get, path = "/v1/assets/{asset}", tag = "assets", params(
    ("asset" = String, Path, description = "Key of the asset"), ScopeParameters,
), responses((status = 200, body = Asset)))]
pub async fn get(tenant: Tenant, Path(asset): Path<String>) -> Result<Json<Asset>, Refusal> {
    Ok(Json(tenant.asset(&asset).await?))
}

/// What an asset is made of, and what is made of it.
#[utoipa::path(get, path = "/v1/assets/{asset}/lineage", tag = "assets", params(
    ("asset" = String, Path, description = "Key of the asset"), ScopeParameters, LineageQuery,
), responses((status = 200, body = AssetLineage)))]
pub async fn lineage(
    tenant: Tenant,
    Path(asset): Path<String>,
    Query(query): Query<LineageQuery>,
) -> Result<Json<AssetLineage>, Refusal> {
    if query.depth == Some(0) {
        return Err(Refusal::field("depth", "is 0; write 1 or more"));
    }
    let query = TraceQuery { partition: query.partition, depth: query.depth };
    Ok(Json(tenant.asset_lineage(&asset, &query).await?))
}
