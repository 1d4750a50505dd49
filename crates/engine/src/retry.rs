//! When to try a failed activity or step again. Pure arithmetic.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::duration_ms;
use crate::failure::{Category, Failure};
use crate::ids::derive;
use crate::limits::MAX_RETRY_AFTER;

/// How often, how soon and on what to try again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Attempts in all, the first included.
    #[serde(rename = "max")]
    max_attempts: u32,
    #[serde(rename = "first")]
    first_delay_ms: u64,
    #[serde(rename = "factor")]
    factor: f64,
    #[serde(rename = "cap")]
    max_delay_ms: u64,
    #[serde(rename = "jitter")]
    jitter: f64,
    #[serde(rename = "not_on", default, skip_serializing_if = "Vec::is_empty")]
    not_on: Vec<Category>,
}

impl Retry {
    /// A single attempt.
    pub fn never() -> Self {
        Self::fixed(1, Duration::ZERO)
    }

    /// `max_attempts` in all with the same pause between them.
    pub fn fixed(max_attempts: u32, delay: Duration) -> Self {
        Retry {
            max_attempts: max_attempts.max(1),
            first_delay_ms: duration_ms(delay),
            factor: 1.0,
            max_delay_ms: duration_ms(delay),
            jitter: 0.0,
            not_on: Vec::new(),
        }
    }

    /// `max_attempts` in all, each pause twice the one before, up to 30 s (or the first pause, if that is longer), with a
    /// fifth of jitter.
    pub fn exponential(max_attempts: u32, first_delay: Duration) -> Self {
        let max_delay_ms = duration_ms(first_delay).max(30_000);
        Retry { factor: 2.0, max_delay_ms, jitter: 0.2, ..Self::fixed(max_attempts, first_delay) }
    }

    /// The default pause pattern (100 ms, doubling, up to 30 s) with this many attempts.
    pub fn attempts(max_attempts: u32) -> Self {
        Self::exponential(max_attempts, Duration::from_millis(100))
    }

    /// Attempts in all, the first included.
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// Grows each pause by this factor (at least 1).
    #[must_use]
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = if factor.is_finite() { factor.max(1.0) } else { 1.0 };
        self.max_delay_ms = self.max_delay_ms.max(self.first_delay_ms);
        self
    }

    /// No pause is longer than this.
    #[must_use]
    pub fn max_delay(mut self, max_delay: Duration) -> Self {
        self.max_delay_ms = duration_ms(max_delay);
        self
    }

    /// Shortens each pause by a random share of up to `jitter` (0 to 1), so that retries spread out.
    #[must_use]
    pub fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
        self
    }

    /// Does not try again on this category.
    #[must_use]
    pub fn not_on(mut self, category: Category) -> Self {
        self.not_on.push(category);
        self
    }

    /// The backoff before the next attempt, or `None` to fail. `attempt` is the one that failed, from 1;
    /// `seed` decides the jitter, so the answer is the same whenever it is computed.
    pub(crate) fn next_delay_ms(&self, attempt: u32, failure: &Failure, seed: u64) -> Option<u64> {
        let hopeless = !failure.retryable
            || self.not_on.contains(&failure.category)
            || matches!(failure.category, Category::Cancelled | Category::Configuration | Category::Poison);
        if hopeless || attempt >= self.max_attempts {
            return None;
        }
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.first_delay_ms as f64 * self.factor.powi(exponent);
        let capped =
            if grown.is_finite() { grown.min(self.max_delay_ms as f64) } else { self.max_delay_ms as f64 };
        let share = (derive(seed, u64::from(attempt)) >> 11) as f64 / (1_u64 << 53) as f64;
        let pause_ms = (capped * (1.0 - self.jitter * share)).round() as u64;
        let asked_ms = failure.retry_after_ms.unwrap_or(0).min(duration_ms(MAX_RETRY_AFTER));
        Some(pause_ms.max(asked_ms))
    }
}

impl Default for Retry {
    /// One attempt: retries are requested, never assumed.
    fn default() -> Self {
        Self::never()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(retry: &Retry, failure: &Failure) -> Vec<Option<u64>> {
        (1..=6).map(|attempt| retry.next_delay_ms(attempt, failure, 7)).collect()
    }

    #[test]
    fn a_failure_can_ask_for_a_longer_pause_but_not_for_a_shorter_one() {
        let retry = Retry::fixed(3, Duration::from_secs(10));
        let asked = |seconds| Failure::application("x").retry_after(Duration::from_secs(seconds));
        assert_eq!(retry.next_delay_ms(1, &asked(3), 7), Some(10_000));
        assert_eq!(retry.next_delay_ms(1, &asked(30), 7), Some(30_000));
        assert_eq!(retry.next_delay_ms(1, &asked(u64::MAX), 7), Some(24 * 60 * 60 * 1_000));
        assert_eq!(retry.next_delay_ms(3, &asked(30), 7), None);
    }

    #[test]
    fn delays_follow_the_policy() {
        let app = Failure::application("x");
        let s = Duration::from_secs;
        assert_eq!(delays(&Retry::never(), &app), [None; 6]);
        assert_eq!(delays(&Retry::fixed(3, s(1)), &app), [Some(1000), Some(1000), None, None, None, None]);
        let exponential = Retry::exponential(6, s(1)).jitter(0.0).max_delay(s(5));
        assert_eq!(
            delays(&exponential, &app),
            [Some(1000), Some(2000), Some(4000), Some(5000), Some(5000), None]
        );
    }

    #[test]
    fn some_failures_are_never_retried() {
        let retry = Retry::fixed(5, Duration::ZERO).not_on(Category::Timeout);
        for (failure, again) in [
            (Failure::application("x"), true),
            (Failure::application("x").non_retryable(), false),
            (Failure::timeout("t", "x"), false),
            (Failure::new(Category::Infrastructure, "x"), true),
            (Failure::cancelled("x"), false),
            (Failure::new(Category::Poison, "x"), false),
            (Failure::configuration("c", "x"), false),
        ] {
            assert_eq!(retry.next_delay_ms(1, &failure, 1).is_some(), again, "{failure}");
        }
    }

    #[test]
    fn jitter_only_shortens_and_is_the_same_every_time() {
        let retry =
            Retry::exponential(100, Duration::from_secs(1)).jitter(0.5).max_delay(Duration::from_secs(1));
        let app = Failure::application("x");
        for seed in 0..200 {
            let delay = retry.next_delay_ms(1, &app, seed).unwrap();
            assert!((500..=1000).contains(&delay), "{delay}");
            assert_eq!(retry.next_delay_ms(1, &app, seed), Some(delay));
        }
        assert_eq!(retry.next_delay_ms(1, &app, 1), retry.next_delay_ms(1, &app, 1));
    }

    #[test]
    fn a_huge_attempt_number_does_not_overflow() {
        let retry = Retry::exponential(u32::MAX, Duration::from_secs(1)).jitter(0.0);
        assert_eq!(retry.next_delay_ms(u32::MAX - 1, &Failure::application("x"), 1), Some(30_000));
    }
}
