//! Versions of what is stored, in headers: `If-None-Match: *` and `If-Match`.

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName};

use crate::problem::{Code, Refusal};

/// What must be true for a write to go ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// There is none yet.
    Absent,
    /// It has this version.
    Version(u64),
}

/// What a caller that creates or replaces something expects. It has to say, so that nobody overwrites what they have
/// not seen.
///
/// # Errors
/// When it says nothing, or both.
pub fn expected(headers: &HeaderMap) -> Result<Expected, Refusal> {
    match (must_be_absent(headers)?, version(headers)?) {
        (true, None) => Ok(Expected::Absent),
        (false, Some(version)) => Ok(Expected::Version(version)),
        _ => {
            let detail = "send If-None-Match: * to create it, or If-Match with its ETag to replace it";
            Err(Refusal::new(Code::PreconditionFailed, detail))
        }
    }
}

/// What a caller expects, if it says so.
///
/// # Errors
/// When it says both.
pub fn given(headers: &HeaderMap) -> Result<Option<Expected>, Refusal> {
    match (text(headers, &IF_NONE_MATCH)?, text(headers, &IF_MATCH)?) {
        (None, None) => Ok(None),
        _ => expected(headers).map(Some),
    }
}

fn must_be_absent(headers: &HeaderMap) -> Result<bool, Refusal> {
    match text(headers, &IF_NONE_MATCH)? {
        None => Ok(false),
        Some("*") => Ok(true),
        Some(_) => Err(Refusal::field("If-None-Match", "must be *")),
    }
}

/// The version of `If-Match`, if there is one.
///
/// # Errors
/// When it is no version.
pub fn version(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(tag) = text(headers, &IF_MATCH)? else { return Ok(None) };
    let version =
        tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).and_then(|tag| tag.parse().ok());
    version
        .map(Some)
        .ok_or_else(|| Refusal::field("If-Match", "must be the ETag of one version, as in \"17\""))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text.trim())),
        _ => Err(Refusal::field(name.as_str(), "must be one header of printable characters")),
    }
}
