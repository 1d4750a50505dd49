//! Sensors of published DAGs: a record for each, due when it is polled next, and what its function returns.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno::Payload;
use segno::clock::duration_ms;
use segno::store::{Expect, Record, RecordWrite};
use segno_actions::functions::{HumanDuration, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::limits::{MAX_CURSOR_BYTES, MAX_SENSOR_BACKOFF, MAX_SENSOR_RUNS, MIN_POLL};
use super::place::{SENSORS, sensor_id};
use super::runs::{self, StartRun};
use crate::event::{RunRequested, RunSource};
use crate::plan::definition::Sensor;

/// A sensor of the active version of a DAG.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SensorRow {
    /// The DAG.
    pub dag: String,
    /// Its name within the DAG.
    pub name: String,
    /// The function that is polled.
    pub function: String,
    /// What it is called with, beside the cursor.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub input: Value,
    /// The time between two polls.
    pub interval: HumanDuration,
    /// Polls that have failed since the last one that did not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
}

/// Whether a count is left out of the stored form.
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl SensorRow {
    pub(super) fn new(dag: &str, sensor: &Sensor) -> Self {
        SensorRow {
            dag: dag.to_owned(),
            name: sensor.name.clone(),
            function: sensor.function.clone(),
            input: sensor.input.clone(),
            interval: sensor.interval,
            failures: 0,
        }
    }

    /// The sensor after a poll: a success ends its backoff.
    pub(super) fn polled(self, has_failed: bool) -> Self {
        let failures = if has_failed { self.failures.saturating_add(1) } else { 0 };
        SensorRow { failures, ..self }
    }

    /// The sensor in events and tables.
    pub fn sensor_id(&self) -> Arc<str> {
        format!("{}:{}", self.dag, self.name).into()
    }

    pub(super) fn read(record: &Record) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(&record.body)
    }

    /// The record of the sensor. Without a due time it is not polled.
    pub(super) fn write(&self, scope: &Scope, expect: Expect, due_at_ms: Option<u64>) -> RecordWrite {
        RecordWrite::Put {
            kind: SENSORS.to_owned(),
            id: sensor_id(scope, &self.dag, &self.name),
            expect,
            due_at_ms,
            time_to_live: None,
            body: serde_json::to_vec(self).expect("it has plain fields").into(),
        }
    }

    /// When the sensor is polled again after a poll: after its interval, and after twice as long for each further poll in a
    /// row that has failed, up to [`MAX_SENSOR_BACKOFF`].
    pub(super) fn next_ms(&self, now_ms: u64) -> u64 {
        let interval_ms = self.interval.as_ms().max(duration_ms(MIN_POLL));
        let doublings = self.failures.saturating_sub(1).min(u64::BITS - 1);
        let backoff_ms = interval_ms.saturating_mul(1 << doublings).min(duration_ms(MAX_SENSOR_BACKOFF));
        now_ms.saturating_add(backoff_ms.max(interval_ms))
    }
}

/// What the function of a sensor returns. `null` stands for nothing new.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "an object with cursor and runs")]
pub(super) struct Findings {
    /// Where the next poll continues; as before without it.
    pub(super) cursor: Option<String>,
    /// Runs that are wanted.
    pub(super) runs: Vec<WantedRun>,
}

/// A run that a sensor wants.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with run_key")]
pub(super) struct WantedRun {
    /// The key: the same key of the same sensor is the same run.
    run_key: String,
    #[serde(default)]
    partition: Option<String>,
    #[serde(default)]
    params: Map<String, Value>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl Findings {
    /// What a function has returned.
    ///
    /// # Errors
    /// What is wrong with it, and what to return instead.
    pub(super) fn read(result: &Payload) -> Result<Self, String> {
        let found: Option<Findings> = serde_json::from_str(result.as_str()).map_err(|error| {
            format!(
                "it returned something else than {{\"cursor\": \"…\", \"runs\": [{{\"run_key\": \"…\"}}]}}: {error}"
            )
        })?;
        let found = found.unwrap_or_default();
        if found.runs.len() > MAX_SENSOR_RUNS {
            return Err(format!(
                "it returned {} runs; return at most {MAX_SENSOR_RUNS} at a time, and the others with the next cursor",
                found.runs.len()
            ));
        }
        if let Some(bytes) = found.cursor.as_ref().map(String::len).filter(|bytes| *bytes > MAX_CURSOR_BYTES)
        {
            return Err(format!("its cursor has {bytes} bytes, the limit is {MAX_CURSOR_BYTES}"));
        }
        for run in &found.runs {
            let wanted = StartRun {
                run_key: Some(run.run_key.clone()),
                labels: run.labels.clone(),
                ..StartRun::default()
            };
            runs::check(&wanted).map_err(|error| format!("run {:?}: {error}", run.run_key))?;
        }
        Ok(found)
    }
}

impl WantedRun {
    /// The request for the run, as an evaluation of a sensor makes it.
    pub(super) fn requested(
        self,
        sensor: &SensorRow,
        eval_id: &Arc<str>,
        run_id: impl Fn(&str) -> String,
    ) -> RunRequested {
        let sensor_id = sensor.sensor_id();
        let run_key = format!("sensor:{sensor_id}:{}", self.run_key);
        let mut request = RunRequested {
            run_id: run_id(&run_key).into(),
            run_key: run_key.into(),
            request_fingerprint: "".into(),
            asset_selection: Vec::new(),
            partition_selection: self.partition.map(|partition| vec![partition.into()]),
            trigger_source_ref: RunSource::Sensor { sensor_id, eval_id: Arc::clone(eval_id) },
            labels: self.labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
            code_version: None,
            dag: Some(sensor.dag.as_str().into()),
            params: (!self.params.is_empty()).then_some(Value::Object(self.params)),
        };
        request.request_fingerprint = request.content_fingerprint().into();
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_function_returns_is_read_within_limits() {
        let read = |json: String| Findings::read(&Payload::from_json(json).unwrap());
        assert_eq!(read("null".to_owned()), Ok(Findings::default()));
        let found = read(r#"{"cursor":"7","runs":[{"run_key":"a","partition":"2026-01-01"}]}"#.to_owned());
        let found = found.unwrap();
        assert_eq!((found.cursor.as_deref(), found.runs.len()), (Some("7"), 1));
        let many = (0..=MAX_SENSOR_RUNS).map(|number| format!(r#"{{"run_key":"{number}"}}"#));
        for (wrong, problem) in [
            ("7".to_owned(), "invalid type: integer `7`, expected an object with cursor and runs"),
            (r#"{"runs":["a"]}"#.to_owned(), r#"invalid type: string "a", expected an object with run_key"#),
            (r#"{"runs":[{}]}"#.to_owned(), "missing field `run_key`"),
            (r#"{"run":[]}"#.to_owned(), "unknown field `run`, expected `cursor` or `runs`"),
            (
                format!(r#"{{"runs":[{}]}}"#, many.collect::<Vec<_>>().join(",")),
                "return at most 100 at a time",
            ),
            (format!(r#"{{"cursor":"{}"}}"#, "x".repeat(MAX_CURSOR_BYTES + 1)), "the limit is 4096"),
            (r#"{"runs":[{"run_key":""}]}"#.to_owned(), "use 1 to 512 bytes"),
            (r#"{"runs":[{"run_key":"a","labels":{"":"x"}}]}"#.to_owned(), "labels"),
        ] {
            let refused = read(wrong.clone()).unwrap_err();
            for name in ["segno", "::", "Findings", "WantedRun", "struct"] {
                assert!(!refused.contains(name), "{refused}");
            }
            assert!(refused.contains(problem), "{wrong:.80}: {refused}");
        }
    }

    #[test]
    fn polls_that_fail_in_a_row_are_further_and_further_apart_until_one_succeeds() {
        let minutes = |interval: &str, failures: u32| {
            let stored = format!(r#"{{"dag":"d","name":"s","function":"f","interval":"{interval}"}}"#);
            let mut row: SensorRow = serde_json::from_str(&stored).unwrap();
            for _ in 0..failures {
                row = row.polled(true);
            }
            row.next_ms(0) / 60_000
        };
        let of = |interval| [0, 1, 2, 3, 6, 7, 8, 4_000].map(|failures| minutes(interval, failures));
        assert_eq!(of("1m"), [1, 1, 2, 4, 32, 60, 60, 60]);
        assert_eq!(of("2h"), [120; 8], "never more often than its interval");
        let failed = SensorRow { failures: 9, ..serde_json::from_str(STORED).unwrap() };
        assert_eq!(failed.polled(false).failures, 0);
    }

    const STORED: &str =
        r#"{"dag":"daily","name":"files","function":"look","input":{"path":"/in"},"interval":"1m"}"#;

    #[test]
    fn the_record_of_a_sensor_has_a_form_that_does_not_change() {
        let row: SensorRow = serde_json::from_str(STORED).unwrap();
        assert_eq!(serde_json::to_string(&row).unwrap(), STORED);
        assert_eq!((&*row.sensor_id(), row.next_ms(5)), ("daily:files", 60_005));
    }
}
