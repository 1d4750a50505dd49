//! What can go wrong between a client and a server.

use serde::de::DeserializeOwned;

use crate::Problem;

/// Why a call did not give what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused, and said why.
    #[error("{} [{}]", .0.detail, .0.code)]
    Problem(Box<Problem>),
    /// The server cannot be reached, or the connection broke. What was asked may have happened.
    #[error("the server did not answer: {}", causes(.0))]
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

    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        match self {
            ClientError::Problem(problem) => Some(problem.status),
            ClientError::Unreadable { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// An error with all its causes: the outermost of an HTTP client says little.
fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// Reads an answer.
pub async fn read<T: DeserializeOwned>(
    sent: Result<reqwest::Response, reqwest::Error>,
) -> Result<T, ClientError> {
    let response = checked(sent).await?;
    let status = response.status().as_u16();
    let body = response.bytes().await.map_err(ClientError::Unreachable)?;
    serde_json::from_slice(&body)
        .map_err(|error| ClientError::Unreadable { status, reason: error.to_string() })
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
