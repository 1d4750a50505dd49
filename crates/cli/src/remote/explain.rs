//! `segno explain`: what an instance waits for.

use segno_api::explain::{InstanceExplanation, InstanceWait};

use super::arguments::One;
use crate::exit::Failure;
use crate::output::{Output, Rows, Table};

/// Explains an instance.
pub async fn run(arguments: One, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let explained = client.explain_instance(&arguments.id).await?;
    output.text(&explained, &text(&explained, output))?;
    if !explained.complete {
        output.warn("the history is longer than what was read, or more is open than is shown");
    }
    Ok(())
}

fn text(explained: &InstanceExplanation, output: &Output) -> String {
    let mut table = Table::default().line(&explained.id, &explained.in_words);
    if let Some(at) = explained.next_wake_up {
        table = table.line("next wake-up", output.time(at));
    }
    let mut text = table.to_text(output.colours);
    if !explained.waits.is_empty() {
        let mut rows = Rows::new(["waits for", "since", "until", "attempt", "worker"]);
        for wait in &explained.waits {
            rows.add([
                wait.detail.clone(),
                output.time(wait.since),
                output.time_or_none(wait.until),
                attempt(wait),
                wait.worker.clone().unwrap_or_default(),
            ]);
        }
        text.push('\n');
        text.push_str(&rows.to_text(output.colours));
    }
    text
}

fn attempt(wait: &InstanceWait) -> String {
    wait.attempt.map(|attempt| attempt.to_string()).unwrap_or_default()
}
