//! Runs: triggered, cancelled.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A run exists from here on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunTriggered {
    /// The run.
    pub run_id: Arc<str>,
    /// The plan: its name and version.
    pub plan_id: Arc<str>,
    /// What triggered it.
    pub trigger: Trigger,
    /// The assets that were asked for.
    #[serde(default)]
    pub root_assets: Vec<Arc<str>>,
    /// The key under which it was requested once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_key: Option<Arc<str>>,
    /// Labels.
    #[serde(default)]
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// The version of the code that it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_version: Option<Arc<str>>,
    /// The name of the DAG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dag: Option<Arc<str>>,
    /// Its parameters, for the templates of inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
    /// The run that this one repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run_id: Option<Arc<str>>,
}

/// What triggered a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Trigger {
    /// A schedule.
    Cron {
        /// The schedule.
        schedule_id: Arc<str>,
    },
    /// A person or program.
    Manual {
        /// Who.
        user_id: Arc<str>,
    },
    /// A newly made asset.
    Materialization {
        /// What was made.
        upstream_materialization_id: Arc<str>,
    },
    /// A webhook.
    Webhook {
        /// The webhook.
        webhook_id: Arc<str>,
    },
    /// A sensor.
    Sensor {
        /// The sensor.
        sensor_id: Arc<str>,
        /// Its cursor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Arc<str>>,
    },
    /// A chunk of a backfill.
    Backfill {
        /// The backfill.
        backfill_id: Arc<str>,
        /// The chunk.
        chunk_id: Arc<str>,
    },
}

/// The run is to be cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunCancelRequested {
    /// The run.
    pub run_id: Arc<str>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// Who.
    pub requested_by: Arc<str>,
    /// A number that the run shows as its `generation`; a run that was cleared can be cancelled
    /// again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub generation: u32,
}

pub(super) fn is_zero(count: &u32) -> bool {
    *count == 0
}
