//! A histogram with logarithmic buckets: eight for each power of two, so that a quantile is at most
//! an eighth above the truth.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Buckets for each power of two.
const PER_OCTAVE: u64 = 8;

/// How often each time occurred, in milliseconds, by bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram(BTreeMap<u16, u64>);

impl Histogram {
    /// Counts a time.
    pub fn record(&mut self, ms: u64) {
        *self.0.entry(bucket(ms)).or_default() += 1;
    }

    /// Adds the counts of another one.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.0 {
            let sum = self.0.entry(*bucket).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// The time that a share of all did not exceed, in parts of a hundred; `None` when nothing is
    /// counted.
    pub fn quantile(&self, percent: u64) -> Option<u64> {
        let total: u64 = self.0.values().fold(0, |sum, count| sum.saturating_add(*count));
        let wanted = (u128::from(total) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        for (bucket, count) in &self.0 {
            seen += u128::from(*count);
            if seen >= wanted {
                return Some(upper_bound(*bucket));
            }
        }
        None
    }
}

/// The bucket of a time. Times below 8 ms have one each.
fn bucket(ms: u64) -> u16 {
    if ms < PER_OCTAVE {
        return ms as u16;
    }
    let octave = u64::from(ms.ilog2());
    let within = (ms >> (octave - 3)) - PER_OCTAVE;
    ((octave - 2) * PER_OCTAVE + within) as u16
}

/// The longest time of a bucket.
fn upper_bound(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < PER_OCTAVE {
        return bucket;
    }
    let (octave, within) = (bucket / PER_OCTAVE + 2, bucket % PER_OCTAVE);
    let next = u128::from(PER_OCTAVE + within + 1) << (octave.min(100) - 3);
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_at_most_an_eighth_below_the_bound_of_its_bucket() {
        let mut before = 0;
        for ms in (0..10_000).chain([65_535, 65_536, 3_600_000, u64::MAX / 3, u64::MAX]) {
            let (bucket, bound) = (bucket(ms), upper_bound(bucket(ms)));
            assert!(bucket >= before && bound >= ms && bound - ms <= ms / 8, "{ms}: {bucket} {bound}");
            before = bucket;
        }
    }

    #[test]
    fn quantiles_are_those_of_all_that_is_merged() {
        let (mut one, mut other) = (Histogram::default(), Histogram::default());
        assert_eq!(one.quantile(50), None);
        for ms in 1..=98 {
            one.record(ms % 4);
        }
        other.record(1_000);
        other.record(60_000);
        one.merge(&other);
        assert_eq!(one.quantile(49), Some(1));
        assert_eq!(one.quantile(50), Some(2));
        assert_eq!(one.quantile(99), Some(1_023));
        assert_eq!(one.quantile(100), Some(61_439));
    }
}
