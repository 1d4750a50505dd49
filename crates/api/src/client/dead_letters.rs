//! Dead letters.

use std::time::Duration;

use reqwest::Method;

use super::{Client, ClientError};
use crate::dead_letter::{DeadLetter, DeadLetterList, ListDeadLetters, Resubmitted};

impl Client {
    /// A page of dead letters, newest first.
    ///
    /// # Errors
    /// `invalid-request` when a filter is wrong.
    pub async fn dead_letters(&self, filter: &ListDeadLetters) -> Result<DeadLetterList, ClientError> {
        self.get_with(&["v1", "dead-letters"], filter).await
    }

    /// One dead letter, with what it carried.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn dead_letter(&self, id: &str) -> Result<DeadLetter, ClientError> {
        self.get(&["v1", "dead-letters", id]).await
    }

    /// Puts back what was given up, once.
    ///
    /// # Errors
    /// `not-found` when there is none, `dead-letter-settled` when its instance has gone on.
    pub async fn resubmit_dead_letter(&self, id: &str) -> Result<Resubmitted, ClientError> {
        self.post(&["v1", "dead-letters", id, "resubmit"], &serde_json::json!({})).await
    }

    /// Deletes a dead letter.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn discard_dead_letter(&self, id: &str) -> Result<(), ClientError> {
        let call = self.request(Method::DELETE, &["v1", "dead-letters", id], Duration::ZERO);
        self.done(call).await
    }
}
