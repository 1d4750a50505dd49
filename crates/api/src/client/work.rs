//! Work, for workers that are written in Rust.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;

use super::{Client, ClientError, PageRequest};
use crate::work::{
    CompleteWork, ExchangeWork, ExchangedWork, FailWork, FetchWork, FetchedWork, Heartbeat, HeartbeatAnswer,
    ReleaseWork,
};
use crate::worker::WorkerList;

impl Client {
    /// Leases calls, or waits for them as long as the request says.
    ///
    /// # Errors
    /// `invalid-request` when it is out of range.
    pub async fn fetch_work(&self, request: &FetchWork) -> Result<FetchedWork, ClientError> {
        // The time to wait is part of the body; here it only makes the patience of the connection longer.
        let patience = super::ANSWER_TIMEOUT + Duration::from_millis(request.wait_ms);
        let call = self.request(Method::POST, &["v1", "work", "fetch"], Duration::ZERO).timeout(patience);
        self.read(call.json(request)).await
    }

    /// Answers calls and leases the next ones in one request, which may be repeated: with the same
    /// number it gets the same answer.
    ///
    /// # Errors
    /// `invalid-request` when a field is out of range, `too-many-waits` when no more requests may
    /// wait. What is wrong with one answer is its outcome.
    pub async fn exchange_work(&self, request: &ExchangeWork) -> Result<ExchangedWork, ClientError> {
        let patience = super::ANSWER_TIMEOUT + Duration::from_millis(request.wait_ms);
        let call = self.request(Method::POST, &["v1", "work", "exchange"], Duration::ZERO).timeout(patience);
        self.read(call.json(request)).await
    }

    /// Extends a lease and hears whether to go on.
    ///
    /// # Errors
    /// `lease-lost` when it does not hold.
    pub async fn heartbeat_work(&self, request: &Heartbeat) -> Result<HeartbeatAnswer, ClientError> {
        self.post(&["v1", "work", "heartbeat"], request).await
    }

    /// Answers with a result.
    ///
    /// # Errors
    /// `lease-lost` when the lease does not hold; nothing is changed.
    pub async fn complete_work(&self, request: &CompleteWork) -> Result<(), ClientError> {
        self.answer_work("complete", request).await
    }

    /// Answers with a failure.
    ///
    /// # Errors
    /// `lease-lost` when the lease does not hold; nothing is changed.
    pub async fn fail_work(&self, request: &FailWork) -> Result<(), ClientError> {
        self.answer_work("fail", request).await
    }

    /// Gives a call back.
    ///
    /// # Errors
    /// `lease-lost` when the lease does not hold; nothing is changed.
    pub async fn release_work(&self, request: &ReleaseWork) -> Result<(), ClientError> {
        self.answer_work("release", request).await
    }

    async fn answer_work(&self, verb: &str, request: &impl Serialize) -> Result<(), ClientError> {
        let call = self.request(Method::POST, &["v1", "work", verb], Duration::ZERO).json(request);
        self.done(call).await
    }

    /// A page of workers.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn workers(&self, page: impl Into<PageRequest>) -> Result<WorkerList, ClientError> {
        self.get_with(&["v1", "workers"], &page.into()).await
    }
}
