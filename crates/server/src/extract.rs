//! Reading requests: bodies, query parameters and path parameters, each refused with the field and the reason.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::RequestExt as _;
use axum::body::{Bytes, HttpBody as _};
use axum::extract::path::ErrorKind;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path as AxumPath, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use bytes::BytesMut;
use http_body_util::{BodyExt as _, LengthLimitError};
use segno::Payload;
use segno::clock::{self, Clock};
use segno_actions::functions::compute;
use segno_actions::objects::Objects;
use segno_api::several;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::operation;
use crate::problem::{Code, Refusal};
use crate::scope::{SCOPE_PARAMETERS, Scope};

/// A body that comes more slowly than this, after [`BODY_GRACE`], is refused: a peer that trickles
/// bytes would keep a connection and memory for the whole time that a body may take.
const MIN_BODY_BYTES_PER_SECOND: u64 = 1_024;

/// In this time a body need not have begun to come.
const BODY_GRACE: Duration = Duration::from_secs(5);

/// A body of more bytes is not parsed by the threads that serve: a few hundred of them would hold up all requests.
pub const MAX_INLINE_BODY_BYTES: usize = 64 * 1024;

/// A JSON body.
pub struct Body<T>(pub T);

/// A JSON body that may be left out.
pub struct OptionalBody<T>(pub T);

/// Query parameters. Unknown ones are refused: a filter with a typing error must not match everything.
pub struct Query<T>(pub T);

/// A path parameter, decoded.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        let form = check_form(request.headers());
        let (owner, request) = owner(request).await;
        let bytes = read(request, app).await?;
        form?;
        off_thread(&owner, bytes, |bytes| parse(&bytes)).await?.map(Body)
    }
}

impl<T: DeserializeOwned + Default + Send + 'static> FromRequest<App> for OptionalBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refusal> {
        let form = check_form(request.headers());
        let (owner, request) = owner(request).await;
        let bytes = read(request, app).await?;
        if bytes.is_empty() {
            return Ok(OptionalBody(T::default()));
        }
        form?;
        off_thread(&owner, bytes, |bytes| parse(&bytes)).await?.map(OptionalBody)
    }
}

/// Runs work on the text of a request: a small one at once, a large one on the threads that tenants share fairly.
///
/// # Errors
/// `unavailable` when too much of the owner waits already.
pub async fn off_thread<T: Send + 'static>(
    owner: &Scope,
    text: Bytes,
    work: impl FnOnce(Bytes) -> T + Send + 'static,
) -> Result<T, Refusal> {
    if text.len() <= MAX_INLINE_BODY_BYTES {
        return Ok(work(text));
    }
    let done = compute(&owner.for_functions(), move || work(text)).await;
    done.map_err(|error| Refusal::from_function(&error, owner))
}

/// The tenant whose threads read the body of a request. Routes that are of no tenant are for administrators.
async fn owner(request: Request) -> (Scope, Request) {
    let (mut parts, body) = request.into_parts();
    let named = Scope::of_request(&mut parts).await;
    (named.unwrap_or_default(), Request::from_parts(parts, body))
}

/// Reads a body, within the time and size that the settings allow.
///
/// # Errors
/// `request-timeout`, `body-too-large`, or `invalid-request` when the connection broke.
pub async fn read(request: Request, app: &App) -> Result<Bytes, Refusal> {
    let longest = Duration::from_secs(app.settings.server.body_timeout_seconds);
    let bytes = read_in_time(request, &*app.clock, longest).await?;
    operation::arrived();
    Ok(bytes)
}

/// Reads a body that comes at [`MIN_BODY_BYTES_PER_SECOND`] or faster, and within the longest time.
async fn read_in_time(request: Request, clock: &dyn Clock, longest: Duration) -> Result<Bytes, Refusal> {
    let begun_ms = clock.now_ms();
    let announced = request.body().size_hint().lower();
    let mut body = request.into_limited_body();
    // A peer that announces too much, and waits for `100 Continue`, is told before it sends anything.
    if body.size_hint().upper().is_some_and(|most| announced > most) {
        return Err(too_large());
    }
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    loop {
        let bytes = first.len() + rest.len();
        let allowed = longest.min(time_for(bytes));
        let deadline_ms = begun_ms.saturating_add(clock::duration_ms(allowed));
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = clock.sleep_until_ms(deadline_ms) => return Err(too_slow(bytes, allowed, longest)),
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(unreadable)?.into_data() else { continue };
        // A body that comes in one piece, as most do, is not copied.
        if bytes == 0 {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&data);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// The time within which the next part of a body has to come when so many bytes have.
fn time_for(bytes: usize) -> Duration {
    BODY_GRACE + Duration::from_secs(bytes as u64 / MIN_BODY_BYTES_PER_SECOND)
}

fn too_slow(bytes: usize, allowed: Duration, longest: Duration) -> Refusal {
    let detail = if allowed == longest {
        format!("the body did not arrive within {longest:?}")
    } else {
        format!(
            "{bytes} bytes of the body arrived within {allowed:?}; send at least {MIN_BODY_BYTES_PER_SECOND} bytes per second"
        )
    };
    Refusal::new(Code::RequestTimeout, detail)
}

fn too_large() -> Refusal {
    let detail = "the body is larger than the server allows; store large data elsewhere and send a reference";
    Refusal::new(Code::BodyTooLarge, detail)
}

fn unreadable(error: axum::Error) -> Refusal {
    // Layers that pass a body on put errors into errors.
    let mut next = error.into_inner();
    let inner = loop {
        match next.downcast::<axum::Error>() {
            Ok(wrapped) => next = wrapped.into_inner(),
            Err(inner) => break inner,
        }
    };
    if inner.is::<LengthLimitError>() {
        return too_large();
    }
    Refusal::new(Code::InvalidRequest, format!("the body could not be read: {inner}"))
}

/// Whether a body is declared to be plain JSON.
fn check_form(headers: &HeaderMap) -> Result<(), Refusal> {
    let refused = |detail: String| Err(Refusal::new(Code::UnsupportedMediaType, detail));
    for encoding in headers.get_all(CONTENT_ENCODING) {
        if !encoding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity") {
            let detail = format!("the body has the content-encoding {encoding:?}; send it without one");
            return refused(detail);
        }
    }
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    match essence.eq_ignore_ascii_case("application/json") {
        true => Ok(()),
        false => refused("send the body with the header content-type: application/json".to_owned()),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    Payload::check_names(bytes).map_err(|error| Refusal::payload("body", &error))?;
    // serde reads enums with a tag from arrays too, and no body of the API is one.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Refusal::new(Code::InvalidRequest, "the body is an array; send a JSON object"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(Objects(&mut deserializer)).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.into_inner().to_string();
        match path.as_str() {
            // Of a body with several forms, the place is not known.
            "." | "?" => match culprit(bytes, &reason) {
                Some((field, given)) => Refusal::unread(field, reason_for(&reason, || Some(given))),
                None => {
                    let reason = reason_for(&reason, || None);
                    Refusal::new(Code::InvalidRequest, format!("the body is wrong: {reason}"))
                }
            },
            _ => {
                let reason = reason_for(&reason, || value_at(bytes, &path));
                Refusal::unread(path, reason)
            }
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
                _ => {
                    let given = || {
                        let mut pairs = form_urlencoded::parse(own.as_bytes());
                        pairs.find(|(name, _)| *name == path).map(|(_, value)| value.into_owned())
                    };
                    let reason = reason_for(&reason, given);
                    Refusal::field(path, reason)
                }
            }
        })
    }
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let path = AxumPath::<T>::from_request_parts(parts, state).await;
        path.map(|AxumPath(value)| Path(value)).map_err(wrong_path)
    }
}

/// A path parameter that cannot be read.
fn wrong_path(rejection: PathRejection) -> Refusal {
    let text = rejection.body_text();
    let PathRejection::FailedToDeserializePathParams(error) = rejection else {
        return Refusal::new(Code::InvalidRequest, format!("the path is wrong: {text}"));
    };
    let (name, value, expected) = match error.into_kind() {
        ErrorKind::ParseErrorAtKey { key, value, expected_type } => (Some(key), value, expected_type),
        ErrorKind::ParseErrorAtIndex { value, expected_type, .. }
        | ErrorKind::ParseError { value, expected_type } => (None, value, expected_type),
        _ => return Refusal::new(Code::InvalidRequest, format!("the path is wrong: {text}")),
    };
    let expected = if is_whole(expected) { "a whole number" } else { expected };
    let problem = format!("{value:?} is not {expected}");
    match name {
        Some(name) => Refusal::field(name, problem),
        None => Refusal::new(Code::InvalidRequest, format!("the path is wrong: {problem}")),
    }
}

fn is_whole(name: &str) -> bool {
    matches!(name, "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64")
}

/// The reason of a parser in words for callers: times are told with their value and form, numbers by what they are.
fn reason_for(reason: &str, given: impl FnOnce() -> Option<String>) -> String {
    let problem = given().and_then(|given| wrong_time(&given, reason).or_else(|| wrong_word(&given, reason)));
    if let Some(problem) = problem {
        return problem;
    }
    match reason.split_once("expected ") {
        Some((before, after)) if is_whole(after.split(' ').next().unwrap_or_default()) => {
            let rest = after.split_once(' ').map_or_else(String::new, |(_, rest)| format!(" {rest}"));
            format!("{before}expected a whole number{rest}")
        }
        _ => reason.to_owned(),
    }
}

/// The field of a body that a reason is about, and its value: a time that is none, or an id that is no number.
fn culprit(bytes: &[u8], reason: &str) -> Option<(String, String)> {
    let body: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(bytes).ok()?;
    let is_wrong = |name: &str, value: &serde_json::Value| {
        value.as_str().is_some_and(|text| wrong_time(text, reason).is_some())
            || (reason.contains("expected u64") && name.ends_with("_id") && !value.is_u64())
    };
    let (name, value) = body.iter().find(|(name, value)| is_wrong(name, value))?;
    Some((name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
}

/// What to write instead of a text that the parser of times refused for this reason; `None` when the reason is another.
fn wrong_time(text: &str, reason: &str) -> Option<String> {
    let error = text.parse::<jiff::Timestamp>().err()?.to_string();
    if !reason.starts_with(&error) {
        return None;
    }
    Some(match error.starts_with(TIME_OUT_OF_RANGE) {
        true => format!("{text:?} is out of range; times are from the year -9999 to 9999-12-30T22:00:00Z"),
        false => format!("{text:?} is not a time; write RFC 3339, as in 2026-03-27T09:00:00Z"),
    })
}

/// What to write instead of a parameter that the standard library could not read as a number, or as true or false; `None` when
/// the reason is another.
fn wrong_word(text: &str, reason: &str) -> Option<String> {
    let shown: String = text.chars().take(40).collect();
    match reason {
        "invalid digit found in string" if text.starts_with('-') => {
            Some(format!("must not be negative: {shown:?}"))
        }
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            Some(format!("{shown:?} is not a whole number"))
        }
        "number too large to fit in target type" => Some(format!("{shown:?} is too large a number")),
        "provided string was not `true` or `false`" => Some(format!("{shown:?} is neither true nor false")),
        _ => None,
    }
}

/// How the parser of times begins its reason when a date is well formed and too far away.
const TIME_OUT_OF_RANGE: &str = "failed to convert civil datetime";

/// The text at a path of a body, as `serde_path_to_error` writes it, if it is one: `a.b[0]`.
fn value_at(bytes: &[u8], path: &str) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let pointer: String = path
        .split(['.', '['])
        .fold(String::new(), |pointer, part| pointer + "/" + part.trim_end_matches(']'));
    body.pointer(&pointer)?.as_str().map(str::to_owned)
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

/// The key that a caller names its work by, if it does. An empty one would be shared by callers that do not know of each other.
///
/// # Errors
/// When it is empty.
pub fn named_key(key: Option<String>) -> Result<Option<String>, Refusal> {
    match key {
        Some(key) if key.trim().is_empty() => {
            Err(Refusal::field("key", "is empty; leave it out, or send a name of your own for this call"))
        }
        key => Ok(key),
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Parameters {
        #[serde(rename = "limit")]
        _limit: Option<usize>,
        #[serde(rename = "force")]
        _force: Option<bool>,
    }

    #[tokio::test]
    async fn a_parameter_that_cannot_be_read_is_told_with_its_value() {
        for (query, told) in [
            ("limit=-1", "limit: must not be negative: \"-1\""),
            ("limit=many", "limit: \"many\" is not a whole number"),
            ("limit=", "limit: \"\" is not a whole number"),
            ("limit=99999999999999999999", "limit: \"99999999999999999999\" is too large a number"),
            ("force=yes", "force: \"yes\" is neither true nor false"),
        ] {
            let request =
                Request::builder().uri(format!("/?{query}")).body(axum::body::Body::empty()).unwrap();
            let (mut parts, _) = request.into_parts();
            let refused = Query::<Parameters>::from_request_parts(&mut parts, &()).await.err();
            assert_eq!(refused.unwrap().detail(), told);
        }
    }

    #[tokio::test]
    async fn a_large_body_is_not_read_by_the_thread_that_serves() {
        let serving = thread::current().id();
        for (bytes, is_serving) in [(MAX_INLINE_BODY_BYTES, true), (MAX_INLINE_BODY_BYTES + 1, false)] {
            let text = Bytes::from(vec![b' '; bytes]);
            let read_by = off_thread(&Scope::default(), text, |_| thread::current().id()).await.unwrap();
            assert_eq!(read_by == serving, is_serving, "{bytes} bytes");
        }
    }
}
