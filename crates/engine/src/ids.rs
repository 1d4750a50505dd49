//! Where ids and randomness come from: one injected source, and pure derivation from a recorded seed.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

use uuid::Uuid;

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
    #[expect(clippy::disallowed_methods, reason = "the one place that makes fresh ids")]
    fn new_uuid(&self) -> Uuid {
        Uuid::now_v7()
    }

    fn new_seed(&self) -> u64 {
        // Its keys come from the system once per thread and differ at every call, so that no execution costs a system call.
        RandomState::new().build_hasher().finish()
    }
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
