//! The web UI: its files, and its page at every address that is not part of the API.
//!
//! | request | answer |
//! |---|---|
//! | to a file of the UI | the file |
//! | to `/`, or to any other path for `Accept: text/html` | the page, which finds out by its address what to show |
//! | to a path of the API ([`API`]), or for anything else | none: a problem, as on a server without the UI |
//!
//! **Invariant.** Nothing here depends on who asks: the files are the same for all callers, and all data comes over the API.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use segno_web::{File, INDEX};

use crate::settings::ServerSettings;

/// What the UI may load: its own files and the API of its own server. Graphs and editors set styles in the page.
const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
     connect-src 'self'; object-src 'none'; frame-ancestors 'none'; base-uri 'self'; form-action 'self'";

/// First segments of paths that are never those of a page.
const API: [&str; 7] = ["v1", "api", "docs", "openapi.json", "healthz", "readyz", "metrics"];

/// A year: the name of such a file changes with its content.
const KEPT_FOR_GOOD: &str = "public, max-age=31536000, immutable";

/// Kept, and compared by its tag before each use.
const COMPARED: &str = "no-cache";

/// The UI of a server. Cheap to clone.
#[derive(Clone)]
pub struct Ui {
    page: Bytes,
    page_tag: String,
}

/// A body with what is said of it.
struct Found {
    content: Bytes,
    gzip: Option<&'static [u8]>,
    tag: String,
    media_type: &'static str,
    cache: &'static str,
}

impl Ui {
    /// The UI below the path of a server; `None` where it is turned off.
    pub fn of(settings: &ServerSettings) -> Option<Self> {
        let base = settings.base();
        let tag = File::at(INDEX)?.tag;
        settings
            .ui
            .then(|| Ui { page: segno_web::index(&base).into(), page_tag: format!("{tag}-{}", base.len()) })
    }

    /// The answer to a request that no route takes; `None` when it is not for the UI.
    pub fn answer(&self, request: &Request) -> Option<Response> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        Some(found_for(request.headers(), self.find(request.uri(), request.headers())?))
    }

    fn find(&self, uri: &Uri, headers: &HeaderMap) -> Option<Found> {
        let path = uri.path().strip_prefix('/')?;
        let first = path.split('/').next().unwrap_or_default();
        if API.iter().any(|of_api| of_api.eq_ignore_ascii_case(first)) {
            return None;
        }
        match File::at(path) {
            Some(file) if file.path != INDEX => Some(Found {
                content: Bytes::from_static(file.content),
                gzip: Some(file.gzip),
                tag: file.tag.to_owned(),
                media_type: file.media_type(),
                cache: if file.is_immutable() { KEPT_FOR_GOOD } else { COMPARED },
            }),
            _ => (matches!(path, "" | INDEX) || wants_page(headers)).then(|| Found {
                content: self.page.clone(),
                gzip: None,
                tag: self.page_tag.clone(),
                media_type: "text/html; charset=utf-8",
                cache: COMPARED,
            }),
        }
    }
}

fn found_for(headers: &HeaderMap, found: Found) -> Response {
    let tag = format!("W/\"{}\"", found.tag);
    let mut response = Response::new(Body::empty());
    let gzip = found.gzip.filter(|_| lists(headers, &ACCEPT_ENCODING, &["gzip", "*"]));
    if matches_tag(headers, &found.tag) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = gzip.map_or(found.content, Bytes::from_static).into();
        put(&mut response, CONTENT_TYPE, found.media_type);
        if gzip.is_some() {
            put(&mut response, CONTENT_ENCODING, "gzip");
        }
    }
    put(&mut response, CACHE_CONTROL, found.cache);
    put(&mut response, CONTENT_SECURITY_POLICY, POLICY);
    put(&mut response, VARY, "accept, accept-encoding");
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

fn put(response: &mut Response, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

/// Whether a browser opens the address, rather than a script or a client of the API.
fn wants_page(headers: &HeaderMap) -> bool {
    lists(headers, &ACCEPT, &["text/html"])
}

/// Whether a header lists one of the values without excluding it by `q=0`.
fn lists(headers: &HeaderMap, name: &HeaderName, wanted: &[&str]) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let is_wanted =
            parts.next().is_some_and(|value| wanted.iter().any(|one| one.eq_ignore_ascii_case(value)));
        let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        is_wanted && quality.is_none_or(|quality| quality.parse::<f32>().is_ok_and(|quality| quality > 0.0))
    })
}

/// Whether the caller has the version with this tag. The comparison is the weak one, as RFC 9110 has it for this header.
fn matches_tag(headers: &HeaderMap, tag: &str) -> bool {
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).any(|known| {
        let opaque = known.strip_prefix("W/").unwrap_or(known);
        known == "*" || opaque.strip_prefix('"').and_then(|opaque| opaque.strip_suffix('"')) == Some(tag)
    })
}

/// The address of a request without the path that the server is served under. A proxy may leave it in place or take it
/// away, so that an address without it stays as it is.
pub fn without_base(uri: &Uri, base: &str) -> Option<Uri> {
    let rest = match uri.path().strip_prefix(base.strip_suffix('/')?)? {
        "" => "/",
        rest if rest.starts_with('/') && base != "/" => rest,
        _ => return None,
    };
    let path_and_query = match uri.query() {
        Some(query) => format!("{rest}?{query}"),
        None => rest.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path_and_query.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_proxy_is_taken_away_where_it_is() {
        for (uri, base, inner) in [
            ("/segno/v1/instances?limit=1", "/segno/", Some("/v1/instances?limit=1")),
            ("/segno/", "/segno/", Some("/")),
            ("/segno", "/segno/", Some("/")),
            ("http://ops.example/segno/a", "/segno/", Some("http://ops.example/a")),
            ("/segnor", "/segno/", None),
            ("/v1/instances", "/segno/", None),
            ("/", "/", None),
            ("/v1/instances", "/", None),
        ] {
            let found = without_base(&uri.parse().unwrap(), base).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), inner, "{uri} {base}");
        }
    }

    #[test]
    fn headers_with_lists_are_read_as_lists() {
        let with = |name: HeaderName, value: &'static str| {
            HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
        };
        for (accept, is_page) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
            ("application/json, Text/HTML;q=0.1", true),
            ("text/html;q=0", false),
            ("*/*", false),
            ("application/json", false),
            ("text/htmlx", false),
        ] {
            assert_eq!(wants_page(&with(ACCEPT, accept)), is_page, "{accept}");
        }
        for (known, is_same) in [
            ("\"a\"", true),
            ("W/\"a\"", true),
            ("\"b\", \"a\"", true),
            ("*", true),
            ("a", false),
            ("\"b\"", false),
        ] {
            assert_eq!(matches_tag(&with(IF_NONE_MATCH, known), "a"), is_same, "{known}");
        }
    }
}
