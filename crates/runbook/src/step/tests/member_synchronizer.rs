//! `MemberSynchronizerTests`: members that their source adds, changes and no longer has.

use serde_json::json;

use super::random::entry;
use super::scenario::{batch, dispatches, done, functions, phase, run, run_until_sec, step};
use crate::message::{Action, EventMessage, MemberEntry};
use crate::model::{Model, Reply};
use crate::rows::MemberStatus;
use crate::step::{Effect, Event};

/// Two members; the first phase takes a minute, the second is an hour away.
fn two_phases() -> Model {
    let head = "on_member_removed: [{name: Undo, worker_id: pool, function: Undo, params: {Is: \"{{Colour | \
                default('none')}}\"}}]\n";
    let phases = [
        phase("first", "T-0", "", &[step("First", "")]),
        phase(
            "second",
            "T-0",
            "approval: true",
            &[step("Second", r#"params: {Is: "{{Colour | default('none')}}"}"#)],
        ),
    ];
    let mut model = batch(&format!("{head}phases:\n{}", phases.concat()), 2, |_| Reply::After(60, done()));
    model.settle();
    model
}

fn coloured(key: &str, colour: &str) -> MemberEntry {
    let mut entry = entry(key);
    entry.data.insert("Colour".to_owned(), json!(colour));
    entry
}

fn approve(model: &mut Model) {
    let phase_execution_id = model.phase("second").id;
    model.request(Action::ApprovePhase { phase_execution_id });
    run(model);
}

/// Keys of the members that `member-added` and `member-removed` were sent for.
fn announced(model: &Model) -> Vec<String> {
    let of = |effect: &Effect| match effect {
        Effect::Announce(Event::Bus(EventMessage::MemberAdded { member_key, .. })) => {
            Some(format!("+{member_key}"))
        }
        Effect::Announce(Event::Bus(EventMessage::MemberRemoved { member_key, .. })) => {
            Some(format!("-{member_key}"))
        }
        _ => None,
    };
    model.effects.iter().filter_map(of).collect()
}

#[test]
fn members_are_told_apart_whatever_their_case_and_announced_once() {
    let mut model = two_phases();
    run_until_sec(&mut model, 10);
    model.request(Action::PutMembers { members: vec![entry("A"), entry("b"), entry("c")] });
    model.request(Action::PutMembers { members: vec![entry("a"), entry("c")] });
    model.settle();
    assert_eq!(model.members().count(), 3);
    assert_eq!(announced(&model), ["+c"]);
    let added = model.member("c");
    assert!(added.add_dispatched_at.is_some() && added.remove_dispatched_at.is_none(), "{added:?}");
    model.request(Action::RemoveMembers { keys: vec!["C".to_owned()] });
    model.settle();
    model.request(Action::RemoveMembers { keys: vec!["c".to_owned()] });
    model.settle();
    assert_eq!(announced(&model), ["+c", "-c"]);
    let removed = model.member("c");
    assert_eq!(removed.status, MemberStatus::Removed);
    assert!(removed.removed_at.is_some() && removed.remove_dispatched_at.is_some(), "{removed:?}");
}

#[test]
fn changed_data_is_what_later_steps_and_removal_steps_see() {
    let mut model = two_phases();
    run_until_sec(&mut model, 10);
    model.request(Action::PutMembers { members: vec![coloured("A", "red"), coloured("b", "blue")] });
    run_until_sec(&mut model, 100);
    model.request(Action::RemoveMembers { keys: vec!["b".to_owned()] });
    approve(&mut model);
    let params: Vec<_> = dispatches(&model)
        .skip(2)
        .map(|job| (job.function_name.as_str(), job.params_json.as_str()))
        .collect();
    assert_eq!(params, [("Undo", r#"{"Is":"blue"}"#), ("Second", r#"{"Is":"red"}"#)]);
}

#[test]
fn a_member_that_comes_and_goes_takes_part_as_often_as_it_returns() {
    let mut model = two_phases();
    run(&mut model);
    for _ in 0..2 {
        model.request(Action::RemoveMembers { keys: vec!["a".to_owned()] });
        run(&mut model);
        model.request(Action::PutMembers { members: vec![entry("a")] });
        run(&mut model);
    }
    assert_eq!(functions(&model), ["First", "First", "Undo", "First", "Undo", "First"]);
    let removals: Vec<_> = model.jobs().into_iter().filter(|job| job.starts_with("removed")).collect();
    assert_eq!(removals, ["removed-1-0", "removed-1-0-run-2"]);
    approve(&mut model);
    assert_eq!(functions(&model)[6..], ["Second", "Second"]);
}
