//! The connections of a server: at most so many, and new ones are admitted under a flood.
//!
//! When all places are taken, a connection that keeps the server waiting gives way: one without a
//! request, or else one whose peer does not read its answers, or else one whose requests all wait for
//! their bodies. Of these it is the one that the
//! server has waited for the longest, of the address that has the most connections. Peers that open
//! sockets and send nothing, or slowly, therefore displace each other, never a request that the
//! server works on, and a new peer is served at once.
//!
//! The same holds for memory: when the parts of bodies that have come take too much, the connection
//! whose bodies have been awaited for the longest gives way, and when answers that were not read take
//! too much, the one that has had such answers for the longest.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use segno::clock::{self, Clock};
use tokio_util::sync::CancellationToken;

use super::activity::{Activity, WaitsFor};

/// While every connection has a request under way, so long until the next look for a place.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// The connections that are open.
pub struct Connections {
    max: usize,
    /// Most bytes of bodies that are on their way in.
    max_arriving_bytes: usize,
    arriving_bytes: AtomicUsize,
    /// Most bytes of answers that were not read.
    max_unread_bytes: usize,
    unread_bytes: AtomicUsize,
    clock: Arc<dyn Clock>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last_id: u64,
    open: BTreeMap<u64, Open>,
    by_address: HashMap<IpAddr, usize>,
}

struct Open {
    address: IpAddr,
    activity: Arc<Activity>,
    displaced: CancellationToken,
}

/// A place among the connections; given back when dropped.
pub struct Place {
    connections: Arc<Connections>,
    id: u64,
    /// What the connection is doing.
    pub activity: Arc<Activity>,
    /// Cancelled when the connection has to give way to another one.
    pub displaced: CancellationToken,
}

/// Most bytes that all connections together have in memory.
#[derive(Debug, Clone, Copy)]
pub struct MaxBytes {
    /// Of bodies that are on their way in.
    pub arriving: usize,
    /// Of answers that were not read.
    pub unread: usize,
}

impl Connections {
    /// At most `max` at once, with so many bytes on their way.
    pub fn new(max: usize, bytes: MaxBytes, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Connections {
            max,
            max_arriving_bytes: bytes.arriving,
            arriving_bytes: AtomicUsize::new(0),
            max_unread_bytes: bytes.unread,
            unread_bytes: AtomicUsize::new(0),
            clock,
            table: Mutex::default(),
        })
    }

    /// A place for a connection from an address. Waits only while the server works on a request of
    /// each connection.
    pub async fn admit(self: &Arc<Self>, address: IpAddr) -> Place {
        while !self.has_room() {
            clock::sleep(&*self.clock, FULL_PAUSE).await;
        }
        let activity = Activity::new(self.clock.clone());
        let displaced = CancellationToken::new();
        let mut table = self.lock();
        table.last_id += 1;
        let id = table.last_id;
        table.open.insert(id, Open { address, activity: activity.clone(), displaced: displaced.clone() });
        *table.by_address.entry(address).or_default() += 1;
        drop(table);
        Place { connections: Arc::clone(self), id, activity, displaced }
    }

    /// Whether there is a place, after a connection has given way if need be.
    fn has_room(&self) -> bool {
        self.lock().open.len() < self.max || self.displace_one()
    }

    /// Ends the connection that keeps the server waiting for the longest; for when the process runs
    /// out of something.
    pub fn displace_one(&self) -> bool {
        self.displace(Activity::waits_since_ms)
    }

    /// A part of a body has come.
    pub fn add_arriving(&self, bytes: usize) {
        let before = self.arriving_bytes.fetch_add(bytes, Ordering::AcqRel);
        if before + bytes > self.max_arriving_bytes {
            self.displace(|activity| {
                activity.waits_since_ms().filter(|(waits_for, _)| *waits_for == WaitsFor::Bodies)
            });
        }
    }

    /// An answer is to be read by its peer.
    pub fn add_unread(&self, bytes: usize) {
        let mut unread = self.unread_bytes.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let reader = |activity: &Activity| Some((WaitsFor::Reader, activity.unread_since_ms()?));
        while unread > self.max_unread_bytes && self.displace(reader) {
            unread = self.unread_bytes.load(Ordering::Acquire);
        }
    }

    /// An answer was read, or will not be.
    pub fn remove_unread(&self, bytes: usize) {
        self.unread_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Parts of bodies are no longer kept.
    pub fn remove_arriving(&self, bytes: usize) {
        self.arriving_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Ends the connection that has kept the server waiting for the longest, by what tells since when.
    fn displace(&self, waits: impl Fn(&Activity) -> Option<(WaitsFor, u64)>) -> bool {
        let Some(displaced) = self.lock().displace_one(waits) else { return false };
        // It is let go of at once, though its connection may take a moment to end.
        self.remove_arriving(displaced.activity.forget_arriving());
        self.remove_unread(displaced.activity.forget_unread());
        true
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn displace_one(&mut self, waits: impl Fn(&Activity) -> Option<(WaitsFor, u64)>) -> Option<Open> {
        let waiting = self.open.iter().filter_map(|(id, open)| {
            let (waits_for, since_ms) = waits(&open.activity)?;
            let crowd = self.by_address.get(&open.address).copied().unwrap_or_default();
            Some((waits_for, std::cmp::Reverse(crowd), since_ms, *id))
        });
        let (waits_for, .., id) = waiting.min()?;
        let open = self.remove(id)?;
        open.activity.displace(waits_for);
        metrics::counter!(crate::telemetry::CONNECTIONS_DISPLACED).increment(1);
        open.displaced.cancel();
        Some(open)
    }

    fn remove(&mut self, id: u64) -> Option<Open> {
        let open = self.open.remove(&id)?;
        if let Some(count) = self.by_address.get_mut(&open.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&open.address);
            }
        }
        Some(open)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use segno_testkit::clock::VirtualClock;

    use super::*;

    const NO_LIMIT: MaxBytes = MaxBytes { arriving: usize::MAX, unread: usize::MAX };

    #[tokio::test]
    async fn the_longest_quiet_connection_of_the_largest_crowd_gives_way() {
        let clock = VirtualClock::new();
        let connections = Connections::new(4, NO_LIMIT, clock.clone());
        let (few, many): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut places = Vec::new();
        for address in [few, many, many, many] {
            places.push(connections.admit(address).await);
            clock.advance(Duration::from_secs(1));
        }
        let busy = places[1].activity.begin();
        let newcomer = connections.admit(few).await;
        let displaced: Vec<bool> = places.iter().map(|place| place.displaced.is_cancelled()).collect();
        assert_eq!(displaced, [false, false, true, false]);
        drop((busy, newcomer, places));
        assert!(connections.lock().open.is_empty() && connections.lock().by_address.is_empty());
    }

    #[tokio::test]
    async fn a_connection_with_a_request_keeps_its_place() {
        let clock = VirtualClock::new();
        let connections = Connections::new(1, NO_LIMIT, clock.clone());
        let address: IpAddr = [10, 0, 0, 1].into();
        let place = connections.admit(address).await;
        let under_way = place.activity.begin();
        assert!(!connections.has_room());
        drop(under_way);
        assert!(connections.has_room() && place.displaced.is_cancelled());
    }

    #[tokio::test]
    async fn a_connection_whose_bodies_are_awaited_gives_way_after_the_quiet_ones() {
        let clock = VirtualClock::new();
        let connections = Connections::new(4, NO_LIMIT, clock.clone());
        let address: IpAddr = [10, 0, 0, 1].into();
        let mut places = Vec::new();
        for _ in 0..4 {
            places.push(connections.admit(address).await);
            clock.advance(Duration::from_secs(1));
        }
        let under_way: Vec<_> = places[..3].iter().map(|place| place.activity.begin()).collect();
        // The first has two requests, of which the server works on one.
        let worked_on = places[0].activity.begin();
        for place in &places[..3] {
            place.activity.begin_arrival();
            clock.advance(Duration::from_secs(1));
        }
        let displaced = |places: &[Place]| -> Vec<bool> {
            places.iter().map(|place| place.displaced.is_cancelled()).collect()
        };
        assert!(connections.has_room());
        assert_eq!(displaced(&places), [false, false, false, true], "the quiet one");
        let newcomer = connections.admit(address).await;
        let newcomers_request = newcomer.activity.begin();
        assert!(connections.has_room());
        assert_eq!(displaced(&places), [false, true, false, true], "the one awaited for the longest");
        places[2].activity.end_arrival();
        let another = connections.admit(address).await;
        let its_request = another.activity.begin();
        assert!(!connections.has_room(), "the server works on a request of each");
        drop((under_way, worked_on, newcomers_request, its_request));
    }

    #[tokio::test]
    async fn bodies_that_take_too_much_memory_give_way_and_no_others() {
        let clock = VirtualClock::new();
        let connections = Connections::new(10, MaxBytes { arriving: 100, ..NO_LIMIT }, clock.clone());
        let (few, many): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut places = Vec::new();
        for address in [few, many, many, many] {
            let place = connections.admit(address).await;
            places.push((place.activity.begin(), place));
        }
        let arrives = |place: &Place, bytes: usize| {
            place.activity.add_arriving(bytes);
            connections.add_arriving(bytes);
        };
        for (_, place) in &places[..3] {
            place.activity.begin_arrival();
            clock.advance(Duration::from_secs(1));
            arrives(place, 30);
        }
        let displaced = |places: &[(_, Place)]| -> Vec<bool> {
            places.iter().map(|(_, place)| place.displaced.is_cancelled()).collect()
        };
        assert_eq!(displaced(&places), [false, false, false, false]);
        arrives(&places[2].1, 11);
        assert_eq!(displaced(&places), [false, true, false, false]);
        assert_eq!(connections.arriving_bytes.load(Ordering::Relaxed), 71);
        // What has given way counts once, also when its body ends later.
        connections.remove_arriving(places[1].1.activity.remove_arriving(30));
        assert_eq!(connections.arriving_bytes.load(Ordering::Relaxed), 71);
    }

    #[tokio::test]
    async fn answers_that_take_too_much_memory_give_way_to_the_next() {
        let clock = VirtualClock::new();
        let connections = Connections::new(10, MaxBytes { unread: 100, ..NO_LIMIT }, clock.clone());
        let address: IpAddr = [10, 0, 0, 1].into();
        let mut places = Vec::new();
        for _ in 0..4 {
            let place = connections.admit(address).await;
            places.push((place.activity.begin(), place));
        }
        let answers = |place: &Place, bytes: usize| {
            place.activity.add_unread(bytes);
            connections.add_unread(bytes);
        };
        for (_, place) in &places[1..] {
            answers(place, 30);
            clock.advance(Duration::from_secs(1));
        }
        let displaced = |places: &[(_, Place)]| -> Vec<bool> {
            places.iter().map(|(_, place)| place.displaced.is_cancelled()).collect()
        };
        assert_eq!(displaced(&places), [false, false, false, false]);
        answers(&places[0].1, 60);
        assert_eq!(displaced(&places), [false, true, true, false], "those that had theirs for the longest");
        assert_eq!(connections.unread_bytes.load(Ordering::Relaxed), 90);
        connections.remove_unread(places[1].1.activity.remove_unread(30));
        assert_eq!(connections.unread_bytes.load(Ordering::Relaxed), 90, "it counts once");
    }
}
