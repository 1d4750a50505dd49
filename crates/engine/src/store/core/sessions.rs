//! Sessions: their owners, their leases, and their ready work.
//!
//! | state | becomes | when |
//! |---|---|---|
//! | free | held by an owner until a time | `claim`, in the same step as the fetch of one of its items |
//! | held | held longer | `renew` while it is not idle |
//! | held | free | `advance` past its time |
//! | free, no item queued | (removed) | `remove_orphaned` |
//!
//! The head (oldest ready item) of each session and tag is indexed by owner: one set for free
//! sessions and one per owner. So a fetch reads only sessions that it may take from, and the backlog
//! of a session of another owner costs it nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::tag_lanes::TagLanes;
use crate::store::{SessionClaims, SessionFetchConfig, TagFilter};

/// Oldest ready item of each session, for one tag.
type Heads = BTreeMap<u64, Arc<str>>;

/// All sessions that were claimed or that queued items name.
#[derive(Debug, Default)]
pub struct Sessions {
    sessions: HashMap<Arc<str>, Session>,
    free_heads: TagLanes<Heads>,
    owned: BTreeMap<Arc<str>, Owner>,
    expiries: BTreeSet<(u64, Arc<str>)>,
    /// Claimed once and free now.
    orphans: BTreeSet<Arc<str>>,
}

#[derive(Debug, Default)]
struct Session {
    lease: Lease,
    queued: u64,
    ready: TagLanes<BTreeSet<u64>>,
}

#[derive(Debug, Default)]
enum Lease {
    /// Only named by queued items so far.
    #[default]
    NeverClaimed,
    /// Claimed once.
    Free,
    Held {
        owner: Arc<str>,
        until_ms: u64,
        last_activity_ms: u64,
    },
}

#[derive(Debug, Default)]
struct Owner {
    sessions: BTreeSet<Arc<str>>,
    heads: TagLanes<Heads>,
}

/// A ready item of a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionItem<'a> {
    /// The session.
    pub session: &'a Arc<str>,
    /// Routing tag of the item.
    pub tag: Option<&'a Arc<str>>,
    /// The item.
    pub item_id: u64,
}

impl Sessions {
    /// Counts a queued item of a session. Returns the shared name of the session.
    pub fn add_queued(&mut self, session: &str) -> Arc<str> {
        let name = match self.sessions.get_key_value(session) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(session),
        };
        self.sessions.entry(Arc::clone(&name)).or_default().queued += 1;
        name
    }

    /// An item of the session left the queue for good.
    pub fn remove_queued(&mut self, session: &Arc<str>) {
        let entry = self.sessions.get_mut(session).expect("a queued item keeps its session");
        entry.queued -= 1;
        if entry.queued == 0 && matches!(entry.lease, Lease::NeverClaimed) {
            self.sessions.remove(session);
        }
    }

    /// An item became ready to be fetched.
    pub fn add_ready(&mut self, item: SessionItem<'_>) {
        let entry = self.sessions.get_mut(item.session).expect("a queued item keeps its session");
        let lane = entry.ready.lane_mut(item.tag);
        let head_before = lane.first().copied();
        lane.insert(item.item_id);
        if head_before.is_some_and(|head| head < item.item_id) {
            return;
        }
        let heads = heads_of(&entry.lease, &mut self.free_heads, &mut self.owned).lane_mut(item.tag);
        if let Some(head) = head_before {
            heads.remove(&head);
        }
        heads.insert(item.item_id, Arc::clone(item.session));
    }

    /// An item is not ready any more: fetched or removed.
    pub fn remove_ready(&mut self, item: SessionItem<'_>) {
        let entry = self.sessions.get_mut(item.session).expect("a queued item keeps its session");
        let lane = entry.ready.lane_mut(item.tag);
        let was_head = lane.first() == Some(&item.item_id);
        lane.remove(&item.item_id);
        let head_after = lane.first().copied();
        if head_after.is_none() {
            entry.ready.drop_lane(item.tag);
        }
        if !was_head {
            return;
        }
        let lanes = heads_of(&entry.lease, &mut self.free_heads, &mut self.owned);
        let heads = lanes.lane_mut(item.tag);
        heads.remove(&item.item_id);
        if let Some(head) = head_after {
            heads.insert(head, Arc::clone(item.session));
        } else if heads.is_empty() {
            lanes.drop_lane(item.tag);
        }
    }

    /// The oldest ready item that a fetch with this config may take.
    pub fn oldest_ready(&self, config: &SessionFetchConfig, tags: &TagFilter) -> Option<u64> {
        self.eligible(config, tags).filter_map(|heads| heads.first_key_value()).map(|(&id, _)| id).min()
    }

    /// Number of sessions with an item that a fetch with this config may take.
    pub fn ready_count(&self, config: &SessionFetchConfig, tags: &TagFilter) -> usize {
        self.eligible(config, tags).map(BTreeMap::len).sum()
    }

    fn eligible<'a>(
        &'a self,
        config: &SessionFetchConfig,
        tags: &'a TagFilter,
    ) -> impl Iterator<Item = &'a Heads> {
        let owned = self.owned.get(config.owner_id.as_str()).map(|owner| &owner.heads);
        let free = (config.claims == SessionClaims::Allowed).then_some(&self.free_heads);
        owned.into_iter().chain(free).flat_map(|lanes| lanes.matching(tags))
    }

    /// Records that `owner` fetched an item: a free session becomes the owner's until `until_ms`; one
    /// that the owner holds already keeps its time.
    pub fn claim(&mut self, session: &Arc<str>, owner: &str, until_ms: u64, now_ms: u64) {
        let entry = self.sessions.get_mut(session).expect("a queued item keeps its session");
        match &mut entry.lease {
            Lease::Held { last_activity_ms, .. } => {
                *last_activity_ms = now_ms;
                return;
            }
            Lease::Free => drop(self.orphans.remove(session)),
            Lease::NeverClaimed => {}
        }
        let owner: Arc<str> = match self.owned.get_key_value(owner) {
            Some((owner, _)) => Arc::clone(owner),
            None => Arc::from(owner),
        };
        let lease = Lease::Held { owner: Arc::clone(&owner), until_ms, last_activity_ms: now_ms };
        self.move_to(session, lease);
        self.owned.entry(owner).or_default().sessions.insert(Arc::clone(session));
        self.expiries.insert((until_ms, Arc::clone(session)));
    }

    /// Records an ack or a renewal of an item of the session.
    pub fn touch(&mut self, session: &Arc<str>, now_ms: u64) {
        let Some(entry) = self.sessions.get_mut(session) else { return };
        if let Lease::Held { last_activity_ms, .. } = &mut entry.lease {
            *last_activity_ms = now_ms;
        }
    }

    /// Frees every session whose lock has expired.
    pub fn advance(&mut self, now_ms: u64) {
        while self.expiries.first().is_some_and(|(until_ms, _)| *until_ms <= now_ms) {
            let (_, session) = self.expiries.pop_first().expect("there is a first expiry");
            let entry = self.sessions.get(&session).expect("a held session exists");
            let Lease::Held { owner, .. } = &entry.lease else { continue };
            let owner = Arc::clone(owner);
            self.move_to(&session, Lease::Free);
            let held = self.owned.get_mut(&owner).expect("an owner of a session is known");
            held.sessions.remove(&session);
            if held.sessions.is_empty() {
                self.owned.remove(&owner);
            }
            self.orphans.insert(session);
        }
    }

    /// The next time at which [`Self::advance`] has something to do.
    pub fn next_change_ms(&self) -> Option<u64> {
        self.expiries.first().map(|(until_ms, _)| *until_ms)
    }

    /// Extends the sessions of an owner whose last activity passes the test. Returns their number.
    pub fn renew(&mut self, owner: &str, until_ms: u64, active: impl Fn(u64) -> bool) -> usize {
        let Some(held) = self.owned.get(owner) else { return 0 };
        let mut renewed = 0;
        for session in &held.sessions {
            let entry = self.sessions.get_mut(session).expect("a held session exists");
            let Lease::Held { until_ms: end_ms, last_activity_ms, .. } = &mut entry.lease else { continue };
            if !active(*last_activity_ms) {
                continue;
            }
            self.expiries.remove(&(*end_ms, Arc::clone(session)));
            *end_ms = until_ms;
            self.expiries.insert((until_ms, Arc::clone(session)));
            renewed += 1;
        }
        renewed
    }

    /// Removes free sessions that no queued item names. Returns their number.
    pub fn remove_orphaned(&mut self) -> usize {
        let (before, sessions) = (self.orphans.len(), &mut self.sessions);
        self.orphans.retain(|session| {
            let is_used = sessions.get(session).is_some_and(|entry| entry.queued > 0);
            if !is_used {
                sessions.remove(session);
            }
            is_used
        });
        before - self.orphans.len()
    }

    /// Changes the lease of a session, and moves its heads to those of the new owner.
    fn move_to(&mut self, session: &Arc<str>, lease: Lease) {
        let entry = self.sessions.get_mut(session).expect("the caller found the session");
        let before = std::mem::replace(&mut entry.lease, lease);
        for (tag, lane) in entry.ready.iter() {
            let Some(&head) = lane.first() else { continue };
            let lanes = heads_of(&before, &mut self.free_heads, &mut self.owned);
            let heads = lanes.lane_mut(tag);
            heads.remove(&head);
            if heads.is_empty() {
                lanes.drop_lane(tag);
            }
            let lanes = heads_of(&entry.lease, &mut self.free_heads, &mut self.owned);
            lanes.lane_mut(tag).insert(head, Arc::clone(session));
        }
    }
}

/// The heads of all sessions with the same owner.
fn heads_of<'a>(
    lease: &Lease,
    free: &'a mut TagLanes<Heads>,
    owned: &'a mut BTreeMap<Arc<str>, Owner>,
) -> &'a mut TagLanes<Heads> {
    match lease {
        Lease::NeverClaimed | Lease::Free => free,
        Lease::Held { owner, .. } => &mut owned.entry(Arc::clone(owner)).or_default().heads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(owner: &str, claims: SessionClaims) -> SessionFetchConfig {
        let lock_timeout = std::time::Duration::from_millis(10);
        SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout, claims }
    }

    /// Sessions `s1` with items 1 and 3, and `s2` with item 2, all ready and untagged.
    fn two_sessions() -> (Sessions, Arc<str>, Arc<str>) {
        let mut sessions = Sessions::default();
        let (first, second) = (sessions.add_queued("s1"), sessions.add_queued("s2"));
        sessions.add_queued("s1");
        for (session, item_id) in [(&first, 3), (&second, 2), (&first, 1)] {
            sessions.add_ready(SessionItem { session, tag: None, item_id });
        }
        (sessions, first, second)
    }

    fn oldest(sessions: &Sessions, owner: &str, claims: SessionClaims) -> Option<u64> {
        sessions.oldest_ready(&config(owner, claims), &TagFilter::Any)
    }

    #[test]
    fn a_fetch_sees_its_own_and_free_sessions_only() {
        let (mut sessions, first, _) = two_sessions();
        assert_eq!(oldest(&sessions, "a", SessionClaims::Allowed), Some(1));
        assert_eq!(oldest(&sessions, "a", SessionClaims::OwnedOnly), None);
        sessions.claim(&first, "a", 10, 0);
        for (owner, claims, expected) in [
            ("a", SessionClaims::Allowed, Some(1)),
            ("a", SessionClaims::OwnedOnly, Some(1)),
            ("b", SessionClaims::Allowed, Some(2)),
            ("b", SessionClaims::OwnedOnly, None),
        ] {
            assert_eq!(oldest(&sessions, owner, claims), expected, "{owner} {claims:?}");
        }
    }

    #[test]
    fn the_next_item_of_a_session_follows_the_one_that_was_taken() {
        let (mut sessions, first, second) = two_sessions();
        sessions.remove_ready(SessionItem { session: &first, tag: None, item_id: 1 });
        assert_eq!(oldest(&sessions, "a", SessionClaims::Allowed), Some(2));
        sessions.remove_ready(SessionItem { session: &second, tag: None, item_id: 2 });
        assert_eq!(oldest(&sessions, "a", SessionClaims::Allowed), Some(3));
    }

    #[test]
    fn a_session_is_free_again_from_the_millisecond_its_lock_ends() {
        let (mut sessions, first, _) = two_sessions();
        sessions.claim(&first, "a", 10, 0);
        sessions.advance(9);
        assert_eq!(oldest(&sessions, "b", SessionClaims::Allowed), Some(2));
        sessions.advance(10);
        assert_eq!(oldest(&sessions, "b", SessionClaims::Allowed), Some(1));
        assert_eq!(oldest(&sessions, "a", SessionClaims::OwnedOnly), None);
    }

    #[test]
    fn renewal_extends_active_sessions_of_the_owner_only() {
        let (mut sessions, first, second) = two_sessions();
        sessions.claim(&first, "a", 10, 0);
        sessions.claim(&second, "a", 10, 5);
        assert_eq!(sessions.renew("b", 50, |_| true), 0);
        assert_eq!(sessions.renew("a", 50, |last_activity_ms| last_activity_ms >= 5), 1);
        sessions.advance(10);
        assert_eq!(oldest(&sessions, "b", SessionClaims::Allowed), Some(1), "the idle one is free");
        assert_eq!(oldest(&sessions, "a", SessionClaims::OwnedOnly), Some(2));
    }

    #[test]
    fn only_free_sessions_without_items_are_removed() {
        let (mut sessions, first, second) = two_sessions();
        sessions.claim(&first, "a", 10, 0);
        sessions.claim(&second, "a", 10, 0);
        sessions.remove_ready(SessionItem { session: &second, tag: None, item_id: 2 });
        sessions.remove_queued(&second);
        assert_eq!(sessions.remove_orphaned(), 0, "still locked");
        sessions.advance(10);
        assert_eq!(sessions.remove_orphaned(), 1);
        assert_eq!(sessions.remove_orphaned(), 0, "the other one has items");
    }
}
