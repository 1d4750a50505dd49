//! From the partition of one asset to those of another that it is made of, or that are made of it. Each mapping is the
//! same in both directions.

use jiff::Timestamp;

use super::error::PartitionError;
use super::set::PartitionSet;
use crate::plan::definition::PartitionMapping;

/// The keys of `to` that belong to a key of `from`. With [`PartitionMapping::All`], windows without a last one are those
/// that have ended at `until`.
///
/// # Errors
/// `invalid-partition` when the key is none of `from`, or the two definitions do not fit the mapping.
pub fn map_partition(
    mapping: PartitionMapping,
    (from, key): (&PartitionSet, &str),
    to: &PartitionSet,
    until: Timestamp,
) -> Result<Vec<String>, PartitionError> {
    from.check(key)?;
    match mapping {
        PartitionMapping::Same => {
            to.check(key)?;
            Ok(vec![key.to_owned()])
        }
        PartitionMapping::Window => match from.window(key) {
            Some(window) => to.overlapping(window),
            None => Err(PartitionError::new(format!("the partition {key:?} is not a window of time"))),
        },
        PartitionMapping::All => to.keys_until(until),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use segno_actions::schedule::Zones;

    use super::*;
    use crate::plan::definition::{Partitions, WindowSize};

    fn windows(window: WindowSize, timezone: &str, first: &str, last: Option<&str>) -> PartitionSet {
        let definition = Partitions::Windows {
            window,
            timezone: timezone.to_owned(),
            first: first.to_owned(),
            last: last.map(str::to_owned),
        };
        PartitionSet::compile(&definition, &BTreeMap::new(), &Zones::bundled()).unwrap()
    }

    #[test]
    fn a_partition_has_those_with_its_key_those_that_overlap_or_all() {
        let until = "2026-01-04T00:00:00Z".parse().unwrap();
        let day = windows(WindowSize::Daily, "UTC", "2026-01-01", None);
        let week = windows(WindowSize::Weekly, "UTC", "2025-W52", None);
        let hour = windows(WindowSize::Hourly, "Europe/Berlin", "2026-01-01T00:00+01:00", None);
        let berlin = windows(WindowSize::Daily, "Europe/Berlin", "2026-01-01", Some("2026-01-02"));
        let mapped = |mapping, from: &PartitionSet, key: &str, to: &PartitionSet| {
            map_partition(mapping, (from, key), to, until).map_err(|error| error.problem().to_owned())
        };
        use PartitionMapping::{All, Same, Window};
        assert_eq!(mapped(Same, &day, "2026-01-02", &day).unwrap(), ["2026-01-02"]);
        assert_eq!(mapped(Window, &day, "2026-01-02", &week).unwrap(), ["2026-W01"]);
        // The first three days of the week are before the first partition.
        let days = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"];
        assert_eq!(mapped(Window, &week, "2026-W01", &day).unwrap(), days);
        let hours = mapped(Window, &day, "2026-01-02", &hour).unwrap();
        assert_eq!((hours.len(), hours[0].as_str()), (24, "2026-01-02T01:00+01:00"));
        // Days of two zones overlap with two days.
        assert_eq!(mapped(Window, &day, "2026-01-02", &berlin).unwrap(), ["2026-01-02"]);
        assert_eq!(mapped(Window, &berlin, "2026-01-02", &day).unwrap(), ["2026-01-01", "2026-01-02"]);
        assert_eq!(mapped(All, &week, "2026-W01", &day).unwrap(), &days[..3]);
        assert_eq!(mapped(All, &week, "2026-W01", &berlin).unwrap(), ["2026-01-01", "2026-01-02"]);
        assert!(mapped(Same, &day, "2025-12-31", &day).unwrap_err().contains("before the first"));
    }
}
