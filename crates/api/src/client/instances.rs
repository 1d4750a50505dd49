//! Instances.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};

use super::retry::IDEMPOTENCY_KEY;
use super::{Client, ClientError, PageRequest};
use crate::bulk::{Bulk, BulkResult};
use crate::explain::InstanceExplanation;
use crate::history::{ExecutionList, History};
use crate::instance::{
    Accepted, CustomStatus, Deleted, Instance, InstanceList, ListInstances, Reason, Restart, Retried, Send,
    StartInstance, Started, Status, Tree,
};
use crate::orchestration::{Orchestration, OrchestrationList};

/// Adds the parameters of a filter that may be there several times.
pub(super) fn repeated(call: RequestBuilder, statuses: &[Status], labels: &[String]) -> RequestBuilder {
    let statuses: Vec<_> = statuses.iter().map(|status| ("status", status)).collect();
    let labels: Vec<_> = labels.iter().map(|label| ("label", label)).collect();
    call.query(&statuses).query(&labels)
}

impl Client {
    /// Starts an instance, and waits up to so long for its end. The key makes the call safe to repeat.
    ///
    /// # Errors
    /// `instance-exists` when there is one of the id and `on_conflict` is `reject`.
    pub async fn start(
        &self,
        request: &StartInstance,
        idempotency_key: Option<&str>,
        wait: Duration,
    ) -> Result<Started, ClientError> {
        let mut call = self.request(Method::POST, &["v1", "instances"], wait).json(request);
        if let Some(key) = idempotency_key {
            call = call.header(IDEMPOTENCY_KEY, key);
        }
        self.read(call).await
    }

    /// One instance; waits up to so long for its end.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn instance(&self, id: &str, wait: Duration) -> Result<Instance, ClientError> {
        self.read(self.request(Method::GET, &["v1", "instances", id], wait)).await
    }

    /// A page of instances.
    ///
    /// # Errors
    /// `invalid-request` when a filter is wrong.
    pub async fn instances(&self, filter: &ListInstances) -> Result<InstanceList, ClientError> {
        let call = self.request(Method::GET, &["v1", "instances"], Duration::ZERO).query(filter);
        self.read(repeated(call, &filter.status, &filter.label)).await
    }

    /// Events of an execution after one of them; of the current execution without a number.
    ///
    /// # Errors
    /// `not-found` when there is none.
    pub async fn history(
        &self,
        id: &str,
        execution: Option<u64>,
        after: u64,
    ) -> Result<History, ClientError> {
        let mut query = vec![("after", after)];
        query.extend(execution.map(|execution| ("execution", execution)));
        self.get_with(&["v1", "instances", id, "history"], &query).await
    }

    /// A page of the executions, newest first.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn executions(
        &self,
        id: &str,
        page: impl Into<PageRequest>,
    ) -> Result<ExecutionList, ClientError> {
        self.get_with(&["v1", "instances", id, "executions"], &page.into()).await
    }

    /// What an instance waits for.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn explain_instance(&self, id: &str) -> Result<InstanceExplanation, ClientError> {
        self.get(&["v1", "instances", id, "explain"]).await
    }

    /// A page of the instance and its descendants.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn tree(&self, id: &str, page: impl Into<PageRequest>) -> Result<Tree, ClientError> {
        self.get_with(&["v1", "instances", id, "tree"], &page.into()).await
    }

    /// The custom status; waits up to so long for a version above `after`.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn custom_status(
        &self,
        id: &str,
        after: u64,
        wait: Duration,
    ) -> Result<CustomStatus, ClientError> {
        let call =
            self.request(Method::GET, &["v1", "instances", id, "status"], wait).query(&[("after", after)]);
        self.read(call).await
    }

    /// Raises a signal.
    ///
    /// # Errors
    /// `not-found` and `instance-ended`.
    pub async fn raise(&self, id: &str, message: &Send) -> Result<Accepted, ClientError> {
        self.post(&["v1", "instances", id, "raise"], message).await
    }

    /// Puts a message into a mailbox.
    ///
    /// # Errors
    /// `not-found` and `instance-ended`.
    pub async fn enqueue(&self, id: &str, message: &Send) -> Result<Accepted, ClientError> {
        self.post(&["v1", "instances", id, "enqueue"], message).await
    }

    /// Cancels an instance.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn cancel(&self, id: &str, reason: Option<String>) -> Result<Accepted, ClientError> {
        self.post(&["v1", "instances", id, "cancel"], &Reason { reason }).await
    }

    /// Holds an instance.
    ///
    /// # Errors
    /// `not-found` and `instance-ended`.
    pub async fn pause(&self, id: &str, reason: Option<String>) -> Result<Accepted, ClientError> {
        self.post(&["v1", "instances", id, "pause"], &Reason { reason }).await
    }

    /// Lets a held instance go on.
    ///
    /// # Errors
    /// `not-found` and `instance-ended`.
    pub async fn resume(&self, id: &str) -> Result<Accepted, ClientError> {
        self.post(&["v1", "instances", id, "resume"], &serde_json::json!({})).await
    }

    /// Starts an instance again with the input of its last start; its earlier executions stay.
    ///
    /// # Errors
    /// `instance-running` when it has not ended.
    pub async fn restart(&self, id: &str, request: &Restart) -> Result<Started, ClientError> {
        self.post(&["v1", "instances", id, "restart"], request).await
    }

    /// Lets the activities of an instance that wait for their next attempt run at once.
    ///
    /// # Errors
    /// `not-found`, `instance-ended` and `nothing-to-retry`.
    pub async fn retry(&self, id: &str, reason: Option<String>) -> Result<Retried, ClientError> {
        self.post(&["v1", "instances", id, "retry"], &Reason { reason }).await
    }

    /// Deletes an instance with its descendants.
    ///
    /// # Errors
    /// `instance-running` when it has not ended and `force` is not set.
    pub async fn delete(&self, id: &str, force: bool) -> Result<Deleted, ClientError> {
        let call = self.request(Method::DELETE, &["v1", "instances", id], Duration::ZERO);
        self.read(call.query(&[("force", force)])).await
    }

    /// A page of the orchestrations that can be started, by name.
    ///
    /// # Errors
    /// When the cursor is wrong.
    pub async fn orchestrations(
        &self,
        page: impl Into<PageRequest>,
    ) -> Result<OrchestrationList, ClientError> {
        self.get_with(&["v1", "orchestrations"], &page.into()).await
    }

    /// An orchestration with the schemas that it declares.
    ///
    /// # Errors
    /// `unknown-orchestration` when no node has it.
    pub async fn orchestration(&self, name: &str) -> Result<Orchestration, ClientError> {
        self.get(&["v1", "orchestrations", name]).await
    }

    /// Does one thing to all that match or are named.
    ///
    /// # Errors
    /// `invalid-request` when filter and ids are empty.
    pub async fn bulk(&self, request: &Bulk) -> Result<BulkResult, ClientError> {
        self.bulk_under(request, None).await
    }

    /// The same under a key that makes the call safe to repeat, also by another process: it is answered as it was the first
    /// time.
    ///
    /// # Errors
    /// As [`Client::bulk`], and `idempotency-mismatch`.
    pub async fn bulk_under(&self, request: &Bulk, key: Option<&str>) -> Result<BulkResult, ClientError> {
        let call = self.request(Method::POST, &["v1", "instances", "bulk"], Duration::ZERO).json(request);
        let call = match key {
            Some(key) => call.header(IDEMPOTENCY_KEY, key),
            None => call,
        };
        self.read(call).await
    }
}
