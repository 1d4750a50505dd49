//! Start-time fair queueing: one queue per tenant, and a virtual time that advances by what the jobs of the tenant have
//! cost. The next job is one of the tenant with the smallest virtual time, so that a tenant with slow jobs falls behind
//! those with fast ones instead of holding them up. Pure: costs come in, decisions go out.
//!
//! | bound | beyond it |
//! |---|---|
//! | jobs of one tenant that run at once | the next one waits, also while a thread is free |
//! | jobs of one tenant that wait | the newest is refused |
//! | jobs of all tenants that wait | the newest one of the longest queue is refused |

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

/// A job that may have lost the caller that waits for it.
pub(super) trait Abandonable {
    /// Whether no caller waits for it any more.
    fn is_abandoned(&self) -> bool;
}

/// How many jobs may run and wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Jobs of one key that run at once.
    pub(super) running_per_key: usize,
    /// Jobs that wait.
    pub(super) waiting: usize,
    /// Jobs of one key that wait.
    pub(super) waiting_per_key: usize,
}

/// What a new job has before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ahead {
    /// Nothing of its own key: it is next as soon as a thread is free.
    Nothing,
    /// Other jobs of its own key run or wait.
    OwnJobs,
}

/// A job that was taken in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Admitted<J> {
    /// What it has before it.
    pub(super) ahead: Ahead,
    /// A job of another key that had to give way and will not be run.
    pub(super) displaced: Option<J>,
}

/// Jobs by key.
pub(super) struct FairQueue<K, J> {
    bounds: Bounds,
    lines: HashMap<K, Line<J>>,
    /// Keys with a waiting job that may begin, by virtual time and then by arrival.
    ready: BTreeSet<(u64, u64, K)>,
    waiting: usize,
    /// Virtual time at which the last job began.
    now: u64,
    arrivals: u64,
}

/// The jobs of one key. It is forgotten when none is left.
struct Line<J> {
    waiting: VecDeque<J>,
    running: usize,
    /// Virtual time of its next job.
    time: u64,
    arrival: u64,
}

impl<K: Clone + Eq + Hash + Ord, J: Abandonable> FairQueue<K, J> {
    pub(super) fn new(bounds: Bounds) -> Self {
        FairQueue { bounds, lines: HashMap::new(), ready: BTreeSet::new(), waiting: 0, now: 0, arrivals: 0 }
    }

    /// Takes a job in, or gives it back when there is no room for it.
    pub(super) fn push(&mut self, key: &K, job: J) -> Result<Admitted<J>, J> {
        if self.waiting_of(key) >= self.bounds.waiting_per_key {
            self.forget_abandoned(key);
            if self.waiting_of(key) >= self.bounds.waiting_per_key {
                return Err(job);
            }
        }
        let displaced = match self.make_room(key) {
            Ok(displaced) => displaced,
            Err(NoRoom) => return Err(job),
        };
        self.arrivals += 1;
        let (now, arrival) = (self.now, self.arrivals);
        let new = || Line { waiting: VecDeque::new(), running: 0, time: now, arrival };
        let line = self.lines.entry(key.clone()).or_insert_with(new);
        let is_first = line.waiting.is_empty() && line.running == 0;
        line.waiting.push_back(job);
        self.waiting += 1;
        self.set_ready(key);
        let ahead = if is_first { Ahead::Nothing } else { Ahead::OwnJobs };
        Ok(Admitted { ahead, displaced })
    }

    /// The next job to run, with its key. [`FairQueue::finish`] has to follow.
    pub(super) fn begin(&mut self) -> Option<(K, J)> {
        loop {
            let (time, arrival, key) = self.ready.pop_first()?;
            let line = self.lines.get_mut(&key)?;
            let job = line.waiting.pop_front()?;
            self.waiting -= 1;
            if job.is_abandoned() {
                self.settle(&key);
                continue;
            }
            debug_assert_eq!((time, arrival), (line.time, line.arrival), "the set and the line agree");
            line.running += 1;
            // What it costs is not known yet; others of the same time are before the next one of this key.
            line.time = line.time.saturating_add(1);
            self.now = self.now.max(time);
            self.set_ready(&key);
            return Some((key, job));
        }
    }

    /// A job of this key has ended and has cost so much.
    pub(super) fn finish(&mut self, key: &K, cost: u64) {
        let Some(line) = self.lines.get_mut(key) else { return };
        self.ready.remove(&(line.time, line.arrival, key.clone()));
        line.running = line.running.saturating_sub(1);
        line.time = line.time.saturating_add(cost);
        self.settle(key);
    }

    fn waiting_of(&self, key: &K) -> usize {
        self.lines.get(key).map_or(0, |line| line.waiting.len())
    }

    /// Puts a line among the ready ones if it is, and forgets it if it is empty.
    fn settle(&mut self, key: &K) {
        match self.lines.get(key) {
            Some(line) if line.waiting.is_empty() && line.running == 0 => drop(self.lines.remove(key)),
            _ => self.set_ready(key),
        }
    }

    fn set_ready(&mut self, key: &K) {
        let Some(line) = self.lines.get(key) else { return };
        if !line.waiting.is_empty() && line.running < self.bounds.running_per_key {
            self.ready.insert((line.time, line.arrival, key.clone()));
        }
    }

    /// Drops the jobs of a key that no caller waits for.
    fn forget_abandoned(&mut self, key: &K) {
        let Some(line) = self.lines.get_mut(key) else { return };
        let before = line.waiting.len();
        line.waiting.retain(|job| !job.is_abandoned());
        self.waiting -= before - line.waiting.len();
        if line.waiting.is_empty() {
            self.ready.remove(&(line.time, line.arrival, key.clone()));
            self.settle(key);
        }
    }

    /// Makes room for one more job of a key: of those that wait too long already, the newest gives way.
    fn make_room(&mut self, key: &K) -> Result<Option<J>, NoRoom> {
        if self.waiting < self.bounds.waiting {
            return Ok(None);
        }
        for key in self.lines.keys().cloned().collect::<Vec<_>>() {
            self.forget_abandoned(&key);
        }
        if self.waiting < self.bounds.waiting {
            return Ok(None);
        }
        let lengths = self.lines.iter().map(|(key, line)| (line.waiting.len(), key));
        let Some((length, longest)) = lengths.max() else { return Err(NoRoom) };
        // A queue that would be as long after it has no better claim.
        if length <= self.waiting_of(key) + 1 {
            return Err(NoRoom);
        }
        let longest = longest.clone();
        let displaced = self.lines.get_mut(&longest).and_then(|line| line.waiting.pop_back());
        self.waiting -= usize::from(displaced.is_some());
        Ok(displaced)
    }
}

/// Every queue is as long as it may be.
struct NoRoom;

#[cfg(test)]
mod tests {
    use super::*;

    /// A job with a name; in capitals, no caller waits for it.
    impl Abandonable for &'static str {
        fn is_abandoned(&self) -> bool {
            self.chars().all(|c| c.is_ascii_uppercase())
        }
    }

    fn queue(waiting: usize, waiting_per_key: usize) -> FairQueue<char, &'static str> {
        FairQueue::new(Bounds { running_per_key: 2, waiting, waiting_per_key })
    }

    fn push(queue: &mut FairQueue<char, &'static str>, key: char, job: &'static str) {
        assert_eq!(queue.push(&key, job).unwrap().displaced, None);
    }

    #[test]
    fn a_tenant_is_next_after_at_most_one_job_of_another() {
        let mut queue = queue(100, 100);
        for job in ["a1", "a2", "a3", "a4", "a5"] {
            push(&mut queue, 'a', job);
        }
        assert_eq!(queue.begin(), Some(('a', "a1")));
        assert_eq!(queue.begin(), Some(('a', "a2")));
        assert_eq!(queue.begin(), None, "one tenant never has all threads");
        push(&mut queue, 'b', "b1");
        assert_eq!(queue.begin(), Some(('b', "b1")));
        push(&mut queue, 'c', "c1");
        queue.finish(&'a', 500);
        assert_eq!(queue.begin(), Some(('c', "c1")), "a new tenant is before the next job of a slow one");
        queue.finish(&'b', 1);
        assert_eq!(queue.begin(), Some(('a', "a3")));
    }

    #[test]
    fn shares_are_of_time_and_not_of_jobs() {
        let mut queue = queue(100, 100);
        for job in ["slow1", "slow2", "slow3"] {
            push(&mut queue, 's', job);
        }
        for job in ["quick1", "quick2", "quick3", "quick4"] {
            push(&mut queue, 'q', job);
        }
        let mut order = Vec::new();
        while let Some((key, job)) = queue.begin() {
            order.push(job);
            queue.finish(&key, if key == 's' { 30 } else { 10 });
        }
        assert_eq!(order, ["slow1", "quick1", "quick2", "quick3", "slow2", "quick4", "slow3"]);
        assert!(queue.lines.is_empty() && queue.ready.is_empty() && queue.waiting == 0);
    }

    #[test]
    fn a_tenant_that_was_away_has_saved_up_nothing() {
        let mut queue = queue(100, 100);
        push(&mut queue, 'a', "a1");
        for _ in 0..10 {
            let (key, _) = queue.begin().unwrap();
            push(&mut queue, 'a', "again");
            queue.finish(&key, 100);
        }
        for job in ["b1", "b2", "b3"] {
            push(&mut queue, 'b', job);
        }
        let mut order = Vec::new();
        while let Some((key, job)) = queue.begin() {
            order.push(job);
            queue.finish(&key, 100);
        }
        assert_eq!(order, ["b1", "again", "b2", "b3"], "it is before the other once, not ten times");
    }

    #[test]
    fn a_full_queue_of_one_tenant_refuses_its_own_jobs_only() {
        let mut queue = queue(100, 2);
        push(&mut queue, 'a', "a1");
        push(&mut queue, 'a', "a2");
        assert_eq!(queue.push(&'a', "a3"), Err("a3"));
        assert_eq!(queue.push(&'b', "b1").unwrap().ahead, Ahead::Nothing);
        assert_eq!(queue.push(&'b', "b2").unwrap().ahead, Ahead::OwnJobs);
    }

    #[test]
    fn when_all_is_full_the_longest_queue_gives_way() {
        let mut queue = queue(4, 4);
        for job in ["a1", "a2", "a3"] {
            push(&mut queue, 'a', job);
        }
        push(&mut queue, 'b', "b1");
        assert_eq!(queue.push(&'a', "a4"), Err("a4"), "it is the longest itself");
        let admitted = queue.push(&'c', "c1").unwrap();
        assert_eq!(admitted.displaced, Some("a3"), "the newest one of the longest queue");
        assert_eq!(queue.push(&'b', "b2"), Err("b2"), "its queue would be as long as the longest");
        assert_eq!(queue.waiting, 4);
    }

    #[test]
    fn jobs_without_a_caller_take_no_place_and_no_thread() {
        let mut queue = queue(3, 2);
        push(&mut queue, 'a', "GONE");
        push(&mut queue, 'a', "LEFT");
        push(&mut queue, 'a', "a1");
        push(&mut queue, 'a', "a2");
        assert_eq!(queue.waiting, 2);
        push(&mut queue, 'b', "AWAY");
        push(&mut queue, 'c', "c1");
        assert_eq!(queue.waiting, 3, "room was made by forgetting");
        let order: Vec<_> = std::iter::from_fn(|| queue.begin().map(|(_, job)| job)).collect();
        assert_eq!(order, ["a1", "c1", "a2"]);
    }

    /// Whatever the order of calls, what the queue counts is what is in it, and no bound is broken.
    #[test]
    fn the_bounds_hold_for_random_calls() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut queue = queue(6, 3);
        let mut running: Vec<char> = Vec::new();
        for _ in 0..10_000 {
            let key = ['a', 'b', 'c', 'd'][random.usize(..4)];
            match random.u8(..3) {
                0 => drop(queue.push(&key, if random.u8(..4) == 0 { "GONE" } else { "job" })),
                1 if running.len() < 3 => running.extend(queue.begin().map(|(key, _)| key)),
                _ if !running.is_empty() => {
                    let key = running.swap_remove(random.usize(..running.len()));
                    queue.finish(&key, random.u64(..100));
                }
                _ => {}
            }
            let waiting: usize = queue.lines.values().map(|line| line.waiting.len()).sum();
            assert_eq!(queue.waiting, waiting);
            assert!(waiting <= 6 && queue.lines.values().all(|line| line.waiting.len() <= 3));
            for (key, line) in &queue.lines {
                let runs = running.iter().filter(|other| *other == key).count();
                assert_eq!(line.running, runs);
                let is_ready = queue.ready.contains(&(line.time, line.arrival, *key));
                assert_eq!(is_ready, !line.waiting.is_empty() && runs < 2, "{key}");
            }
            let ready = queue.lines.values().filter(|line| !line.waiting.is_empty() && line.running < 2);
            assert_eq!(queue.ready.len(), ready.count());
        }
    }
}
