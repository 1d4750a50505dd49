//! One thing for many instances.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::Client;
use crate::error::{Code, Error};
use crate::limits::{MAX_BULK_INSTANCES, MAX_PAGE_ROWS};
use crate::store::{ErrorKind, InstanceCursor, InstanceQuery};

/// Instances that are acted on at once, so that their commits can share a write.
const CONCURRENT: usize = 64;

/// Acts on all instances that match a query, up to a limit.
#[must_use = "nothing happens before count, cancel, pause, resume or delete is called"]
pub struct Bulk {
    client: Client,
    query: InstanceQuery,
    limit: usize,
}

/// What a bulk call did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkResult {
    /// Instances that matched, up to the limit.
    pub matched: usize,
    /// Instances that were acted on; the others had ended or vanished meanwhile.
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

    /// Only counts: what would be acted on.
    ///
    /// # Errors
    /// `too-many-instances` when the limit is too high, and those of the store.
    pub async fn count(self) -> Result<BulkResult, Error> {
        let (ids, next) = self.ids().await?;
        Ok(BulkResult { matched: ids.len(), done: 0, next })
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

    /// The ids are read first, so that acting on them does not move the pages.
    async fn ids(&self) -> Result<(Vec<String>, Option<InstanceCursor>), Error> {
        if self.limit > MAX_BULK_INSTANCES {
            let message = format!(
                "{} instances are too many for one call, the limit is {MAX_BULK_INSTANCES}",
                self.limit
            );
            return Err(Error::new(Code::TooManyInstances, message));
        }
        let mut ids = Vec::new();
        let mut query = self.query.clone();
        while ids.len() < self.limit {
            query.limit = (self.limit - ids.len()).min(MAX_PAGE_ROWS);
            let page = self.client.store.query_instances(query.clone()).await?;
            ids.extend(page.instances.into_iter().map(|info| info.instance_id));
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        Ok((ids, query.cursor))
    }

    async fn each(self, act: &Act) -> Result<BulkResult, Error> {
        let (ids, next) = self.ids().await?;
        let mut result = BulkResult { matched: ids.len(), done: 0, next };
        let mut waiting = ids.into_iter();
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < CONCURRENT
                && let Some(id) = waiting.next()
            {
                running.push(act.clone().on(self.client.clone(), id));
            }
            match running.next().await {
                None => return Ok(result),
                Some(Ok(())) => result.done += 1,
                Some(Err(error)) if is_passed_over(&error) => {}
                Some(Err(error)) => return Err(error),
            }
        }
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
