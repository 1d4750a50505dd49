//! Keys, for administrators.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use segno_api::key::{CreateKey, KeyList};

use super::App;
use super::system::may;
use crate::access::{KeyStore, Need, NewKey};
use crate::idempotency::RepeatSafe;
use crate::problem::{Code, Refusal};

/// The keys of the store.
pub struct Keys(App);

impl Keys {
    /// A page of keys, ascending by id.
    ///
    /// # Errors
    /// When the store is away, or the server works without keys.
    pub async fn page(&self, after: Option<&str>, rows: usize) -> Result<KeyList, Refusal> {
        self.store()?.page(after, rows).await
    }

    /// Makes a key; the same one, if the request is sent again.
    ///
    /// # Errors
    /// `invalid-request` when a field is wrong.
    pub async fn create(&self, request: CreateKey, repeat: &RepeatSafe) -> Result<NewKey, Refusal> {
        match repeat.uuid_for("key") {
            Some(from) => self.store()?.create_repeatably(request, from).await,
            None => self.store()?.create(request).await,
        }
    }

    /// Revokes a key.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn revoke(&self, id: &str) -> Result<(), Refusal> {
        self.store()?.revoke(id).await?;
        if let Some(sessions) = &self.0.resources.sessions
            && let Err(refusal) = sessions.end_all(id).await
        {
            // They are of no use without their key, and are forgotten when their life is over.
            tracing::warn!(%refusal, "the sessions of a revoked key are still listed");
        }
        Ok(())
    }

    fn store(&self) -> Result<&KeyStore, Refusal> {
        self.0.resources.keys.as_ref().ok_or_else(|| {
            Refusal::new(Code::Conflict, "this server works without keys (auth.mode = \"none\")")
        })
    }
}

impl FromRequestParts<App> for Keys {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        may(parts, Need::Admin)?;
        Ok(Keys(app.clone()))
    }
}
