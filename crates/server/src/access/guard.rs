//! The layer in front of every route that is not public.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::browser::{Trust, is_local, is_of_own_page};
use super::sessions;
use super::{Caller, Need};
use crate::app::App;
use crate::problem::{Code, Refusal};
use crate::{detached, refused};

/// Lets a request through whose caller may do what the route needs, and notes the caller for the route.
pub async fn guard(State((app, need)): State<(App, Need)>, mut request: Request, next: Next) -> Response {
    let shown = Shown::by(&request, &app);
    match admit(&app, need, shown).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller.clone());
            let (may_wait, answer) = (may_wait(&request), next.run(request));
            if !may_wait {
                return answer.await;
            }
            app.while_allowed(&caller, need, answer).await.unwrap_or_else(IntoResponse::into_response)
        }
        Err(refused) => {
            note(&app, need, request, &refused).await;
            refused.refusal.into_response()
        }
    }
}

/// Has a refused request entered where it can be found: what workers do is not in the log.
async fn note(app: &App, need: Need, request: Request, refused: &Refused) {
    let (mut parts, _) = request.into_parts();
    match &refused.caller {
        None if refused.refusal.status() == StatusCode::UNAUTHORIZED => {
            refused::count_unauthenticated(app, &parts, &refused.refusal);
        }
        None => {}
        Some(_) if need == Need::Work => {}
        Some(caller) => {
            parts.extensions.insert(caller.clone());
            refused::note(app, &mut parts, None, &refused.refusal).await;
        }
    }
}

/// Whether a request may be a long poll or a query that can be cut off when its key is lost. One that
/// changes something cannot: its answer tells what was done. A wait after a change ends by itself
/// ([`awaited_end`](crate::routes)).
fn may_wait(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    detached::may_wait(request.method(), route)
}

/// A request that is not let through, and who sent it if that is known.
struct Refused {
    caller: Option<Caller>,
    refusal: Refusal,
}

/// What a request shows of who sent it.
struct Shown {
    credential: Result<Credential, Refusal>,
    /// Whether it may change something if the cookie of a session is all that it shows.
    may_change_by_cookie: bool,
    is_safe: bool,
}

impl Shown {
    fn by(request: &Request, app: &App) -> Self {
        let (uri, headers) = (request.uri(), request.headers());
        let credential = credential(headers);
        let is_by_cookie = matches!(credential, Ok(Credential::Session(_)));
        Shown {
            credential,
            may_change_by_cookie: is_by_cookie && is_of_own_page(uri, headers, &app.settings.server),
            is_safe: request.method().is_safe(),
        }
    }
}

async fn admit(app: &App, need: Need, shown: Shown) -> Result<Caller, Refused> {
    let Shown { credential, may_change_by_cookie, is_safe } = shown;
    let caller = app.caller_of(|| credential).await;
    let caller = caller.map_err(|refusal| Refused { caller: None, refusal })?;
    // A browser sends the cookie with what pages of others make it send, too.
    if caller.session().is_some() && !is_safe && !may_change_by_cookie {
        let refusal = Refusal::new(Code::Forbidden, NOT_OWN_PAGE);
        return Err(Refused { caller: Some(caller), refusal });
    }
    if caller.may(need) {
        return Ok(caller);
    }
    let detail = match need {
        Need::Read => {
            "the key is for workers and may not read; use a viewer's, operator's or administrator's key"
        }
        Need::Operate => "the key may not change anything here; use an operator's or administrator's key",
        Need::Work => "the key may not take work; use a worker's key",
        Need::Messages => "the key may not send messages; use a worker's, operator's or administrator's key",
        Need::System => "this concerns all tenants; use a key with a grant for every namespace and tenant",
        Need::Admin => "this needs an administrator's key with a grant for every namespace and tenant",
        Need::Known => "the key does not allow this",
    };
    Err(Refused { caller: Some(caller), refusal: Refusal::new(Code::Forbidden, detail) })
}

/// A change by a session that no page of this server asked for.
pub const NOT_OWN_PAGE: &str = "neither Sec-Fetch-Site nor Origin says that a page of this server sent the request, and only \
     such a page may sign in, or change something with a session's cookie; behind a proxy that ends TLS, set server.public_url; outside a browser, send an API key as \
     \"Authorization: Bearer segno_…\"";

/// How a caller shows who it is.
pub enum Credential {
    /// By an API key.
    Key(String),
    /// By the cookie of a session.
    Session(String),
}

/// A key wins over a cookie, which browsers add to every request.
fn credential(headers: &HeaderMap) -> Result<Credential, Refusal> {
    match sessions::in_cookies(headers) {
        Some(token) if !headers.contains_key(header::AUTHORIZATION) => {
            Ok(Credential::Session(token.to_owned()))
        }
        _ => bearer(headers).map(|key| Credential::Key(key.to_owned())),
    }
}

/// The token of the header `Authorization`.
///
/// # Errors
/// `unauthorized` without exactly one.
pub fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let missing =
        || Refusal::new(Code::Unauthorized, "send the API key as \"Authorization: Bearer segno_…\"");
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().and_then(|value| value.to_str().ok()).ok_or_else(missing)?;
    if values.next().is_some() {
        return Err(Refusal::new(Code::Unauthorized, "there is more than one Authorization header"));
    }
    let (scheme, token) = value.split_once(' ').ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(missing());
    }
    Ok(token.trim())
}

/// On a server without keys: refuses what a foreign web page sends through a browser on the same machine, by its own
/// origin or under a name that it made resolve to this machine.
pub async fn same_origin_only(State(app): State<App>, request: Request, next: Next) -> Response {
    let trust = match (app.trusts_any_host, app.settings.server.tls_certificates.is_some()) {
        (true, _) => Trust::AnyHost,
        (false, false) => Trust::Loopback { scheme: "http" },
        (false, true) => Trust::Loopback { scheme: "https" },
    };
    if !app.needs_keys() && !is_local(request.uri(), request.headers(), trust) {
        let detail =
            "this server has no keys, so it answers only requests to a local address that no web page sent";
        return Refusal::new(Code::Forbidden, detail).into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bearer_token_is_read() {
        let headers = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            headers
        };
        assert_eq!(bearer(&headers(&["Bearer abc"])).unwrap(), "abc");
        assert_eq!(bearer(&headers(&["bearer  abc"])).unwrap(), "abc");
        for bad in [&[][..], &["abc"], &["Basic abc"], &["Bearer a", "Bearer b"]] {
            assert!(bearer(&headers(bad)).is_err(), "{bad:?}");
        }
    }
}
