//! What a runbook would do for given rows: batches, phases with their times, and every call with its
//! parameters. Nothing is sent and nothing is stored.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use segno_actions::template::TemplateError;
use serde_json::{Map, Value};

use crate::blackout::Blackouts;
use crate::definition::{Definition, Phase, StepDefinition};
use crate::members::{BatchStart, Row};
use crate::names::BATCH_ID;
use crate::problem::{Position, Problem, Problems};
use crate::template::{
    MemberVariables, ResolveError, ResolvedCall, StepTemplate, VariableSources, Variables,
};

/// A definition with its rows. Calls are resolved when they are asked for: there can be millions.
#[derive(Debug)]
pub struct Plan<'d> {
    definition: &'d Definition,
    init: Vec<StepTemplate>,
    phases: Vec<Vec<StepTemplate>>,
    /// The batches, by start.
    pub batches: Vec<PlannedBatch>,
    /// Rows that belong to no batch, and calls that cannot be resolved, each with the line of the row.
    pub problems: Problems,
}

/// A batch.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedBatch {
    /// Its start; `None` if it is advanced by hand.
    pub start: Option<Timestamp>,
    /// Its phases, in due order.
    pub phases: Vec<PlannedPhase>,
    /// Its members, in the order of the rows.
    pub members: Vec<Row>,
}

/// A phase of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPhase {
    /// Its name.
    pub name: String,
    /// When it is due; `None` if it is advanced by hand.
    pub due: Option<Timestamp>,
    /// When its first step can be dispatched: not in the past and in no blackout window. The end of
    /// init and earlier phases, and an approval, may delay it further.
    pub begins: Option<Timestamp>,
    /// Whether it is due before now.
    pub is_overdue: bool,
}

/// A call that would be made.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedCall<'d> {
    /// The step.
    pub step: &'d StepDefinition,
    /// The call. Outputs of earlier steps stand in it as placeholders.
    pub call: Result<ResolvedCall, ResolveError>,
}

/// Makes a plan. With a `start` all rows are one batch that starts then, as `segno batch create`
/// makes it; without one, the data source says which batch a row belongs to.
///
/// # Errors
/// `invalid-template`; not for a definition that was parsed.
pub fn plan<'d>(
    definition: &'d Definition,
    rows: Vec<Row>,
    now: Timestamp,
    start: Option<Timestamp>,
    blackouts: &Blackouts,
) -> Result<Plan<'d>, TemplateError> {
    let templates = |steps: &[StepDefinition]| steps.iter().map(StepTemplate::new).collect();
    let phases: Result<Vec<_>, _> = definition.phases.iter().map(|phase| templates(&phase.steps)).collect();
    let mut plan = Plan {
        definition,
        init: templates(&definition.init)?,
        phases: phases?,
        batches: Vec::new(),
        problems: Problems::default(),
    };
    let mut members: BTreeMap<BatchStart, Vec<Row>> = BTreeMap::new();
    for row in rows {
        let start = match start {
            Some(start) => Ok(BatchStart::At(start)),
            None => BatchStart::of_row(&row, &definition.data_source, now),
        };
        match start {
            Ok(start) => members.entry(start).or_default().push(row),
            Err(problem) => {
                let at = Position::of_line(row.line);
                let problem =
                    Problem::error(at, format!("member {}", row.key), format!("the batch time {problem}"));
                plan.problems.push(problem);
            }
        }
    }
    for (start, members) in members {
        let phases = definition.phases.iter().map(|phase| planned_phase(phase, start, now, blackouts));
        let phases = phases.collect();
        let start = match start {
            BatchStart::At(start) => Some(start),
            BatchStart::ByHand => None,
        };
        plan.batches.push(PlannedBatch { start, phases, members });
    }
    plan.find_problems();
    Ok(plan)
}

fn planned_phase(phase: &Phase, start: BatchStart, now: Timestamp, blackouts: &Blackouts) -> PlannedPhase {
    let due = match start {
        BatchStart::At(start) => Some(due_at(start, phase.offset_minutes)),
        BatchStart::ByHand => None,
    };
    PlannedPhase {
        name: phase.name.clone(),
        due,
        begins: due.map(|due| blackouts.next_allowed(due.max(now))),
        is_overdue: due.is_some_and(|due| due < now),
    }
}

/// When a phase is due: so many minutes before the start of the batch.
pub fn due_at(start: Timestamp, offset_minutes: u64) -> Timestamp {
    let minutes = i64::try_from(offset_minutes).unwrap_or(i64::MAX / 60);
    start.saturating_sub(SignedDuration::from_secs(minutes * 60)).unwrap_or(Timestamp::MIN)
}

impl<'d> Plan<'d> {
    /// The calls of `init` for a batch.
    pub fn init_calls(&self, batch: &PlannedBatch) -> Vec<PlannedCall<'d>> {
        let mut batch_data = Map::new();
        let mut calls = Vec::new();
        for (step, template) in self.definition.init.iter().zip(&self.init) {
            let variables = Variables::new(&VariableSources {
                batch_id: &placeholder(BATCH_ID),
                batch_start_time: batch.start,
                batch_data: &batch_data,
                member: None,
            });
            calls.push(PlannedCall { step, call: template.preview(&variables) });
            batch_data.extend(outputs_of(step));
        }
        calls
    }

    /// The calls of all phases for a member, phase by phase.
    pub fn member_calls(&self, batch: &PlannedBatch, member: &Row) -> Vec<Vec<PlannedCall<'d>>> {
        let batch_data: Map<String, Value> = self.definition.init.iter().flat_map(outputs_of).collect();
        let mut worker_data = Map::new();
        let mut phases = Vec::new();
        for (phase, templates) in self.definition.phases.iter().zip(&self.phases) {
            let mut calls = Vec::new();
            for (step, template) in phase.steps.iter().zip(templates) {
                let variables = Variables::new(&VariableSources {
                    batch_id: &placeholder(BATCH_ID),
                    batch_start_time: batch.start,
                    batch_data: &batch_data,
                    member: Some(MemberVariables {
                        key: &member.key,
                        data: &member.columns,
                        worker_data: &worker_data,
                    }),
                });
                calls.push(PlannedCall { step, call: template.preview(&variables) });
                worker_data.extend(outputs_of(step));
            }
            phases.push(calls);
        }
        phases
    }

    fn find_problems(&mut self) {
        let mut problems = std::mem::take(&mut self.problems);
        for batch in &self.batches {
            for call in self.init_calls(batch) {
                if let Err(error) = call.call {
                    let path = format!("init, step {}", call.step.name);
                    problems.push(Problem::error(Position::of_line(1), path, error.to_string()));
                }
            }
            for member in &batch.members {
                let phases = self.member_calls(batch, member);
                for (phase, calls) in self.definition.phases.iter().zip(phases) {
                    for call in calls {
                        if let Err(error) = call.call {
                            let path = format!(
                                "member {}, phase {}, step {}",
                                member.key, phase.name, call.step.name
                            );
                            problems.push(Problem::error(
                                Position::of_line(member.line),
                                path,
                                error.to_string(),
                            ));
                        }
                    }
                }
            }
        }
        problems.sort();
        self.problems = problems;
    }
}

/// Variables that a step will set, with placeholders as their values.
fn outputs_of(step: &StepDefinition) -> impl Iterator<Item = (String, Value)> {
    step.output_params.keys().map(|name| (name.clone(), Value::String(placeholder(name))))
}

/// What stands for a value that is not known yet.
fn placeholder(name: &str) -> String {
    format!("{{{{{name}}}}}")
}
