//! The layer in front of every route that is not public.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{Caller, Need};
use crate::app::App;
use crate::problem::{Code, Refusal};

/// Lets a request through whose caller may do what the route needs, and notes the caller for the route.
pub async fn guard(State((app, need)): State<(App, Need)>, mut request: Request, next: Next) -> Response {
    match admit(&app, need, request.headers()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn admit(app: &App, need: Need, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let caller = app.caller_of(|| bearer(headers).map(str::to_owned)).await?;
    if caller.may(need) {
        return Ok(caller);
    }
    let detail = match need {
        Need::Read => {
            "the key is for workers and may not read; use a viewer's, operator's or administrator's key"
        }
        Need::Operate => "the key may not change anything here; use an operator's or administrator's key",
        Need::Work => "the key may not take work; use a worker's key",
        Need::System => "this concerns all tenants; use a key with a grant for every namespace and tenant",
        Need::Admin => "this needs an administrator's key with a grant for every namespace and tenant",
    };
    Err(Refusal::new(Code::Forbidden, detail))
}

fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
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
    if !app.needs_keys() && !is_local(request.headers(), app.trusts_any_host) {
        let detail =
            "this server has no keys, so it answers only requests to a local address that no web page sent";
        return Refusal::new(Code::Forbidden, detail).into_response();
    }
    next.run(request).await
}

fn is_local(headers: &HeaderMap, trusts_any_host: bool) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if let Some(host) = host
        && !trusts_any_host
        && !is_loopback(host)
    {
        return false;
    }
    match headers.get(header::ORIGIN) {
        None => true,
        Some(origin) => {
            let origin = origin.to_str().unwrap_or_default();
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            authority.is_some() && authority == host
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_from_elsewhere_are_refused() {
        for (host, origin, local) in [
            ("127.0.0.1:7070", None, true),
            ("localhost:7070", None, true),
            ("[::1]:7070", None, true),
            ("localhost", Some("http://localhost"), true),
            ("127.0.0.1:7070", Some("http://127.0.0.1:7070"), true),
            ("127.0.0.1:7070", Some("http://127.0.0.1:9999"), false),
            ("127.0.0.1:7070", Some("https://evil.example"), false),
            ("127.0.0.1:7070", Some("null"), false),
            ("evil.example:7070", None, false),
            ("127.0.0.1.evil.example", None, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().unwrap());
            }
            assert_eq!(is_local(&headers, false), local, "{host} {origin:?}");
        }
    }

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
