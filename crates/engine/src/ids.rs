//! Where ids and randomness come from: one injected source, and pure derivation from a recorded seed.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use crate::clock::{Clock, SystemClock};

/// A source of fresh ids and seeds.
pub trait IdSource: Send + Sync + 'static {
    /// A new unique id, increasing with time.
    fn new_uuid(&self) -> Uuid;
    /// A new random seed for an execution.
    fn new_seed(&self) -> u64;
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl SystemIds {
    /// The operating system's randomness, shared.
    pub fn shared() -> Arc<dyn IdSource> {
        Arc::new(SystemIds)
    }
}

impl IdSource for SystemIds {
    fn new_uuid(&self) -> Uuid {
        let place = next_place(&LAST_PLACE, SystemClock.now_ms());
        let mut rest = [0; 10];
        rest[..2].copy_from_slice(&((place % PLACES_PER_MS) as u16).to_be_bytes());
        rest[2..].copy_from_slice(&self.new_seed().to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(place / PLACES_PER_MS, &rest).into_uuid()
    }

    fn new_seed(&self) -> u64 {
        // Its keys come from the system once per thread and differ at every call, so that no execution costs a system call.
        RandomState::new().build_hasher().finish()
    }
}

/// How many ids of a millisecond have an order: what the 12 bits after the time in a UUID of version 7 can count.
const PLACES_PER_MS: u64 = 1 << 12;

/// The place of the last id of this process: milliseconds times [`PLACES_PER_MS`], and the number within the millisecond.
static LAST_PLACE: AtomicU64 = AtomicU64::new(0);

/// A place behind the last one, at this time or, when more were taken than a millisecond has or the clock went back, behind it.
fn next_place(last: &AtomicU64, now_ms: u64) -> u64 {
    let behind = |last: u64| (last + 1).max(now_ms * PLACES_PER_MS);
    let before = last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(behind(last)));
    behind(before.unwrap_or_else(|last| last))
}

/// Numbers that follow from a seed, the same on every replay.
#[derive(Debug, Clone)]
pub(crate) struct SeededRandom {
    seed: u64,
    drawn: u64,
}

impl SeededRandom {
    pub(crate) fn new(seed: u64) -> Self {
        SeededRandom { seed, drawn: 0 }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.drawn += 1;
        derive(self.seed, self.drawn)
    }

    pub(crate) fn next_uuid(&mut self) -> Uuid {
        let (high, low) = (self.next_u64(), self.next_u64());
        uuid::Builder::from_random_bytes(((u128::from(high) << 64) | u128::from(low)).to_be_bytes())
            .into_uuid()
    }
}

/// The `n`th number of a seed.
pub(crate) fn derive(seed: u64, n: u64) -> u64 {
    mix(mix(seed).wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// An id that follows from an execution's seed and one of its events: the idempotency key of an activity.
pub(crate) fn derived_uuid(seed: u64, event_id: u64) -> Uuid {
    const KEY_STREAM: u64 = 0x6964_656d_706f_7465;
    let high = derive(seed ^ KEY_STREAM, event_id);
    let low = derive(high, event_id);
    uuid::Builder::from_random_bytes(((u128::from(high) << 64) | u128::from(low)).to_be_bytes()).into_uuid()
}

/// The finaliser of splitmix64: every input bit reaches every output bit.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_go_up_whatever_the_clock_does() {
        let last = AtomicU64::new(0);
        let taken = [7, 7, 5, 8].map(|now_ms| next_place(&last, now_ms));
        let first = 7 * PLACES_PER_MS;
        assert_eq!(taken, [first, first + 1, first + 2, 8 * PLACES_PER_MS]);
        let many: Vec<u64> = (0..2 * PLACES_PER_MS).map(|_| next_place(&last, 8)).collect();
        assert!(many.windows(2).all(|pair| pair[0] < pair[1]), "more than a millisecond has");
    }

    #[test]
    fn ids_go_up_and_tell_the_time() {
        let before_ms = SystemClock.now_ms();
        let ids: Vec<Uuid> = (0..10_000).map(|_| SystemIds.new_uuid()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        let (seconds, nanos) = ids[0].get_timestamp().expect("version 7 has a time").to_unix();
        assert!(seconds * 1_000 + u64::from(nanos) / 1_000_000 >= before_ms);
        assert_eq!(ids[0].get_version_num(), 7);
        assert_eq!(ids[0].get_variant(), uuid::Variant::RFC4122);
    }
}
