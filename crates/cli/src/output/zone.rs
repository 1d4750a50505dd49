//! The zone of the times in tables, and of times that are given without one.

use jiff::tz::TimeZone;
use segno_server::schedule::Zones;

/// Which clocks times are shown on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    /// Those of this machine: `TZ`, else the system's.
    Local,
    /// UTC.
    Utc,
}

impl Clocks {
    /// Their zone. A machine that does not say where it is, is in UTC.
    pub fn zone(self) -> TimeZone {
        match self {
            Clocks::Utc => TimeZone::UTC,
            Clocks::Local => TimeZone::try_system().ok().or_else(bundled).unwrap_or(TimeZone::UTC),
        }
    }
}

/// The zone that `TZ` names, on machines without a time zone database, as small containers are.
fn bundled() -> Option<TimeZone> {
    let name = std::env::var("TZ").ok()?;
    Zones::newest().get(name.trim_start_matches(':')).ok()
}
