//! The report of a batch as CSV (RFC 4180): one line for each member and step. Cells of text that a
//! spreadsheet would take for a formula are prefixed with an apostrophe.

use jiff::Timestamp;

use crate::rows::{MemberRow, PhaseRow, SequenceState, StepRow, Work};

/// The first line.
pub const REPORT_HEADER: &str = "member_key,member_id,member_status,phase,step,step_id,status,attempts,polls,\
                                 started_at,ended_at,error,rollback,rollback_error,phase_status,phase_reason,\
                                 approved_at,approved_by,removal,removal_error\r\n";

/// Cells of a phase's approval and end: those of a line without a phase are empty.
const NO_PHASE: &str = ",,,,";

/// What begins a formula in spreadsheets, also after white space that they drop.
const FORMULA_STARTS: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// The line of a member that has no step.
pub fn member_line(text: &mut String, member: &MemberRow) {
    member_cells(text, member);
    text.push_str(",,,,,,,,,,,");
    text.push_str(NO_PHASE);
    removal_cells(text, member);
}

/// The line of a step of a member.
pub fn step_line(text: &mut String, member: &MemberRow, phase: &PhaseRow, step: &StepRow) {
    let work = &step.work;
    member_cells(text, member);
    add(text, &guarded(&phase.phase_name));
    add(text, &guarded(&work.step_name));
    add(text, &step.id.to_string());
    add(text, work.status.name());
    add(text, &attempts(work).to_string());
    add(text, &work.poll_count.to_string());
    add(text, &shown(work.dispatched_at));
    add(text, &shown(work.completed_at));
    add(text, &guarded(work.error_message.as_deref().unwrap_or_default()));
    add(text, sequence(step.rollback_state));
    add(text, &guarded(step.rollback_error.as_deref().unwrap_or_default()));
    add(text, phase.status.name());
    add(text, phase.reason.map_or("", |reason| reason.name()));
    add(text, &shown(phase.approved_at));
    add(text, &guarded(phase.approved_by.as_deref().unwrap_or_default()));
    removal_cells(text, member);
}

/// Attempts that were made. A job is the current one; without it, the next attempt is yet to be made.
fn attempts(work: &Work) -> u32 {
    if work.job_id.is_some() { work.retry_count.saturating_add(1) } else { work.retry_count }
}

fn sequence(state: Option<SequenceState>) -> &'static str {
    state.map_or("", SequenceState::name)
}

fn add(text: &mut String, cell: &str) {
    text.push(',');
    text.push_str(cell);
}

/// The last cells of each line of a member.
fn removal_cells(text: &mut String, member: &MemberRow) {
    add(text, sequence(member.removal_state));
    add(text, &guarded(member.removal_error.as_deref().unwrap_or_default()));
    text.push_str("\r\n");
}

/// The line of a step, or of a member, that is stored and cannot be read.
pub fn unreadable_line(text: &mut String, member: Option<&MemberRow>, id: &str, reason: &str) {
    match member {
        Some(member) => {
            member_cells(text, member);
            text.push_str(&format!(",,,{},unreadable", guarded(id)));
        }
        None => text.push_str(&format!(",{},unreadable,,,,", guarded(id))),
    }
    text.push_str(&format!(",,,,,{},,{NO_PHASE}", guarded(reason)));
    match member {
        Some(member) => removal_cells(text, member),
        None => text.push_str(",,\r\n"),
    }
}

/// The last line of a report that ends before all members are reported.
pub fn incomplete_line(reason: &str) -> String {
    format!(",,incomplete,,,,,,,,,{},,{NO_PHASE},,\r\n", guarded(reason))
}

fn member_cells(text: &mut String, member: &MemberRow) {
    text.push_str(&guarded(&member.member_key));
    text.push_str(&format!(",{},{}", member.id, member.status.name()));
}

fn shown(time: Option<Timestamp>) -> String {
    time.map(|time| time.to_string()).unwrap_or_default()
}

/// A cell of text: quoted if it has to be, and never a formula.
fn guarded(text: &str) -> String {
    let is_formula = text.trim_start_matches(' ').starts_with(FORMULA_STARTS);
    let cell = if is_formula { format!("'{text}") } else { text.to_owned() };
    // A terminal would obey them.
    let is_raw = |sign: char| sign.is_control() && !matches!(sign, '\n' | '\r' | '\t');
    let cell = match cell.contains(is_raw) {
        true => cell.chars().fold(String::new(), |mut shown, sign| {
            if is_raw(sign) {
                shown.extend(sign.escape_default())
            } else {
                shown.push(sign)
            }
            shown
        }),
        false => cell,
    };
    let needs_quotes = cell.contains([',', '"', '\n', '\r']) || cell.starts_with(' ') || cell.ends_with(' ');
    if needs_quotes { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        for (text, cell) in [
            ("ada", "ada"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            (" padded", "\" padded\""),
            ("=1+1", "'=1+1"),
            ("+49 30", "'+49 30"),
            ("-5", "'-5"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("  =1", "'  =1"),
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("a=b", "a=b"),
        ] {
            assert_eq!(guarded(text), cell, "{text:?}");
        }
    }

    #[test]
    fn all_lines_have_as_many_cells_as_the_header() {
        let member = crate::rows::MemberRow {
            id: crate::rows::MemberId(5),
            batch_id: crate::rows::BatchId(1),
            member_key: "ada".to_owned(),
            status: crate::rows::MemberStatus::Active,
            added_at: Timestamp::UNIX_EPOCH,
            removed_at: None,
            add_dispatched_at: None,
            remove_dispatched_at: None,
            ordinal: 0,
            data: serde_json::Map::new(),
            worker_data: serde_json::Map::new(),
            failed_at: None,
            first_seen_at: Timestamp::UNIX_EPOCH,
            last_seen_at: None,
            is_current: true,
            rollback_of: None,
            rollback_runs: 0,
            removal_state: Some(SequenceState::Failed),
            removal_runs: 0,
            removal_steps: 0,
            removal_error: Some("step \"revert\" failed: no".to_owned()),
            is_returning: false,
        };
        let mut text = String::new();
        member_line(&mut text, &member);
        unreadable_line(&mut text, Some(&member), "7", "damaged");
        unreadable_line(&mut text, None, "8", "damaged");
        text.push_str(&incomplete_line("the store, for now, is away"));
        let cells = REPORT_HEADER.matches(',').count();
        let lines: Vec<&str> = text.lines().collect();
        let removal = "failed,\"step \"\"revert\"\" failed: no\"";
        assert_eq!(lines[0], format!("ada,5,active{}{removal}", ",".repeat(16)));
        assert_eq!(lines[1], format!("ada,5,active,,,7,unreadable,,,,,damaged,,,,,,,{removal}"));
        assert_eq!(lines[2], ",8,unreadable,,,,,,,,,damaged,,,,,,,,");
        assert_eq!(lines[3], ",,incomplete,,,,,,,,,\"the store, for now, is away\",,,,,,,,");
        assert!(lines[..3].iter().all(|line| line.matches(',').count() == cells), "{text}");
    }

    #[test]
    fn attempts_are_those_that_were_made() {
        let step: crate::definition::StepDefinition = crate::definition::StepDefinition {
            name: "create".to_owned(),
            worker_id: "cloud".to_owned(),
            function: "New".to_owned(),
            params: std::collections::BTreeMap::new(),
            output_params: std::collections::BTreeMap::new(),
            on_failure: None,
            poll: None,
            retry: crate::definition::Retry::default(),
        };
        let mut work = Work::pending(&step, 0, "New".to_owned(), "{}".to_owned());
        assert_eq!(attempts(&work), 0);
        work.job_id = Some("step-1".to_owned());
        assert_eq!(attempts(&work), 1);
        (work.job_id, work.retry_count) = (None, 1);
        assert_eq!(attempts(&work), 1, "it waits for its second attempt");
        work.job_id = Some("step-1-retry-1".to_owned());
        assert_eq!(attempts(&work), 2);
    }
}
