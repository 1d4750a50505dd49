//! Admission control for calls that a node sends or runs: how many may be fetched, and which functions
//! and scopes have enough under way.
//!
//! A fetch that is admitted can be run whole, whatever functions its calls are of: it asks for no
//! more than the fewest places that any function and scope which it does not leave out may take.
//! So no call is leased that has to wait, and calls begin in the order in which they were made.
//! When a function or scope that was left out has a place again, the next admission has it again.
//!
//! How many places one function may take follows from its worker's answers ([`Limit`]). Functions
//! with a low limit would make every fetch small. The usual fetches leave them out, and fetches of
//! their own get their calls, by their tags.
//!
//! How many places one function and one scope (namespace and tenant) may take follows from how many
//! are free (dynamic thresholds): the more scopes want places, the closer they come to equal shares.
//! Some places are reserved: a scope gets one of them only while it has nothing under way. So a few
//! scopes that together take all they can get leave a place at once to as many others as places are
//! reserved, and what becomes free goes to scopes without calls under way first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use segno::limits::{MAX_EXCEPT_PREFIXES, MAX_WORKER_TAGS};
use segno::store::{TagFilter, TagPrefixes};
use segno_actions::functions::tag_scope;
use tokio::sync::Notify;

use super::limit::{Ended, Limit};

/// Most functions without calls under way whose low limits are kept.
const MAX_IDLE_LIMITS: usize = 96;

/// A scope may take so many times the places that are free.
const SCOPE_WEIGHT: usize = 3;

/// Most scopes that one fetch leaves out, those with the most under way: each is left out once for the
/// calls without a tag, and once for each tag of the node.
const MAX_LEFT_OUT_SCOPES: usize = MAX_EXCEPT_PREFIXES / (MAX_WORKER_TAGS + 1);

/// How many places there are, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    /// All of them.
    pub places: usize,
    /// For one function, as long as its worker has not shown that it takes more or less; without it
    /// as many as for its scope.
    pub of_a_function: Option<usize>,
    /// At most so many for one scope.
    pub of_a_scope: usize,
    /// So many of all are for scopes that have nothing under way.
    pub reserved: usize,
}

/// The places of one loop that sends calls.
#[derive(Clone)]
pub struct Places {
    shares: Shares,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    taken: Mutex<Taken>,
    /// Keeps a signal that comes before anything waits for it.
    freed: Notify,
    /// The same for fetches of functions with low limits.
    freed_low: Notify,
}

/// How many places are taken. No count is 0.
#[derive(Default)]
struct Taken {
    all: usize,
    /// By the routing tag of the function.
    by_tag: BTreeMap<String, usize>,
    /// By what the tags of the scope have in common.
    by_scope: BTreeMap<String, usize>,
    /// Of functions with calls under way or a low limit.
    limits: BTreeMap<String, Limit>,
}

/// Functions and scopes that have enough under way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Routing tags of functions: those that have enough, and those with a low limit.
    pub tags: BTreeSet<String>,
    /// Scopes, as [`tag_scope`] has them.
    pub scopes: BTreeSet<String>,
}

impl LeftOut {
    /// The tags to fetch. A scope is left out under each prefix, because its share does not depend on
    /// the tags of its functions.
    pub fn filter(self, prefixes: &BTreeSet<String>) -> TagFilter {
        let scopes = &self.scopes;
        let except_prefixes =
            prefixes.iter().flat_map(|prefix| scopes.iter().map(move |scope| format!("{prefix}{scope}")));
        TagFilter::Prefixes(TagPrefixes {
            prefixes: prefixes.clone(),
            except_prefixes: except_prefixes.collect(),
            except: self.tags,
        })
    }
}

/// What may be fetched.
pub struct Admission {
    /// At most so many calls.
    pub most: usize,
    /// What has enough under way.
    pub left_out: LeftOut,
    /// Done when some of that has a free place again.
    pub changed: BoxFuture<'static, ()>,
}

/// What may be fetched of functions with low limits.
pub struct LowAdmission {
    /// At most so many calls.
    pub most: usize,
    /// Of functions with these routing tags.
    pub tags: BTreeSet<String>,
    /// Done when it may be others.
    pub changed: BoxFuture<'static, ()>,
}

/// How many places may be taken while so many are free.
#[derive(Clone, Copy)]
struct Limits {
    /// Free and not reserved.
    open: usize,
    function: Option<usize>,
    scope: usize,
}

impl Limits {
    /// How many places one function may take; `None` when its scope decides.
    fn of_function(&self, taken: &Taken, tag: &str) -> Option<usize> {
        let start = self.function?;
        Some(taken.limits.get(tag).map_or(start, Limit::calls).min(self.open).max(1))
    }

    /// How many more a function with so many may take at once: what it takes is free no more, so
    /// that its limit is lower then.
    fn room(&self, taken: &Taken, tag: &str) -> usize {
        let count = taken.by_tag.get(tag).copied().unwrap_or_default();
        self.of_function(taken, tag).map_or(usize::MAX, |most| self.room_of(most, count))
    }

    fn room_of(&self, most: usize, count: usize) -> usize {
        most.saturating_sub(count).min(self.open.saturating_sub(count) / 2).max(1)
    }

    /// The same for a scope.
    fn scope_room(&self, count: usize) -> usize {
        let weighted = self.open.saturating_mul(SCOPE_WEIGHT).saturating_sub(count);
        self.scope.saturating_sub(count).min(weighted / (SCOPE_WEIGHT + 1)).max(1)
    }

    fn is_full(&self, taken: &Taken, tag: &str) -> bool {
        let count = taken.by_tag.get(tag).copied().unwrap_or_default();
        self.of_function(taken, tag).is_some_and(|most| count >= most)
    }

    /// Whether the usual fetches leave a function out.
    fn is_left_out(&self, taken: &Taken, tag: &str) -> bool {
        taken.limits.get(tag).is_some_and(Limit::is_low) || self.is_full(taken, tag)
    }

    /// Scopes that have enough, those with the most if there are too many to leave out.
    fn full_scopes(&self, taken: &Taken) -> BTreeSet<String> {
        let mut full: Vec<_> = taken.by_scope.iter().filter(|(_, count)| **count >= self.scope).collect();
        full.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        full.into_iter().take(MAX_LEFT_OUT_SCOPES).map(|(scope, _)| scope.clone()).collect()
    }

    fn is_full_scope(&self, taken: &Taken, scope: &str) -> bool {
        taken.by_scope.get(scope).is_some_and(|count| *count >= self.scope)
    }
}

impl Places {
    /// So many places, all free.
    pub fn new(shares: Shares) -> Self {
        Places { shares, shared: Arc::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something may be fetched.
    pub async fn admit(&self) -> Admission {
        loop {
            if let Some((most, left_out)) = self.admissible() {
                let (places, waiting) = (self.clone(), left_out.clone());
                let changed = Box::pin(async move { places.one_of(&waiting).await });
                return Admission { most, left_out, changed };
            }
            self.shared.freed.notified().await;
        }
    }

    fn limits(&self, taken: &Taken) -> Limits {
        let free = self.shares.places.saturating_sub(taken.all);
        let open = free.saturating_sub(self.shares.reserved);
        Limits {
            open,
            function: self.shares.of_a_function,
            scope: self.shares.of_a_scope.min(open.saturating_mul(SCOPE_WEIGHT)).max(1),
        }
    }

    /// How many calls may be fetched, and what has enough; `None` when all places are taken.
    fn admissible(&self) -> Option<(usize, LeftOut)> {
        let taken = self.taken();
        if taken.all >= self.shares.places {
            return None;
        }
        let limits = self.limits(&taken);
        let mut left_out = LeftOut { scopes: limits.full_scopes(&taken), ..LeftOut::default() };
        // A function or scope that has nothing under way may be fetched too.
        let unknown =
            limits.function.map_or(usize::MAX, |start| limits.room_of(start.min(limits.open).max(1), 0));
        let mut most = unknown.min(limits.scope_room(0));
        for (_, count) in taken.by_scope.iter().filter(|(scope, _)| !left_out.scopes.contains(*scope)) {
            most = most.min(limits.scope_room(*count));
        }
        for tag in taken.by_tag.keys().chain(taken.limits.keys()) {
            if tag_scope(tag).is_some_and(|scope| left_out.scopes.contains(scope)) {
                continue;
            }
            if limits.is_left_out(&taken, tag) {
                left_out.tags.insert(tag.clone());
            } else {
                most = most.min(limits.room(&taken, tag));
            }
        }
        Some((most, left_out))
    }

    /// Waits until calls of functions with low limits may be fetched.
    pub async fn admit_low(&self) -> LowAdmission {
        loop {
            if let Some((most, tags)) = self.admissible_low() {
                let (places, fetching) = (self.clone(), tags.clone());
                let changed = Box::pin(async move { places.other_than(&fetching).await });
                return LowAdmission { most, tags, changed };
            }
            self.shared.freed_low.notified().await;
        }
    }

    /// Functions with low limits that have places left, and how many calls of them may be fetched
    /// at once.
    fn admissible_low(&self) -> Option<(usize, BTreeSet<String>)> {
        let taken = self.taken();
        if taken.all >= self.shares.places {
            return None;
        }
        let limits = self.limits(&taken);
        let is_open = |tag: &str| {
            let is_full_scope = tag_scope(tag).is_some_and(|scope| limits.is_full_scope(&taken, scope));
            !is_full_scope && !limits.is_full(&taken, tag)
        };
        let low = taken.limits.iter().filter(|(tag, limit)| limit.is_low() && is_open(tag));
        let tags: BTreeSet<String> = low.map(|(tag, _)| tag.clone()).collect();
        let room = |tag: &String| {
            let scope = tag_scope(tag).and_then(|scope| taken.by_scope.get(scope)).copied();
            limits.room(&taken, tag).min(limits.scope_room(scope.unwrap_or_default()))
        };
        let most = tags.iter().map(room).min()?;
        Some((most, tags))
    }

    /// Waits until functions other than these may be fetched by themselves.
    async fn other_than(&self, fetching: &BTreeSet<String>) {
        while self.admissible_low().is_some_and(|(_, tags)| tags == *fetching) {
            self.shared.freed_low.notified().await;
        }
    }

    /// Waits until some of what was left out has a free place.
    async fn one_of(&self, left_out: &LeftOut) {
        if *left_out == LeftOut::default() {
            return std::future::pending().await;
        }
        loop {
            {
                let taken = self.taken();
                let limits = self.limits(&taken);
                let are_full = left_out.tags.iter().all(|tag| limits.is_left_out(&taken, tag))
                    && left_out.scopes.iter().all(|scope| limits.is_full_scope(&taken, scope));
                if !are_full {
                    return;
                }
            }
            self.shared.freed.notified().await;
        }
    }

    /// Takes a place for a call with this routing tag.
    pub fn take(&self, tag: &str) -> Place {
        let scope = tag_scope(tag);
        let mut taken = self.taken();
        taken.all += 1;
        *taken.by_tag.entry(tag.to_owned()).or_default() += 1;
        if let Some(scope) = scope {
            *taken.by_scope.entry(scope.to_owned()).or_default() += 1;
        }
        let number = self.shares.of_a_function.map_or(0, |start| {
            let limit = taken.limits.entry(tag.to_owned()).or_insert_with(|| Limit::new(start));
            limit.begin()
        });
        Place { places: self.clone(), tag: tag.to_owned(), number }
    }

    fn changed(&self) {
        self.shared.freed.notify_one();
        self.shared.freed_low.notify_one();
    }
}

/// A call under way. Its place is free when this is dropped.
pub struct Place {
    places: Places,
    tag: String,
    /// Of the call, among those of its function.
    number: u64,
}

impl Place {
    /// The declaration of the function allows so many calls at once. Whether this one is among
    /// them.
    pub fn bound(&self, most: usize) -> bool {
        let mut taken = self.places.taken();
        let count = taken.by_tag.get(&self.tag).copied().unwrap_or_default();
        if let Some(limit) = taken.limits.get_mut(&self.tag) {
            limit.bound(most);
        }
        count <= most
    }

    /// The worker has shown how busy it is.
    pub fn ended(&self, ended: Ended) {
        let mut taken = self.places.taken();
        let count = taken.by_tag.get(&self.tag).copied().unwrap_or_default();
        if let Some(limit) = taken.limits.get_mut(&self.tag) {
            let is_full = count >= limit.calls();
            limit.end(self.number, ended, is_full);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        {
            let mut taken = self.places.taken();
            taken.all -= 1;
            count_down(&mut taken.by_tag, &self.tag);
            if let Some(scope) = tag_scope(&self.tag) {
                count_down(&mut taken.by_scope, scope);
            }
            taken.forget_limit(&self.tag);
        }
        self.places.changed();
    }
}

impl Taken {
    /// Forgets the limit of a function without calls under way, unless it is low; of too many that
    /// are, the first.
    fn forget_limit(&mut self, tag: &str) {
        if self.by_tag.contains_key(tag) {
            return;
        }
        if !self.limits.get(tag).is_some_and(Limit::is_low) {
            self.limits.remove(tag);
            return;
        }
        if self.limits.len() - self.by_tag.len() > MAX_IDLE_LIMITS {
            let idle = self.limits.keys().find(|tag| !self.by_tag.contains_key(*tag)).cloned();
            if let Some(tag) = idle {
                self.limits.remove(&tag);
            }
        }
    }
}

fn count_down(counts: &mut BTreeMap<String, usize>, key: &str) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        matches!(pin!(future).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
    }

    fn set(texts: &[&str]) -> BTreeSet<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn tags(tags: &[&str]) -> LeftOut {
        LeftOut { tags: set(tags), scopes: BTreeSet::new() }
    }

    /// Places of which a scope may take all.
    fn places(places: usize, of_a_function: usize) -> Places {
        Places::new(Shares { places, of_a_function: Some(of_a_function), of_a_scope: places, reserved: 0 })
    }

    #[test]
    fn a_fetch_is_never_larger_than_what_one_function_has_left() {
        // Calls under way by tag; how many may be fetched, and which functions are left out.
        for (under_way, most, full) in [
            ("", 3, &[][..]),
            ("a", 2, &[]),
            ("aab", 1, &[]),
            ("aaa", 2, &["a"]),
            ("aaab", 1, &["a"]),
            ("aaabbb", 1, &["a", "b"]),
            ("abcd", 1, &[]),
            ("aabbb", 1, &["a", "b"]),
            ("abcdef", 1, &["a", "b", "c", "d", "e", "f"]),
        ] {
            let places = places(7, 3);
            let _taken: Vec<Place> =
                under_way.chars().map(|tag| places.take(tag.encode_utf8(&mut [0; 4]))).collect();
            assert_eq!(places.admissible(), Some((most, tags(full))), "{under_way}");
        }
        let places = places(7, 3);
        let taken: Vec<Place> = (0..7).map(|n| places.take(if n < 3 { "a" } else { "b" })).collect();
        assert_eq!(places.admissible(), None);
        drop(taken);
        assert_eq!(places.admissible(), Some((3, LeftOut::default())));
        assert!(places.taken().by_tag.is_empty());
    }

    #[test]
    fn a_scope_with_many_functions_leaves_places_to_others() {
        let places = Places::new(Shares { places: 64, of_a_function: Some(16), of_a_scope: 48, reserved: 0 });
        let mut taken = Vec::new();
        // Fetches calls of a scope, each of another function, as long as the scope is not left out.
        let mut fill = |scope: &str| {
            let mut count = 0;
            while let Some((most, left_out)) = places.admissible()
                && !left_out.scopes.contains(scope)
            {
                for _ in 0..most {
                    taken.push(places.take(&format!("pushed:{scope}f{count}")));
                    count += 1;
                }
            }
            count
        };
        assert_eq!(fill("n/greedy/"), 48, "it has all but a quarter");
        assert_eq!(fill("n/other/"), 12, "and another one has most of that");
        assert_eq!(fill("n/third/"), 3);
        let (most, left_out) = places.admissible().unwrap();
        assert_eq!((most, left_out.tags), (1, BTreeSet::new()));
        assert_eq!(left_out.scopes, set(&["n/greedy/", "n/other/", "n/third/"]));
        // What the scope frees goes to the others: it has more than its share.
        taken.drain(..8);
        let (_, left_out) = places.admissible().unwrap();
        assert_eq!(left_out.scopes, set(&["n/greedy/"]));
        drop(taken);
        assert!(places.taken().by_scope.is_empty());
    }

    #[test]
    fn scopes_that_together_take_all_they_can_get_leave_a_place_to_others() {
        let places =
            Places::new(Shares { places: 128, of_a_function: Some(16), of_a_scope: 48, reserved: 32 });
        let mut taken = Vec::new();
        // Takes calls of a scope, each of another function, as long as the scope is not left out.
        let fill = |taken: &mut Vec<Place>, scope: &str| {
            let mut count = 0;
            while let Some((most, left_out)) = places.admissible()
                && !left_out.scopes.contains(scope)
            {
                for _ in 0..most {
                    taken.push(places.take(&format!("node:{scope}f{count}")));
                    count += 1;
                }
            }
            count
        };
        let greedy: Vec<usize> = (0..4).map(|n| fill(&mut taken, &format!("n/greedy-{n}/"))).collect();
        assert_eq!((greedy.iter().sum::<usize>(), greedy[0]), (96, 48), "{greedy:?}");
        for number in 0..32 {
            assert_eq!(fill(&mut taken, &format!("n/new-{number}/")), 1, "{number}");
        }
        assert_eq!(places.admissible(), None);
        // What becomes free is for those with nothing under way.
        taken.truncate(127);
        assert_eq!(fill(&mut taken, "n/greedy-0/"), 0);
        assert_eq!(fill(&mut taken, "n/new-31/"), 1);
    }

    #[test]
    fn a_scope_is_left_out_whatever_tags_its_functions_have() {
        let left_out = LeftOut { tags: set(&["pushed:n/b/f"]), scopes: set(&["n/a/"]) };
        let wanted = left_out.filter(&set(&["pushed:", "pushed#gpu:"]));
        let tags = ["pushed:n/a/f", "pushed#gpu:n/a/g", "pushed:n/b/f", "pushed:n/b/g", "pushed:n/ab/f"];
        let fetched: Vec<&str> = tags.into_iter().filter(|tag| wanted.matches(Some(tag))).collect();
        assert_eq!(fetched, ["pushed:n/b/g", "pushed:n/ab/f"]);
    }

    #[test]
    fn a_scope_has_one_share_whatever_tags_its_functions_have() {
        let places = Places::new(Shares { places: 8, of_a_function: Some(8), of_a_scope: 4, reserved: 0 });
        let _taken: Vec<Place> = ["pushed:n/a/f", "pushed#gpu:n/a/f", "pushed#cpu:n/a/g", "pushed:n/a/h"]
            .map(|tag| places.take(tag))
            .into();
        let left_out = LeftOut { scopes: set(&["n/a/"]), tags: BTreeSet::new() };
        assert_eq!(places.admissible(), Some((2, left_out)));
    }

    #[test]
    fn what_was_left_out_is_reported_when_it_has_a_place() {
        let places = places(9, 1);
        let (a, b) = (places.take("a"), places.take("b"));
        assert!(!is_ready(places.one_of(&tags(&["a"]))));
        drop(b);
        assert!(!is_ready(places.one_of(&tags(&["a"]))), "that was another one");
        drop(a);
        assert!(is_ready(places.one_of(&tags(&["a"]))));
        assert!(!is_ready(places.one_of(&tags(&[]))), "nothing was left out");

        let places = Places::new(Shares { places: 9, of_a_function: Some(9), of_a_scope: 2, reserved: 0 });
        let (f, _g) = (places.take("pushed:n/a/f"), places.take("pushed:n/a/g"));
        let (_, left_out) = places.admissible().unwrap();
        assert!(!is_ready(places.one_of(&left_out)));
        drop(f);
        assert!(is_ready(places.one_of(&left_out)));
    }

    #[test]
    fn a_function_with_a_low_limit_is_fetched_by_itself_and_makes_no_other_fetch_small() {
        let places = places(64, 8);
        let slow: Vec<Place> = (0..4).map(|_| places.take("slow")).collect();
        slow[0].ended(Ended::Overloaded);
        let (most, left_out) = places.admissible().unwrap();
        assert_eq!((most, left_out.tags), (8, set(&["slow"])));
        assert_eq!(places.admissible_low(), None, "it has all that its limit allows");
        let fetching = tags(&["slow"]);
        assert!(!is_ready(places.one_of(&fetching)));
        drop(slow);
        assert_eq!(places.admissible_low(), Some((4, set(&["slow"]))));
        assert!(!is_ready(places.other_than(&set(&["slow"]))));
        // It recovers by good answers.
        for _ in 0..64 {
            let full: Vec<Place> = (0..8).map(|_| places.take("slow")).collect();
            full.iter().for_each(|place| place.ended(Ended::Answered(std::time::Duration::from_millis(1))));
        }
        assert!(is_ready(places.one_of(&fetching)));
        assert_eq!(places.admissible_low(), None);
        assert!(places.taken().limits.is_empty());
    }

    #[test]
    fn a_declaration_bounds_its_function_also_when_no_call_is_under_way() {
        let places = places(64, 8);
        let (one, two) = (places.take("f"), places.take("f"));
        assert!(!one.bound(1));
        drop(two);
        assert!(one.bound(1));
        assert_eq!(places.admissible_low(), None);
        drop(one);
        assert_eq!(places.admissible_low(), Some((1, set(&["f"]))));
        for number in 0..2 * MAX_IDLE_LIMITS {
            places.take(&format!("g{number}")).bound(1);
        }
        assert_eq!(places.taken().limits.len(), MAX_IDLE_LIMITS);
    }

    #[tokio::test]
    async fn a_waiting_admission_goes_on_when_a_place_is_free() {
        let places = places(1, 1);
        let place = places.take("a");
        let mut waits = Box::pin(places.admit());
        assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(place);
        assert_eq!(waits.await.most, 1);
    }
}
