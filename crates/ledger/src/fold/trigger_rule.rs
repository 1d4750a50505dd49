//! Trigger rules: from how the upstream tasks of a task ended to what becomes of it.
//!
//! | rule | ready when | skipped when |
//! |---|---|---|
//! | `all_success` | all succeeded | one failed or was skipped |
//! | `all_done` | all ended | never |
//! | `all_failed` | all failed | one succeeded or was skipped |
//! | `one_success` | one succeeded | all ended and none succeeded |
//! | `one_failed` | one failed | all ended and none failed |
//! | `one_done` | one succeeded or failed | all ended and none did |
//! | `none_failed` | all ended, none failed | one failed |
//! | `none_skipped` | all ended, none was skipped | one was skipped |
//! | `none_failed_min_one_success` | all ended, none failed, one succeeded | one failed, or all were skipped |
//!
//! A cancelled upstream task cancels a task that would need it.

use crate::tables::{Resolution, TriggerRule};

/// How tasks ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) succeeded: u32,
    pub(super) failed: u32,
    pub(super) skipped: u32,
    pub(super) cancelled: u32,
}

impl Ends {
    fn count_of(&mut self, resolution: Resolution) -> &mut u32 {
        match resolution {
            Resolution::Succeeded => &mut self.succeeded,
            Resolution::Failed => &mut self.failed,
            Resolution::Skipped => &mut self.skipped,
            Resolution::Cancelled => &mut self.cancelled,
        }
    }

    pub(super) fn add(&mut self, resolution: Resolution) {
        *self.count_of(resolution) += 1;
    }

    pub(super) fn remove(&mut self, resolution: Resolution) {
        *self.count_of(resolution) -= 1;
    }

    pub(super) fn total(self) -> u32 {
        self.succeeded + self.failed + self.skipped + self.cancelled
    }
}

/// What becomes of a task that waits for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Wait,
    Ready,
    Skip,
    Cancel,
}

/// What becomes of a task with this rule, of whose upstream tasks these have ended.
pub(super) fn decide(rule: TriggerRule, ends: Ends, upstream_total: u32) -> Verdict {
    if upstream_total == 0 {
        return Verdict::Ready;
    }
    let all_ended = ends.total() >= upstream_total;
    let at_end = |is_ready: bool| match (all_ended, is_ready) {
        (false, _) => Verdict::Wait,
        (true, true) => Verdict::Ready,
        (true, false) if ends.cancelled > 0 => Verdict::Cancel,
        (true, false) => Verdict::Skip,
    };
    // For rules that one end of the wrong kind decides.
    let unless = |excluded: u32, is_ready: bool| match (excluded > 0, ends.cancelled > 0) {
        (true, _) => Verdict::Skip,
        (false, true) => Verdict::Cancel,
        (false, false) => at_end(is_ready),
    };
    let as_soon_as = |is_ready: bool| if is_ready { Verdict::Ready } else { at_end(false) };
    match rule {
        TriggerRule::AllSuccess => unless(ends.failed + ends.skipped, true),
        TriggerRule::AllDone => at_end(true),
        TriggerRule::AllFailed => unless(ends.succeeded + ends.skipped, true),
        TriggerRule::OneSuccess => as_soon_as(ends.succeeded > 0),
        TriggerRule::OneFailed => as_soon_as(ends.failed > 0),
        TriggerRule::OneDone => as_soon_as(ends.succeeded + ends.failed > 0),
        TriggerRule::NoneFailed => unless(ends.failed, true),
        TriggerRule::NoneSkipped => unless(ends.skipped, true),
        TriggerRule::NoneFailedMinOneSuccess => unless(ends.failed, ends.succeeded > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_decides_at_the_first_moment_at_which_it_can() {
        // Three upstream tasks; the ends so far, one letter each; the verdict by rule in the order
        // of `ALL`.
        let cases = [
            ("", "www www www"),
            ("s", "wws rwr www"),
            ("f", "sww wrr sws"),
            ("k", "sws www wsw"),
            ("c", "cwc www ccc"),
            ("sss", "rrs rsr rrr"),
            ("fff", "srr srr srs"),
            ("kkk", "srs sss rss"),
            ("ccc", "crc ccc ccc"),
            ("ssf", "srs rrr srs"),
            ("ssk", "srs rsr rsr"),
            ("ssc", "crs rcr ccc"),
            ("fkc", "srs crr sss"),
        ];
        for (letters, expected) in cases {
            let mut ends = Ends::default();
            for letter in letters.chars() {
                ends.add(match letter {
                    's' => Resolution::Succeeded,
                    'f' => Resolution::Failed,
                    'k' => Resolution::Skipped,
                    _ => Resolution::Cancelled,
                });
            }
            let verdicts: String = TriggerRule::ALL
                .iter()
                .map(|rule| match decide(*rule, ends, 3) {
                    Verdict::Wait => 'w',
                    Verdict::Ready => 'r',
                    Verdict::Skip => 's',
                    Verdict::Cancel => 'c',
                })
                .collect();
            assert_eq!(verdicts, expected.replace(' ', ""), "after {letters:?}");
        }
        for rule in TriggerRule::ALL {
            assert_eq!(decide(*rule, Ends::default(), 0), Verdict::Ready, "without upstream tasks");
        }
    }
}
