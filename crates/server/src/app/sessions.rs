//! Sessions of browsers: for their own key, and for administrators.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use segno::store::RecordWrite;
use segno_api::session::{Session, SessionList};

use super::App;
use crate::access::{Caller, Credential, Need, NewSession, SessionStore};
use crate::problem::{Code, Refusal};

/// The sessions that a caller may see and end: those of its key, or all for an administrator of every tenant.
pub struct Sessions {
    app: App,
    caller: Caller,
}

impl Sessions {
    /// Who asks.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// A page of sessions, ascending by id.
    ///
    /// # Errors
    /// When the store is away, or the server works without keys.
    pub async fn page(&self, after: Option<&str>, rows: usize) -> Result<SessionList, Refusal> {
        let key = if self.caller.may(Need::Admin) { None } else { self.caller.key_id() };
        store(&self.app)?.page(key, after, rows).await
    }

    /// Ends a session.
    ///
    /// # Errors
    /// `not-found` when there is none, or it is of another key.
    pub async fn end(&self, id: &str) -> Result<(), Refusal> {
        let store = store(&self.app)?;
        let own = self.caller.key_id().is_some_and(|key| id.split('-').next() == Some(key));
        if !own && !self.caller.may(Need::Admin) {
            return Err(Refusal::not_found("session", id));
        }
        store.end(id).await
    }

    /// The session of the caller, if that is how it showed who it is.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn own(&self) -> Result<Option<Session>, Refusal> {
        match (&self.app.resources.sessions, self.caller.session()) {
            (Some(sessions), Some(id)) => sessions.get(id).await,
            _ => Ok(None),
        }
    }
}

impl FromRequestParts<App> for Sessions {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Refusal::new(Code::Unauthorized, "a key is needed"))?;
        Ok(Sessions { app: app.clone(), caller })
    }
}

/// Where callers without a session come in.
pub struct Door(App);

impl Door {
    /// The holder of a key.
    ///
    /// # Errors
    /// `unauthorized` when it does not work, `conflict` on a server without keys.
    pub async fn caller(&self, key: String) -> Result<Caller, Refusal> {
        store(&self.0)?;
        self.0.caller_of(|| Ok(Credential::Key(key))).await
    }

    /// A session for the holder of a key, in one commit with its audit entry.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn open(&self, caller: &Caller, audit: RecordWrite) -> Result<NewSession, Refusal> {
        let key = caller.key_id().unwrap_or_default();
        let expires_at_ms = match &self.0.resources.keys {
            Some(keys) => keys.expires_at_ms(key).await?,
            None => None,
        };
        store(&self.0)?.create((key, expires_at_ms), vec![audit]).await
    }
}

impl FromRequestParts<App> for Door {
    type Rejection = Refusal;

    async fn from_request_parts(_parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        Ok(Door(app.clone()))
    }
}

fn store(app: &App) -> Result<&SessionStore, Refusal> {
    let without = || Refusal::new(Code::Conflict, "this server works without keys (auth.mode = \"none\")");
    app.resources.sessions.as_ref().ok_or_else(without)
}
