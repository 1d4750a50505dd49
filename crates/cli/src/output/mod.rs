//! What is printed, and how: tables for people, or JSON, JSON lines and YAML for programs.
//!
//! | file | what |
//! |---|---|
//! | `format` | the formats |
//! | `printer` | [`Output`]: prints things, lists, texts, warnings and hints |
//! | `listing` | the one shape of lists, and the flags `--limit` and `--cursor` |
//! | `table` | aligned lines and rows |
//! | `colours` | colours of states on a terminal |
//! | `zone` | the zone of times |
//! | `units` | numbers, sizes, durations and times as people read them |
//! | `yaml` | JSON as YAML |
//! | `command_line` | the command as it was typed, to be continued |
//!
//! **Invariants.** Every verb prints through [`Output`]: data to stdout, everything else to stderr. With a format for programs,
//! stdout is nothing but data in that format, and every line of stderr is one JSON object.

mod colours;
mod command_line;
mod format;
mod listing;
mod printer;
mod table;
mod units;
mod yaml;
mod zone;

pub use colours::{ColorChoice, Colours, without_controls};
pub use command_line::CommandLine;
pub use format::Format;
pub use listing::{Page, Paging};
pub use printer::{Output, write};
pub use table::{Rows, Table};
pub use units::{count, counted, duration, size, target};
pub use zone::Clocks;
