//! What can be said about schedules.

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use segno::clock::Clock;
use segno_server::HumanDuration;
use segno_server::schedule::{Daylight, Gap, Overlap, ScheduleError, ScheduleSpec};

use crate::exit::Failure;
use crate::moment::Moment;

/// What to do with recurring work.
#[derive(Debug, Args)]
pub struct RecurringArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: RecurringVerb,
}

/// What to do with recurring work.
#[derive(Debug, Subcommand)]
pub enum RecurringVerb {
    /// Show the next times of a schedule, with what daylight saving does to them. Needs no server.
    #[command(
        after_help = "Examples:\n  segno recurring preview --cron \"0 9 * * MON-FRI\" --tz Europe/Berlin\n  \
                            segno recurring preview --every 15m --from now+1h --count 3"
    )]
    Preview(Preview),
}

/// What to show of which schedule.
#[derive(Debug, Args)]
pub struct Preview {
    /// The schedule.
    #[command(flatten)]
    pub schedule: ScheduleArguments,
    /// Show times after this one: `now`, `now+10m` or RFC 3339.
    #[arg(long, value_name = "TIME", default_value = "now")]
    pub from: Moment,
    /// How many times to show.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub count: u16,
}

/// A schedule.
#[derive(Debug, Args)]
pub struct ScheduleArguments {
    /// Which kind.
    #[command(flatten)]
    pub rhythm: Rhythm,
    /// Zone whose clocks are meant and shown, a name of the IANA database.
    #[arg(long = "tz", visible_alias = "timezone", value_name = "ZONE", default_value = "UTC")]
    pub timezone: String,
    /// What becomes of local times that the clock is put forward over.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["every", "at"])]
    pub gap: GapRule,
    /// When local times happen that come twice, because the clock is put back.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["every", "at"])]
    pub overlap: OverlapRule,
    /// Count the intervals of `--every` from this time.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["cron", "at"])]
    pub anchor: Option<Timestamp>,
    /// Nothing happens before this time.
    #[arg(long, value_name = "TIME")]
    pub starts_at: Option<Moment>,
    /// Nothing happens after this time.
    #[arg(long, value_name = "TIME")]
    pub ends_at: Option<Moment>,
}

/// One way to say when.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Rhythm {
    /// A cron expression with 5, 6 (seconds first) or 7 (year last) fields.
    #[arg(long, value_name = "EXPRESSION")]
    pub cron: Option<String>,
    /// An interval, as in `15m`.
    #[arg(long, value_name = "DURATION")]
    pub every: Option<HumanDuration>,
    /// One time: `now`, `now+10m` or RFC 3339.
    #[arg(long, value_name = "TIME")]
    pub at: Option<Moment>,
}

/// What becomes of local times that do not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum GapRule {
    /// They happen once, together, when the clock is put forward.
    #[default]
    Shift,
    /// They do not happen.
    Skip,
}

/// When local times happen that come twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OverlapRule {
    /// The first time.
    #[default]
    First,
    /// The second time.
    Last,
    /// Both times.
    Both,
}

impl ScheduleArguments {
    /// The schedule in words; times that depend on now are fixed by the clock.
    pub fn spec(&self, clock: &dyn Clock) -> ScheduleSpec {
        let resolve = |moment: Option<Moment>| moment.map(|moment| moment.resolve(clock));
        ScheduleSpec {
            cron_expr: self.rhythm.cron.clone(),
            every: self.rhythm.every,
            at: resolve(self.rhythm.at),
            timezone: self.timezone.clone(),
            daylight: Daylight {
                gap: match self.gap {
                    GapRule::Shift => Gap::Shift,
                    GapRule::Skip => Gap::Skip,
                },
                overlap: match self.overlap {
                    OverlapRule::First => Overlap::First,
                    OverlapRule::Last => Overlap::Last,
                    OverlapRule::Both => Overlap::Both,
                },
            },
            anchor: self.anchor,
            starts_at: resolve(self.starts_at),
            ends_at: resolve(self.ends_at),
        }
    }
}

/// A schedule that is refused is a mistake in what was asked: the flag is named in place of the field.
pub fn refused(error: &ScheduleError) -> Failure {
    let flag = match error.field() {
        "cron_expr" => "cron".to_owned(),
        "timezone" => "tz".to_owned(),
        field => field.replace('_', "-"),
    };
    Failure::Refused(format!("--{flag}: {} [{}]", error.problem(), error.code()))
}
