//! `segno stats`: how much was started, how it ended and how long it took.

use clap::Args;
use segno_api::stats::{GetStats, NameStats, Stats};
use segno_server::HumanDuration;

use super::connection::Connection;
use crate::exit::Failure;
use crate::output::{Output, Rows, count, duration};

/// A minute in milliseconds.
const MINUTE_MS: u64 = 60_000;

/// Over which time.
#[derive(Debug, Args)]
pub struct StatsArguments {
    /// How far back, in whole minutes up to a day.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = minutes)]
    pub last: u64,
    /// Length of a row, in whole minutes.
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = minutes)]
    pub step: u64,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

fn minutes(text: &str) -> Result<u64, String> {
    let ms = text.parse::<HumanDuration>().map_err(|error| error.to_string())?.as_ms();
    match (ms / MINUTE_MS, ms % MINUTE_MS) {
        (minutes @ 1.., 0) => Ok(minutes),
        _ => Err("must be whole minutes, as in 90m".to_owned()),
    }
}

/// Shows them.
pub async fn run(arguments: StatsArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let request = GetStats { step: Some(arguments.step * 60), minutes: Some(arguments.last) };
    let stats = client.stats(&request).await?;
    output.text(&stats, &text(&stats, output))?;
    if stats.incomplete {
        output.warn("some counts could not be read: the numbers are lower bounds");
    }
    Ok(())
}

fn text(stats: &Stats, output: &Output) -> String {
    let mut points = Rows::new(["from", "started", "completed", "failed", "cancelled", "timers late p99"]);
    for point in &stats.points {
        points.add([
            output.time(point.at),
            count(point.started),
            count(point.completed),
            count(point.failed),
            count(point.cancelled),
            time(point.late_p99_ms),
        ]);
    }
    let mut text = points.to_text(output.colours);
    for (heading, names) in [("function", &stats.functions), ("orchestration", &stats.orchestrations)] {
        if !names.is_empty() {
            text.push('\n');
            text.push_str(&table(heading, names).to_text(output.colours));
        }
    }
    if !stats.failures.is_empty() {
        let mut failures = Rows::new(["failure", "count"]);
        for failure in &stats.failures {
            failures.add([failure.code.clone(), count(failure.count)]);
        }
        text.push('\n');
        text.push_str(&failures.to_text(output.colours));
    }
    text
}

fn table(heading: &str, names: &[NameStats]) -> Rows {
    let mut rows = Rows::new([heading, "completed", "failed", "cancelled", "p50", "p99"]);
    for name in names {
        rows.add([
            name.name.clone(),
            count(name.completed),
            count(name.failed),
            count(name.cancelled),
            time(name.p50_ms),
            time(name.p99_ms),
        ]);
    }
    rows
}

fn time(ms: Option<u64>) -> String {
    ms.map(|ms| duration(i64::try_from(ms).unwrap_or(i64::MAX))).unwrap_or_default()
}
