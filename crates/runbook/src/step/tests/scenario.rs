//! Small batches with a runbook as YAML and workers that answer by the name of the function.

use jiff::Timestamp;
use segno_actions::schedule::Zones;
use serde_json::json;

use super::random::{create, entry, start};
use crate::definition::Definition;
use crate::message::{EventMessage, MemberEntry, Message, Outcome};
use crate::model::{Model, Reply};
use crate::rows::{PhaseId, Row, RowKey, earlier, later};
use crate::step::{Dispatch, Effect, IgnoredReason, Input, Verdict};

/// Moments after which a small batch that has not come to rest hangs.
const MAX_MOMENTS: usize = 1_000;

/// A runbook without its head.
pub(super) fn runbook(body: &str) -> Definition {
    let text = format!("name: random\ndata_source: {{type: manual, primary_key: Key}}\n{body}");
    let parsed = crate::yaml::parse(text.as_bytes(), &Zones::bundled());
    parsed.unwrap_or_else(|problems| panic!("{problems:?} in {text}")).definition
}

/// A step of YAML with a name, which calls the function of that name, and more keys.
pub(super) fn step(name: &str, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { ", " };
    format!("{{name: {name}, worker_id: pool, function: {name}{comma}{more}}}")
}

/// A phase of YAML.
pub(super) fn phase(name: &str, offset: &str, more: &str, steps: &[String]) -> String {
    let comma = if more.is_empty() { "" } else { ", " };
    format!("  - {{name: {name}, offset: {offset}{comma}{more}, steps: [{}]}}\n", steps.join(", "))
}

pub(super) fn done() -> Outcome {
    Outcome::Completed { result: json!({"Id": "x"}) }
}

/// Answers every call after a second.
pub(super) fn all_succeed(_: &Dispatch) -> Reply {
    Reply::After(1, done())
}

/// A model with a runbook at the start of the batch.
pub(super) fn model(body: &str, workers: impl FnMut(&Dispatch) -> Reply + 'static) -> Model {
    let mut model = Model::new(start(), Box::new(workers));
    model.define(1, runbook(body));
    model
}

/// Members with the keys `a`, `b`, …
pub(super) fn members(count: u8) -> Vec<MemberEntry> {
    (0..count).map(|index| entry(&char::from(b'a' + index).to_string())).collect()
}

/// A batch with members that starts now.
pub(super) fn batch(body: &str, count: u8, workers: impl FnMut(&Dispatch) -> Reply + 'static) -> Model {
    let mut model = model(body, workers);
    create(&mut model, Some(start()), &members(count));
    model
}

/// Runs until nothing happens any more.
pub(super) fn run(model: &mut Model) {
    assert!(model.run(MAX_MOMENTS), "the batch does not come to rest: {:#?}", model.batch());
}

/// Runs until so many seconds after the start of the batch.
pub(super) fn run_until_sec(model: &mut Model, sec: u64) {
    model.run_until(at_sec(sec));
}

/// A time in seconds after the start of the batch.
pub(super) fn at_sec(sec: u64) -> Timestamp {
    later(start(), sec)
}

/// A time in seconds before the start of the batch.
pub(super) fn before_sec(sec: u64) -> Timestamp {
    earlier(start(), sec)
}

/// The functions of all jobs that were sent, in order.
pub(super) fn functions(model: &Model) -> Vec<&str> {
    dispatches(model).map(|dispatch| dispatch.function_name.as_str()).collect()
}

/// All jobs that were sent, in order.
pub(super) fn dispatches(model: &Model) -> impl Iterator<Item = &Dispatch> {
    model.effects.iter().filter_map(|effect| match effect {
        Effect::Dispatch(dispatch) => Some(dispatch),
        _ => None,
    })
}

/// Applies a message of the bus, and returns what became of it.
pub(super) fn verdict(model: &mut Model, message: Message) -> Verdict {
    let verdict = model.apply(&Input::Message(message)).verdict;
    model.settle();
    verdict
}

/// Checks that a message is ignored with a reason, and changes no row.
pub(super) fn is_ignored(model: &mut Model, message: Message, reason: IgnoredReason) {
    let rows = |model: &Model| -> Vec<(RowKey, Row)> {
        model.rows().map(|(key, row)| (key.clone(), row.clone())).collect()
    };
    let (before, shown) = (rows(model), format!("{message:?}"));
    assert_eq!(verdict(model, message), Verdict::Ignored(reason), "{shown}");
    assert_eq!(rows(model), before, "{shown} changed rows");
}

/// `phase-due` of a scheduler.
pub(super) fn phase_due(model: &Model, id: PhaseId) -> Message {
    let batch = model.batch();
    Message::Event(EventMessage::PhaseDue {
        runbook_name: batch.runbook_name.clone(),
        runbook_version: batch.runbook_version,
        batch_id: batch.id,
        phase_execution_id: id,
        phase_name: "cutover".to_owned(),
        offset_minutes: 0,
        due_at: batch.batch_start_time,
        member_ids: Vec::new(),
    })
}
