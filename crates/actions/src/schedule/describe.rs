//! A cron expression in plain English.
//!
//! croner writes the sentence. It lists weekdays one by one from Sunday on, and puts a comma and "At" where nobody would;
//! people say "Monday through Friday", and "Every 15 minutes".

use super::cron::Pattern;

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// What croner writes, and what people say.
const PHRASES: [(&str, &str); 4] = [
    ("At every ", "Every "),
    (", of hour ", " past hour "),
    (", of every ", " of every "),
    (", in every ", ", every "),
];

/// The fewest days in a row that are written as a range.
const SHORTEST_RANGE: usize = 3;

/// What an expression asks for, without a full stop.
pub(super) fn cron(pattern: &Pattern) -> String {
    let text = pattern.cron().describe();
    let text = PHRASES.iter().fold(text, |text, (written, said)| text.replace(written, said));
    let text = text.trim_end_matches('.').to_owned();
    let days: Vec<usize> =
        pattern.cron().days_of_week.values().into_iter().filter(|day| *day < 7).map(usize::from).collect();
    if days.len() < 2 || pattern.cron().is_dow_wildcard() {
        return text;
    }
    // Sunday is the first day in a cron expression and the last one of the week here.
    let in_order_of_cron: Vec<&str> = days.iter().map(|day| WEEKDAYS[(day + 6) % 7]).collect();
    let ranges = ranges(&days.iter().map(|day| (day + 6) % 7).collect::<Vec<_>>());
    let [from, to] =
        [in_order_of_cron.as_slice(), &ranges.iter().map(String::as_str).collect::<Vec<_>>()].map(list);
    text.replace(&format!("on {from}"), &to).replace(&from, &to)
}

/// Days from Monday on, those in a row as a range.
fn ranges(days: &[usize]) -> Vec<String> {
    let mut days = days.to_vec();
    days.sort_unstable();
    let rows = days.chunk_by(|day, next| day + 1 == *next);
    rows.flat_map(|row| match row {
        [first, .., last] if row.len() >= SHORTEST_RANGE => {
            vec![format!("{} through {}", WEEKDAYS[*first], WEEKDAYS[*last])]
        }
        _ => row.iter().map(|day| WEEKDAYS[*day].to_owned()).collect(),
    })
    .collect()
}

/// As croner joins what it lists.
fn list(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, other] => format!("{one} and {other}"),
        [front @ .., last] => format!("{}, and {last}", front.join(", ")),
    }
}
