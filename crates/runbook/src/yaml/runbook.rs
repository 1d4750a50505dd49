//! The document as a whole.

use std::collections::BTreeMap;

use segno_actions::document::{Field, Fields, Origin, PartReader, Tree, shown};

use super::keys::RUNBOOK;
use super::reader::Reader;
use super::step::StepList;
use crate::definition::{Definition, Members, OnPhaseFailure, Retry, StepDefinition};
use crate::limits::MAX_ROLLBACKS;
use crate::names::NameKind;

/// What `members` can be.
const MEMBERS: [(&str, Members); 2] = [("barrier", Members::Barrier), ("independent", Members::Independent)];

/// What `on_phase_failure` can be.
const ON_PHASE_FAILURE: [(&str, OnPhaseFailure); 3] = [
    ("continue", OnPhaseFailure::Continue),
    ("pause", OnPhaseFailure::Pause),
    ("stop", OnPhaseFailure::Stop),
];

impl Reader<'_> {
    /// Reads the document. A definition is only usable if no error was reported.
    pub fn runbook(&mut self, field: Field<'_>) -> Option<Definition> {
        if field.node.tree == Tree::Null {
            let problem = field.error("the document is empty");
            self.push(problem.advice("begin with name, data_source and phases"));
            return None;
        }
        let fields = self.fields(field, &RUNBOOK)?;
        let name = self
            .required(&fields, "name", "wave-mailbox-move")
            .and_then(|field| self.name(&field, NameKind::Runbook));
        let description = fields.get("description").and_then(|field| self.free_text(&field));
        // Steps take their retries and rollbacks from these two.
        if let Some(field) = fields.get("retry") {
            self.retry = self.retry_policy(field).unwrap_or_default();
        }
        let rollback_fields = self.rollback_names(&fields);
        let data_source =
            self.required(&fields, "data_source", "{type: sql, …}").and_then(|field| self.data_source(field));
        self.data_source.clone_from(&data_source);
        let members = fields.get("members").map_or(Some(Members::default()), |f| self.choice(&f, &MEMBERS));
        let on_phase_failure = fields
            .get("on_phase_failure")
            .map_or(Some(OnPhaseFailure::default()), |f| self.choice(&f, &ON_PHASE_FAILURE));
        let blackout = fields.get("blackout").map(|field| self.blackouts(&field)).unwrap_or_default();
        let notify = fields.get("notify").and_then(|field| self.notify(field));
        let init = self.optional_steps(&fields, "init", StepList::Init);
        let phases =
            self.required(&fields, "phases", "[{name: prepare, …}]").map(|field| self.phases(&field));
        let on_member_removed = self.optional_steps(&fields, "on_member_removed", StepList::Removal);
        let rollbacks = self.rollback_steps(rollback_fields);
        Some(Definition {
            name: name?,
            description,
            data_source: data_source?,
            init,
            phases: phases?,
            on_member_removed,
            rollbacks,
            members: members?,
            on_phase_failure: on_phase_failure?,
            blackout,
            notify,
        })
    }

    fn optional_steps(&mut self, fields: &Fields<'_>, key: &str, list: StepList) -> Vec<StepDefinition> {
        fields.get(key).map(|field| self.steps(&field, list)).unwrap_or_default()
    }

    /// Notes the names of rollbacks, so that `on_failure` can be checked.
    fn rollback_names<'n>(&mut self, fields: &Fields<'n>) -> Vec<(String, Field<'n>)> {
        let Some(field) = fields.get("rollbacks") else { return Vec::new() };
        let Some(entries) = self.map(&field) else { return Vec::new() };
        if entries.len() > MAX_ROLLBACKS {
            let problem = format!("there are {} rollbacks, the limit is {MAX_ROLLBACKS}", entries.len());
            self.push(field.error(problem));
        }
        let mut named = Vec::new();
        for entry in entries.iter().take(MAX_ROLLBACKS) {
            let value = field.value(entry);
            if let Err(problem) = NameKind::Rollback.check(&entry.key) {
                self.push(value.error(problem));
            }
            self.rollbacks.push(entry.key.clone());
            named.push((entry.key.clone(), value));
        }
        named
    }

    fn rollback_steps(&mut self, named: Vec<(String, Field<'_>)>) -> BTreeMap<String, Vec<StepDefinition>> {
        let mut rollbacks = BTreeMap::new();
        for (name, field) in named {
            if !self.used_rollbacks.contains(&name) {
                let problem = field.warning(format!("no step uses the rollback {:?}", shown(&name)));
                self.push(problem.advice(format!("add on_failure: {} to a step", shown(&name))));
            }
            let steps = match field.node.tree {
                Tree::Null => {
                    self.push(field.error("there is no step").advice("add at least one"));
                    Vec::new()
                }
                _ => self.steps(&field, StepList::Rollback),
            };
            rollbacks.insert(name, steps);
        }
        rollbacks
    }

    /// A reader that has read nothing.
    pub fn new(zones: &segno_actions::schedule::Zones, origin: Origin) -> Reader<'_> {
        Reader {
            problems: Default::default(),
            places: Default::default(),
            zones,
            origin,
            retry: Retry::default(),
            data_source: None,
            rollbacks: Vec::new(),
            used_rollbacks: Vec::new(),
        }
    }
}
