//! The connections of a server: at most so many, and new ones are admitted under a flood.
//!
//! When all places are taken, a connection without a request gives way: the one that has been quiet
//! for the longest, of the address that has the most connections. Peers that open sockets and send
//! nothing therefore displace each other, never a request, and a new peer is served at once.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use segno::clock::{self, Clock};
use tokio_util::sync::CancellationToken;

use super::activity::Activity;

/// While every connection has a request under way, so long until the next look for a place.
const FULL_PAUSE: Duration = Duration::from_millis(50);

/// The connections that are open.
pub struct Connections {
    max: usize,
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

impl Connections {
    /// At most `max` at once.
    pub fn new(max: usize, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Connections { max, clock, table: Mutex::default() })
    }

    /// A place for a connection from an address. Waits only while all connections have requests
    /// under way.
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

    /// Whether there is a place, after a quiet connection has given way if need be.
    fn has_room(&self) -> bool {
        let mut table = self.lock();
        table.open.len() < self.max || table.displace_one()
    }

    /// Ends the connection that has been quiet for the longest; for when the process runs out of
    /// something.
    pub fn displace_one(&self) -> bool {
        self.lock().displace_one()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn displace_one(&mut self) -> bool {
        let quiet = self.open.iter().filter_map(|(id, open)| {
            let since_ms = open.activity.quiet_since_ms()?;
            let crowd = self.by_address.get(&open.address).copied().unwrap_or_default();
            Some((std::cmp::Reverse(crowd), since_ms, *id))
        });
        let Some((_, _, id)) = quiet.min() else { return false };
        if let Some(open) = self.remove(id) {
            metrics::counter!(crate::telemetry::CONNECTIONS_DISPLACED).increment(1);
            open.displaced.cancel();
        }
        true
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

    #[tokio::test]
    async fn the_longest_quiet_connection_of_the_largest_crowd_gives_way() {
        let clock = VirtualClock::new();
        let connections = Connections::new(4, clock.clone());
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
        let connections = Connections::new(1, clock.clone());
        let address: IpAddr = [10, 0, 0, 1].into();
        let place = connections.admit(address).await;
        let under_way = place.activity.begin();
        assert!(!connections.has_room());
        drop(under_way);
        assert!(connections.has_room() && place.displaced.is_cancelled());
    }
}
