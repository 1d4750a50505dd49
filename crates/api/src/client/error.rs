//! What can go wrong between a client and a server.

use super::certificate;
use crate::Problem;

/// Why a call did not give what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused, and said why.
    #[error("{} [{}]", .0.detail, .0.code)]
    Problem(Box<Problem>),
    /// The server cannot be reached, or the connection broke. What was asked may have happened.
    #[error("{}", unreachable(.0))]
    Unreachable(reqwest::Error),
    /// Something answered that is not a Segno server, or one of another version.
    #[error("the answer (status {status}) cannot be read: {reason}")]
    Unreadable {
        /// HTTP status.
        status: u16,
        /// What is wrong with it.
        reason: String,
    },
    /// The address is wrong.
    #[error("{0}")]
    Address(String),
}

impl ClientError {
    /// The code of a refusal.
    pub fn code(&self) -> Option<&str> {
        match self {
            ClientError::Problem(problem) => Some(&problem.code),
            _ => None,
        }
    }

    /// Whether no connection could be made at all, so that nothing was asked for.
    pub fn is_connect(&self) -> bool {
        matches!(self, ClientError::Unreachable(error) if error.is_connect())
    }

    /// Whether the certificate of the server was not accepted, or none can be verified on this machine. Nothing was sent.
    pub fn is_certificate(&self) -> bool {
        matches!(self, ClientError::Unreachable(error) if certificate::refusal(error).is_some())
    }

    /// Whether the same call may succeed later: the server cannot be reached, is busy, or is going down.
    pub fn is_temporary(&self) -> bool {
        match self {
            ClientError::Unreachable(_) => !self.is_certificate(),
            ClientError::Problem(problem) => {
                matches!(problem.status, 429 | 502..=504) || problem.code == "idempotency-in-flight"
            }
            // A proxy answers for a server that is away.
            ClientError::Unreadable { status, .. } => matches!(status, 429 | 502..=504),
            ClientError::Address(_) => false,
        }
    }

    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            ClientError::Problem(problem) => Some(problem.status),
            ClientError::Unreadable { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// Which server did not answer, and the innermost cause: those around it only repeat that a request
/// failed.
fn unreachable(error: &reqwest::Error) -> String {
    if let Some(refusal) = certificate::refusal(error) {
        return refusal;
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let server =
        error.url().map_or_else(|| "the server".to_owned(), |url| url.origin().ascii_serialization());
    match (error.is_connect(), error.is_timeout()) {
        (true, _) => format!("cannot connect to {server}: {cause}"),
        (false, true) => format!("{server} did not answer in time"),
        (false, false) => format!("{server} did not answer: {cause}"),
    }
}

/// The status and body of an answer that is a success.
pub async fn whole(sent: Result<reqwest::Response, reqwest::Error>) -> Result<(u16, Vec<u8>), ClientError> {
    let response = checked(sent).await?;
    let status = response.status().as_u16();
    let body = response.bytes().await.map_err(ClientError::Unreachable)?;
    Ok((status, body.into()))
}

/// An answer that is a success, not read yet.
pub async fn checked(
    sent: Result<reqwest::Response, reqwest::Error>,
) -> Result<reqwest::Response, ClientError> {
    let response = sent.map_err(ClientError::Unreachable)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = response.bytes().await.map_err(ClientError::Unreachable)?;
    Err(match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) => ClientError::Problem(Box::new(problem)),
        Err(error) => ClientError::Unreadable { status: status.as_u16(), reason: error.to_string() },
    })
}
