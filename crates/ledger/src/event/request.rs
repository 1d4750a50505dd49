//! Requests for runs, by key: the same key is the same run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::fingerprint;

/// A run is requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRequested {
    /// Its key.
    pub run_key: Arc<str>,
    /// Its id, which the requester derives from the key with the secret of the tenant.
    pub run_id: Arc<str>,
    /// The fingerprint of what is requested.
    pub request_fingerprint: Arc<str>,
    /// What it makes.
    #[serde(default)]
    pub asset_selection: Vec<Arc<str>>,
    /// For which partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_selection: Option<Vec<Arc<str>>>,
    /// What requests it.
    pub trigger_source_ref: RunSource,
    /// Labels.
    #[serde(default)]
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// The version of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_version: Option<Arc<str>>,
    /// The name of the DAG.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dag: Option<Arc<str>>,
    /// The parameters of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
}

impl RunRequested {
    /// The fingerprint of what is requested. The order of selections does not matter, nor what
    /// requests it.
    pub fn content_fingerprint(&self) -> String {
        let sorted = |list: &[Arc<str>]| {
            let mut list = list.to_vec();
            list.sort();
            list
        };
        let content = (
            sorted(&self.asset_selection),
            self.partition_selection.as_deref().map(sorted),
            &self.labels,
            (&self.code_version, &self.dag, &self.params),
        );
        fingerprint(&serde_json::to_string(&content).expect("all of its keys are texts"))
    }
}

/// What requests a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunSource {
    /// A tick of a schedule.
    Schedule {
        /// The schedule.
        schedule_id: Arc<str>,
        /// The tick.
        tick_id: Arc<str>,
    },
    /// An evaluation of a sensor.
    Sensor {
        /// The sensor.
        sensor_id: Arc<str>,
        /// The evaluation.
        eval_id: Arc<str>,
    },
    /// A chunk of a backfill.
    Backfill {
        /// The backfill.
        backfill_id: Arc<str>,
        /// The chunk.
        chunk_id: Arc<str>,
    },
    /// A person or program.
    Manual {
        /// Who.
        user_id: Arc<str>,
        /// The request.
        request_id: Arc<str>,
    },
}
