//! `segno recurring preview`: the next times of a schedule, without a server.

use segno::clock::SystemClock;
use segno_server::schedule::{Zones, preview};

use super::arguments::{Preview, refused};
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Rows, print_text, warn};

/// Shows them.
pub fn run(arguments: &Preview, format: Format) -> Result<(), Failure> {
    let clock = SystemClock::shared();
    let zones = Zones::newest();
    let schedule =
        arguments.schedule.spec(clock.as_ref()).compile(&zones).map_err(|error| refused(&error))?;
    let from = arguments.from.resolve(clock.as_ref());
    let lines = preview(&schedule, from, arguments.count.into());
    warn(&schedule.warnings());
    let mut text = format!("{}\n\n", schedule.describe());
    if lines.is_empty() {
        text.push_str(&format!("There is no time after {from}.\n"));
    } else {
        let mut rows = Rows::new(["time", "local", "note"]);
        for line in &lines {
            rows.add([line.time.to_string(), line.local.clone(), line.note.clone().unwrap_or_default()]);
        }
        text.push_str(&rows.to_text());
    }
    text.push_str(&format!("\nTime zone database {}\n", zones.version()));
    print_text(format, &lines, &text)
}
