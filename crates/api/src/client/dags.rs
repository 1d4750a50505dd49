//! DAGs, and partitions of the assets that they make.

use std::time::Duration;

use reqwest::Method;
use serde::Serialize;

use super::{Client, ClientError, PageRequest};
use crate::asset::{Asset, AssetLineage, AssetList, AssetPartitionList};
use crate::dag::{Dag, DagDetails, DagList, DagVersion, DagVersionList, PublishDag};

impl Client {
    /// Publishes a DAG: its next version, active at once.
    ///
    /// # Errors
    /// `invalid-dag` with all problems.
    pub async fn publish_dag(&self, request: &PublishDag) -> Result<DagVersion, ClientError> {
        self.post(&["v1", "dags"], request).await
    }

    /// A page of DAGs, by name.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn dags(&self, page: impl Into<PageRequest>) -> Result<DagList, ClientError> {
        self.get_with(&["v1", "dags"], &page.into()).await
    }

    /// A DAG with the tasks of its active version.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn dag(&self, name: &str) -> Result<DagDetails, ClientError> {
        self.get(&["v1", "dags", name]).await
    }

    /// A page of the versions of a DAG, oldest first.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn dag_versions(
        &self,
        name: &str,
        page: impl Into<PageRequest>,
    ) -> Result<DagVersionList, ClientError> {
        self.get_with(&["v1", "dags", name, "versions"], &page.into()).await
    }

    /// A version of a DAG with its document.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn dag_version(&self, name: &str, version: u32) -> Result<DagVersion, ClientError> {
        self.get(&["v1", "dags", name, "versions", &version.to_string()]).await
    }

    /// Deletes a DAG with all its versions. Its runs stay.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn delete_dag(&self, name: &str) -> Result<(), ClientError> {
        self.done(self.request(Method::DELETE, &["v1", "dags", name], Duration::ZERO)).await
    }

    /// Pauses a DAG: its schedule, sensors and backfills start no runs.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn pause_dag(&self, name: &str) -> Result<Dag, ClientError> {
        self.read(self.request(Method::POST, &["v1", "dags", name, "pause"], Duration::ZERO)).await
    }

    /// Resumes a paused DAG.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn resume_dag(&self, name: &str) -> Result<Dag, ClientError> {
        self.read(self.request(Method::POST, &["v1", "dags", name, "resume"], Duration::ZERO)).await
    }

    /// A page of the partitions of an asset that were made or attempted, by key.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn asset_partitions(
        &self,
        asset: &str,
        page: impl Into<PageRequest>,
    ) -> Result<AssetPartitionList, ClientError> {
        self.get_with(&["v1", "assets", asset, "partitions"], &page.into()).await
    }

    /// A page of the assets of published DAGs, by key.
    ///
    /// # Errors
    /// `forbidden` without a grant.
    pub async fn assets(&self, page: impl Into<PageRequest>) -> Result<AssetList, ClientError> {
        self.get_with(&["v1", "assets"], &page.into()).await
    }

    /// An asset.
    ///
    /// # Errors
    /// `unknown-asset`.
    pub async fn asset(&self, asset: &str) -> Result<Asset, ClientError> {
        self.get(&["v1", "assets", asset]).await
    }

    /// What an asset is made of, and what is made of it.
    ///
    /// # Errors
    /// `unknown-asset`, `invalid-run` when the partition is none of the asset.
    pub async fn asset_lineage(&self, asset: &str, of: &LineageOf) -> Result<AssetLineage, ClientError> {
        self.get_with(&["v1", "assets", asset, "lineage"], of).await
    }
}

/// Which lineage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LineageOf {
    /// Of this partition; of the asset as a whole without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// At most so many edges away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
}
