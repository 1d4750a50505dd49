//! What a worker returns on the topic `results`, and which row it is for.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CallResult;
use super::job::CorrelationData;
use super::letter_case::with_known_names;
use super::outcome::Outcome;
use crate::rows::{BatchId, InitId, MemberId, StepId};

/// A result of a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultMessage {
    /// Id of the attempt.
    pub job_id: String,
    /// The batch.
    #[serde(default)]
    pub batch_id: Option<BatchId>,
    /// The worker pool.
    #[serde(default)]
    pub worker_id: String,
    /// The function.
    #[serde(default)]
    pub function_name: String,
    /// `success` or `failure`, in any letter case.
    pub status: String,
    /// `Boolean` or `Object`.
    #[serde(default)]
    pub result_type: Option<String>,
    /// What the function returned.
    #[serde(default)]
    pub result: Value,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<ResultError>,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// When it ended, as the worker wrote it.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// What came with the job.
    #[serde(default)]
    pub correlation_data: Option<CorrelationData>,
}

/// Why a function failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultError {
    /// The message.
    #[serde(default)]
    pub message: String,
    /// Kind of the error.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// Whether the service behind the function was throttled.
    #[serde(default)]
    pub is_throttled: bool,
    /// Attempts that the worker made.
    #[serde(default)]
    pub attempts: Option<u32>,
    /// Where it happened.
    #[serde(default)]
    pub stack_trace: Option<String>,
}

const NAMES: &[&str] = &[
    "jobId",
    "batchId",
    "workerId",
    "functionName",
    "status",
    "resultType",
    "result",
    "error",
    "durationMs",
    "timestamp",
    "correlationData",
];
const ERROR_NAMES: &[&str] = &["message", "type", "isThrottled", "attempts", "stackTrace"];

/// Which row a job was sent for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkReference {
    /// A step of a phase.
    Step(StepId),
    /// An init step.
    Init(InitId),
    /// The rollback that is at work for a member; for the batch's init steps if there is none.
    Rollback(Option<MemberId>),
    /// A removal step of a member, by its index.
    Removal(MemberId, u32),
}

/// Why a result cannot be given to a batch. The texts are the dead-letter reasons of the shipped system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResultProblem {
    /// There is no correlation data.
    #[error("MissingCorrelationData")]
    MissingCorrelationData,
    /// The correlation data or the job id name no row.
    #[error("InvalidCorrelationData")]
    InvalidCorrelationData,
}

impl WorkReference {
    /// The row of a job that its id names: all but those of unknown kinds.
    ///
    /// Ids begin with numbers. User text comes after them and is not looked at.
    pub fn of_job_id(job_id: &str) -> Option<Self> {
        let (kind, rest) = job_id.split_once('-')?;
        let mut parts = rest.split('-');
        let first = parts.next()?;
        match kind {
            "step" => Some(WorkReference::Step(StepId(first.parse().ok()?))),
            "init" => Some(WorkReference::Init(InitId(first.parse().ok()?))),
            "removed" => {
                let index = parts.next()?.parse().ok()?;
                Some(WorkReference::Removal(MemberId(first.parse().ok()?), index))
            }
            "rollback" => {
                let member = match parts.next()? {
                    "batch" => None,
                    member => Some(MemberId(member.parse().ok()?)),
                };
                Some(WorkReference::Rollback(member))
            }
            _ => None,
        }
    }
}

impl ResultMessage {
    /// Reads a result; names may begin with a capital letter, as some workers write them.
    ///
    /// # Errors
    /// When it is not JSON, or without job id or status.
    pub fn read(body: &[u8]) -> Result<Self, serde_json::Error> {
        let mut value = with_known_names(serde_json::from_slice(body)?, NAMES);
        for (name, names) in [("error", ERROR_NAMES), ("correlationData", CorrelationData::NAMES)] {
            if let Some(below) = value.get_mut(name) {
                *below = with_known_names(below.take(), names);
            }
        }
        serde_json::from_value(value)
    }

    /// How the job ended.
    pub fn outcome(&self) -> Outcome {
        if self.status.eq_ignore_ascii_case("success") {
            return Outcome::of_result(self.result.clone());
        }
        let error = self.error.clone().unwrap_or_default();
        let message = match (error.message.as_str(), error.kind.as_deref()) {
            ("", None) => format!("the worker reported status {:?} without an error", self.status),
            ("", Some(kind)) => kind.to_owned(),
            (message, None) => message.to_owned(),
            (message, Some(kind)) => format!("{kind}: {message}"),
        };
        Outcome::Failed { message, throttled: error.is_throttled }
    }

    /// The row that it is for.
    ///
    /// # Errors
    /// The reason with which the message is dead-lettered.
    pub fn reference(&self) -> Result<WorkReference, ResultProblem> {
        let by_job = WorkReference::of_job_id(&self.job_id);
        // The ids of rollback and removal jobs are enough: existing workers know no data for them.
        if let Some(reference @ (WorkReference::Rollback(_) | WorkReference::Removal(..))) = by_job {
            return Ok(reference);
        }
        let data = self.correlation_data.as_ref().ok_or(ResultProblem::MissingCorrelationData)?;
        let reference = match (data.is_init_step, data.init_execution_id, data.step_execution_id) {
            (true, Some(init), _) => WorkReference::Init(init),
            (false, _, Some(step)) => WorkReference::Step(step),
            _ => return Err(ResultProblem::InvalidCorrelationData),
        };
        Ok(reference)
    }

    /// The message for the batch's inbox.
    ///
    /// # Errors
    /// The reason with which the message is dead-lettered.
    pub fn into_call_result(self) -> Result<CallResult, ResultProblem> {
        let work = self.reference()?;
        let outcome = self.outcome();
        let pool = Some(self.worker_id).filter(|pool| !pool.is_empty());
        Ok(CallResult { job_id: self.job_id, work, outcome, pool })
    }
}
