//! What a request tells of the page that sent it: whether it is one of this server's own.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri, header};

use crate::settings::ServerSettings;

/// Set by browsers, never by scripts of a page.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Under which names a server without keys answers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trust {
    /// Under any, behind a proxy that may speak another scheme (`--insecure`).
    AnyHost,
    /// Under names of this machine, by the scheme that it speaks.
    Loopback { scheme: &'static str },
}

/// Whether a page of this server sent a request, as its browser says: by `Sec-Fetch-Site`, or by `Origin` where the browser
/// leaves that out (plain HTTP beyond this machine). A request that says neither is of no page.
pub fn is_of_own_page(uri: &Uri, headers: &HeaderMap, settings: &ServerSettings) -> bool {
    if headers.contains_key(SEC_FETCH_SITE) {
        return only(headers, &SEC_FETCH_SITE).is_some_and(|site| site.eq_ignore_ascii_case("same-origin"));
    }
    let Some(origin) = only(headers, &header::ORIGIN) else { return false };
    if settings.public_url().is_some_and(|public| public.origin.eq_ignore_ascii_case(&origin_of(origin))) {
        return true;
    }
    let own = if settings.tls_certificates.is_some() { "https" } else { "http" };
    let Ok(Some(host)) = host_of(uri, headers) else { return false };
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    scheme.eq_ignore_ascii_case(own) && with_port(host, scheme) == with_port(authority, scheme)
}

/// An origin without the port that its scheme has anyway.
fn origin_of(origin: &str) -> String {
    let default_port = if origin.starts_with("https:") { ":443" } else { ":80" };
    origin.strip_suffix(default_port).unwrap_or(origin).to_owned()
}

/// The value of a header that there is exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Whether a request goes to an address that is trusted, and was not sent by a page from elsewhere.
/// A request that does not name its host fails this check: no browser sends one.
pub(super) fn is_local(uri: &Uri, headers: &HeaderMap, trust: Trust) -> bool {
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
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_page_of_this_server_is_told_from_others() {
        let plain = ServerSettings::default();
        let tls = ServerSettings { tls_certificates: Some("x.pem".into()), ..ServerSettings::default() };
        let public = Some("https://ops.example/segno/".to_owned());
        let proxied = ServerSettings { public_url: public, ..ServerSettings::default() };
        for (settings, sent, is_own) in [
            (&plain, &[("sec-fetch-site", "same-origin")][..], true),
            (&plain, &[("sec-fetch-site", "same-origin"), ("origin", "http://evil.example")], true),
            (&plain, &[("sec-fetch-site", "same-site"), ("origin", "http://here.example:7070")], false),
            (&plain, &[("sec-fetch-site", "cross-site"), ("origin", "http://here.example:7070")], false),
            (&plain, &[("sec-fetch-site", "none")], false),
            (&plain, &[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "same-origin")], false),
            (&plain, &[("origin", "http://here.example:7070")], true),
            (&plain, &[("origin", "HTTP://HERE.example:7070")], true),
            (&plain, &[("origin", "https://here.example:7070")], false),
            (&plain, &[("origin", "http://here.example:7071")], false),
            (&plain, &[("origin", "http://here.example")], false),
            (&plain, &[("origin", "null")], false),
            (&plain, &[("origin", "http://here.example:7070"), ("origin", "http://evil.example")], false),
            (&plain, &[], false),
            (&tls, &[("origin", "https://here.example:7070")], true),
            (&tls, &[("origin", "http://here.example:7070")], false),
            (&proxied, &[("origin", "https://ops.example")], true),
            (&proxied, &[("origin", "https://ops.example:443")], true),
            (&proxied, &[("origin", "http://ops.example")], false),
            (&proxied, &[("origin", "https://evil.example")], false),
        ] {
            let sent = sent
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("here.example:7070"));
            for (name, value) in sent {
                headers.append(name, value);
            }
            let uri = Uri::from_static("/v1/sessions");
            assert_eq!(is_of_own_page(&uri, &headers, settings), is_own, "{headers:?}");
        }
    }

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
}
