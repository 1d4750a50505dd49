//! `segno timers`: what wakes up by itself.

use super::arguments::Nothing;
use super::problems::words;
use crate::exit::Failure;
use crate::output::{Output, Rows};

/// Lists it, soonest first.
pub async fn run(arguments: Nothing, output: &Output) -> Result<(), Failure> {
    let found = arguments.connection.client(output)?.timers().await?;
    let mut rows = Rows::new(["at", "kind", "instance", "runs", "activity", "since"]);
    for timer in &found.timers {
        let runs = timer.function.clone().or_else(|| timer.orchestration.clone());
        rows.add([
            output.time(timer.at),
            words(&timer.kind),
            timer.instance.clone(),
            runs.unwrap_or_default(),
            timer.name.clone().unwrap_or_default(),
            output.time(timer.since),
        ]);
    }
    output.text(&found, &rows.to_text(output.colours))?;
    if found.truncated {
        output.warn("there may be more: only the newest instances were looked at");
    }
    Ok(())
}
