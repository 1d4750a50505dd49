//! `segno recurring preview`: the next times of a schedule, without a server.

use segno_server::schedule::{Zones, preview};

use super::arguments::{Preview, on_clocks_of, refused};
use crate::exit::Failure;
use crate::output::{Output, Page, Rows};

/// Shows them.
pub fn run(arguments: &Preview, output: &Output) -> Result<(), Failure> {
    let zones = Zones::newest();
    let schedule = arguments.schedule.spec(output)?.compile(&zones).map_err(|error| refused(&error))?;
    let from = on_clocks_of(Some(&arguments.schedule.timezone), arguments.from, output)?;
    let lines = preview(&schedule, from, arguments.count.into());
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
