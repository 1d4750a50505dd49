//! Which field of a cron expression is wrong. The parser does not say, and a user with seven fields should not guess.

use croner::errors::CronError;

use super::cron::parser;

/// What the fields are called, by how many there are.
const NAMES: [&str; 7] = ["second", "minute", "hour", "day of month", "month", "day of week", "year"];

/// How to write one.
const ADVICE: &str = "write five fields (minute, hour, day of month, month, day of week), with seconds before them or also a \
                      year behind them, such as \"0 9 * * MON-FRI\"";

/// The longest text of an expression that is repeated to the user, in characters.
const SHOWN_CHARACTERS: usize = 80;

/// What is wrong with an expression that the parser refused.
pub(super) fn explain(expression: &str, error: &CronError) -> String {
    let shown: String = expression.chars().take(SHOWN_CHARACTERS).collect();
    let fields: Vec<&str> = expression.split_whitespace().collect();
    let problem = match fields.len() {
        0 => "it is empty".to_owned(),
        1 if expression.trim_start().starts_with('@') => {
            "there are @hourly, @daily, @weekly, @monthly, @yearly and @annually".to_owned()
        }
        count @ 5..=7 => match wrong_field(&fields) {
            Some(wrong) => {
                let first_name = usize::from(count == 5);
                let reason = reason(error);
                format!("{:?} cannot be the {}: {reason}", fields[wrong], NAMES[first_name + wrong])
            }
            None => reason(error),
        },
        1 => "it has 1 field".to_owned(),
        count => format!("it has {count} fields"),
    };
    format!("{shown:?} is not a cron expression: {problem}; {ADVICE}")
}

/// The one field without which the expression could be read.
fn wrong_field(fields: &[&str]) -> Option<usize> {
    (0..fields.len()).find(|place| {
        let mut others = fields.to_vec();
        others[*place] = "*";
        parser().parse(&others.join(" ")).is_ok()
    })
}

/// The parser's words without the names of its types.
fn reason(error: &CronError) -> String {
    let text = match error {
        CronError::InvalidPattern(text)
        | CronError::IllegalCharacters(text)
        | CronError::ComponentError(text) => text.clone(),
        other => other.to_string(),
    };
    text.trim_end_matches('.').replace("CronPattern contains", "it contains")
}
