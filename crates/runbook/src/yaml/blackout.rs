//! Blackout windows.

use segno_actions::document::{Field, PartReader, Tree, shown};
use segno_actions::schedule::Exclusion;

use super::keys::BLACKOUT;
use super::reader::Reader;
use crate::blackout::Blackouts;
use crate::definition::Blackout;
use crate::limits::{MAX_BLACKOUT_DAYS, MAX_BLACKOUTS, MAX_NAME_BYTES};

/// Seconds of a day.
const DAY_SEC: u32 = 86_400;

impl Reader<'_> {
    /// Reads all blackout windows. They must leave some time.
    pub fn blackouts(&mut self, field: &Field<'_>) -> Vec<Blackout> {
        let errors = self.problems.errors();
        let items = self.list(field, MAX_BLACKOUTS);
        let blackouts: Vec<Blackout> = items.into_iter().filter_map(|item| self.blackout(item)).collect();
        if self.problems.errors() == errors
            && let Ok(compiled) = Blackouts::compile(&blackouts, self.zones)
            && compiled.cover_everything()
        {
            let problem = field.error("the windows leave no time in which a step could be dispatched");
            self.push(problem.advice("shorten one of them"));
        }
        blackouts
    }

    fn blackout(&mut self, field: Field<'_>) -> Option<Blackout> {
        let fields = self.fields(field, &BLACKOUT)?;
        let days = fields.get("days").map(|field| self.days(&field)).unwrap_or_default();
        let from_sec = fields.get("from").map_or(Some(0), |field| self.time_of_day(&field));
        let to_sec = fields.get("to").map_or(Some(DAY_SEC), |field| self.time_of_day(&field));
        let timezone = match fields.get("timezone") {
            Some(field) => self.timezone(&field),
            None => Some("UTC".to_owned()),
        };
        let blackout = Blackout { days, from_sec: from_sec?, to_sec: to_sec?, timezone: timezone? };
        if blackout.from_sec == DAY_SEC {
            let problem = fields.whole().error("a window cannot begin at 24:00");
            self.push(problem.advice("write from: \"00:00\" and the next day"));
            return None;
        }
        Some(blackout)
    }

    /// A day or a list of days.
    fn days(&mut self, field: &Field<'_>) -> Vec<Exclusion> {
        let items = match &field.node.tree {
            Tree::List(_) => self.list(field, MAX_BLACKOUT_DAYS),
            _ => vec![field.clone()],
        };
        let mut days = Vec::new();
        for item in items {
            let Some(text) = self.text(&item, usize::MAX) else { continue };
            match text.parse() {
                Ok(day) => days.push(day),
                Err(problem) => self.push(item.error(problem)),
            }
        }
        days
    }

    fn time_of_day(&mut self, field: &Field<'_>) -> Option<u32> {
        let text = self.text(field, usize::MAX)?;
        let seconds = seconds_of_day(&text);
        if seconds.is_none() {
            let problem = field.error(format!("{:?} is not a time of day", shown(&text)));
            self.push(problem.advice("write it as \"22:00\" or \"22:00:30\", up to \"24:00\""));
        }
        seconds
    }

    fn timezone(&mut self, field: &Field<'_>) -> Option<String> {
        let name = self.text(field, MAX_NAME_BYTES)?;
        match self.zones.get(&name) {
            Ok(_) => Some(name),
            Err(error) => {
                self.push(field.error(error.problem()));
                None
            }
        }
    }
}

/// Seconds since midnight of `22:00` or `22:00:30`.
fn seconds_of_day(text: &str) -> Option<u32> {
    let parts: Vec<u32> = text.split(':').map(two_digits).collect::<Option<_>>()?;
    let (hour, minute, second) = match parts.as_slice() {
        [hour, minute] => (*hour, *minute, 0),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    let seconds = hour * 3_600 + minute * 60 + second;
    (minute < 60 && second < 60 && seconds <= DAY_SEC).then_some(seconds)
}

fn two_digits(text: &str) -> Option<u32> {
    let is_number = matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_read() {
        for (text, seconds) in [
            ("00:00", Some(0)),
            ("6:30", Some(23_400)),
            ("22:00:30", Some(79_230)),
            ("24:00", Some(86_400)),
            ("24:01", None),
            ("12:60", None),
            ("12", None),
            ("1:2:3:4", None),
            ("-1:00", None),
            ("noon", None),
        ] {
            assert_eq!(seconds_of_day(text), seconds, "{text}");
        }
    }
}
