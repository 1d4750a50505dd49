//! What a worker gets on the topic `jobs`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::rows::{BatchId, InitId, StepId};

/// A job. On the bus, `jobId` is the message id too.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobMessage {
    /// Id of the attempt.
    pub job_id: String,
    /// The batch.
    pub batch_id: BatchId,
    /// The worker pool.
    pub worker_id: String,
    /// The function.
    pub function_name: String,
    /// Its parameters.
    pub parameters: Box<RawValue>,
    /// What the worker returns with the result, unchanged.
    pub correlation_data: CorrelationData,
}

/// What a worker returns with the result, unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorrelationData {
    /// The step; the failed one in a job of a rollback.
    #[serde(default)]
    pub step_execution_id: Option<StepId>,
    /// The init step; the failed one in a job of a rollback.
    #[serde(default)]
    pub init_execution_id: Option<InitId>,
    /// Whether it is an init step.
    #[serde(default)]
    pub is_init_step: bool,
    /// Name of the runbook.
    #[serde(default)]
    pub runbook_name: String,
    /// Its version.
    #[serde(default)]
    pub runbook_version: u32,
}

impl CorrelationData {
    pub(super) const NAMES: &'static [&'static str] =
        &["stepExecutionId", "initExecutionId", "isInitStep", "runbookName", "runbookVersion"];
}
