//! The web UI as browsers get it.

use std::collections::BTreeSet;

use reqwest::{Method, Response, StatusCode};
use segno_server::settings::{Authentication, Settings};
use serde_json::Value;

use crate::stand::{Stand, settings};

const PAGE: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

async fn get(stand: &Stand, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut call = crate::stand::http().request(method, stand.url(path));
    for (name, value) in headers {
        call = call.header(*name, *value);
    }
    call.send().await.unwrap()
}

fn header<'a>(answer: &'a Response, name: &str) -> &'a str {
    answer.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

fn with(public_url: Option<&str>, ui: bool) -> Settings {
    let mut settings = settings(Authentication::None);
    settings.server.public_url = public_url.map(str::to_owned);
    settings.server.ui = ui;
    settings
}

#[tokio::test]
async fn every_address_of_a_page_is_the_page_and_the_api_stays_the_api() {
    let stand = Stand::open().await;
    for (path, accept, is_page) in [
        ("/", PAGE, true),
        ("/", "*/*", true),
        ("/instances/order-1?tab=events", PAGE, true),
        ("/no/such/page", PAGE, true),
        ("/instances", "application/json", false),
        ("/instances", "*/*", false),
        ("/v1", PAGE, false),
        ("/v1/no-such-route", PAGE, false),
        ("/V1/instances", PAGE, false),
        ("/openapi.json/x", PAGE, false),
        ("/healthz/x", PAGE, false),
        ("/assets/no-such-file.js", "*/*", false),
        ("/../Cargo.toml", "*/*", false),
    ] {
        let answer = get(&stand, Method::GET, path, &[("accept", accept)]).await;
        let kind = header(&answer, "content-type").to_owned();
        let expected = match is_page {
            true => (StatusCode::OK, "text/html; charset=utf-8"),
            false => (StatusCode::NOT_FOUND, "application/problem+json"),
        };
        assert_eq!((answer.status(), kind.as_str()), expected, "{path} {accept}");
    }
    let posted = get(&stand, Method::POST, "/instances", &[("accept", PAGE)]).await;
    assert_eq!(posted.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_page_may_load_its_own_files_only_and_is_in_no_frame() {
    let stand = Stand::open().await;
    let page = get(&stand, Method::GET, "/", &[("accept", PAGE)]).await;
    let policy = header(&page, "content-security-policy").to_owned();
    let scripts = policy.split(';').map(str::trim).find(|part| part.starts_with("script-src")).unwrap();
    assert_eq!(scripts, "script-src 'self'");
    for part in ["default-src 'self'", "frame-ancestors 'none'", "object-src 'none'", "base-uri 'self'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(header(&page, "x-content-type-options"), "nosniff");
    assert_eq!(header(&page, "referrer-policy"), "no-referrer");
    assert_eq!(header(&page, "x-frame-options"), "DENY");
    assert_eq!(header(&page, "cache-control"), "no-cache");
}

#[tokio::test]
async fn files_are_compressed_kept_and_compared() {
    let stand = Stand::open().await;
    let page = get(&stand, Method::GET, "/", &[("accept", PAGE)]).await;
    let page_tag = header(&page, "etag").to_owned();
    let text = page.text().await.unwrap();
    let script = text
        .split("src=\"./")
        .find_map(|part| part.split('"').next().filter(|it| it.contains("assets/")))
        .unwrap();
    let script = format!("/{script}");
    let plain = get(&stand, Method::GET, &script, &[]).await;
    assert_eq!(header(&plain, "content-type"), "text/javascript; charset=utf-8");
    assert_eq!(header(&plain, "cache-control"), "public, max-age=31536000, immutable");
    assert_eq!(header(&plain, "content-encoding"), "");
    let (tag, plain) = (header(&plain, "etag").to_owned(), plain.bytes().await.unwrap());
    let packed = get(&stand, Method::GET, &script, &[("accept-encoding", "br, gzip")]).await;
    assert_eq!(
        (header(&packed, "content-encoding"), header(&packed, "vary")),
        ("gzip", "accept, accept-encoding")
    );
    assert!(packed.bytes().await.unwrap().len() * 2 < plain.len());
    let head = get(&stand, Method::HEAD, &script, &[]).await;
    assert_eq!(header(&head, "content-length"), plain.len().to_string());
    assert!(head.bytes().await.unwrap().is_empty());
    for (path, tag) in [(script.as_str(), tag), ("/", page_tag)] {
        let same = get(&stand, Method::GET, path, &[("if-none-match", &tag), ("accept", PAGE)]).await;
        assert_eq!(
            (same.status(), header(&same, "etag")),
            (StatusCode::NOT_MODIFIED, tag.as_str()),
            "{path}"
        );
        assert!(same.bytes().await.unwrap().is_empty());
        let other = get(&stand, Method::GET, path, &[("if-none-match", "\"other\""), ("accept", PAGE)]).await;
        assert_eq!(other.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn behind_a_proxy_the_page_knows_its_path_whether_or_not_the_proxy_takes_it_away() {
    let stand = Stand::with(with(Some("https://ops.example/tools/segno"), true)).await;
    for path in ["/", "/instances", "/tools/segno/", "/tools/segno", "/tools/segno/instances"] {
        let page = get(&stand, Method::GET, path, &[("accept", PAGE)]).await;
        assert_eq!(page.status(), StatusCode::OK, "{path}");
        assert!(page.text().await.unwrap().contains("<base href=\"/tools/segno/\">"), "{path}");
    }
    for path in ["/v1/instances", "/tools/segno/v1/instances", "/tools/segno/openapi.json"] {
        let answer = get(&stand, Method::GET, path, &[]).await;
        assert_eq!(
            (answer.status(), header(&answer, "content-type")),
            (StatusCode::OK, "application/json"),
            "{path}"
        );
    }
    let unknown = get(&stand, Method::GET, "/tools/segno/v1/nothing", &[("accept", PAGE)]).await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_server_without_the_ui_has_no_pages() {
    let stand = Stand::with(with(None, false)).await;
    for path in ["/", "/index.html", "/icon.svg", "/instances"] {
        let answer = get(&stand, Method::GET, path, &[("accept", PAGE)]).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(get(&stand, Method::GET, "/v1/instances", &[]).await.status(), StatusCode::OK);
}

/// What the UI is generated from. A server with keys says of most operations that they need one, beside that.
#[tokio::test]
async fn the_ui_knows_the_document_of_this_server() {
    let stand = Stand::open().await;
    let served: Value =
        crate::stand::http().get(stand.url("/openapi.json")).send().await.unwrap().json().await.unwrap();
    let known: Value = serde_json::from_str(include_str!("../../../../web/openapi.json")).unwrap();
    for part in ["paths", "components"] {
        let (served, known) = (leaves(&served[part]), leaves(&known[part]));
        let differing: Vec<_> = served.symmetric_difference(&known).take(10).collect();
        assert!(differing.is_empty(), "run `scripts/web.sh update` and commit: {differing:#?}");
    }
    assert_eq!(served, known, "run `scripts/web.sh update` and commit");
}

/// Every value with its place.
fn leaves(value: &Value) -> BTreeSet<String> {
    fn walk(place: &str, value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                members.iter().for_each(|(name, value)| walk(&format!("{place}.{name}"), value, found))
            }
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(n, value)| walk(&format!("{place}[{n}]"), value, found))
            }
            other => drop(found.insert(format!("{place} = {other}"))),
        }
    }
    let mut found = BTreeSet::new();
    walk("", value, &mut found);
    found
}
