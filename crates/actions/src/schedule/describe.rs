//! A cron expression in plain English.
//!
//! The sentence is made from the values that the expression allows and not from how it is written, so that it cannot promise
//! what does not happen: `*/25` is "minute 0, 25, and 50", because the clock starts again at the full hour.

use super::expression::{Expression, MonthDays, Values, Weekdays};

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const ORDINALS: [&str; 5] = ["1st", "2nd", "3rd", "4th", "5th"];

/// The fewest values in a row that are written as a range.
const SHORTEST_RANGE: usize = 3;

/// Most years, or ranges of them, that are listed.
const MAX_LISTED_YEARS: usize = 12;

/// What the values of a field have in common.
enum Shape {
    /// All values.
    All,
    /// One value.
    One(i64),
    /// Each `n`th value from the first on, and so that the first one follows the last by the same distance.
    Step(usize),
    /// Anything else.
    Some,
}

/// What an expression asks for, without a full stop.
pub(super) fn cron(expression: &Expression) -> String {
    let parts = [Some(time(expression)), days(expression), months(expression.months), years(expression)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

fn shape(values: Values, min: u16, max: u16) -> Shape {
    let all = Values::all(min, max);
    let (numbers, size): (Vec<i64>, usize) = (values.iter().collect(), all.iter().count());
    if values == all {
        return Shape::All;
    }
    let step = size / numbers.len().max(1);
    let is_even = numbers.len() * step == size
        && numbers.iter().zip((i64::from(min)..).step_by(step.max(1))).all(|(value, even)| *value == even);
    match numbers.as_slice() {
        [one] => Shape::One(*one),
        _ if is_even => Shape::Step(step),
        _ => Shape::Some,
    }
}

fn time(expression: &Expression) -> String {
    let Expression { seconds, minutes, hours, .. } = expression;
    let [second, minute, hour] = [shape(*seconds, 0, 59), shape(*minutes, 0, 59), shape(*hours, 0, 23)];
    match (&second, &minute, &hour) {
        (Shape::One(0), Shape::One(minute), Shape::One(hour)) => format!("At {hour:02}:{minute:02}"),
        (Shape::One(second), Shape::One(minute), Shape::One(hour)) => {
            format!("At {hour:02}:{minute:02}:{second:02}")
        }
        (Shape::One(0), Shape::All, _) => format!("Every minute{}", past_hours(*hours, &hour)),
        (Shape::One(0), Shape::Step(step), _) => format!("Every {step} minutes{}", past_hours(*hours, &hour)),
        (Shape::One(0), _, Shape::Step(step)) => {
            format!("At minute {} of every {step} hours", numbers(*minutes))
        }
        (Shape::One(0), _, Shape::All) => format!("At minute {} past every hour", numbers(*minutes)),
        (Shape::One(0), _, _) => format!("At minute {}{}", numbers(*minutes), past_hours(*hours, &hour)),
        (_, Shape::All, _) => {
            let past = past_hours(*hours, &hour);
            match &second {
                Shape::All => format!("Every second{past}"),
                Shape::Step(step) => format!("Every {step} seconds{past}"),
                _ => format!("At second {} of every minute{past}", numbers(*seconds)),
            }
        }
        _ => {
            let begin = match &second {
                Shape::All => "Every second".to_owned(),
                Shape::Step(step) => format!("Every {step} seconds"),
                _ => format!("At second {}", numbers(*seconds)),
            };
            let past = match hour {
                Shape::All => " past every hour".to_owned(),
                _ => past_hours(*hours, &hour),
            };
            format!("{begin} of minute {}{past}", numbers(*minutes))
        }
    }
}

/// Nothing for every hour.
fn past_hours(hours: Values, shape: &Shape) -> String {
    match shape {
        Shape::All => String::new(),
        _ => format!(" past hour {}", numbers(hours)),
    }
}

fn days(expression: &Expression) -> Option<String> {
    let days = expression.days.as_ref().map(month_days);
    let weekdays = expression.weekdays.as_ref().map(weekdays);
    Some(match (days, weekdays) {
        (None, None) => return None,
        (Some(days), None) => format!("on {days}"),
        (None, Some((true, weekdays))) => format!("on {weekdays}"),
        (None, Some((false, weekdays))) => weekdays,
        (Some(days), Some((_, weekdays))) if expression.needs_both_days => {
            format!("on {days} if it is also {weekdays}")
        }
        (Some(days), Some((_, weekdays))) => format!("on {days} or {weekdays}"),
    })
}

fn month_days(days: &MonthDays) -> String {
    let mut parts = Vec::new();
    if !days.values.is_empty() {
        parts.push(format!("day {}", numbers(days.values)));
    }
    if days.last {
        parts.push("the last day of the month".to_owned());
    }
    if days.last_weekday {
        parts.push("the last day of the month from Monday to Friday".to_owned());
    }
    if !days.nearest.is_empty() {
        parts.push(format!("the weekday nearest to day {}", numbers(days.nearest)));
    }
    list(&parts)
}

/// Which weekdays, and whether "on" belongs before them.
fn weekdays(days: &Weekdays) -> (bool, String) {
    let mut parts = Vec::new();
    for (ordinal, values) in ORDINALS.iter().zip(days.nth).filter(|(_, values)| !values.is_empty()) {
        parts.push(format!("the {ordinal} {} of the month", list(&weekday_names(values))));
    }
    if !days.last.is_empty() {
        parts.push(format!("the last {} of the month", list(&weekday_names(days.last))));
    }
    let needs_on = !parts.is_empty() || days.values.iter().count() == 1;
    parts.extend(weekday_names(days.values));
    (needs_on, list(&parts))
}

/// Days from Monday on, those in a row as a range.
fn weekday_names(days: Values) -> Vec<String> {
    // Sunday is the first day in a cron expression and the last one of the week here.
    let mut days: Vec<usize> = days.iter().filter_map(|day| usize::try_from((day + 6) % 7).ok()).collect();
    days.sort_unstable();
    ranges(&days, " through ", |day| WEEKDAYS.get(day).copied().unwrap_or_default().to_owned())
}

fn months(months: Values) -> Option<String> {
    match shape(months, 1, 12) {
        Shape::All => None,
        Shape::Step(step) => Some(format!("every {step} months")),
        Shape::One(_) | Shape::Some => {
            let names = months.iter().filter_map(|month| MONTHS.get(usize::try_from(month - 1).ok()?));
            Some(format!("in {}", list(&names.map(|name| (*name).to_owned()).collect::<Vec<_>>())))
        }
    }
}

fn years(expression: &Expression) -> Option<String> {
    let years: Vec<usize> = expression.years.as_ref()?.iter().map(|year| usize::from(*year)).collect();
    let mut ranges = ranges(&years, "-", |year| year.to_string());
    let more = ranges.len().saturating_sub(MAX_LISTED_YEARS);
    if more > 0 {
        ranges.truncate(MAX_LISTED_YEARS);
        ranges.push(format!("{more} more"));
    }
    Some(format!("in year {}", list(&ranges)))
}

/// The values, those in a row as a range.
fn numbers(values: Values) -> String {
    let values: Vec<usize> = values.iter().filter_map(|value| usize::try_from(value).ok()).collect();
    list(&ranges(&values, "-", |value| value.to_string()))
}

fn ranges(values: &[usize], to: &str, name: impl Fn(usize) -> String) -> Vec<String> {
    let rows = values.chunk_by(|value, next| value + 1 == *next);
    rows.flat_map(|row| match row {
        [first, .., last] if row.len() >= SHORTEST_RANGE => {
            vec![format!("{}{to}{}", name(*first), name(*last))]
        }
        _ => row.iter().map(|value| name(*value)).collect(),
    })
    .collect()
}

fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [front @ .., last] => format!("{}, and {last}", front.join(", ")),
    }
}
