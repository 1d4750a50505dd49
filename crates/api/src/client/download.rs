//! Answers that are too large for memory: read in pieces as they come.

use std::time::Duration;

use reqwest::{RequestBuilder, Response};

use super::{Client, ClientError};

/// Longest time that a download may take.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// An answer that is read in pieces.
pub struct Download {
    response: Response,
}

impl Client {
    pub(super) async fn download(&self, call: RequestBuilder) -> Result<Download, ClientError> {
        Ok(Download { response: self.open(call.timeout(DOWNLOAD_TIMEOUT)).await? })
    }
}

impl Download {
    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// When the connection breaks before the end: what was read so far is not all.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        let piece = self.response.chunk().await.map_err(ClientError::Unreachable)?;
        Ok(piece.map(|piece| piece.to_vec()))
    }
}
