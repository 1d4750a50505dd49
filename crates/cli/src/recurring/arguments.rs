//! What can be said about schedules.

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use segno::clock::SystemClock;
use segno_server::HumanDuration;
use segno_server::schedule::{Daylight, Gap, Overlap, ScheduleError, ScheduleSpec, Zones};

use super::run::RunArguments;
use crate::exit::Failure;
use crate::moment::{self, Moment, anytime_help, future_help, past_help};
use crate::output::{Output, Paging};
use crate::remote::connection::Connection;

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
    /// Show the next times of a schedule, with the effects of daylight saving. Needs no server.
    #[command(
        after_help = "Examples:\n  segno recurring preview --cron \"0 9 * * MON-FRI\" --tz Europe/Berlin\n  \
                            segno recurring preview --every 15m --from now+1h --count 3"
    )]
    Preview(Preview),
    /// Create a recurring action: call a function, or start an orchestration, on a schedule.
    #[command(
        after_help = "Examples:\n  segno recurring create --every 5s --function greet --input '\"Ada\"'\n  \
                      segno recurring create --cron \"0 9 * * MON-FRI\" --tz Europe/Berlin --function digest --input @digest.json"
    )]
    Create(Box<Create>),
    /// List recurring actions.
    #[command(after_help = "Example:\n  segno recurring list --enabled true")]
    List(List),
    /// Show a recurring action.
    #[command(after_help = "Example:\n  segno recurring show 0198c0de-0000-7000-8000-000000000001")]
    Show(One),
    /// Change a recurring action; fields without a flag are unchanged.
    #[command(after_help = "Example:\n  segno recurring update ID --every 10m --clear ends_at")]
    Update(Box<Update>),
    /// Pause a recurring action. Active runs continue.
    #[command(after_help = "Example:\n  segno recurring pause ID --note 'release week' --until now+7d")]
    Pause(Pause),
    /// Resume a paused recurring action.
    #[command(after_help = "Example:\n  segno recurring resume ID")]
    Resume(One),
    /// Run a recurring action now, outside its schedule, even if it is paused.
    #[command(after_help = "Example:\n  segno recurring run nightly-digest --run-key rerun-of-monday")]
    Run(RunArguments),
    /// Delete a recurring action.
    #[command(after_help = "Example:\n  segno recurring delete ID")]
    Delete(One),
    /// Show the outcome of each occurrence with its reason, newest first.
    #[command(after_help = "Example:\n  segno recurring history ID")]
    History(History),
    /// Explain why a recurring action did or did not run at a given time.
    #[command(after_help = "Example:\n  segno recurring explain ID --time 2026-03-29T01:00:00Z")]
    Explain(Explain),
    /// Run past occurrences that were not run.
    #[command(
        after_help = "Example:\n  segno recurring backfill ID --start 2026-03-01T00:00:00Z --end 2026-03-02T00:00:00Z --dry-run"
    )]
    Backfill(Backfill),
}

/// A recurring action to be made.
#[derive(Debug, Args)]
pub struct Create {
    /// The schedule.
    #[command(flatten)]
    pub schedule: ScheduleArguments,
    /// What is called.
    #[command(flatten)]
    pub call: Call,
    /// Policies for overlapping, missed and failing runs.
    #[command(flatten)]
    pub policy: Policy,
    /// Create the recurring action paused.
    #[arg(long)]
    pub paused: bool,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What is called.
#[derive(Debug, Args)]
pub struct Call {
    /// The function; it gets the input as it is.
    #[arg(long, value_name = "NAME")]
    pub function: Option<String>,
    /// The orchestration to start, in place of a function; it gets the input as it is.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["function", "provider", "action_type", "payload"])]
    pub orchestration: Option<String>,
    /// Input of the function or orchestration, JSON; `@FILE` reads a file and `-` standard input.
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// The function; it gets an object with action type, payload, metadata and dedup key.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["function", "input"])]
    pub provider: Option<String>,
    /// Type of the action, with `--provider`.
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["function", "input"])]
    pub action_type: Option<String>,
    /// The payload, with `--provider`: a JSON object; `@FILE` reads a file and `-` standard input.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["function", "input"])]
    pub payload: Option<String>,
    /// What the function gets besides, with `--provider`.
    #[arg(long = "metadata", value_name = "KEY=VALUE")]
    pub metadata: Vec<String>,
    /// A text that stands for the call; `{{recurring_id}}` and `{{execution_time}}` are expanded.
    #[arg(long, value_name = "TEXT")]
    pub dedup_key: Option<String>,
    /// Name of the recurring action, for humans and in place of its id.
    #[arg(long)]
    pub name: Option<String>,
    /// Description of the recurring action.
    #[arg(long)]
    pub description: Option<String>,
    /// A label.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
}

/// Policies for overlapping, missed and failing runs.
#[derive(Debug, Args)]
pub struct Policy {
    /// If the previous run has not ended: `allow`, `skip`, `buffer_one` or `cancel_other`.
    #[arg(long, value_name = "POLICY")]
    pub overlap_policy: Option<String>,
    /// Which occurrences to run that were missed while no server ran: `none`, `latest` or `all`.
    #[arg(long, value_name = "POLICY")]
    pub missed: Option<String>,
    /// With `--missed all`: how far back.
    #[arg(long, value_name = "DURATION")]
    pub catch_up_window: Option<HumanDuration>,
    /// With `--missed all`: how many in sequence.
    #[arg(long)]
    pub catch_up_limit: Option<u32>,
    /// Delay each occurrence by up to this much.
    #[arg(long, value_name = "DURATION")]
    pub jitter: Option<HumanDuration>,
    /// Disable the recurring action after this many executions.
    #[arg(long)]
    pub max_executions: Option<u64>,
    /// Pause the recurring action after this many consecutive failures.
    #[arg(long)]
    pub pause_after_failures: Option<u32>,
    /// For how long a dedup key suppresses further calls.
    #[arg(long, value_name = "DURATION")]
    pub dedup_window: Option<HumanDuration>,
}

/// Which ones.
#[derive(Debug, Args)]
pub struct List {
    /// Only those that fire, or that do not.
    #[arg(long)]
    pub enabled: Option<bool>,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// One recurring action.
#[derive(Debug, Args)]
pub struct One {
    /// Id or name of the recurring action.
    pub id: String,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What changes.
#[derive(Debug, Args)]
pub struct Update {
    /// Id or name of the recurring action.
    pub id: String,
    /// A cron expression.
    #[arg(long, value_name = "EXPRESSION", group = "new_rhythm")]
    pub cron: Option<String>,
    /// An interval, as in `15m`.
    #[arg(long, value_name = "DURATION", group = "new_rhythm")]
    pub every: Option<HumanDuration>,
    #[arg(long, value_name = "TIME", group = "new_rhythm", value_parser = moment::future, help = future_help!("One time"))]
    pub at: Option<Moment>,
    /// Time zone of the schedule.
    #[arg(long = "tz", visible_alias = "timezone", value_name = "ZONE")]
    pub timezone: Option<String>,
    #[arg(long, value_name = "TIME", value_parser = moment::future, help = future_help!("Nothing happens after this time"))]
    pub ends_at: Option<Moment>,
    /// Nothing happens on these days: `2026-12-25`, `12-25` (every year), `SAT`, or a range such as `12-24..01-01`.
    #[arg(long, value_name = "DAYS", value_delimiter = ',')]
    pub exclude: Vec<String>,
    /// What is called.
    #[command(flatten)]
    pub call: Call,
    /// Policies for overlapping, missed and failing runs.
    #[command(flatten)]
    pub policy: Policy,
    /// Remove a field, such as `ends_at`.
    #[arg(long, value_name = "FIELD")]
    pub clear: Vec<String>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// A pause.
#[derive(Debug, Args)]
pub struct Pause {
    /// Id or name of the recurring action.
    pub id: String,
    /// Why the recurring action is paused.
    #[arg(long)]
    pub note: Option<String>,
    #[arg(long, value_name = "TIME", value_parser = moment::future, help = future_help!("Resume by itself at this time"))]
    pub until: Option<Moment>,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// How much of the history.
#[derive(Debug, Args)]
pub struct History {
    /// Id or name of the recurring action.
    pub id: String,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Which time.
#[derive(Debug, Args)]
pub struct Explain {
    /// Id or name of the recurring action.
    pub id: String,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("The scheduled time in question"))]
    pub time: Moment,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Which range.
#[derive(Debug, Args)]
pub struct Backfill {
    /// Id or name of the recurring action.
    pub id: String,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("From this time on"))]
    pub start: Moment,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Up to and including this time"))]
    pub end: Moment,
    /// Maximum number.
    #[arg(long, default_value_t = 100)]
    pub limit: usize,
    /// Only list the occurrences to run.
    #[arg(long)]
    pub dry_run: bool,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to show of which schedule.
#[derive(Debug, Args)]
pub struct Preview {
    /// The schedule.
    #[command(flatten)]
    pub schedule: ScheduleArguments,
    #[arg(long, value_name = "TIME", default_value = "now", value_parser = moment::future, help = future_help!("Show times after this one"))]
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
    /// Time zone of the schedule and of the output, a name of the IANA database.
    #[arg(long = "tz", visible_alias = "timezone", value_name = "ZONE", default_value = "UTC")]
    pub timezone: String,
    /// What to do with local times that a clock change skips.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["every", "at"])]
    pub gap: GapRule,
    /// When to run at local times that a clock change repeats.
    #[arg(long, value_enum, default_value_t, conflicts_with_all = ["every", "at"])]
    pub overlap: OverlapRule,
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with_all = ["cron", "at"],
        value_parser = moment::anytime,
        help = anytime_help!("Count the intervals of `--every` from this time")
    )]
    pub anchor: Option<Moment>,
    #[arg(long, value_name = "TIME", value_parser = moment::future, help = future_help!("Nothing happens before this time"))]
    pub starts_at: Option<Moment>,
    #[arg(long, value_name = "TIME", value_parser = moment::future, help = future_help!("Nothing happens after this time"))]
    pub ends_at: Option<Moment>,
    /// Nothing happens on these days: `2026-12-25`, `12-25` (every year), `SAT`, or a range such as `12-24..01-01`.
    #[arg(long, value_name = "DAYS", value_delimiter = ',')]
    pub exclude: Vec<String>,
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
    #[arg(long, value_name = "TIME", value_parser = moment::future, help = future_help!("One time"))]
    pub at: Option<Moment>,
}

/// What becomes of local times that do not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum GapRule {
    /// Run the skipped times once, together, when the clock is put forward.
    #[default]
    Shift,
    /// Do not run the skipped times.
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
    /// The schedule in words; times that depend on now are fixed.
    ///
    /// # Errors
    /// When there is no such zone.
    pub fn spec(&self, output: &Output) -> Result<ScheduleSpec, Failure> {
        let zone = Some(self.timezone.as_str());
        let resolve =
            |moment: Option<Moment>| moment.map(|moment| on_clocks_of(zone, moment, output)).transpose();
        Ok(ScheduleSpec {
            cron_expr: self.rhythm.cron.clone(),
            every: self.rhythm.every,
            at: resolve(self.rhythm.at)?,
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
            anchor: resolve(self.anchor)?,
            starts_at: resolve(self.starts_at)?,
            ends_at: resolve(self.ends_at)?,
            exclude: self.exclude.clone(),
        })
    }
}

/// When a moment of a schedule is. The clocks of a schedule are those of its zone, which may be known to the server only.
///
/// # Errors
/// When there is no such zone, or it takes one and none is given.
pub fn on_clocks_of(zone: Option<&str>, moment: Moment, output: &Output) -> Result<Timestamp, Failure> {
    let Moment::Local(local) = moment else { return output.moment(moment) };
    let Some(zone) = zone else {
        let problem =
            format!("{local} is on the clocks of a schedule: pass its zone with --tz, or write RFC 3339");
        return Err(Failure::Refused(problem));
    };
    let zone = Zones::newest().get(zone).map_err(|error| refused(&error))?;
    Ok(moment.resolve(moment::now(&SystemClock), &zone))
}

/// A schedule that is refused is a mistake in what was asked: the flag is named in place of the field.
pub fn refused(error: &ScheduleError) -> Failure {
    let flag = match error.field() {
        "cron_expr" => "cron".to_owned(),
        "timezone" => "tz".to_owned(),
        field => field.replace('_', "-"),
    };
    Failure::invalid(error.code(), format!("--{flag}: {}", error.problem()))
}
