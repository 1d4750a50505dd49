//! The layer in front of every route that is not public.

use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{Caller, Need};
use crate::app::App;
use crate::problem::{Code, Refusal};
use crate::{detached, refused};

/// Lets a request through whose caller may do what the route needs, and notes the caller for the route.
pub async fn guard(State((app, need)): State<(App, Need)>, mut request: Request, next: Next) -> Response {
    match admit(&app, need, request.headers()).await {
        Ok(caller) => {
            request.extensions_mut().insert(caller.clone());
            let (may_wait, answer) = (may_wait(&request), next.run(request));
            if !may_wait {
                return answer.await;
            }
            tokio::select! {
                biased;
                answer = answer => answer,
                refusal = app.until_lost(&caller, need) => refusal.into_response(),
            }
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

/// Whether a request may be a long poll that can be cut off when its key is lost. One that changes
/// something cannot: its answer tells what was done.
fn may_wait(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    detached::may_wait(request.method(), route)
}

/// A request that is not let through, and who sent it if that is known.
struct Refused {
    caller: Option<Caller>,
    refusal: Refusal,
}

async fn admit(app: &App, need: Need, headers: &HeaderMap) -> Result<Caller, Refused> {
    let caller = app.caller_of(|| bearer(headers).map(str::to_owned)).await;
    let caller = caller.map_err(|refusal| Refused { caller: None, refusal })?;
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
    };
    Err(Refused { caller: Some(caller), refusal: Refusal::new(Code::Forbidden, detail) })
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

/// Under which names a server without keys answers.
#[derive(Debug, Clone, Copy)]
enum Trust {
    /// Under any, behind a proxy that may speak another scheme (`--insecure`).
    AnyHost,
    /// Under names of this machine, by the scheme that it speaks.
    Loopback { scheme: &'static str },
}

/// Whether a request goes to an address that is trusted, and was not sent by a page from elsewhere.
/// A request that does not name its host fails this check: no browser sends one.
fn is_local(uri: &Uri, headers: &HeaderMap, trust: Trust) -> bool {
    let Ok(host) = host_of(uri, headers) else { return false };
    match (trust, host) {
        (Trust::Loopback { .. }, Some(host)) if !is_loopback(host) => return false,
        (Trust::Loopback { .. }, None) => return false,
        _ => {}
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return true };
    let Some((scheme, authority)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else {
        return false;
    };
    let is_scheme = match trust {
        Trust::AnyHost => true,
        Trust::Loopback { scheme: own } => scheme.eq_ignore_ascii_case(own),
    };
    let is_host = host.is_some_and(|host| with_port(host, scheme) == with_port(authority, scheme));
    origins.next().is_none() && is_scheme && is_host
}

/// The host that a request names: in HTTP/2 the authority, else the header. Two that differ are an
/// error.
fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<Option<&'a str>, ()> {
    let mut host = uri.authority().map(Authority::as_str);
    for value in headers.get_all(header::HOST) {
        let value = value.to_str().map_err(|_| ())?;
        if !host.get_or_insert(value).eq_ignore_ascii_case(value) {
            return Err(());
        }
    }
    Ok(host)
}

/// A host with its port, in lower case.
fn with_port(authority: &str, scheme: &str) -> String {
    let authority = authority.to_ascii_lowercase();
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    match (has_port, scheme.eq_ignore_ascii_case("https")) {
        (true, _) => authority,
        (false, true) => format!("{authority}:443"),
        (false, false) => format!("{authority}:80"),
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
        let local = Trust::Loopback { scheme: "http" };
        let tls = Trust::Loopback { scheme: "https" };
        for (trust, authority, hosts, origins, is_let_in) in [
            (local, None, &["127.0.0.1:7070"][..], &[][..], true),
            (local, None, &["LOCALHOST:7070"], &[], true),
            (local, None, &["[::1]:7070"], &[], true),
            (local, None, &["[::1]"], &["http://[::1]:80"], true),
            (local, None, &["localhost"], &["http://localhost"], true),
            (local, None, &["localhost:80"], &["http://localhost"], true),
            (local, None, &["127.0.0.1:7070"], &["http://127.0.0.1:7070"], true),
            (tls, None, &["127.0.0.1:7070"], &["https://127.0.0.1:7070"], true),
            (tls, None, &["localhost"], &["https://localhost:443"], true),
            // HTTP/2 has no Host header.
            (local, Some("127.0.0.1:7070"), &[], &[], true),
            (local, Some("127.0.0.1:7070"), &[], &["http://127.0.0.1:7070"], true),
            (local, Some("localhost:7070"), &["localhost:7070"], &[], true),
            (local, Some("evil.example:7070"), &[], &[], false),
            (local, Some("evil.example:7070"), &["localhost:7070"], &[], false),
            (local, Some("localhost:7070"), &["evil.example:7070"], &[], false),
            (local, Some("127.0.0.1:7070"), &[], &["http://evil.example"], false),
            (local, Some("user@localhost:7070"), &[], &[], false),
            // No host, or more than one.
            (local, None, &[], &[], false),
            (local, None, &[], &["http://localhost"], false),
            (local, None, &["localhost:7070", "evil.example"], &[], false),
            (local, None, &["evil.example:7070"], &[], false),
            (local, None, &["127.0.0.1.evil.example"], &[], false),
            // Origins.
            (local, None, &["127.0.0.1:7070"], &["http://127.0.0.1:9999"], false),
            (local, None, &["127.0.0.1:7070"], &["https://127.0.0.1:7070"], false),
            (local, None, &["127.0.0.1:7070"], &["https://evil.example"], false),
            (local, None, &["127.0.0.1:7070"], &["null"], false),
            (local, None, &["localhost"], &["http://localhost", "http://evil.example"], false),
            (Trust::AnyHost, None, &[], &[], true),
            (Trust::AnyHost, None, &["segno.lan"], &[], true),
            (Trust::AnyHost, None, &["segno.lan"], &["https://segno.lan"], true),
            (Trust::AnyHost, None, &["segno.lan"], &["https://evil.example"], false),
            (Trust::AnyHost, None, &[], &["https://evil.example"], false),
        ] {
            let uri = match authority {
                Some(authority) => format!("http://{authority}/v1/instances"),
                None => "/v1/instances".to_owned(),
            };
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(header::HOST, host.parse().unwrap());
            }
            for origin in origins {
                headers.append(header::ORIGIN, origin.parse().unwrap());
            }
            let was_let_in = is_local(&uri.parse().unwrap(), &headers, trust);
            assert_eq!(was_let_in, is_let_in, "{trust:?} {authority:?} {hosts:?} {origins:?}");
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
