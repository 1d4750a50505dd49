//! API keys.

use axum::http::StatusCode;
use axum::{Extension, Json};
use segno_api::key::{CreateKey, CreatedKey, KeyList, SHOWN_ONCE};

use super::paging::{Page, cursor, limit};
use crate::access::is_key_id;
use crate::app::Keys;
use crate::extract::{Body, Path, Query};
use crate::idempotency::{KeptInstead, RepeatSafe};
use crate::problem::Refusal;

/// All keys, without their secrets.
#[utoipa::path(get, path = "/v1/keys", tag = "keys", params(Page), responses(
    (status = 200, body = KeyList),
))]
pub async fn list(keys: Keys, Query(page): Query<Page>) -> Result<Json<KeyList>, Refusal> {
    let rows = limit(page.limit)?;
    let after = cursor(page.cursor.as_deref(), |text| is_key_id(text).then_some(text))?;
    Ok(Json(keys.page(after, rows).await?))
}

/// Makes a key. Its secret is in this answer and nowhere else.
///
/// The same request sent again gets this answer without the secret. If the first one was cut off before its answer was kept, the key
/// gets a new secret.
#[utoipa::path(post, path = "/v1/keys", tag = "keys", request_body = CreateKey, responses(
    (status = 201, body = CreatedKey),
))]
pub async fn create(
    keys: Keys,
    repeat: RepeatSafe,
    Body(request): Body<CreateKey>,
) -> Result<(StatusCode, Extension<KeptInstead>, Json<CreatedKey>), Refusal> {
    let made = keys.create(request, &repeat).await?;
    let instead = CreatedKey { secret: SHOWN_ONCE.to_owned(), key: made.key.clone() };
    let instead = serde_json::to_vec(&instead).unwrap_or_default();
    let answer = CreatedKey { secret: made.secret, key: made.key };
    Ok((StatusCode::CREATED, Extension(KeptInstead(instead.into())), Json(answer)))
}

/// Revokes a key. It ceases to work within a few seconds on every node.
#[utoipa::path(delete, path = "/v1/keys/{id}", tag = "keys", params(
    ("id" = String, Path, description = "Id of the key"),
), responses(
    (status = 204, description = "It is revoked"),
))]
pub async fn revoke(keys: Keys, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    keys.revoke(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
