//! Reading requests: bodies, query parameters and path parameters, each refused with the field and the reason.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path as AxumPath, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use segno::{Payload, clock};
use segno_api::several;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::operation;
use crate::problem::{Code, Refusal};
use crate::scope::SCOPE_PARAMETERS;

/// A JSON body.
pub struct Body<T>(pub T);

/// A JSON body that may be left out.
pub struct OptionalBody<T>(pub T);

/// Query parameters. Unknown ones are refused: a filter with a typing error must not match everything.
pub struct Query<T>(pub T);

/// A path parameter, decoded.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        let is_json = is_json(request.headers());
        let bytes = read(request, app).await?;
        if !is_json {
            let detail = "send the body with the header content-type: application/json";
            return Err(Refusal::new(Code::UnsupportedMediaType, detail));
        }
        parse(&bytes).map(Body)
    }
}

impl<T: DeserializeOwned + Default> FromRequest<App> for OptionalBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        let is_json = is_json(request.headers());
        let bytes = read(request, app).await?;
        if bytes.is_empty() {
            return Ok(OptionalBody(T::default()));
        }
        if !is_json {
            let detail = "send the body with the header content-type: application/json";
            return Err(Refusal::new(Code::UnsupportedMediaType, detail));
        }
        parse(&bytes).map(OptionalBody)
    }
}

/// Reads a body, within the time and size that the settings allow.
///
/// # Errors
/// `request-timeout`, `body-too-large`, or `invalid-request` when the connection broke.
pub async fn read(request: Request, app: &App) -> Result<Bytes, Refusal> {
    let longest = Duration::from_secs(app.settings.server.body_timeout_seconds);
    match clock::timeout(&*app.clock, longest, Bytes::from_request(request, app)).await {
        Some(body) => {
            operation::arrived();
            body.map_err(unreadable)
        }
        None => {
            Err(Refusal::new(Code::RequestTimeout, format!("the body did not arrive within {longest:?}")))
        }
    }
}

fn unreadable(rejection: BytesRejection) -> Refusal {
    let text = rejection.body_text();
    match rejection.into_response().status().as_u16() {
        413 => Refusal::new(
            Code::BodyTooLarge,
            "the body is larger than the server allows; store large data elsewhere and send a reference",
        ),
        _ => Refusal::new(Code::InvalidRequest, format!("the body could not be read: {text}")),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let essence = value.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    Payload::check_names(bytes).map_err(|error| Refusal::payload("body", &error))?;
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner().to_string();
        match path.as_str() {
            "." | "?" => Refusal::new(Code::InvalidRequest, format!("the body is wrong: {reason}")),
            _ => Refusal::field(path, reason),
        }
    })?;
    deserializer.end().map_err(|error| {
        Refusal::new(Code::InvalidRequest, format!("the body goes on after its end: {error}"))
    })?;
    Ok(value)
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Refusal> {
        let query = parts.uri.query().unwrap_or_default();
        let mut own = form_urlencoded::Serializer::new(String::new());
        let mut repeated: BTreeMap<&str, String> = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match several::REPEATABLE.iter().find(|repeatable| **repeatable == name) {
                _ if value.contains(several::JOINED_BY) => {
                    return Err(Refusal::field(name, "has a control character in it"));
                }
                Some(repeatable) => {
                    let joined = repeated.entry(repeatable).or_default();
                    if !joined.is_empty() {
                        joined.push(several::JOINED_BY);
                    }
                    joined.push_str(&value);
                }
                None if SCOPE_PARAMETERS.contains(&&*name) => {}
                None => {
                    own.append_pair(&name, &value);
                }
            }
        }
        own.extend_pairs(&repeated);
        let own = own.finish();
        let deserializer = serde_urlencoded::Deserializer::new(form_urlencoded::parse(own.as_bytes()));
        serde_path_to_error::deserialize(deserializer).map(Query).map_err(|error| {
            let path = error.path().to_string();
            let reason = error.into_inner().to_string();
            match path.as_str() {
                "." | "?" => Refusal::new(Code::InvalidRequest, format!("the query is wrong: {reason}")),
                _ => Refusal::field(path, reason),
            }
        })
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let path = AxumPath::<T>::from_request_parts(parts, state).await;
        path.map(|AxumPath(value)| Path(value)).map_err(|rejection| {
            Refusal::new(Code::InvalidRequest, format!("the path is wrong: {}", rejection.body_text()))
        })
    }
}

/// How long a caller wants to wait, at most.
///
/// # Errors
/// When it is more than the server allows.
pub fn wait_of(wait_ms: Option<u64>) -> Result<Duration, Refusal> {
    /// Longest wait of one request; callers ask again.
    const MAX_WAIT_MS: u64 = 60_000;
    match wait_ms.unwrap_or(0) {
        ms if ms > MAX_WAIT_MS => {
            Err(Refusal::field("wait_ms", format!("must be at most {MAX_WAIT_MS}; ask again to wait longer")))
        }
        ms => {
            let wait = Duration::from_millis(ms);
            operation::extend(wait);
            Ok(wait)
        }
    }
}
