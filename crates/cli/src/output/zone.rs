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

/// A zone, and whether it is the one that was asked for.
#[derive(Debug, Clone)]
pub struct Zone {
    /// The zone.
    pub zone: TimeZone,
    /// The value of `TZ` if it names no zone, so that UTC takes its place.
    pub wrong: Option<String>,
}

impl Clocks {
    /// Their zone. A machine without a time zone is in UTC.
    pub fn zone(self) -> Zone {
        let known = |zone| Zone { zone, wrong: None };
        if self == Clocks::Utc {
            return known(TimeZone::UTC);
        }
        if let Ok(zone) = TimeZone::try_system() {
            return known(zone);
        }
        let named = std::env::var("TZ").ok().filter(|name| !name.is_empty());
        let Some(name) = named else { return known(TimeZone::UTC) };
        // Machines without a time zone database, as small containers are, know no name.
        match Zones::newest().get(name.trim_start_matches(':')) {
            Ok(zone) => known(zone),
            Err(_) => Zone { zone: TimeZone::UTC, wrong: Some(name) },
        }
    }
}
