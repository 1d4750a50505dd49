//! One thing for many instances.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::Client;
use crate::error::{Code, Error};
use crate::limits::{MAX_BULK_INSTANCES, MAX_PAGE_ROWS};
use crate::store::{ErrorKind, InstanceCursor, InstanceInfo, InstanceQuery};

/// Instances that are acted on at once, so that their commits can share a write.
const CONCURRENT: usize = 64;

/// Acts on all instances that match a query, up to a limit.
#[must_use = "nothing happens before count, cancel, pause, resume or delete is called"]
pub struct Bulk {
    client: Client,
    query: InstanceQuery,
    limit: usize,
}

/// What a bulk call would do to each instance, for a count of those that it would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkPreview {
    /// Send it a message: cancel, pause or resume.
    Send,
    /// Delete it if it has ended.
    Delete,
    /// Delete it whether or not it has ended.
    ForceDelete,
}

/// What a bulk call did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkResult {
    /// Instances that matched, up to the limit.
    pub matched: usize,
    /// Instances that were acted on, or would be by a call that only counts. The others cannot be: they have ended, still run,
    /// are children, or vanished meanwhile.
    pub done: usize,
    /// Where the instances begin that the limit did not let through; `None` when there were none. With this as the cursor of
    /// the next call's query, each instance is acted on and counted once.
    pub next: Option<InstanceCursor>,
}

impl Client {
    /// Acts on all instances that match.
    pub fn bulk(&self, query: InstanceQuery) -> Bulk {
        Bulk { client: self.clone(), query, limit: MAX_BULK_INSTANCES }
    }
}

impl Bulk {
    /// Acts on at most this many, newest first; [`MAX_BULK_INSTANCES`] by default and at most.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Only counts: how many match, and how many of them the call would change.
    ///
    /// # Errors
    /// `too-many-instances` when the limit is too high, and those of the store.
    pub async fn count(self, preview: BulkPreview) -> Result<BulkResult, Error> {
        let Found { instances, unreadable, next } = self.found().await?;
        let mut result = BulkResult { matched: instances.len() + unreadable.len(), done: 0, next };
        let checks = instances.into_iter().map(|info| self.would_change(preview, info));
        let mut checks = futures_util::stream::iter(checks).buffer_unordered(CONCURRENT);
        while let Some(would_change) = checks.next().await {
            result.done += usize::from(would_change?);
        }
        Ok(result)
    }

    /// Whether the call would change an instance, as it is now.
    async fn would_change(&self, preview: BulkPreview, info: InstanceInfo) -> Result<bool, Error> {
        let (has_ended, is_root) = (info.status.is_terminal(), info.parent_instance_id.is_none());
        match preview {
            BulkPreview::Send => Ok(!has_ended),
            BulkPreview::ForceDelete => Ok(is_root),
            BulkPreview::Delete if !(has_ended && is_root) => Ok(false),
            BulkPreview::Delete => self.have_ended_below(info.instance_id).await,
        }
    }

    /// Whether all descendants of an instance have ended.
    async fn have_ended_below(&self, root: String) -> Result<bool, Error> {
        let store = &self.client.store;
        let mut above = vec![root];
        while let Some(parent) = above.pop() {
            let children = match store.list_children(&parent).await {
                // It vanished meanwhile, and so did everything below it.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                children => children?,
            };
            for child in children {
                match store.get_instance_info(&child).await {
                    Ok(info) if info.status.is_terminal() => above.push(child),
                    Ok(_) => return Ok(false),
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(true)
    }

    /// Cancels them.
    ///
    /// # Errors
    /// As [`Bulk::count`].
    pub async fn cancel(self, reason: &str) -> Result<BulkResult, Error> {
        self.each(&Act::Cancel(reason.into())).await
    }

    /// Pauses them.
    ///
    /// # Errors
    /// As [`Bulk::count`].
    pub async fn pause(self, reason: &str) -> Result<BulkResult, Error> {
        self.each(&Act::Pause(reason.into())).await
    }

    /// Resumes them.
    ///
    /// # Errors
    /// As [`Bulk::count`].
    pub async fn resume(self) -> Result<BulkResult, Error> {
        self.each(&Act::Resume).await
    }

    /// Deletes them with their descendants; running ones and children are passed over without `force`.
    ///
    /// # Errors
    /// As [`Bulk::count`].
    pub async fn delete(self, force: bool) -> Result<BulkResult, Error> {
        self.each(&Act::Delete { force }).await
    }

    /// The instances are read first, so that acting on them does not move the pages.
    async fn found(&self) -> Result<Found, Error> {
        if self.limit > MAX_BULK_INSTANCES {
            let message = format!(
                "{} instances are too many for one call, the limit is {MAX_BULK_INSTANCES}",
                self.limit
            );
            return Err(Error::new(Code::TooManyInstances, message));
        }
        let mut found = Found::default();
        let mut query = self.query.clone();
        while found.len() < self.limit {
            query.limit = (self.limit - found.len()).min(MAX_PAGE_ROWS);
            let page = self.client.store.query_instances(query.clone()).await?;
            found.unreadable.extend(page.unreadable.into_iter().map(|row| row.instance_id));
            found.instances.extend(page.instances);
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        Ok(Found { next: query.cursor, ..found })
    }

    async fn each(self, act: &Act) -> Result<BulkResult, Error> {
        let found = self.found().await?;
        let mut result = BulkResult { matched: found.len(), done: 0, next: found.next };
        // What cannot be read may match; what is done to it is refused.
        let ids = found.instances.into_iter().map(|info| info.instance_id);
        let mut waiting = ids.chain(found.unreadable);
        let mut running = FuturesUnordered::new();
        let mut unreadable = None;
        loop {
            while running.len() < CONCURRENT
                && let Some(id) = waiting.next()
            {
                running.push(act.clone().on(self.client.clone(), id));
            }
            match running.next().await {
                // One that is damaged does not keep the others from being done; a store that is
                // damaged for all of them does.
                None => return unreadable.filter(|_| result.done == 0).map_or(Ok(result), Err),
                Some(Ok(())) => result.done += 1,
                Some(Err(error)) if error.code() == Code::StoredDataUnreadable => unreadable = Some(error),
                Some(Err(error)) if is_passed_over(&error) => {}
                Some(Err(error)) => return Err(error),
            }
        }
    }
}

/// What matches a query.
#[derive(Default)]
struct Found {
    instances: Vec<InstanceInfo>,
    /// Ids of instances whose rows cannot be read.
    unreadable: Vec<String>,
    next: Option<InstanceCursor>,
}

impl Found {
    fn len(&self) -> usize {
        self.instances.len() + self.unreadable.len()
    }
}

/// What is done to each.
#[derive(Clone)]
enum Act {
    Cancel(Arc<str>),
    Pause(Arc<str>),
    Resume,
    Delete { force: bool },
}

impl Act {
    async fn on(self, client: Client, id: String) -> Result<(), Error> {
        match self {
            Act::Cancel(reason) => client.cancel(&id, &*reason).await,
            Act::Pause(reason) => client.pause(&id, &*reason).await,
            Act::Resume => client.resume(&id).await,
            Act::Delete { force } => client.delete(&id, force).await.map(|_| ()),
        }
    }
}

/// Whether an instance that ended or vanished meanwhile, or cannot be acted on, is the reason.
fn is_passed_over(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Invalid)
}
