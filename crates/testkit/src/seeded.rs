//! Ids and random numbers that follow from a seed, so that a run can be repeated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use segno::ids::IdSource;
use uuid::Uuid;

/// Random numbers that follow from a seed (splitmix64).
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Random { state: mix(seed ^ 0x5365_676e_6f21) }
    }

    /// Numbers of their own for a part of the test, so that more draws in one part do not change the others.
    pub fn fork(&mut self) -> Self {
        Random::new(self.next_u64())
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next_u64() % end.max(1)
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// True `times` out of `of`.
    pub fn chance(&mut self, times: u64, of: u64) -> bool {
        self.below(of) < times
    }
}

/// Ids in a fixed order: the same seed gives the same ids.
#[derive(Debug)]
pub struct SeededIds {
    seed: u64,
    taken: AtomicU64,
}

impl SeededIds {
    /// The ids of a seed.
    pub fn shared(seed: u64) -> Arc<SeededIds> {
        Arc::new(SeededIds { seed, taken: AtomicU64::new(0) })
    }

    fn take(&self) -> u64 {
        self.taken.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl IdSource for SeededIds {
    fn new_uuid(&self) -> Uuid {
        let taken = self.take();
        Uuid::from_u64_pair(taken, mix(mix(self.seed).wrapping_add(taken)))
    }

    fn new_seed(&self) -> u64 {
        mix(mix(self.seed ^ 0xa5a5).wrapping_add(self.take()))
    }
}

/// The finaliser of splitmix64.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_ids_every_time() {
        let draw = |seed| {
            let (mut random, ids) = (Random::new(seed), SeededIds::shared(seed));
            (random.next_u64(), random.fork().below(1_000), ids.new_uuid(), ids.new_seed(), ids.new_uuid())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn ids_are_unique_and_increase() {
        let ids = SeededIds::shared(1);
        let drawn: Vec<Uuid> = (0..100).map(|_| ids.new_uuid()).collect();
        assert!(drawn.is_sorted_by(|one, next| one < next));
    }
}
