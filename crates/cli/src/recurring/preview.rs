//! `segno recurring preview`: the next times of a schedule, without a server.

use jiff::Timestamp;
use segno_server::schedule::{PreviewLine, Schedule, Zones, preview};

use super::arguments::{Preview, on_clocks_of, refused};
use crate::exit::Failure;
use crate::output::{Output, Page, Rows};

/// The next times, however long the search takes.
fn searched(schedule: &Schedule, from: Timestamp, count: usize) -> Vec<PreviewLine> {
    let (mut lines, mut next_from) = (Vec::new(), Some(from));
    while let Some(from) = next_from {
        let more = preview(schedule, from, count - lines.len());
        lines.extend(more.lines);
        next_from = more.next_after;
    }
    lines
}

/// Shows them.
pub fn run(arguments: &Preview, output: &Output) -> Result<(), Failure> {
    let zones = Zones::newest();
    let schedule = arguments.schedule.spec(output)?.compile(&zones).map_err(|error| refused(&error))?;
    let from = on_clocks_of(Some(&arguments.schedule.timezone), arguments.from, output)?;
    let lines = searched(&schedule, from, arguments.count.into());
    schedule.warnings().iter().for_each(|warning| output.warn(warning));
    let mut text = format!("{}\n\n", schedule.describe());
    if lines.is_empty() {
        text.push_str(&format!("There is no time after {from}.\n"));
    } else {
        let mut rows = Rows::new(["time", "local", "note"]);
        for line in &lines {
            rows.add([line.time.to_string(), line.local.clone(), line.note.clone().unwrap_or_default()]);
        }
        text.push_str(&rows.to_text(output.colours));
    }
    text.push_str(&format!("\nTime zone database {}\n", zones.version()));
    output.list_as(&Page::whole(lines), &text)
}
