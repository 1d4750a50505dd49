//! DAGs of a tenant.

use jiff::Timestamp;
use segno_actions::Listed;
use segno_actions::schedule::Zones;
use segno_api::Json;
use segno_api::dag::{Dag, DagDetails, DagParam, DagSensor, DagTask, DagVersion, PublishDag};
use segno_ledger::drive::{DagHead, Ledger, LedgerError, ListedSensor};
use segno_ledger::event::{EvalStatus, Target};
use segno_ledger::plan::{InvalidDag, Parsed, parse};

use super::{Rejected, Tenant};
use crate::problem::{Code, Refusal};
use crate::scope::Scope;

/// Most tasks of a DAG or run that are shown with it.
pub(super) const MAX_SHOWN_TASKS: usize = 1_000;

impl Tenant {
    /// The ledger of the server.
    ///
    /// # Errors
    /// `ledger-unavailable` on a server without one.
    pub(super) fn ledger(&self) -> Result<&Ledger, Refusal> {
        self.resources().ledger.as_ref().ok_or_else(|| {
            let detail = "this server has no ledger; set ledger.url, which a store on PostgreSQL needs";
            Refusal::new(Code::LedgerUnavailable, detail)
        })
    }

    /// Publishes a DAG.
    ///
    /// # Errors
    /// `invalid-dag` with all problems.
    pub async fn publish_dag(&self, request: PublishDag, by: Option<String>) -> Result<DagVersion, Refusal> {
        let dags = self.ledger()?.dags();
        let zones = std::sync::Arc::clone(self.resources().runbooks.definitions().zones());
        let document = request.document;
        // What is wrong is found on the threads for such work, not on those that serve.
        let checked = self.check_document(move || check(document, &zones)).await?;
        let (document, parsed) = checked.map_err(|error| self.refused(LedgerError::from(error)))?;
        let published = dags.publish_parsed(&self.owner(), document.as_bytes(), parsed, by.as_deref()).await;
        let published = published.map_err(|error| self.refused(error))?;
        Ok(DagVersion {
            is_active: true,
            is_new: Some(published.is_new),
            tasks: Some(count(published.parsed.dag.tasks.len())),
            warnings: published.parsed.warnings.iter().map(ToString::to_string).collect(),
            document: Some(published.version.source.clone()),
            ..version(published.version, published.head.active_version)
        })
    }

    /// DAGs after a name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn dags(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed<Dag>>, Refusal> {
        let found = self.ledger()?.dags().list(&self.owner(), after, limit).await;
        let found = found.map_err(|error| self.refused(error))?;
        Ok(found.into_iter().map(|row| row.map(dag)).collect())
    }

    /// A DAG with the tasks of its active version.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn dag(&self, name: &str) -> Result<DagDetails, Refusal> {
        let (dags, owner) = (self.ledger()?.dags(), self.owner());
        let head = dags.head(&owner, name).await.map_err(|error| self.refused(error))?;
        let parsed = dags.parsed(&owner, name, Some(head.active_version)).await;
        let parsed = parsed.map_err(|error| self.refused(error))?;
        let zones = self.resources().runbooks.definitions().zones();
        let sensors = match parsed.dag.sensors.is_empty() {
            true => Vec::new(),
            false => dags.list_sensors(&owner, name).await.map_err(|error| self.refused(error))?,
        };
        Ok(DagDetails { sensors: sensors.into_iter().map(sensor).collect(), ..details(head, &parsed, zones) })
    }

    /// Versions of a DAG after one, without their documents.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn dag_versions(
        &self,
        name: &str,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<Listed<DagVersion>>, Refusal> {
        let (dags, owner) = (self.ledger()?.dags(), self.owner());
        let head = dags.head(&owner, name).await.map_err(|error| self.refused(error))?;
        let found = dags.versions(&owner, name, after, limit).await;
        let found = found.map_err(|error| self.refused(error))?;
        let active = head.active_version;
        Ok(found.into_iter().map(|row| row.map(|row| version(row, active))).collect())
    }

    /// A version of a DAG with its document.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn dag_version(&self, name: &str, number: u32) -> Result<DagVersion, Refusal> {
        let (dags, owner) = (self.ledger()?.dags(), self.owner());
        let head = dags.head(&owner, name).await.map_err(|error| self.refused(error))?;
        let found = dags.version(&owner, name, Some(number)).await;
        let found = found.map_err(|error| self.refused(error))?;
        // One that this version of Segno cannot read is shown all the same.
        let parsed = dags.parsed(&owner, name, Some(number)).await.ok();
        let document = Some(found.source.clone());
        let tasks = parsed.map(|parsed| count(parsed.dag.tasks.len()));
        Ok(DagVersion { tasks, document, ..version(found, head.active_version) })
    }

    /// Deletes a DAG with its versions.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn delete_dag(&self, name: &str, by: Option<String>) -> Result<(), Refusal> {
        let deleted = self.ledger()?.dags().delete(&self.owner(), name, by.as_deref()).await;
        deleted.map_err(|error| self.refused(error))
    }

    /// Pauses a DAG.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn pause_dag(&self, name: &str, by: Option<String>) -> Result<Dag, Refusal> {
        let paused = self.ledger()?.dags().pause(&self.owner(), name, by.as_deref()).await;
        paused.map(dag).map_err(|error| self.refused(error))
    }

    /// Resumes a paused DAG.
    ///
    /// # Errors
    /// `unknown-dag`.
    pub async fn resume_dag(&self, name: &str, by: Option<String>) -> Result<Dag, Refusal> {
        let resumed = self.ledger()?.dags().resume(&self.owner(), name, by.as_deref()).await;
        resumed.map(dag).map_err(|error| self.refused(error))
    }
}

/// A document with what it says, if it is a DAG.
fn check(document: String, zones: &Zones) -> Result<(String, Parsed), InvalidDag> {
    let parsed = parse(document.as_bytes(), zones)?;
    Ok((document, parsed))
}

fn dag(head: DagHead) -> Dag {
    Dag {
        name: head.name,
        description: head.description,
        active_version: head.active_version,
        is_paused: head.paused,
        created_at: head.created_at,
        updated_at: head.updated_at,
        updated_by: head.updated_by,
    }
}

fn version(row: segno_ledger::drive::DagVersion, active: u32) -> DagVersion {
    DagVersion {
        is_active: row.version == active,
        name: row.name,
        version: row.version,
        tasks: None,
        created_at: row.created_at,
        created_by: row.created_by,
        is_new: None,
        document: None,
        warnings: Vec::new(),
    }
}

fn details(head: DagHead, parsed: &Parsed, zones: &Zones) -> DagDetails {
    let definition = &parsed.dag;
    let schedule = definition.schedule.as_ref().and_then(|schedule| schedule.spec.compile(zones).ok());
    let params = definition.params.iter().map(|(name, param)| DagParam {
        name: name.clone(),
        description: param.description.clone(),
        default: param.default.as_ref().and_then(|value| Json::of(value).ok()),
    });
    let tasks = definition.tasks.iter().take(MAX_SHOWN_TASKS).map(|task| {
        let (function, orchestration) = match &task.target {
            Target::Function(name) => (Some(name.to_string()), None),
            Target::Orchestration(name) => (None, Some(name.to_string())),
        };
        DagTask {
            key: task.key.clone(),
            depends_on: task.depends_on.clone(),
            function,
            orchestration,
            asset: task.asset.clone(),
        }
    });
    DagDetails {
        dag: dag(head),
        schedule: schedule.map(|schedule| schedule.describe()),
        partitioned_by: definition.partitioned_by.clone(),
        params: params.collect(),
        max_concurrent_runs: definition.max_concurrent_runs,
        sensors: Vec::new(),
        tasks: tasks.collect(),
        tasks_total: count(definition.tasks.len()),
    }
}

/// A sensor, and how far it is.
fn sensor(listed: ListedSensor) -> DagSensor {
    let ListedSensor { sensor, state, next_poll_at } = listed;
    let status: Option<EvalStatus> = state.as_ref().and_then(|row| serde_json::from_str(&row.status).ok());
    let (last_status, last_error) = match status {
        None => (None, None),
        Some(EvalStatus::Triggered) => (Some("triggered"), None),
        Some(EvalStatus::NoNewData | EvalStatus::SkippedStaleCursor) => (Some("no_new_data"), None),
        Some(EvalStatus::Error { message }) => (Some("error"), Some(message.to_string())),
    };
    let polled_at = state.as_ref().and_then(|row| row.last_evaluation_at);
    DagSensor {
        name: sensor.name,
        function: sensor.function,
        interval: sensor.interval.to_string(),
        cursor: state.as_ref().and_then(|row| row.cursor.as_deref().map(str::to_owned)),
        last_status: last_status.map(str::to_owned),
        last_error,
        failures: sensor.failures,
        last_polled_at: polled_at.and_then(|at| Timestamp::from_millisecond(at).ok()),
        next_poll_at,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Rejected for LedgerError {
    fn refusal(&self, scope: &Scope) -> Refusal {
        Refusal::from_ledger(self, scope)
    }
}
