//! Phases: when they are due, and how members go through them.

use std::collections::BTreeSet;

use segno_actions::document::{Field, Fields, PartReader, Tree, percent_of, shown};
use segno_actions::functions::HumanDuration;

use super::keys::{APPROVAL, PHASE, WAVE};
use super::reader::Reader;
use super::step::StepList;
use crate::definition::{Approval, MemberLimit, Phase, Wave};
use crate::limits::{MAX_PARALLEL, MAX_PHASES, MAX_WAVES};
use crate::names::NameKind;

/// Seconds of a minute.
const MINUTE_SEC: u64 = 60;

impl Reader<'_> {
    /// Reads all phases, in due order.
    pub fn phases(&mut self, field: &Field<'_>) -> Vec<Phase> {
        let items = self.list(field, MAX_PHASES);
        if matches!(&field.node.tree, Tree::List(items) if items.is_empty()) {
            self.push(field.error("there is no phase").advice("add at least one"));
        }
        let mut seen = BTreeSet::new();
        let mut phases: Vec<(usize, Phase)> = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            phases.extend(self.phase(item, &mut seen).map(|phase| (index, phase)));
        }
        phases.sort_by_key(|(_, phase)| std::cmp::Reverse(phase.offset_minutes));
        self.places.set_phases(phases.iter().map(|(index, _)| *index).collect());
        phases.into_iter().map(|(_, phase)| phase).collect()
    }

    fn phase(&mut self, field: Field<'_>, seen: &mut BTreeSet<String>) -> Option<Phase> {
        self.places.insert(&field.path, field.at());
        let fields = self.fields(field, &PHASE)?;
        let name = self.required(&fields, "name", "prepare").and_then(|field| {
            let name = self.name(&field, NameKind::Phase)?;
            self.unique(seen, &name, &field);
            Some(name)
        });
        let offset_minutes =
            self.required(&fields, "offset", "T-5d").and_then(|field| self.offset_minutes(&field));
        let steps = self
            .required(&fields, "steps", "[{name: create-user, …}]")
            .map(|field| self.steps(&field, StepList::Phase));
        let success_threshold = match fields.get("success_threshold") {
            Some(field) => self.percent(&field, 0),
            None => Some(100),
        };
        let max_parallel =
            fields.get("max_parallel").and_then(|field| self.member_limit(&field, MAX_PARALLEL));
        let waves = fields.get("waves").map(|field| self.waves(&field)).unwrap_or_default();
        let error_budget = fields.get("error_budget").and_then(|field| self.member_limit(&field, u32::MAX));
        let approval = fields.get("approval").and_then(|field| self.approval(field));
        Some(Phase {
            name: name?,
            offset_minutes: offset_minutes?,
            steps: steps?,
            success_threshold: success_threshold?,
            max_parallel,
            waves,
            error_budget,
            approval,
        })
    }

    fn offset_minutes(&mut self, field: &Field<'_>) -> Option<u64> {
        let text = self.text(field, usize::MAX)?;
        match offset_minutes(&text) {
            Ok(minutes) => Some(minutes),
            Err(problem) => {
                let advice = "write T-0, or T- and a duration, as in T-5d, T-3h or T-30m";
                self.push(field.error(problem).advice(advice));
                None
            }
        }
    }

    /// Waves are cumulative percentages: each is larger than the one before, and the last is 100.
    fn waves(&mut self, field: &Field<'_>) -> Vec<Wave> {
        let mut waves: Vec<Wave> = Vec::new();
        let items = self.list(field, MAX_WAVES);
        if !matches!(field.node.tree, Tree::List(_)) {
            return waves;
        }
        let count = items.len();
        for item in items {
            let Some(wave) = self.wave(item.clone()) else { continue };
            if let Some(before) = waves.last().filter(|before| before.percent >= wave.percent) {
                let problem = format!("{}% does not come after {}%", wave.percent, before.percent);
                self.push(item.error(problem).advice("percentages are cumulative, as in [5, 25, 100]"));
            }
            waves.push(wave);
        }
        let is_whole = waves.last().is_some_and(|last| last.percent == 100);
        if waves.len() == count && !is_whole {
            let problem = match waves.last() {
                Some(last) => format!("the last wave ends at {}% of the members", last.percent),
                None => "there is no wave".to_owned(),
            };
            self.push(field.error(problem).advice("end the list with 100"));
        }
        waves
    }

    fn wave(&mut self, field: Field<'_>) -> Option<Wave> {
        if !matches!(field.node.tree, Tree::Map(_)) {
            return self.percent(&field, 1).map(|percent| Wave { percent, pause_sec: 0 });
        }
        let fields = self.fields(field, &WAVE)?;
        let percent = self.required(&fields, "percent", "25").and_then(|field| self.percent(&field, 1));
        let pause_sec = match fields.get("pause") {
            Some(field) => self.seconds(&field, 0),
            None => Some(0),
        };
        Some(Wave { percent: percent?, pause_sec: pause_sec? })
    }

    /// A number of members, or a percentage.
    fn member_limit(&mut self, field: &Field<'_>, most: u32) -> Option<MemberLimit> {
        if let Tree::Text(text) = &field.node.tree
            && text.contains('%')
        {
            let percent = percent_of(text).and_then(|percent| u8::try_from(percent).ok());
            if let Some(percent) = percent.filter(|percent| (1..=100).contains(percent)) {
                return Some(MemberLimit::Percent(percent));
            }
            let problem = format!("{:?} is not a percentage from 1% to 100%", shown(text));
            self.push(field.error(problem).advice("write a number of members, or as in 5%"));
            return None;
        }
        let members = self.number(field, 1, most.into())?;
        u32::try_from(members).ok().map(MemberLimit::Members)
    }

    fn approval(&mut self, field: Field<'_>) -> Option<Approval> {
        match field.node.tree {
            Tree::Bool(true) => return Some(Approval { message: None, timeout_sec: None }),
            Tree::Bool(false) => return None,
            Tree::Map(_) => {}
            _ => {
                let problem = format!("expected true, false or a map, found {}", field.node.kind());
                self.push(field.error(problem).advice("write approval: {message: \"…\", timeout: 2d}"));
                return None;
            }
        }
        let fields: Fields<'_> = self.fields(field, &APPROVAL)?;
        let message = fields.get("message").and_then(|field| self.free_text(&field));
        let timeout_sec = fields.get("timeout").and_then(|field| self.seconds(&field, 1));
        Some(Approval { message, timeout_sec })
    }
}

/// Minutes before the start, rounded up.
fn offset_minutes(text: &str) -> Result<u64, String> {
    let shown = shown(text);
    let Some(rest) = text.strip_prefix(['T', 't']) else {
        return Err(format!("{shown:?} is not an offset"));
    };
    if rest.starts_with('+') {
        return Err(format!(
            "{shown:?} lies after the start of the batch; phases are due before it or at it"
        ));
    }
    let Some(duration) = rest.strip_prefix('-') else { return Err(format!("{shown:?} is not an offset")) };
    if duration == "0" {
        return Ok(0);
    }
    let duration: HumanDuration = duration.parse().map_err(|error| format!("{shown:?}: {error}"))?;
    if !duration.as_ms().is_multiple_of(1_000) {
        return Err(format!("{shown:?} is not a whole number of seconds"));
    }
    Ok((duration.as_ms() / 1_000).div_ceil(MINUTE_SEC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_minutes_before_the_start_rounded_up() {
        for (text, minutes) in [
            ("T-0", 0),
            ("t-0", 0),
            ("T-0d", 0),
            ("T-5d", 7_200),
            ("T-3h", 180),
            ("T-30m", 30),
            ("T-1s", 1),
            ("T-60s", 1),
            ("T-61s", 2),
            ("T-1d12h", 2_160),
        ] {
            assert_eq!(offset_minutes(text), Ok(minutes), "{text}");
        }
        for (text, says) in [
            ("T+1d", "lies after the start"),
            ("5d", "is not an offset"),
            ("T5d", "is not an offset"),
            ("T-", "it is empty"),
            ("T-5", "is not a duration"),
            ("T--5d", "is not a duration"),
            ("T-5w", "is not a duration"),
            ("T-1500ms", "whole number of seconds"),
            ("T-99999999999999999999d", "too long"),
        ] {
            let problem = offset_minutes(text).unwrap_err();
            assert!(problem.contains(says), "{text}: {problem}");
        }
    }
}
