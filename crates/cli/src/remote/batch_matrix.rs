//! The display of `segno batch watch`: phases with counts, an estimate of the end, and members ×
//! steps with one sign for each step. Pure: batches and changes come in, text goes out.

use std::collections::HashMap;
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use segno_api::batch::{BatchDetails, BatchStatus, MemberDetails, Phase, PhaseStatus, StepStatus};
use segno_api::change::{RowChange, RowKind};

/// The signs of steps, for people.
pub const LEGEND: &str = ". pending  > running  ~ polling  + succeeded  x failed  t timed out  r rolled back  c cancelled  - skipped";

/// Steps have to end for so long before their rate means something, in milliseconds.
const MIN_OBSERVED_MS: i64 = 2_000;

/// Longest name of a phase or key of a member that is shown.
const MAX_NAME_CHARS: usize = 32;

/// How many steps have ended, of how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Steps that have ended.
    pub ended: u64,
    /// Steps that exist or will exist, as far as is known.
    pub total: u64,
}

/// When a batch will end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// At about this time.
    About(Timestamp),
    /// Not before this time: a phase is due then.
    NotBefore(Timestamp),
    /// It cannot be told, for this reason.
    Unknown(&'static str),
}

/// Whether nothing is left to do.
pub fn has_ended(status: BatchStatus) -> bool {
    matches!(status, BatchStatus::Completed | BatchStatus::Failed | BatchStatus::Cancelled)
}

fn is_open(phase: &Phase) -> bool {
    matches!(phase.status, PhaseStatus::Pending | PhaseStatus::Dispatched)
}

/// Steps of a phase that have ended.
fn ended_steps(phase: &Phase) -> u64 {
    let open = ["pending", "dispatched", "polling"];
    phase
        .step_counts
        .iter()
        .filter(|(state, _)| !open.contains(&state.as_str()))
        .map(|(_, count)| count)
        .sum()
}

/// Steps that a phase has, or will have once they are created.
fn expected_steps(phase: &Phase, active_members: u32) -> u64 {
    let created: u64 = phase.step_counts.values().sum();
    match phase.status {
        PhaseStatus::Pending => created.max(u64::from(phase.steps) * u64::from(active_members)),
        PhaseStatus::Skipped | PhaseStatus::Superseded => created.min(ended_steps(phase)),
        _ => created,
    }
}

/// How far a batch is.
pub fn progress(details: &BatchDetails) -> Progress {
    let active = details.batch.member_counts.active;
    details.phases.iter().fold(Progress::default(), |sum, phase| Progress {
        ended: sum.ended + ended_steps(phase),
        total: sum.total + expected_steps(phase, active),
    })
}

/// When a batch will end, by the steps that ended since it is watched.
pub fn estimate(
    details: &BatchDetails,
    (since, at_begin): (Timestamp, Progress),
    now: Timestamp,
) -> Estimate {
    let batch = &details.batch;
    if batch.paused_at.is_some() {
        return Estimate::Unknown("the batch is paused");
    }
    let open: Vec<&Phase> = details.phases.iter().filter(|phase| is_open(phase)).collect();
    if batch.batch_start_time.is_none() && open.iter().any(|phase| phase.status == PhaseStatus::Pending) {
        return Estimate::Unknown("its phases are advanced by hand");
    }
    let waits = |phase: &&Phase| phase.approval_requested_at.is_some() && phase.approved_at.is_none();
    if open.iter().any(waits) {
        return Estimate::Unknown("a phase waits for approval");
    }
    let last_due = open.iter().filter_map(|phase| phase.due_at).max().filter(|due| *due > now);
    let now_done = progress(details);
    let (elapsed_ms, ended) =
        (now.duration_since(since).as_millis(), now_done.ended.saturating_sub(at_begin.ended));
    let left = now_done.total.saturating_sub(now_done.ended);
    let elapsed_ms = i64::try_from(elapsed_ms).unwrap_or(i64::MAX);
    if ended == 0 || elapsed_ms < MIN_OBSERVED_MS {
        return match last_due {
            Some(due) => Estimate::NotBefore(due),
            None => Estimate::Unknown("no step has ended yet"),
        };
    }
    let left_ms = i128::from(left) * i128::from(elapsed_ms) / i128::from(ended);
    let left_ms = i64::try_from(left_ms).unwrap_or(i64::MAX);
    let end = now.checked_add(SignedDuration::from_millis(left_ms)).unwrap_or(Timestamp::MAX);
    Estimate::About(last_due.map_or(end, |due| end.max(due)))
}

/// Members × steps.
#[derive(Debug, Default)]
pub struct Matrix {
    phases: Vec<(u64, String)>,
    members: Vec<Line>,
    /// Member and step of each id.
    places: HashMap<u64, (usize, (u64, u32))>,
}

#[derive(Debug)]
struct Line {
    id: u64,
    key: String,
    state: String,
    steps: HashMap<(u64, u32), char>,
}

impl Matrix {
    /// The matrix of some members of a batch.
    pub fn new(phases: &[Phase], members: &[MemberDetails]) -> Self {
        let shown = phases.iter().filter(|phase| phase.status != PhaseStatus::Superseded);
        let mut matrix = Matrix {
            phases: shown.map(|phase| (phase.id, shortened(&phase.phase_name))).collect(),
            ..Matrix::default()
        };
        for (row, details) in members.iter().enumerate() {
            let mut steps = HashMap::new();
            for step in &details.steps {
                let place = (step.phase_execution_id.unwrap_or_default(), step.step_index);
                steps.insert(place, sign(step.status));
                matrix.places.insert(step.id, (row, place));
            }
            let (key, state) = (shortened(&details.member.member_key), details.member.status.to_string());
            matrix.members.push(Line { id: details.member.id, key, state, steps });
        }
        matrix
    }

    /// Applies a change. Returns whether the matrix is up to date with it; otherwise it has to be
    /// read again.
    pub fn apply(&mut self, change: &RowChange) -> bool {
        match change.kind {
            RowKind::Step => match self.places.get(&change.id) {
                Some((row, place)) => {
                    if let (Some(line), Some(sign)) = (self.members.get_mut(*row), sign_of(&change.status)) {
                        line.steps.insert(*place, sign);
                    }
                    true
                }
                None => change.member.is_none_or(|member| self.members.iter().all(|line| line.id != member)),
            },
            RowKind::Member => self.members.iter().all(|line| line.id != change.id),
            RowKind::Phase => self.phases.iter().any(|(id, _)| *id == change.id),
            _ => true,
        }
    }

    /// As text; empty without members.
    pub fn to_text(&self) -> String {
        if self.members.is_empty() {
            return String::new();
        }
        let cells = |line: &Line| -> Vec<String> {
            let of_phase = |(id, _): &(u64, String)| {
                let mut steps: Vec<_> = line.steps.iter().filter(|((phase, _), _)| phase == id).collect();
                steps.sort_unstable();
                steps.into_iter().map(|(_, sign)| *sign).collect::<String>()
            };
            let mut cells = vec![line.key.clone()];
            cells.extend(self.phases.iter().map(of_phase));
            cells.push(line.state.clone());
            cells
        };
        let mut headings = vec!["MEMBER".to_owned()];
        headings.extend(self.phases.iter().map(|(_, name)| name.clone()));
        headings.push("STATE".to_owned());
        let rows: Vec<Vec<String>> =
            std::iter::once(headings).chain(self.members.iter().map(cells)).collect();
        let columns = rows.first().map_or(0, Vec::len);
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &rows {
            let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let line = padded.collect::<Vec<_>>().join("  ");
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_NAME_CHARS {
        return name.to_owned();
    }
    name.chars().take(MAX_NAME_CHARS - 1).chain(['…']).collect()
}

fn sign(status: StepStatus) -> char {
    match status {
        StepStatus::Pending => '.',
        StepStatus::Dispatched => '>',
        StepStatus::Succeeded => '+',
        StepStatus::Failed => 'x',
        StepStatus::Polling => '~',
        StepStatus::PollTimeout => 't',
        StepStatus::RolledBack => 'r',
        StepStatus::Cancelled => 'c',
        StepStatus::Skipped => '-',
    }
}

/// The sign of a state by its name; a server may know more states.
fn sign_of(status: &str) -> Option<char> {
    serde_json::from_value(status.into()).ok().map(sign)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn batch(phases: serde_json::Value) -> BatchDetails {
        serde_json::from_value(json!({
            "id": 7, "runbook_name": "wave", "runbook_version": 1, "batch_start_time": at(0),
            "status": "active", "detected_at": at(0), "is_sealed": true,
            "member_counts": {"active": 10, "removed": 0, "failed": 0, "cancelled": 0},
            "phases": phases, "explanation": {"why": "it runs"},
        }))
        .unwrap()
    }

    fn phase(id: u64, status: &str, due: i64, counts: serde_json::Value) -> serde_json::Value {
        json!({
            "id": id, "batch_id": 7, "phase_name": format!("p{id}"), "offset_minutes": 0, "due_at": at(due),
            "runbook_version": 1, "status": status, "steps": 2, "step_counts": counts,
            "members_succeeded": 0, "members_failed": 0,
        })
    }

    #[test]
    fn the_end_follows_from_the_rate_and_from_what_is_due_later() {
        let running = phase(1, "dispatched", 0, json!({"succeeded": 10, "pending": 10}));
        let details = batch(json!([running, phase(2, "pending", 5, json!({}))]));
        assert_eq!(progress(&details), Progress { ended: 10, total: 40 });
        let begin = |ended| (at(0), Progress { ended, total: 40 });
        // Ten steps in ten seconds; thirty are left.
        assert_eq!(estimate(&details, begin(0), at(10)), Estimate::About(at(40)));
        assert_eq!(estimate(&details, begin(10), at(10)), Estimate::Unknown("no step has ended yet"));
        assert_eq!(estimate(&details, begin(0), at(1)), Estimate::NotBefore(at(5)), "too early to tell");
        let later = phase(2, "pending", 9_000, json!({}));
        let waits = batch(json!([phase(1, "completed", 0, json!({"succeeded": 20})), later]));
        assert_eq!(estimate(&waits, begin(20), at(10)), Estimate::NotBefore(at(9_000)));
        assert_eq!(estimate(&waits, begin(0), at(10)), Estimate::About(at(9_000)));
        let mut paused = batch(json!([]));
        paused.batch.paused_at = Some(at(1));
        assert_eq!(estimate(&paused, begin(0), at(10)), Estimate::Unknown("the batch is paused"));
        let mut by_hand = waits;
        by_hand.batch.batch_start_time = None;
        assert_eq!(
            estimate(&by_hand, begin(0), at(10)),
            Estimate::Unknown("its phases are advanced by hand")
        );
    }

    #[test]
    fn the_matrix_has_a_sign_for_each_step_and_follows_changes() {
        let step = |id: u64, phase: u64, index: u32, status: &str| {
            json!({
                "id": id, "phase_execution_id": phase, "step_name": "s", "step_index": index, "worker_id": "w",
                "function_name": "f", "params_json": "{}", "status": status, "poll_count": 0, "retry_count": 0,
            })
        };
        let member = |id: u64, key: &str, steps: serde_json::Value| -> MemberDetails {
            serde_json::from_value(json!({
                "id": id, "batch_id": 7, "member_key": key, "status": "active", "added_at": at(0), "data": {},
                "_first_seen_at": at(0), "_last_seen_at": at(0), "_is_current": true, "steps": steps,
            }))
            .unwrap()
        };
        let details =
            batch(json!([phase(1, "dispatched", 0, json!({})), phase(2, "pending", 0, json!({})),]));
        let members = [
            member(5, "ada", json!([step(11, 1, 0, "succeeded"), step(12, 1, 1, "dispatched")])),
            member(6, "grace", json!([step(13, 1, 0, "failed")])),
        ];
        let mut matrix = Matrix::new(&details.phases, &members);
        assert_eq!(
            matrix.to_text(),
            "MEMBER  p1  p2  STATE\nada     +>      active\ngrace   x       active\n"
        );
        let change = |kind, id: u64, member: Option<u64>, status: &str| RowChange {
            kind,
            id,
            status: status.to_owned(),
            held: None,
            phase: Some(1),
            member,
        };
        assert!(matrix.apply(&change(RowKind::Step, 12, Some(5), "polling")));
        assert!(matrix.to_text().contains("ada     +~ "), "{}", matrix.to_text());
        assert!(
            matrix.apply(&change(RowKind::Step, 99, Some(77), "pending")),
            "of a member that is not shown"
        );
        assert!(!matrix.apply(&change(RowKind::Step, 99, Some(5), "pending")), "a new step of one that is");
        assert!(!matrix.apply(&change(RowKind::Member, 6, None, "failed")));
        assert!(!matrix.apply(&change(RowKind::Phase, 3, None, "pending")), "a new phase");
        assert_eq!(Matrix::default().to_text(), "");
    }
}
