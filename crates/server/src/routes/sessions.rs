//! Who the caller is, and sessions of browsers.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use axum::extract::{FromRequest as _, Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use axum::{Extension, Json};
use lru::LruCache;
use segno_api::session::{Authentication, Me, Permission, Session, SessionList, SignIn};

use super::paging::{Page, cursor, limit};
use crate::access::{self, Caller, NOT_OWN_PAGE, Need, NewSession, cookie, is_of_own_page, is_session_id};
use crate::app::{App, Door, Sessions};
use crate::audit::Draft;
use crate::bucket::Bucket;
use crate::extract::{Body, Path, Query};
use crate::listen::Peer;
use crate::problem::{Code, Refusal};
use crate::refused;

pub use access::COOKIE;

/// Largest body of a sign-in.
pub const MAX_SIGN_IN_BYTES: usize = 4 * 1024;

/// Most sign-ins with wrong keys per second of one address. Right keys are not counted: behind a proxy, all people have
/// its address.
const WRONG_KEYS_PER_SECOND: u32 = 10;

/// Addresses whose sign-ins are counted; the one that was quiet for the longest is forgotten.
const MAX_ADDRESSES: NonZeroUsize = NonZeroUsize::new(4_096).expect("it is not zero");

/// What stands for the session of the request in a path.
const OWN: &str = "current";

/// How often each address may still try to sign in.
pub struct SignInRates(Mutex<LruCache<Option<IpAddr>, Bucket>>);

impl Default for SignInRates {
    fn default() -> Self {
        SignInRates(Mutex::new(LruCache::new(MAX_ADDRESSES)))
    }
}

impl SignInRates {
    fn take(&self, address: Option<IpAddr>, now_ms: u64) -> Result<(), Refusal> {
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = Some(WRONG_KEYS_PER_SECOND);
        let bucket = rates.get_or_insert_mut(address, || Bucket::full(rate, now_ms));
        if bucket.take(rate, now_ms) {
            return Ok(());
        }
        Err(Refusal::new(Code::RateLimited, "too many wrong keys from this address; try again in a second"))
    }
}

/// Who the caller is, and what it may do.
#[utoipa::path(get, path = "/v1/me", tag = "sessions", responses(
    (status = 200, body = Me),
))]
pub async fn me(State(app): State<App>, sessions: Sessions) -> Result<Json<Me>, Refusal> {
    let caller = sessions.caller();
    let may = [
        (Need::Read, Permission::Read),
        (Need::Operate, Permission::Operate),
        (Need::Work, Permission::Work),
        (Need::Messages, Permission::Messages),
        (Need::System, Permission::System),
        (Need::Admin, Permission::Admin),
    ];
    let home = caller.home();
    Ok(Json(Me {
        authentication: if app.needs_keys() { Authentication::Keys } else { Authentication::None },
        key: caller.key_id().map(str::to_owned),
        role: caller.role(),
        may: may.into_iter().filter(|(need, _)| caller.may(*need)).map(|(_, may)| may).collect(),
        grants: caller.grants().to_vec(),
        namespace: home.namespace().to_owned(),
        tenant: home.tenant().to_owned(),
        session: sessions.own().await?,
        trace_url: app.settings.server.trace_url.clone(),
    }))
}

/// Signs a browser in: a key becomes a session, whose cookie is in this answer and nowhere else.
///
/// The session may do what the key may, as long as the key works. It ends after `auth.session_minutes` without a request, after a
/// day, or when it is ended. Only pages of this server may call this, by `Sec-Fetch-Site` or `Origin`; other programs send the
/// key itself with each request.
#[utoipa::path(post, path = "/v1/sessions", tag = "sessions", request_body = SignIn, responses(
    (status = 201, body = Session, headers(("set-cookie" = String, description = "The cookie of the session"))),
))]
pub async fn create(
    State(app): State<App>,
    door: Door,
    peer: Option<Extension<Peer>>,
    request: Request,
) -> Result<(StatusCode, HeaderMap, Json<Session>), Refusal> {
    let (mut parts, body) = request.into_parts();
    let Body(SignIn { key }) = Body::from_request(Request::from_parts(parts.clone(), body), &app).await?;
    if !is_of_own_page(&parts.uri, &parts.headers, &app.settings.server) {
        return Err(Refusal::new(Code::Forbidden, NOT_OWN_PAGE));
    }
    let caller = match door.caller(key.trim().to_owned()).await {
        Ok(caller) => caller,
        Err(refusal) => {
            if refusal.status() == StatusCode::UNAUTHORIZED {
                refused::count_unauthenticated(&app, &parts, &refusal);
                app.sign_ins.take(peer.map(|Extension(Peer(address))| address), app.clock.now_ms())?;
            }
            return Err(refusal);
        }
    };
    parts.extensions.insert(caller.clone());
    let draft = Draft::of(&parts, caller.home());
    let audit = app.audit.write_of(&draft, StatusCode::CREATED);
    let NewSession { secret, session } = door.open(&caller, audit).await?;
    Ok((StatusCode::CREATED, with_cookie(&app, &secret), Json(session)))
}

/// Sessions: those of the caller's key, or all for an administrator of every tenant.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions", params(Page), responses(
    (status = 200, body = SessionList),
))]
pub async fn list(sessions: Sessions, Query(page): Query<Page>) -> Result<Json<SessionList>, Refusal> {
    let rows = limit(page.limit)?;
    let after = cursor(page.cursor.as_deref(), |text| is_session_id(text).then_some(text))?;
    Ok(Json(sessions.page(after, rows).await?))
}

/// Ends a session: signs its browser out. It ceases to work within a few seconds on every node.
#[utoipa::path(delete, path = "/v1/sessions/{id}", tag = "sessions", params(
    ("id" = String, Path, description = "Id of the session; `current` for that of the request"),
), responses(
    (status = 204, description = "It has ended"),
))]
pub async fn end(
    State(app): State<App>,
    sessions: Sessions,
    Path(id): Path<String>,
) -> Result<(StatusCode, HeaderMap), Refusal> {
    let own = sessions.caller().session().map(str::to_owned);
    let id = match (id.as_str(), &own) {
        (OWN, Some(own)) => own.clone(),
        (OWN, None) => return Err(Refusal::not_found("session", OWN)),
        _ => id,
    };
    sessions.end(&id).await?;
    let headers = if own == Some(id) { with_cookie(&app, "") } else { HeaderMap::new() };
    Ok((StatusCode::NO_CONTENT, headers))
}

fn with_cookie(app: &App, secret: &str) -> HeaderMap {
    let server = &app.settings.server;
    let is_secure = server.tls_certificates.is_some() || server.public_url().is_some_and(|url| url.is_https);
    let value = HeaderValue::from_str(&cookie(secret, &server.base(), is_secure));
    value.into_iter().map(|value| (SET_COOKIE, value)).collect()
}

/// Takes a request to be about the first tenant that the key of its caller is for: what is not of a tenant is entered there.
pub async fn at_home(mut request: Request, next: Next) -> Response {
    if let Some(caller) = request.extensions().get::<Caller>() {
        let home = caller.home();
        request.extensions_mut().insert(home);
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_signs_in_so_often_and_others_are_not_held_up() {
        let rates = SignInRates::default();
        let taken = |address: [u8; 4], now_ms| {
            (0..50).filter(|_| rates.take(Some(address.into()), now_ms).is_ok()).count()
        };
        assert_eq!(taken([10, 0, 0, 1], 0), 10);
        assert_eq!(taken([10, 0, 0, 2], 0), 10);
        assert_eq!(taken([10, 0, 0, 1], 100), 1);
    }
}
