//! The log's tail: what it has beyond the last checkpoint. Opening after a crash reads it again, so it is bounded in
//! bytes, in rows and in time.

use std::time::Duration;

use segno::clock::duration_ms;

use crate::rows::overlay::Overlay;

/// Bounds of the tail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TailLimits {
    /// Changes in memory.
    pub(crate) bytes: usize,
    /// Rows that differ from the last checkpoint.
    pub(crate) rows: usize,
    /// Length of the log. Rows that are made and removed again leave no trace in memory, but are in the log.
    pub(crate) logged_bytes: u64,
    /// Age of the oldest change.
    pub(crate) age: Duration,
}

/// The tail.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    logged_bytes: u64,
    since_ms: Option<u64>,
}

impl Tail {
    /// Something was logged, or is about to be.
    pub(crate) fn grow(&mut self, bytes: usize, now_ms: u64) {
        self.logged_bytes += bytes as u64;
        self.since_ms.get_or_insert(now_ms);
    }

    /// Whether it is time for a checkpoint.
    pub(crate) fn is_due(&self, changes: &Overlay, limits: &TailLimits, now_ms: u64) -> bool {
        let is_old =
            |since_ms: u64| now_ms.saturating_sub(since_ms) >= duration_ms(limits.age) && !changes.is_empty();
        changes.bytes() >= limits.bytes
            || changes.len() >= limits.rows
            || self.logged_bytes >= limits.logged_bytes
            || self.since_ms.is_some_and(is_old)
    }

    /// Length in the log.
    pub(crate) fn logged_bytes(&self) -> u64 {
        self.logged_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::keys::Key;
    use bytes::Bytes;

    const LIMITS: TailLimits =
        TailLimits { bytes: 1_000, rows: 3, logged_bytes: 500, age: Duration::from_secs(60) };

    fn changes(rows: u8, value: &'static [u8]) -> Overlay {
        let mut changes = Overlay::default();
        (0..rows).for_each(|row| changes.put(Key::from_slice(&[row]), Bytes::from_static(value)));
        changes
    }

    #[test]
    fn every_bound_alone_makes_a_checkpoint_due() {
        let mut tail = Tail::default();
        tail.grow(10, 5_000);
        assert!(!tail.is_due(&changes(2, b"a"), &LIMITS, 64_999));
        assert!(tail.is_due(&changes(2, b"a"), &LIMITS, 65_000), "old");
        assert!(tail.is_due(&changes(3, b"a"), &LIMITS, 5_000), "many rows");
        assert!(tail.is_due(&changes(1, &[0; 1_000]), &LIMITS, 5_000), "long rows");
        assert!(!tail.is_due(&changes(0, b""), &LIMITS, 65_000), "nothing changed");
        tail.grow(490, 5_000);
        assert!(tail.is_due(&changes(0, b""), &LIMITS, 5_000), "a long log");
    }
}
