//! Runbooks and batches.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;

use super::{Client, ClientError, Download, PageRequest};
use crate::batch::{
    Batch, BatchAction, BatchDetails, BatchList, BatchRequest, BatchStatus, CreateBatch, Explanation, Member,
    MemberDetails, MemberList, MemberStatus, PutMembers, RemoveMembers,
};
use crate::runbook::{PublishPlan, PublishRunbook, Runbook, RunbookList, RunbookVersion, RunbookVersionList};

/// Which batches to list.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ListBatches {
    /// Only batches of this runbook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runbook: Option<String>,
    /// Only batches in one of these states.
    #[serde(skip)]
    pub status: Vec<BatchStatus>,
    /// Which page.
    #[serde(flatten)]
    pub page: PageRequest,
}

/// Which members of a batch to list.
#[derive(Debug, Clone, Default)]
pub struct ListMembers {
    /// Only members in one of these states.
    pub status: Vec<MemberStatus>,
    /// Which page.
    pub page: PageRequest,
}

impl<P: Into<PageRequest>> From<P> for ListMembers {
    fn from(page: P) -> Self {
        ListMembers { status: Vec::new(), page: page.into() }
    }
}

#[derive(Serialize)]
struct KeyQuery<'a> {
    key: &'a str,
}

#[derive(Serialize)]
struct RowQuery<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    row: Option<&'a str>,
}

impl Client {
    /// Publishes a runbook: its next version, active at once.
    ///
    /// # Errors
    /// `invalid-runbook` with all problems.
    pub async fn publish_runbook(&self, request: &PublishRunbook) -> Result<RunbookVersion, ClientError> {
        self.post(&["v1", "runbooks"], request).await
    }

    /// What publishing a runbook would do. Nothing is changed. `name` is that of the document.
    ///
    /// # Errors
    /// `invalid-runbook` with all problems.
    pub async fn plan_publishing(
        &self,
        name: &str,
        request: &PublishRunbook,
    ) -> Result<PublishPlan, ClientError> {
        self.post(&["v1", "runbooks", name, "plan"], request).await
    }

    /// Deletes a runbook with all its versions.
    ///
    /// # Errors
    /// `unknown-runbook`, `runbook-in-use` while it has batches or its automation is enabled.
    pub async fn delete_runbook(&self, name: &str) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &["v1", "runbooks", name], Duration::ZERO)).await
    }

    /// Deletes a version of a runbook that is not the active one.
    ///
    /// # Errors
    /// `unknown-runbook`, `runbook-in-use` while batches use it.
    pub async fn delete_runbook_version(&self, name: &str, version: u32) -> Result<(), ClientError> {
        let path = ["v1", "runbooks", name, "versions", &version.to_string()];
        self.done(self.request(Method::DELETE, &path, Duration::ZERO)).await
    }

    /// A page of runbooks, by name.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn runbooks(&self, page: impl Into<PageRequest>) -> Result<RunbookList, ClientError> {
        self.get_with(&["v1", "runbooks"], &page.into()).await
    }

    /// A runbook.
    ///
    /// # Errors
    /// `unknown-runbook`.
    pub async fn runbook(&self, name: &str) -> Result<Runbook, ClientError> {
        self.get(&["v1", "runbooks", name]).await
    }

    /// A page of the versions of a runbook, oldest first.
    ///
    /// # Errors
    /// `unknown-runbook`.
    pub async fn runbook_versions(
        &self,
        name: &str,
        page: impl Into<PageRequest>,
    ) -> Result<RunbookVersionList, ClientError> {
        self.get_with(&["v1", "runbooks", name, "versions"], &page.into()).await
    }

    /// A version of a runbook with its text.
    ///
    /// # Errors
    /// `unknown-runbook`.
    pub async fn runbook_version(&self, name: &str, version: u32) -> Result<RunbookVersion, ClientError> {
        self.get(&["v1", "runbooks", name, "versions", &version.to_string()]).await
    }

    /// Creates a batch.
    ///
    /// # Errors
    /// `unknown-runbook`, `invalid-members` with all problems, `invalid-batch`.
    pub async fn create_batch(&self, request: &CreateBatch) -> Result<Batch, ClientError> {
        self.post(&["v1", "batches"], request).await
    }

    /// A page of batches, newest first.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn batches(&self, list: &ListBatches) -> Result<BatchList, ClientError> {
        let call = self.request(Method::GET, &["v1", "batches"], Duration::ZERO).query(list);
        let statuses: Vec<_> = list.status.iter().map(|status| ("status", status)).collect();
        self.read(call.query(&statuses)).await
    }

    /// A batch with its phases and init steps.
    ///
    /// # Errors
    /// `unknown-batch`.
    pub async fn batch(&self, batch: u64) -> Result<BatchDetails, ClientError> {
        self.get(&["v1", "batches", &batch.to_string()]).await
    }

    /// Why a row of a batch waits: `phase-108`, `member-501`, `step-1042`, `init-7`, or the batch.
    ///
    /// # Errors
    /// `unknown-batch`, `not-found` when it has no such row.
    pub async fn explain_batch(&self, batch: u64, row: Option<&str>) -> Result<Explanation, ClientError> {
        self.get_with(&["v1", "batches", &batch.to_string(), "explain"], &RowQuery { row }).await
    }

    /// A page of the members of a batch.
    ///
    /// # Errors
    /// `unknown-batch`.
    pub async fn batch_members(
        &self,
        batch: u64,
        list: impl Into<ListMembers>,
    ) -> Result<MemberList, ClientError> {
        let (list, path) = (list.into(), ["v1", "batches", &batch.to_string(), "members"]);
        let call = self.request(Method::GET, &path, Duration::ZERO).query(&list.page);
        let statuses: Vec<_> = list.status.iter().map(|status| ("status", status)).collect();
        self.read(call.query(&statuses)).await
    }

    /// The member of a batch that has a key; letter case does not matter. `None` if no member has it.
    ///
    /// # Errors
    /// `unknown-batch`.
    pub async fn batch_member_of_key(&self, batch: u64, key: &str) -> Result<Option<Member>, ClientError> {
        let path = ["v1", "batches", &batch.to_string(), "members"];
        let list: MemberList = self.get_with(&path, &KeyQuery { key }).await?;
        Ok(list.members.into_iter().next())
    }

    /// A member with its steps in all phases.
    ///
    /// # Errors
    /// `unknown-batch`, `not-found`.
    pub async fn batch_member(&self, batch: u64, member: u64) -> Result<MemberDetails, ClientError> {
        self.get(&["v1", "batches", &batch.to_string(), "members", &member.to_string()]).await
    }

    /// Deletes a batch that has ended.
    ///
    /// # Errors
    /// `unknown-batch`, `batch-request-refused` when it has not ended.
    pub async fn delete_batch(&self, batch: u64) -> Result<(), ClientError> {
        let path = ["v1", "batches", &batch.to_string()];
        self.done(self.request(Method::DELETE, &path, Duration::ZERO)).await
    }

    /// The report of a batch: CSV with one line for each member and step, in the order of members.
    ///
    /// # Errors
    /// `unknown-batch`, `too-many-streams`.
    pub async fn batch_report(&self, batch: u64) -> Result<Download, ClientError> {
        let path = ["v1", "batches", &batch.to_string(), "report"];
        self.download(self.request(Method::GET, &path, Duration::ZERO)).await
    }

    /// Adds members to a batch, or updates them.
    ///
    /// # Errors
    /// `unknown-batch`, `invalid-members`, `batch-request-refused`.
    pub async fn put_batch_members(
        &self,
        batch: u64,
        members: &PutMembers,
    ) -> Result<BatchRequest, ClientError> {
        self.post(&["v1", "batches", &batch.to_string(), "members"], members).await
    }

    /// Removes members from a batch.
    ///
    /// # Errors
    /// `unknown-batch`, `batch-request-refused`.
    pub async fn remove_batch_members(
        &self,
        batch: u64,
        members: &RemoveMembers,
    ) -> Result<BatchRequest, ClientError> {
        self.post(&["v1", "batches", &batch.to_string(), "members", "remove"], members).await
    }

    /// Requests something of a batch.
    ///
    /// # Errors
    /// `unknown-batch`, `batch-request-refused` with the reason.
    pub async fn request_of_batch(
        &self,
        batch: u64,
        action: &BatchAction,
    ) -> Result<BatchRequest, ClientError> {
        self.post(&["v1", "batches", &batch.to_string(), "requests"], action).await
    }

    /// A request about a batch, and what became of it.
    ///
    /// # Errors
    /// `not-found` when there was none, or it was answered more than 7 days ago.
    pub async fn batch_request(&self, batch: u64, key: &str) -> Result<BatchRequest, ClientError> {
        self.get(&["v1", "batches", &batch.to_string(), "requests", key]).await
    }
}
