//! Browsers sign in with a key, and what their sessions may do.

use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use segno::clock::SystemClock;
use segno_api::audit::ListAudit;
use segno_api::key::{CreateKey, Grant, Role};
use segno_api::session::{Authentication as How, Me, Permission, Session, SessionList};
use segno_server::settings::Authentication;
use serde_json::{Value, json};

use crate::stand::{PATIENCE, Stand, settings};

async fn call(stand: &Stand, method: Method, path: &str, headers: &[(&str, &str)], body: Value) -> Response {
    let mut call = crate::stand::http().request(method, stand.url(path));
    for (name, value) in headers {
        call = call.header(*name, *value);
    }
    if !body.is_null() {
        call = call.json(&body);
    }
    call.send().await.unwrap()
}

async fn get(stand: &Stand, path: &str, cookie: &str) -> Response {
    call(stand, Method::GET, path, &[("cookie", cookie)], Value::Null).await
}

fn start(id: &str) -> Value {
    json!({ "orchestration": "greet", "id": id, "input": { "name": "Ada" } })
}

#[tokio::test]
async fn a_key_becomes_a_cookie_that_may_do_what_the_key_may() {
    let stand = Stand::with_keys().await;
    let key = stand.key(Role::Viewer, "shop", "eu").await;
    let answer = call(
        &stand,
        Method::POST,
        "/v1/sessions",
        &[("sec-fetch-site", "same-origin")],
        json!({ "key": format!(" {key}\n") }),
    )
    .await;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let cookie = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
    for part in ["; Path=/;", "; HttpOnly", "; SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains(&key), "{cookie}");
    let session: Value = answer.json().await.unwrap();
    let secret = cookie.split(['=', ';']).nth(1).unwrap();
    assert!(
        !session.to_string().contains(secret) && session["key"] == key.split('_').nth(1).unwrap(),
        "{session}"
    );
    let cookie = cookie.split(';').next().unwrap();
    let me: Me = get(&stand, "/v1/me", cookie).await.json().await.unwrap();
    assert_eq!(
        (me.authentication, me.role, me.namespace.as_str(), me.tenant.as_str()),
        (How::Keys, Role::Viewer, "shop", "eu")
    );
    assert_eq!(me.may, [Permission::Read]);
    assert_eq!(me.session.map(|own| json!(own.id)), Some(session["id"].clone()));
    let theirs = "/v1/instances?namespace=shop&tenant=eu";
    assert_eq!(get(&stand, theirs, cookie).await.status(), StatusCode::OK);
    assert_eq!(get(&stand, "/v1/instances", cookie).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(get(&stand, "/v1/keys", cookie).await.status(), StatusCode::FORBIDDEN);
    let own = stand.origin();
    let changed =
        call(&stand, Method::POST, theirs, &[("cookie", cookie), ("origin", own.as_str())], start("one"))
            .await;
    assert_eq!(changed.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_change_by_cookie_comes_from_a_page_of_this_server() {
    let stand = Stand::with_keys().await;
    let (cookie, _) = stand.sign_in(&stand.admin_key).await;
    let own = stand.origin();
    let (cookie, own) = (cookie.as_str(), own.as_str());
    for (number, (headers, is_taken)) in [
        (&[("sec-fetch-site", "same-origin")][..], true),
        (&[("origin", own)], true),
        (&[("sec-fetch-site", "same-site"), ("origin", own)], false),
        (&[("sec-fetch-site", "none")], false),
        (&[("origin", "http://evil.example")], false),
        (&[("origin", "null")], false),
        (&[], false),
    ]
    .into_iter()
    .enumerate()
    {
        let headers = [headers, &[("cookie", cookie)]].concat();
        let answer =
            call(&stand, Method::POST, "/v1/instances", &headers, start(&format!("i{number}"))).await;
        assert_eq!(answer.status().is_success(), is_taken, "{headers:?}: {}", answer.status());
        if !is_taken {
            let problem: Value = answer.json().await.unwrap();
            assert_eq!(problem["code"], "forbidden", "{problem}");
        }
    }
    // A key needs no page, with or without a cookie beside it.
    let bearer = format!("Bearer {}", stand.admin_key);
    let headers = [("authorization", bearer.as_str()), ("cookie", cookie)];
    let answer = call(&stand, Method::POST, "/v1/instances", &headers, start("by-key")).await;
    assert!(answer.status().is_success(), "{}", answer.status());
    let wrong = [("authorization", "Bearer segno_0000000000000000_x"), ("cookie", cookie)];
    let answer = call(&stand, Method::GET, "/v1/me", &wrong, Value::Null).await;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn foreign_pages_and_wrong_keys_make_no_session_and_are_held_up() {
    let stand = Stand::with_keys().await;
    let body = json!({ "key": stand.admin_key });
    for headers in [&[("origin", "http://evil.example")][..], &[("sec-fetch-site", "cross-site")], &[]] {
        let answer = call(&stand, Method::POST, "/v1/sessions", headers, body.clone()).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{headers:?}");
    }
    let own = stand.origin();
    let mut met = Vec::new();
    // A client of its own for each request would take longer than the rate allows.
    let browser = crate::stand::http();
    for _ in 0..200 {
        let wrong = json!({ "key": "segno_0123456789abcdef_wrong" });
        let request = browser.post(stand.url("/v1/sessions")).header("origin", own.as_str()).json(&wrong);
        let answer = request.send().await.unwrap();
        assert!(!answer.headers().contains_key("set-cookie"));
        met.push(answer.status().as_u16());
        if met.last() == Some(&429) {
            break;
        }
    }
    assert_eq!((met[0], met.last()), (401, Some(&429)), "{met:?}");
    let listed: SessionList = stand.client().sessions(None).await.unwrap();
    assert!(listed.sessions.is_empty(), "{listed:?}");
    // Others behind the same proxy sign in all the same.
    let answer = call(&stand, Method::POST, "/v1/sessions", &[("origin", own.as_str())], body).await;
    assert_eq!(answer.status(), StatusCode::CREATED);
}

#[tokio::test]
async fn a_session_ends_with_its_key_and_says_so() {
    let stand = Stand::with_keys().await;
    let expires_at = jiff::Timestamp::now() + Duration::from_secs(600);
    let grants = vec![Grant { namespace: "shop".to_owned(), tenant: "eu".to_owned() }];
    let name = "short".to_owned();
    let request = CreateKey { name, role: Role::Viewer, grants, expires_at: Some(expires_at) };
    let key = stand.client().create_key(&request).await.unwrap().secret;
    let own = stand.origin();
    let headers = [("origin", own.as_str())];
    let answer = call(&stand, Method::POST, "/v1/sessions", &headers, json!({ "key": key })).await;
    let session: Session = answer.json().await.unwrap();
    assert_eq!(session.expires_at.as_millisecond(), expires_at.as_millisecond());
}

#[tokio::test]
async fn sessions_are_listed_and_ended_by_their_key_and_by_administrators() {
    let stand = Stand::with_keys().await;
    let (eu, us) =
        (stand.key(Role::Operator, "shop", "eu").await, stand.key(Role::Admin, "shop", "us").await);
    let (eu_cookie, eu_session) = stand.sign_in(&eu).await;
    let (us_cookie, us_session) = stand.sign_in(&us).await;
    let own = stand.origin();
    let listed = async |cookie: &str| -> Vec<String> {
        let page: SessionList = get(&stand, "/v1/sessions", cookie).await.json().await.unwrap();
        page.sessions.into_iter().map(|session| session.id).collect()
    };
    assert_eq!(listed(&eu_cookie).await, [eu_session.id.as_str()]);
    assert_eq!(listed(&us_cookie).await, [us_session.id.as_str()]);
    let end = async |cookie: &str, id: &str| {
        let headers = [("cookie", cookie), ("origin", own.as_str())];
        call(&stand, Method::DELETE, &format!("/v1/sessions/{id}"), &headers, Value::Null).await
    };
    for id in [us_session.id.as_str(), "0123456789abcdef-0123456789abcdef", "nothing"] {
        assert_eq!(end(&eu_cookie, id).await.status(), StatusCode::NOT_FOUND, "{id}");
    }
    let ended = end(&eu_cookie, "current").await;
    assert_eq!(ended.status(), StatusCode::NO_CONTENT);
    assert!(ended.headers()["set-cookie"].to_str().unwrap().starts_with("segno_session=; "));
    assert_eq!(get(&stand, "/v1/me", &eu_cookie).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(stand.client().sessions(None).await.unwrap().sessions.len(), 1);
    stand.client().end_session(&us_session.id).await.unwrap();
    assert_eq!(get(&stand, "/v1/me", &us_cookie).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(stand.client().end_session(&us_session.id).await.unwrap_err().status(), Some(404));
    let page = stand.client().scope("shop", "eu").audit(&ListAudit::default()).await.unwrap();
    let entries: Vec<_> = page.entries.iter().map(|entry| (entry.operation.as_str(), entry.status)).collect();
    let done = [("DELETE /v1/sessions/{id}", 204), ("POST /v1/sessions", 201)];
    assert!(done.iter().all(|entry| entries.contains(entry)), "{entries:?}");
}

#[tokio::test]
async fn a_stream_ends_with_its_session_and_a_session_with_its_key() {
    let stand = Stand::with_keys().await;
    let key = stand.key(Role::Viewer, "default", "default").await;
    let (first, first_session) = stand.sign_in(&key).await;
    let (second, _) = stand.sign_in(&key).await;
    let ends = async |mut stream: Response| {
        let rest = async {
            let mut text = String::new();
            while let Some(chunk) = stream.chunk().await.unwrap() {
                text.push_str(&String::from_utf8_lossy(&chunk));
            }
            text
        };
        segno::clock::timeout(&SystemClock, PATIENCE, rest).await.expect("the stream goes on")
    };
    let stream = get(&stand, "/v1/events", &first).await;
    assert_eq!(stream.status(), StatusCode::OK);
    stand.client().end_session(&first_session.id).await.unwrap();
    assert!(ends(stream).await.contains("event: revoked"));
    let stream = get(&stand, "/v1/events", &second).await;
    stand.client().revoke_key(key.split('_').nth(1).unwrap()).await.unwrap();
    assert!(ends(stream).await.contains("event: revoked"));
    assert_eq!(get(&stand, "/v1/me", &second).await.status(), StatusCode::UNAUTHORIZED);
    assert!(stand.client().sessions(None).await.unwrap().sessions.is_empty());
}

#[tokio::test]
async fn over_tls_the_cookie_is_secure_and_below_the_path_of_a_proxy() {
    let mut settings = settings(Authentication::Keys);
    settings.server.public_url = Some("https://ops.example/segno/".to_owned());
    let stand = Stand::with(settings).await;
    let headers = [("origin", "https://ops.example")];
    let body = json!({ "key": stand.admin_key });
    let answer = call(&stand, Method::POST, "/segno/v1/sessions", &headers, body).await;
    let cookie = answer.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("; Secure") && cookie.contains("; Path=/segno/;"), "{cookie}");
}

#[tokio::test]
async fn without_keys_every_caller_is_an_administrator_and_there_are_no_sessions() {
    let stand = Stand::open().await;
    let me = stand.client().me().await.unwrap();
    assert_eq!((me.authentication, me.role, me.key, me.session), (How::None, Role::Admin, None, None));
    assert_eq!(me.may.len(), 6);
    let own = stand.origin();
    let body = json!({ "key": "x" });
    let answer = call(&stand, Method::POST, "/v1/sessions", &[("origin", own.as_str())], body).await;
    assert_eq!(answer.status(), StatusCode::CONFLICT);
    assert!(stand.client().sessions(None).await.is_err());
    let worker = Stand::with_keys().await;
    let key = worker.key(Role::Worker, "*", "*").await;
    let me = segno_api::Client::new(&worker.url(""))
        .unwrap()
        .retry_for(Duration::ZERO)
        .key(key)
        .me()
        .await
        .unwrap();
    assert_eq!(me.may, [Permission::Work, Permission::Messages]);
}
