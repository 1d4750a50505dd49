//! Partition definitions.

use serde::Serialize;

/// Which partitions there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Partitions {
    /// Windows of time, one after the other.
    Windows {
        /// How long each is.
        window: WindowSize,
        /// The zone whose clocks the windows follow.
        timezone: String,
        /// The key of the first window.
        first: String,
        /// The key of the last window; without it there is no end.
        #[serde(skip_serializing_if = "Option::is_none")]
        last: Option<String>,
    },
    /// A list of keys.
    Keys {
        /// The keys, in their order.
        values: Vec<String>,
    },
    /// Each key of one definition with each key of another.
    Grid {
        /// The names of the two.
        dimensions: [String; 2],
    },
}

/// How long a window is, by the clocks of its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowSize {
    /// From one full hour to the next.
    Hourly,
    /// From midnight to midnight.
    Daily,
    /// From Monday to Monday.
    Weekly,
    /// From the first of a month to that of the next.
    Monthly,
}
