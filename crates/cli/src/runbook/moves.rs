//! What a version does to open batches, for people: a line, a table of phases, and warnings.

use segno_api::runbook::{OverdueBehavior, VersionMoves};

use crate::output::{Output, Rows, Table, count};

/// Adds what becomes of open batches to the facts of a version.
pub fn lines(table: Table, moves: &VersionMoves) -> Table {
    let mut table = table;
    if moves.batches > 0 {
        let text = format!("{} with {}", counted(moves.batches, "batch"), counted(moves.members, "member"));
        table = table.line("moves", text);
    }
    if moves.staying > 0 {
        table = table.line("stays", format!("{}, advanced by hand", counted(moves.staying, "batch")));
    }
    if moves.init_again > 0 {
        table = table.line("init again", counted(moves.init_again, "batch"));
    }
    if moves.not_counted > 0 {
        table = table.line("not counted", counted(moves.not_counted, "further batch"));
    }
    table
}

/// The phases that run again, are skipped or have to be approved again.
pub fn rows(moves: &VersionMoves) -> Rows {
    let mut rows =
        Rows::new(["phase", "runs again in", "members", "in progress", "skipped in", "approve again in"]);
    for phase in &moves.phases {
        let batches = |number| if number == 0 { String::new() } else { counted(number, "batch") };
        rows.add([
            phase.phase_name.clone(),
            batches(phase.runs_again),
            if phase.members == 0 { String::new() } else { count(phase.members) },
            batches(phase.in_progress),
            batches(phase.skipped),
            batches(phase.approval_again),
        ]);
    }
    rows
}

/// Whether a version is published, or would be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tense {
    Done,
    Planned,
}

/// Warns of phases that were run and run again, and of approvals that no longer count.
pub fn warn(moves: &VersionMoves, overdue: OverdueBehavior, tense: Tense, output: &Output) {
    let would = if tense == Tense::Planned { "would " } else { "" };
    let again: Vec<String> = moves
        .phases
        .iter()
        .filter(|phase| phase.runs_again > 0)
        .map(|phase| {
            let batches = counted(phase.runs_again, "batch");
            format!("{:?} in {batches} with {}", phase.phase_name, counted(phase.members, "member"))
        })
        .collect();
    if !again.is_empty() {
        let advice = match (overdue, tense) {
            (OverdueBehavior::Rerun, Tense::Planned) => "; pass --ignore-overdue to skip those that are due",
            _ => "",
        };
        output.warn(&format!(
            "phases that were begun {would}run again: {}; steps in progress end first{advice}",
            again.join(", ")
        ));
    }
    for phase in moves.phases.iter().filter(|phase| phase.approval_again > 0) {
        let batches = counted(phase.approval_again, "batch");
        output.warn(&format!(
            "phase {:?} was approved in {batches} and {would}{} approved again",
            phase.phase_name,
            if tense == Tense::Planned { "have to be" } else { "has to be" },
        ));
    }
}

fn counted(number: u64, noun: &str) -> String {
    let plural = match noun {
        noun if noun.ends_with("batch") => "es",
        _ => "s",
    };
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { plural })
}
