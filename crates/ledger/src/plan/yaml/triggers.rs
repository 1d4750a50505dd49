//! Triggers of runs, and notifications about them: `schedule`, `sensors` and `notify`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use segno_actions::document::{Field, Fields, PartReader, Tree, shown};
use segno_actions::functions::HumanDuration;
use segno_actions::schedule::{Daylight, Gap, Overlap, ScheduleSpec};
use serde_json::{Map, Value};

use super::keys::{DAYLIGHT, NOTIFY, SCHEDULE, SENSOR};
use super::reader::Reader;
use crate::plan::definition::{Dag, DagSchedule, Notify, NotifyEvent, Sensor};
use crate::plan::limits::{
    DEFAULT_SENSOR_INTERVAL_SEC, MAX_EXCLUDED_DAYS, MAX_INPUT_BYTES, MAX_NAME_BYTES, MAX_SENSORS,
    MIN_SENSOR_INTERVAL_SEC,
};
use crate::plan::names::NameKind;

const GAPS: [(&str, Gap); 2] = [("shift", Gap::Shift), ("skip", Gap::Skip)];
const OVERLAPS: [(&str, Overlap); 3] =
    [("first", Overlap::First), ("last", Overlap::Last), ("both", Overlap::Both)];

/// What `on` can have.
const EVENTS: [(&str, NotifyEvent); 3] = [
    ("run_failed", NotifyEvent::RunFailed),
    ("task_failed", NotifyEvent::TaskFailed),
    ("asset_stale", NotifyEvent::AssetStale),
];

impl Reader<'_> {
    /// Reads `schedule`.
    pub fn schedule(&mut self, field: Field<'_>, dag: &Dag) -> Option<DagSchedule> {
        let fields = self.fields(field, &SCHEDULE)?;
        let errors = self.problems.errors();
        let mut spec = ScheduleSpec {
            cron_expr: fields.get("cron_expr").and_then(|field| self.text(&field, MAX_NAME_BYTES)),
            every: fields.get("every").and_then(|field| self.duration(&field, 1)),
            at: self.time(&fields, "at"),
            anchor: self.time(&fields, "anchor"),
            starts_at: self.time(&fields, "starts_at"),
            ends_at: self.time(&fields, "ends_at"),
            ..ScheduleSpec::default()
        };
        if let Some(field) = fields.get("timezone") {
            spec.timezone = self.text(&field, MAX_NAME_BYTES).unwrap_or_default();
        }
        if let Some(field) = fields.get("daylight") {
            spec.daylight = self.daylight(field).unwrap_or_default();
        }
        if let Some(field) = fields.get("exclude") {
            spec.exclude = self.texts(&field, MAX_EXCLUDED_DAYS).unwrap_or_default();
        }
        if self.problems.errors() == errors
            && let Err(error) = spec.compile(self.zones)
        {
            let field = fields.get(error.field()).unwrap_or_else(|| fields.whole().clone());
            self.push(field.error(error.problem()));
        }
        let params = match fields.get("params") {
            Some(field) => self.param_values(&field, &dag.params)?,
            None => Map::new(),
        };
        self.check_unattended(&fields, &params, dag);
        Some(DagSchedule { spec, params })
    }

    /// A scheduled run takes its parameters from the schedule and the defaults, and its partition from its time.
    fn check_unattended(&mut self, fields: &Fields<'_>, params: &Map<String, Value>, dag: &Dag) {
        let missing = dag.params.iter().filter(|(_, param)| param.default.is_none());
        for (name, _) in missing.filter(|(name, _)| !params.contains_key(*name)) {
            let problem =
                fields.whole().error(format!("scheduled runs have no value of the parameter {name:?}"));
            self.push(
                problem.advice(format!("set it under schedule.params, or give params.{name} a default")),
            );
        }
        let run_partitions = dag.partitioned_by.as_ref().and_then(|name| self.partitions.get(name));
        if run_partitions.is_some_and(|set| !set.has_windows_only()) {
            let problem = "scheduled runs are for the last window of time that has ended, and these partitions are not windows";
            let advice = "partition by windows of time, or start runs by a sensor";
            self.push(fields.whole().error(problem).advice(advice));
        }
    }

    fn time(&mut self, fields: &Fields<'_>, key: &str) -> Option<Timestamp> {
        let field = fields.get(key)?;
        let text = self.text(&field, MAX_NAME_BYTES)?;
        let time = text.parse().ok();
        if time.is_none() {
            let problem = field.error(format!("{:?} is not a time", shown(&text)));
            self.push(problem.advice("write it as 2026-03-29T01:00:00Z"));
        }
        time
    }

    fn daylight(&mut self, field: Field<'_>) -> Option<Daylight> {
        let fields = self.fields(field, &DAYLIGHT)?;
        let gap = fields.get("gap").map_or(Some(Gap::default()), |field| self.choice(&field, &GAPS));
        let overlap =
            fields.get("overlap").map_or(Some(Overlap::default()), |field| self.choice(&field, &OVERLAPS));
        Some(Daylight { gap: gap?, overlap: overlap? })
    }

    /// Reads `sensors`.
    pub fn sensors(&mut self, field: &Field<'_>) -> Vec<Sensor> {
        let mut seen = BTreeSet::new();
        let items = self.list(field, MAX_SENSORS);
        items.into_iter().filter_map(|item| self.sensor(item, &mut seen)).collect()
    }

    fn sensor(&mut self, field: Field<'_>, seen: &mut BTreeSet<String>) -> Option<Sensor> {
        let fields = self.fields(field, &SENSOR)?;
        let name = self.required(&fields, "name", "new-files").and_then(|field| {
            let name = self.name(&field, NameKind::Sensor)?;
            self.unique(seen, &name, &field);
            Some(name)
        });
        let function =
            self.required(&fields, "function", "list-new-files").and_then(|field| self.function(&field));
        let input = match fields.get("input") {
            Some(field) => self.json(&field, MAX_INPUT_BYTES),
            None => Some(Value::Null),
        };
        let interval = match fields.get("interval") {
            Some(field) => self.duration(&field, MIN_SENSOR_INTERVAL_SEC),
            None => Some(HumanDuration::from_secs(DEFAULT_SENSOR_INTERVAL_SEC)),
        };
        Some(Sensor { name: name?, function: function?, input: input?, interval: interval? })
    }

    /// Reads `notify`.
    pub fn notify(&mut self, field: Field<'_>) -> Option<Notify> {
        let fields = self.fields(field, &NOTIFY)?;
        let function =
            self.required(&fields, "function", "tell-operators").and_then(|field| self.function(&field));
        let on = match fields.get("on") {
            Some(field) => self.events(&field),
            None => EVENTS.iter().map(|(_, event)| *event).collect(),
        };
        Some(Notify { function: function?, on })
    }

    fn events(&mut self, field: &Field<'_>) -> Vec<NotifyEvent> {
        let items = self.list(field, EVENTS.len());
        if matches!(&field.node.tree, Tree::List(items) if items.is_empty()) {
            let problem = field.error("there is no event, so nothing would be sent");
            self.push(problem.advice("name at least one, or leave out on for all of them"));
        }
        items.into_iter().filter_map(|item| self.choice(&item, &EVENTS)).collect()
    }
}
