//! A concurrency limit that follows the answers of a worker: additive increase, multiplicative
//! decrease (AIMD), by refusals and by latency. Pure.
//!
//! | what a call shows | what follows |
//! |---|---|
//! | an answer in usual time, with all places of the function taken | one more for every round of calls |
//! | an answer that took much longer than answers take | a tenth fewer, once a round |
//! | 429, 503, no connection, no answer in time | half, once a round |
//!
//! A round ends with the first call that was begun after the last decrease.

use std::time::Duration;

/// The limit never grows beyond this.
const MOST: usize = 64;

/// An answer is late if it takes so many times as long as the fastest lately.
const LATE_TIMES: u32 = 4;

/// And at least so long: below this, latency is that of the network and of this node.
const LATE_FROM: Duration = Duration::from_millis(50);

/// The fastest answer is that of so many answers, so that a worker that has become slower for good
/// is measured by itself.
const WINDOW: u32 = 64;

/// How a call that was sent has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The worker has answered, after this time.
    Answered(Duration),
    /// The worker is overloaded or not reachable.
    Overloaded,
}

/// How many calls of a function may be under way.
#[derive(Debug, Clone)]
pub struct Limit {
    start: usize,
    calls: f64,
    /// What its declaration allows.
    most: usize,
    /// Calls so far.
    begun: u64,
    /// Those up to this one say nothing new about an overload.
    decreased_at: u64,
    fastest: Duration,
    /// Of the window that has not ended yet.
    next_fastest: Duration,
    answers: u32,
}

impl Limit {
    /// A function of which nothing is known.
    pub fn new(start: usize) -> Self {
        Limit {
            start,
            calls: start as f64,
            most: MOST.max(start),
            begun: 0,
            decreased_at: 0,
            fastest: Duration::MAX,
            next_fastest: Duration::MAX,
            answers: 0,
        }
    }

    /// The limit.
    pub fn calls(&self) -> usize {
        (self.calls as usize).clamp(1, self.most)
    }

    /// Whether it is lower than that of a function of which nothing is known.
    pub fn is_low(&self) -> bool {
        self.calls() < self.start
    }

    /// The declaration of the function allows so many.
    pub fn bound(&mut self, most: usize) {
        self.most = most.clamp(1, MOST.max(self.start));
    }

    /// A call is begun; its number.
    pub fn begin(&mut self) -> u64 {
        self.begun += 1;
        self.begun
    }

    /// A call has ended. `is_full`: all that the limit allows were under way.
    pub fn end(&mut self, number: u64, ended: Ended, is_full: bool) {
        match ended {
            Ended::Overloaded => self.decrease(number, 0.5),
            Ended::Answered(took) if self.is_late(took) => self.decrease(number, 0.9),
            Ended::Answered(_) if is_full => {
                self.calls = (self.calls + 1.0 / self.calls).min(self.most as f64);
            }
            Ended::Answered(_) => {}
        }
        if let Ended::Answered(took) = ended {
            self.measure(took);
        }
    }

    fn is_late(&self, took: Duration) -> bool {
        took > LATE_FROM && took > self.fastest.saturating_mul(LATE_TIMES)
    }

    fn decrease(&mut self, number: u64, factor: f64) {
        if number > self.decreased_at {
            self.calls = (self.calls.min(self.most as f64) * factor).max(1.0);
            self.decreased_at = self.begun;
        }
    }

    fn measure(&mut self, took: Duration) {
        self.fastest = self.fastest.min(took);
        self.next_fastest = self.next_fastest.min(took);
        self.answers += 1;
        if self.answers == WINDOW {
            self.fastest = std::mem::replace(&mut self.next_fastest, Duration::MAX);
            self.answers = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Ended = Ended::Answered(Duration::from_millis(10));
    const SLOW: Ended = Ended::Answered(Duration::from_millis(500));

    /// So many rounds of as many calls as the limit allows.
    fn rounds(limit: &mut Limit, count: usize, ended: Ended) {
        for _ in 0..count {
            let numbers: Vec<u64> = (0..limit.calls()).map(|_| limit.begin()).collect();
            numbers.into_iter().for_each(|number| limit.end(number, ended, true));
        }
    }

    #[test]
    fn it_grows_by_one_a_round_halves_at_a_refusal_and_ends_at_its_bounds() {
        let mut limit = Limit::new(16);
        rounds(&mut limit, 8, FAST);
        assert!((22..=24).contains(&limit.calls()), "{}", limit.calls());
        rounds(&mut limit, 1, Ended::Overloaded);
        assert!((11..=12).contains(&limit.calls()), "once a round: {}", limit.calls());
        assert!(limit.is_low());
        rounds(&mut limit, 10, Ended::Overloaded);
        assert_eq!(limit.calls(), 1);
        rounds(&mut limit, 200, FAST);
        assert_eq!((limit.calls(), limit.is_low()), (MOST, false));
    }

    #[test]
    fn it_does_not_grow_while_it_is_not_used_up() {
        let mut limit = Limit::new(16);
        for _ in 0..1_000 {
            let number = limit.begin();
            limit.end(number, FAST, false);
        }
        assert_eq!(limit.calls(), 16);
    }

    #[test]
    fn answers_that_become_late_lower_it_and_slowness_of_its_own_does_not() {
        let mut limit = Limit::new(16);
        rounds(&mut limit, 1, FAST);
        rounds(&mut limit, 1, SLOW);
        assert!((14..=15).contains(&limit.calls()), "{}", limit.calls());
        let mut steady = Limit::new(16);
        rounds(&mut steady, 4, SLOW);
        assert!(steady.calls() > 16, "it has always taken that long");
        // What is late by a few milliseconds on a fast network is not.
        let mut near = Limit::new(16);
        rounds(&mut near, 1, Ended::Answered(Duration::from_micros(200)));
        rounds(&mut near, 1, Ended::Answered(Duration::from_millis(40)));
        assert!(near.calls() > 16);
        // A worker that has become slower for good is measured by itself after a while.
        rounds(&mut limit, 30, SLOW);
        assert!(!limit.is_low(), "{}", limit.calls());
    }

    #[test]
    fn the_declaration_has_the_last_word() {
        let mut limit = Limit::new(16);
        limit.bound(2);
        assert_eq!((limit.calls(), limit.is_low()), (2, true));
        rounds(&mut limit, 50, FAST);
        assert_eq!(limit.calls(), 2);
        limit.bound(1_000);
        assert!(limit.calls() <= MOST);
    }
}
