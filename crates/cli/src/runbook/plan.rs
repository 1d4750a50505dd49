//! `segno runbook plan`: who would get what and when, without a server.

use jiff::Timestamp;
use segno_runbook::blackout::Blackouts;
use segno_runbook::definition::{Definition, MemberLimit, Phase};
use segno_runbook::members::{INVALID_MEMBERS, Row};
use segno_runbook::plan::{Plan, PlannedBatch, PlannedCall, plan};
use segno_server::schedule::Zones;
use serde::Serialize;
use serde_json::Value;

use super::arguments::Plan as Arguments;
use super::input::Input;
use crate::documents::{FileProblem, Found};
use crate::exit::Failure;
use crate::output::{Colours, Output, Rows, counted};

/// A plan, for programs.
#[derive(Debug, Serialize)]
struct Report<'p> {
    /// Absent if nothing can be planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    runbook: Option<&'p str>,
    now: Timestamp,
    batches: Vec<Batch<'p>>,
    problems: Vec<FileProblem<'p>>,
}

/// A batch of a plan.
#[derive(Debug, Serialize)]
struct Batch<'p> {
    start: Option<Timestamp>,
    /// All members of the batch, also those whose calls are not shown.
    members: usize,
    init: Vec<Call<'p>>,
    phases: Vec<PhaseTimes<'p>>,
    calls: Vec<MemberCalls<'p>>,
}

/// When a phase of a batch is due.
#[derive(Debug, Serialize)]
struct PhaseTimes<'p> {
    name: &'p str,
    due: Option<Timestamp>,
    begins: Option<Timestamp>,
    overdue: bool,
}

/// The calls for a member.
#[derive(Debug, Serialize)]
struct MemberCalls<'p> {
    member: &'p str,
    line: u64,
    calls: Vec<Call<'p>>,
}

/// One call.
#[derive(Debug, Serialize)]
struct Call<'p> {
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'p str>,
    step: &'p str,
    worker_id: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Shows a plan of the members that can be used, and all problems.
pub fn run(arguments: &Arguments, output: &Output) -> Result<(), Failure> {
    let now = output.moment(arguments.now)?;
    let start = output.optional_moment(arguments.start)?;
    let zones = Zones::newest();
    let (file, data) = (arguments.file.as_path(), arguments.data.as_path());
    let Input { runbook, members, mut found } = Input::read(file, Some(data), &zones)?;
    let mut rows = None;
    if let Some(members) = members {
        found.add(data, INVALID_MEMBERS, members.problems);
        rows = members.is_usable.then_some(members.rows.rows);
    }
    let Some((parsed, rows)) = runbook.as_ref().zip(rows) else {
        return without_plan(now, &found, output);
    };
    let definition = &parsed.definition;
    let unusable = |error: &dyn std::fmt::Display| Failure::Refused(error.to_string());
    let blackouts = Blackouts::compile(&definition.blackout, &zones).map_err(|error| unusable(&error))?;
    let mut plan = plan(definition, rows, now, start, &blackouts).map_err(|error| unusable(&error))?;
    found.add(data, INVALID_MEMBERS, std::mem::take(&mut plan.problems));
    let shown = Shown { definition, plan: &plan, arguments, output };
    output.text(&shown.report(now, &found), &shown.text()?)?;
    found.lines().lines().for_each(|line| output.hint(line));
    found.check()
}

/// Nothing can be planned: shows the problems, of which at least one is an error.
fn without_plan(now: Timestamp, found: &Found<'_>, output: &Output) -> Result<(), Failure> {
    if output.format.is_for_programs() {
        let report = Report { runbook: None, now, batches: Vec::new(), problems: found.to_report() };
        output.text(&report, "")?;
    }
    found.lines().lines().for_each(|line| output.hint(line));
    found.check()
}

/// A plan and what of it is shown.
struct Shown<'p> {
    definition: &'p Definition,
    plan: &'p Plan<'p>,
    arguments: &'p Arguments,
    output: &'p Output,
}

impl<'p> Shown<'p> {
    /// The members whose calls are shown.
    fn members(&self, batch: &'p PlannedBatch) -> impl Iterator<Item = &'p Row> {
        let wanted = self.arguments.member.as_ref().map(|key| key.to_lowercase());
        let is_wanted =
            move |row: &&Row| wanted.as_ref().is_none_or(|wanted| row.key.to_lowercase() == *wanted);
        batch.members.iter().filter(is_wanted).take(self.arguments.limit)
    }

    fn calls(&self, batch: &PlannedBatch, member: &Row) -> Vec<Call<'p>> {
        let phases = self.definition.phases.iter().zip(self.plan.member_calls(batch, member));
        phases
            .flat_map(|(phase, calls)| calls.into_iter().map(|call| shown_call(Some(&phase.name), call)))
            .collect()
    }

    fn init(&self, batch: &PlannedBatch) -> Vec<Call<'p>> {
        self.plan.init_calls(batch).into_iter().map(|call| shown_call(None, call)).collect()
    }

    fn report(&self, now: Timestamp, found: &'p Found<'_>) -> Report<'p> {
        let batches = self.plan.batches.iter().map(|batch| Batch {
            start: batch.start,
            members: batch.members.len(),
            init: self.init(batch),
            phases: batch
                .phases
                .iter()
                .map(|phase| PhaseTimes {
                    name: &phase.name,
                    due: phase.due,
                    begins: phase.begins,
                    overdue: phase.is_overdue,
                })
                .collect(),
            calls: self
                .members(batch)
                .map(|member| MemberCalls {
                    member: &member.key,
                    line: member.line,
                    calls: self.calls(batch, member),
                })
                .collect(),
        });
        Report {
            runbook: Some(&self.definition.name),
            now,
            batches: batches.collect(),
            problems: found.to_report(),
        }
    }

    fn text(&self) -> Result<String, Failure> {
        let members: usize = self.plan.batches.iter().map(|batch| batch.members.len()).sum();
        let batches = match self.plan.batches.len() {
            1 => "1 batch".to_owned(),
            many => format!("{many} batches"),
        };
        let mut text =
            format!("Runbook {:?}: {batches}, {}\n", self.definition.name, counted(members as u64, "member"));
        let mut found_member = self.arguments.member.is_none();
        for batch in &self.plan.batches {
            let members: Vec<&Row> = self.members(batch).collect();
            if self.arguments.member.is_some() && members.is_empty() {
                continue;
            }
            found_member = true;
            let size = counted(batch.members.len() as u64, "member");
            let by_hand = || "advanced by hand".to_owned();
            let start =
                batch.start.map_or_else(by_hand, |start| format!("start {}", self.output.time(start)));
            text.push_str(&format!("\nBatch of {size}, {start}\n\n"));
            text.push_str(&self.phases(batch));
            for (title, calls) in std::iter::once(("init".to_owned(), self.init(batch)))
                .chain(members.iter().map(|member| (member_title(member), self.calls(batch, member))))
                .filter(|(_, calls)| !calls.is_empty())
            {
                text.push_str(&format!("\n{title}\n{}", indented(&call_rows(&calls))));
            }
            let more = batch.members.len() - members.len();
            if more > 0 && self.arguments.member.is_none() {
                text.push_str(&format!(
                    "\nand {}; pass --limit or --member to see them\n",
                    counted(more as u64, "more member")
                ));
            }
        }
        match found_member {
            true => Ok(text),
            false => {
                let key = self.arguments.member.as_deref().unwrap_or_default();
                let data = self.arguments.data.display();
                Err(Failure::Refused(format!("{data} has no member {key:?}; check --member")))
            }
        }
    }

    fn phases(&self, batch: &PlannedBatch) -> String {
        let mut rows = Rows::new(["phase", "due", "begins", "note"]);
        for (phase, planned) in self.definition.phases.iter().zip(&batch.phases) {
            let by_hand = || "advanced by hand".to_owned();
            rows.add([
                planned.name.clone(),
                planned.due.map_or_else(by_hand, |at| self.output.time(at)),
                self.output.time_or_none(planned.begins),
                note(phase, planned.is_overdue),
            ]);
        }
        rows.to_text(self.output.colours)
    }
}

fn shown_call<'p>(phase: Option<&'p str>, call: PlannedCall<'p>) -> Call<'p> {
    let (function, params, error) = match call.call {
        Ok(resolved) => (Some(resolved.function), Some(resolved.params), None),
        Err(error) => (None, None, Some(error.to_string())),
    };
    Call { phase, step: &call.step.name, worker_id: &call.step.worker_id, function, params, error }
}

fn member_title(member: &Row) -> String {
    format!("{} (line {})", member.key, member.line)
}

fn call_rows(calls: &[Call<'_>]) -> String {
    let mut rows = Rows::new(["phase", "step", "pool", "function", "params"]);
    for call in calls {
        rows.add([
            call.phase.unwrap_or("init").to_owned(),
            call.step.to_owned(),
            call.worker_id.to_owned(),
            call.function.clone().unwrap_or_default(),
            match (&call.params, &call.error) {
                (Some(params), _) => params.to_string(),
                (None, error) => format!("error: {}", error.as_deref().unwrap_or_default()),
            },
        ]);
    }
    rows.to_text(Colours::Plain)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// What else decides when the members of a phase are worked on.
fn note(phase: &Phase, is_overdue: bool) -> String {
    let mut notes = Vec::new();
    if is_overdue {
        notes.push("overdue".to_owned());
    }
    if phase.approval.is_some() {
        notes.push("after approval".to_owned());
    }
    if !phase.waves.is_empty() {
        let percents: Vec<String> = phase.waves.iter().map(|wave| format!("{}%", wave.percent)).collect();
        notes.push(format!("waves {}", percents.join(", ")));
    }
    match phase.max_parallel {
        Some(MemberLimit::Members(members)) => notes.push(format!("{members} at once")),
        Some(MemberLimit::Percent(percent)) => notes.push(format!("{percent}% at once")),
        None => {}
    }
    notes.join("; ")
}
