//! The lag guard: a controller whose tables are old does nothing that would be wrong in the newer
//! ones.

/// How current the tables are.
///
/// An idle scope is not a lagging one, so two looks at the log count besides the last fold. A look
/// above the watermark shows that nothing newer waits; it cannot show an event below it. A complete
/// look shows both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// When the whole log was last listed and all of it was folded, in Unix milliseconds.
    pub complete_at: i64,
    /// When the log was last seen to have nothing above the watermark, in Unix milliseconds.
    pub tail_checked_at: i64,
}

impl Freshness {
    /// Tables that are current.
    pub fn current(now: i64) -> Self {
        Freshness { complete_at: now, tail_checked_at: now }
    }

    /// Whether intents may be appended that the fold ignores where they are late.
    pub fn allows_intents(&self, now: i64, limit_ms: i64) -> bool {
        now.saturating_sub(self.complete_at.max(self.tail_checked_at)) <= limit_ms
    }

    /// Whether an attempt may be ended whose sign of life may be below the watermark.
    pub fn allows_force_fail(&self, now: i64, limit_ms: i64) -> bool {
        now.saturating_sub(self.complete_at) <= limit_ms
    }

    /// How far the tables are behind.
    pub fn lag_ms(&self, now: i64) -> i64 {
        now.saturating_sub(self.complete_at)
    }
}
