//! Handing out activities.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use super::delivery::{self, Delivery, Refusal};
use super::lease::{self, Lease};
use super::progress;
use super::queue::WorkQueue;
use crate::clock::deadline_ms;
use crate::error::{Code, Error};
use crate::limits::{MAX_EXCEPT_PREFIXES, MAX_FETCH_TAGS, MAX_FETCHED_WORK};
use crate::names;
use crate::payload::Payload;
use crate::store::{ErrorKind, FetchWorkItems, LockLife, LockToken, LockedWorkItem, TagFilter, TagPrefixes};
use crate::work_item::ActivityExecute;

/// A request for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchWork {
    /// Activities with one of these tags: [`TagFilter::Tags`] or [`TagFilter::Prefixes`], with at
    /// most [`MAX_FETCH_TAGS`] names in each set and [`MAX_EXCEPT_PREFIXES`] prefixes that are left
    /// out.
    pub tags: TagFilter,
    /// At most this many, from 1 to [`MAX_FETCHED_WORK`].
    pub max_items: usize,
    /// How long each is leased without a heartbeat. Timeouts of the call make it shorter.
    pub lease: Duration,
    /// How long to wait for work when there is none.
    pub wait: Duration,
    /// Whether the leases outlive the process that hands them out: [`LockLife::Durable`] for
    /// workers elsewhere.
    pub life: LockLife,
}

/// An activity with the right to answer for it.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedActivity {
    /// What to run and who wants it.
    pub activity: ActivityExecute,
    /// Number of deliveries of this attempt, this one included.
    pub delivery: u32,
    /// What an earlier attempt or delivery stored as its progress.
    pub last_progress: Option<Payload>,
    /// To be shown with every answer.
    pub lease: Lease,
}

impl FetchWork {
    fn check(&self) -> Result<(), Error> {
        let invalid = |message| Err(Error::new(Code::InvalidOption, message));
        let (names, left_out) = match &self.tags {
            TagFilter::Tags(tags) => (tags, None),
            TagFilter::Prefixes(wanted) => (&wanted.prefixes, Some(wanted)),
            other => return invalid(format!("a fetch names tags or prefixes of tags, not {other:?}")),
        };
        if names.is_empty() || names.len() > MAX_FETCH_TAGS {
            return invalid(format!("a fetch names 1 to {MAX_FETCH_TAGS} tags, not {}", names.len()));
        }
        left_out.map_or(Ok(()), check_left_out)?;
        if !(1..=MAX_FETCHED_WORK).contains(&self.max_items) {
            return invalid(format!(
                "a fetch asks for 1 to {MAX_FETCHED_WORK} items, not {}",
                self.max_items
            ));
        }
        names.iter().try_for_each(|tag| names::check_name("tag", tag))?;
        lease::check_length(self.lease)
    }
}

fn check_left_out(wanted: &TagPrefixes) -> Result<(), Error> {
    for (left_out, most, what) in [
        (&wanted.except, MAX_FETCH_TAGS, "tags"),
        (&wanted.except_prefixes, MAX_EXCEPT_PREFIXES, "prefixes of tags"),
    ] {
        if left_out.len() > most {
            let message = format!("a fetch leaves out at most {most} {what}, not {}", left_out.len());
            return Err(Error::new(Code::InvalidOption, message));
        }
    }
    Ok(())
}

impl WorkQueue {
    /// Leases the oldest activities that have one of the tags, or waits for them; empty when the time is up.
    ///
    /// Unreadable activities become dead letters, and those that were delivered too often fail; neither is returned. A fetch
    /// that is dropped before it answers leaves what it has locked to expire, as a worker that dies does.
    ///
    /// # Errors
    /// `invalid-option` or `invalid-name` when the request is out of range; `store` when the store is unavailable.
    pub async fn fetch(&self, request: FetchWork) -> Result<Vec<LeasedActivity>, Error> {
        self.fetch_until(request, std::future::pending()).await
    }

    /// The same for a caller that may want something else before the time is up: answers with
    /// nothing when `stop` is done, and leaves nothing locked then.
    ///
    /// # Errors
    /// Those of [`fetch`](WorkQueue::fetch).
    pub async fn fetch_until(
        &self,
        request: FetchWork,
        stop: impl Future<Output = ()>,
    ) -> Result<Vec<LeasedActivity>, Error> {
        request.check()?;
        let FetchWork { tags: tag_filter, max_items, lease, wait, life } = request;
        let mut stop = pin!(stop);
        let until_ms = deadline_ms(&*self.clock, wait);
        loop {
            let fetching = self.store.fetch_work_items(FetchWorkItems {
                max_items,
                lock_timeout: lease,
                poll_timeout: Duration::from_millis(until_ms.saturating_sub(self.clock.now_ms())),
                session: None,
                tag_filter: &tag_filter,
                life,
            });
            // A store releases what it has locked for a fetch that is dropped. What it has
            // answered is seen through.
            let locked = tokio::select! {
                biased;
                locked = fetching => locked?,
                () = &mut stop => return Ok(Vec::new()),
            };
            let was_empty = locked.is_empty();
            let offers = join_all(locked.into_iter().map(|locked| self.offer(locked, lease))).await;
            let offered: Vec<LeasedActivity> = offers.into_iter().flatten().collect();
            // When all that was there had to be refused, there may be more behind it.
            if was_empty || !offered.is_empty() {
                return Ok(offered);
            }
        }
    }

    /// Prepares a locked activity for delivery; `None` if no worker may run it.
    async fn offer(&self, locked: LockedWorkItem, asked: Duration) -> Option<LeasedActivity> {
        let activity = match delivery::judge(&locked, self.max_deliveries, self.letters()) {
            Delivery::Work(activity) => Arc::unwrap_or_clone(activity),
            Delivery::Refused(refusal) => {
                self.refuse(refusal).await;
                return None;
            }
        };
        let mut lease = Lease::of(&activity, &locked);
        let term = lease.term(asked, locked.fetched_at_ms);
        if term.lock < asked && !self.shorten(locked.lock_token, term.lock).await {
            return None;
        }
        lease.expires_at_ms = term.expires_at_ms;
        let last_progress = self.last_progress(&lease.idempotency_key).await;
        lease.has_progress = last_progress.is_some();
        Some(LeasedActivity { activity, delivery: locked.attempt_count, last_progress, lease })
    }

    /// A refusal that cannot be committed now comes again when its lock has run out.
    async fn refuse(&self, refusal: Refusal) {
        match self.store.ack_work_item(refusal.ack.clone()).await {
            Ok(()) => refusal.count(),
            Err(error) => {
                tracing::warn!(%error, "an activity could not be given up; it will be delivered again");
            }
        }
    }

    /// Cuts a lock down to what the call allows. `false` when the lock is gone: the activity was cancelled.
    async fn shorten(&self, token: LockToken, lock: Duration) -> bool {
        match self.store.renew_work_item_lock(token, lock, LockLife::Process).await {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::LockLost => false,
            Err(error) => {
                tracing::warn!(%error, "a lease could not be shortened; it ends later than its call asks");
                true
            }
        }
    }

    /// Progress is a help and no promise: without it the work begins anew, which it must be able to do.
    async fn last_progress(&self, key: &str) -> Option<Payload> {
        match progress::read(&*self.store, key).await {
            Ok(progress) => progress,
            Err(error) => {
                tracing::warn!(%error, "the progress of an activity cannot be read; it is handed out without");
                None
            }
        }
    }
}
