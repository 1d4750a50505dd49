//! A schedule as it is sent and stored, and how it is checked.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::calendar::Calendar;
use super::compiled::{Rhythm, Schedule};
use super::cron::Pattern;
use super::daylight::LocalCron;
use super::error::ScheduleError;
use super::zones::Zones;
use crate::functions::HumanDuration;

/// The shortest interval in milliseconds; cron cannot say less either.
const MIN_EVERY_MS: u64 = 1_000;

/// A schedule in words: exactly one of `cron_expr`, `every` and `at`, and what goes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleSpec {
    /// A cron expression with 5, 6 (seconds first) or 7 (year last) fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron_expr: Option<String>,
    /// An interval, counted from `anchor` and not from the end of a run: it does not drift.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<HumanDuration>,
    /// One moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The zone whose clocks a cron expression means, and in which local times are shown.
    #[serde(default = "utc")]
    pub timezone: String,
    /// What a cron expression means where clocks are put forward or back.
    #[serde(default, skip_serializing_if = "Daylight::is_default")]
    pub daylight: Daylight,
    /// Where the intervals are counted from; `starts_at` without it, or else 1970-01-01T00:00:00Z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Timestamp>,
    /// Nothing happens before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<Timestamp>,
    /// Nothing happens after this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
    /// Days of the zone on which nothing happens: dates, dates of every year, weekdays, and ranges of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

fn utc() -> String {
    "UTC".to_owned()
}

/// What a cron expression with fixed hours means where clocks are put forward or back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Daylight {
    /// For local times that do not exist.
    pub gap: Gap,
    /// For local times that come twice.
    pub overlap: Overlap,
}

impl Daylight {
    fn is_default(&self) -> bool {
        *self == Daylight::default()
    }
}

/// What becomes of local times that do not exist, because the clock is put forward over them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// They happen once, together, at the moment when the clock is put forward.
    #[default]
    Shift,
    /// They do not happen.
    Skip,
}

/// When local times happen that come twice, because the clock is put back over them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The first time.
    #[default]
    First,
    /// The second time.
    Last,
    /// Both times.
    Both,
}

impl Default for ScheduleSpec {
    /// Says nothing yet, which does not compile.
    fn default() -> Self {
        ScheduleSpec {
            cron_expr: None,
            every: None,
            at: None,
            timezone: utc(),
            daylight: Daylight::default(),
            anchor: None,
            starts_at: None,
            ends_at: None,
            exclude: Vec::new(),
        }
    }
}

impl ScheduleSpec {
    /// A cron expression, in UTC until [`timezone`](Self::timezone) says otherwise.
    pub fn cron(expression: impl Into<String>) -> Self {
        ScheduleSpec { cron_expr: Some(expression.into()), ..Self::default() }
    }

    /// An interval.
    pub fn every(interval: HumanDuration) -> Self {
        ScheduleSpec { every: Some(interval), ..Self::default() }
    }

    /// One moment.
    pub fn at(time: Timestamp) -> Self {
        ScheduleSpec { at: Some(time), ..Self::default() }
    }

    /// In this zone.
    #[must_use]
    pub fn timezone(mut self, name: impl Into<String>) -> Self {
        self.timezone = name.into();
        self
    }

    /// With this rule for daylight saving.
    #[must_use]
    pub fn daylight(mut self, gap: Gap, overlap: Overlap) -> Self {
        self.daylight = Daylight { gap, overlap };
        self
    }

    /// Not on these days.
    #[must_use]
    pub fn exclude<T: Into<String>>(mut self, days: impl IntoIterator<Item = T>) -> Self {
        self.exclude = days.into_iter().map(Into::into).collect();
        self
    }

    /// Checks everything and gives a schedule that can be asked for its moments.
    ///
    /// # Errors
    /// When a field cannot be used: the error names it and says what to do.
    pub fn compile(&self, zones: &Zones) -> Result<Schedule, ScheduleError> {
        self.check_company()?;
        self.check_window()?;
        let zone = zones.get(&self.timezone)?;
        let rhythm = match (&self.cron_expr, self.every, self.at) {
            (Some(expression), None, None) => {
                let pattern = Pattern::parse(expression)?;
                Rhythm::Cron(Box::new(LocalCron::new(pattern, zone.clone(), self.daylight)))
            }
            (None, Some(interval), None) => self.interval(interval)?,
            (None, None, Some(time)) => Rhythm::Once(time),
            (None, None, None) => {
                return Err(ScheduleError::new(
                    "cron_expr",
                    "there is no schedule; give one of cron_expr, every and at",
                ));
            }
            (cron, ..) => {
                let field = if cron.is_some() { "cron_expr" } else { "every" };
                return Err(ScheduleError::new(
                    field,
                    "there is more than one schedule; give one of cron_expr, every and at, and leave the others out",
                ));
            }
        };
        let calendar = Calendar::read(&self.exclude)?;
        Ok(Schedule::new(rhythm, zone, calendar).within(self.starts_at, self.ends_at))
    }

    fn interval(&self, interval: HumanDuration) -> Result<Rhythm, ScheduleError> {
        if interval.as_ms() < MIN_EVERY_MS {
            return Err(ScheduleError::new("every", format!("{interval} is too short; give at least 1s")));
        }
        let anchor = self.anchor.or(self.starts_at).unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(Rhythm::Every { interval, anchor })
    }

    /// Fields that mean nothing beside the others are mistakes, not decoration.
    fn check_company(&self) -> Result<(), ScheduleError> {
        if self.cron_expr.is_none() && !self.daylight.is_default() {
            return Err(ScheduleError::new(
                "daylight",
                "only cron_expr is read by the clock on the wall; leave daylight out",
            ));
        }
        if self.every.is_none() && self.anchor.is_some() {
            return Err(ScheduleError::new(
                "anchor",
                "only every is counted from somewhere; leave anchor out",
            ));
        }
        Ok(())
    }

    fn check_window(&self) -> Result<(), ScheduleError> {
        if let (Some(starts_at), Some(ends_at)) = (self.starts_at, self.ends_at)
            && ends_at < starts_at
        {
            return Err(ScheduleError::new(
                "ends_at",
                format!("{ends_at} is before starts_at, {starts_at}; give a later time"),
            ));
        }
        let Some(at) = self.at else { return Ok(()) };
        if self.starts_at.is_some_and(|starts_at| at < starts_at) {
            return Err(ScheduleError::new("at", format!("{at} is before starts_at; leave starts_at out")));
        }
        if self.ends_at.is_some_and(|ends_at| at > ends_at) {
            return Err(ScheduleError::new("at", format!("{at} is after ends_at; leave ends_at out")));
        }
        Ok(())
    }
}
