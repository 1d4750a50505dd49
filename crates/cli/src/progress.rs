//! How far something is: a bar when stderr is a terminal, a line every few seconds elsewhere.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use segno::clock::{Clock, SystemClock};
use segno_stores::{Phase, Progress};

use crate::output::{Output, count};

/// Between two lines where there is no terminal.
const LINE_EVERY_MS: u64 = 5_000;

/// Shows how far something is.
pub struct Meter {
    bar: Option<ProgressBar>,
    clock: Arc<dyn Clock>,
    next_line_ms: u64,
    total: Option<u64>,
    phase: Option<Phase>,
    lines: Lines,
}

/// Whether lines are printed where there is no terminal: programs read what is printed on stderr as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    Some,
    None,
}

impl Meter {
    /// A meter that ends at this many, if that is known.
    pub fn new(output: &Output, total: Option<u64>) -> Self {
        let clock = SystemClock::shared();
        let bar = stderr().is_terminal().then(|| match total {
            Some(total) => {
                let style = ProgressStyle::with_template("{msg:10} [{bar:40}] {human_pos}/{human_len} {eta}");
                ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            }
            None => {
                let style = ProgressStyle::with_template("{msg:10} {spinner} {human_pos}");
                ProgressBar::new_spinner()
                    .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
            }
        });
        let next_line_ms = clock.now_ms() + LINE_EVERY_MS;
        let lines = if output.format.is_for_programs() { Lines::None } else { Lines::Some };
        Meter { bar, clock, next_line_ms, total, phase: None, lines }
    }

    /// Shows how far a transfer is, in instances.
    pub fn transfer(&mut self, progress: Progress<'_>) {
        let what = match progress.phase {
            Phase::Moving => "copying",
            Phase::Verifying => "verifying",
        };
        if self.phase != Some(progress.phase) {
            self.phase = Some(progress.phase);
            self.say(what, 0);
        }
        self.show(what, progress.so_far.instances, "instances");
    }

    /// Shows how far something is.
    pub fn show(&mut self, what: &'static str, done: u64, unit: &str) {
        // What was counted before grows while it is being read.
        if self.total.is_some_and(|total| done > total) {
            self.set_total(done);
        }
        if let Some(bar) = &self.bar {
            bar.set_message(what);
            bar.set_position(done);
            return;
        }
        let now_ms = self.clock.now_ms();
        if now_ms >= self.next_line_ms && self.lines == Lines::Some {
            self.next_line_ms = now_ms + LINE_EVERY_MS;
            let total = self.total.map_or(String::new(), |total| format!(" of {}", count(total)));
            eprintln!("{what}: {}{total} {unit}", count(done));
        }
    }

    /// Tells that something else begins.
    fn say(&self, what: &'static str, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_message(what);
            bar.set_position(done);
        }
    }

    /// Changes what the end is.
    pub fn set_total(&mut self, total: u64) {
        self.total = Some(total);
        if let Some(bar) = &self.bar {
            bar.set_length(total);
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
