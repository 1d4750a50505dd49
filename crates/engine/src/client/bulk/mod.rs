//! One thing for many instances.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::Client;
use crate::error::{Code, Error};
use crate::limits::MAX_BULK_INSTANCES;
use crate::store::{ErrorKind, InstanceCursor, InstanceInfo, InstanceQuery, UnreadableInstance};

/// Instances that are acted on at once, so that their commits can share a write.
const CONCURRENT: usize = 64;

/// Instances that are read at once: their results are in memory until they are looked at.
const PAGE_ROWS: usize = 100;

/// Acts on all instances that match a query, up to a limit.
#[must_use = "nothing happens before count, cancel, pause, resume or delete is called"]
pub struct Bulk {
    client: Client,
    query: InstanceQuery,
    limit: usize,
    stop: Stop,
    passed_over: Option<PassedOver>,
}

/// Whether it is time to begin nothing more.
type Stop = Box<dyn Fn() -> bool + Send + Sync>;

/// What has to be known of an instance.
struct Match {
    id: String,
    created_at_ms: u64,
    /// `None` if its row cannot be read: it may match, and what is done to it is refused.
    row: Option<MatchRow>,
}

struct MatchRow {
    has_ended: bool,
    is_root: bool,
}

impl Match {
    fn cursor(&self) -> InstanceCursor {
        InstanceCursor { created_at_ms: self.created_at_ms, instance_id: self.id.clone() }
    }
}

impl From<InstanceInfo> for Match {
    fn from(info: InstanceInfo) -> Self {
        Match {
            created_at_ms: info.created_at_ms,
            row: Some(MatchRow {
                has_ended: info.status.is_terminal(),
                is_root: info.parent_instance_id.is_none(),
            }),
            id: info.instance_id,
        }
    }
}

impl From<UnreadableInstance> for Match {
    fn from(found: UnreadableInstance) -> Self {
        Match { id: found.instance_id, created_at_ms: found.created_at_ms, row: None }
    }
}

/// Tells by its id whether an instance is passed over.
type PassedOver = Arc<dyn Fn(&str) -> bool + Send + Sync>;

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
    /// Instances that matched, up to the limit, or up to where the call stopped ([`Bulk::until`]).
    pub matched: usize,
    /// Instances that were acted on, or would be by a call that only counts.
    pub done: usize,
    /// The others, by what is in the way.
    pub left: BulkLeft,
    /// Where the instances begin that the call did not come to; `None` when there are none. With this as the cursor of
    /// the next call's query, each instance is acted on and counted once.
    pub next: Option<InstanceCursor>,
}

/// Instances that match and are left as they are, by what is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BulkLeft {
    /// They are passed over ([`Bulk::passing_over`]).
    pub passed_over: usize,
    /// They have ended, so that no message reaches them.
    pub ended: usize,
    /// They or descendants of theirs still run, so that they are not deleted without force.
    pub running: usize,
    /// They are children, which are deleted with the root of their tree.
    pub children: usize,
    /// They vanished meanwhile, as children do whose root was deleted.
    pub gone: usize,
    /// What is stored of them cannot be read.
    pub unreadable: usize,
}

/// What is in the way of acting on an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    PassedOver,
    Ended,
    Running,
    Child,
    Gone,
    Unreadable,
}

impl Obstacle {
    /// The one that an error tells of; `None` if the error is about more than the instance.
    fn of(error: &Error) -> Option<Self> {
        match (error.code(), error.kind()) {
            (Code::StoredDataUnreadable, _) => Some(Obstacle::Unreadable),
            (Code::InstanceEnded, _) => Some(Obstacle::Ended),
            (Code::InstanceRunning, _) => Some(Obstacle::Running),
            (_, ErrorKind::NotFound) => Some(Obstacle::Gone),
            (_, ErrorKind::Conflict | ErrorKind::Invalid) => Some(Obstacle::Child),
            _ => None,
        }
    }
}

impl BulkLeft {
    fn add(&mut self, obstacle: Obstacle) {
        let count = match obstacle {
            Obstacle::PassedOver => &mut self.passed_over,
            Obstacle::Ended => &mut self.ended,
            Obstacle::Running => &mut self.running,
            Obstacle::Child => &mut self.children,
            Obstacle::Gone => &mut self.gone,
            Obstacle::Unreadable => &mut self.unreadable,
        };
        *count += 1;
    }
}

impl Client {
    /// Acts on all instances that match.
    pub fn bulk(&self, query: InstanceQuery) -> Bulk {
        Bulk {
            client: self.clone(),
            query,
            limit: MAX_BULK_INSTANCES,
            stop: Box::new(|| false),
            passed_over: None,
        }
    }
}

impl Bulk {
    /// Acts on at most this many, newest first; [`MAX_BULK_INSTANCES`] by default and at most.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Begins nothing more once this is true: the call ends with what it has begun, and `next` is where to go on.
    /// At least 64 instances are acted on, so that repeated calls come to an end.
    pub fn until(mut self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.stop = Box::new(stop);
        self
    }

    /// Passes over instances with certain ids: they match, and are not acted on.
    pub fn passing_over(mut self, is_passed_over: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.passed_over = Some(Arc::new(is_passed_over));
        self
    }

    fn passes_over(&self, id: &str) -> bool {
        self.passed_over.as_ref().is_some_and(|is_passed_over| is_passed_over(id))
    }

    /// Only counts: how many match, and how many of them the call would change.
    ///
    /// # Errors
    /// `too-many-instances` when the limit is too high, and those of the store.
    pub async fn count(self, preview: BulkPreview) -> Result<BulkResult, Error> {
        let client = self.client.clone();
        self.each(|found| obstacle(client.clone(), preview, found)).await
    }

    /// Cancels them.
    ///
    /// # Errors
    /// As [`Bulk::count`].
    pub async fn cancel(self, reason: &str) -> Result<BulkResult, Error> {
        self.act(Act::Cancel(reason.into())).await
    }

    /// Pauses them.
    ///
    /// # Errors
    /// As [`Bulk::count`].
    pub async fn pause(self, reason: &str) -> Result<BulkResult, Error> {
        self.act(Act::Pause(reason.into())).await
    }

    /// Resumes them.
    ///
    /// # Errors
    /// As [`Bulk::count`].
    pub async fn resume(self) -> Result<BulkResult, Error> {
        self.act(Act::Resume).await
    }

    /// Deletes them with their descendants; running ones and children are passed over without `force`.
    ///
    /// # Errors
    /// As [`Bulk::count`].
    pub async fn delete(self, force: bool) -> Result<BulkResult, Error> {
        self.act(Act::Delete { force }).await
    }

    async fn act(self, act: Act) -> Result<BulkResult, Error> {
        let client = self.client.clone();
        self.each(|found| act.clone().on(client.clone(), found.id)).await
    }

    /// The instances are read first, so that acting on them does not move the pages.
    async fn found(&self) -> Result<(Vec<Match>, Option<InstanceCursor>), Error> {
        if self.limit > MAX_BULK_INSTANCES {
            let message = format!(
                "{} instances are too many for one call, the limit is {MAX_BULK_INSTANCES}",
                self.limit
            );
            return Err(Error::new(Code::TooManyInstances, message));
        }
        let mut found = Vec::new();
        let mut query = self.query.clone();
        while found.len() < self.limit {
            query.limit = (self.limit - found.len()).min(PAGE_ROWS);
            let page = self.client.store.query_instances(query.clone()).await?;
            let readable = page.instances.into_iter().map(Match::from);
            let mut rows: Vec<Match> = readable.chain(page.unreadable.into_iter().map(Match::from)).collect();
            rows.sort_by(|one, other| (other.created_at_ms, &one.id).cmp(&(one.created_at_ms, &other.id)));
            found.extend(rows);
            query.cursor = page.next;
            if query.cursor.is_none() || (self.stop)() {
                break;
            }
            // A store in this process answers without a pause, so thousands of instances would hold up all other tasks.
            tokio::task::yield_now().await;
        }
        Ok((found, query.cursor))
    }

    /// Does something to each instance, and counts those that it was done to, and those that
    /// something was in the way of.
    async fn each<F>(self, work: impl Fn(Match) -> F) -> Result<BulkResult, Error>
    where
        F: Future<Output = Result<Option<Obstacle>, Error>>,
    {
        let (found, next) = self.found().await?;
        let mut result = BulkResult { next, ..BulkResult::default() };
        let mut waiting = found.into_iter().peekable();
        let (mut last, mut unreadable) = (None, None);
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < CONCURRENT
                && (result.matched < CONCURRENT || !(self.stop)())
                && let Some(found) = waiting.next()
            {
                result.matched += 1;
                last = Some(found.cursor());
                match self.passes_over(&found.id) {
                    true => result.left.add(Obstacle::PassedOver),
                    false => running.push(work(found)),
                }
            }
            let obstacle = match running.next().await {
                None => break,
                Some(Ok(obstacle)) => obstacle,
                Some(Err(error)) => {
                    let obstacle = Obstacle::of(&error);
                    match obstacle {
                        Some(Obstacle::Unreadable) => unreadable = Some(error),
                        Some(_) => {}
                        None => return Err(error),
                    }
                    obstacle
                }
            };
            match obstacle {
                Some(obstacle) => result.left.add(obstacle),
                None => result.done += 1,
            }
        }
        if waiting.peek().is_some() {
            result.next = last;
        }
        // One that is damaged does not keep the others from being done; a store that is damaged for
        // all of them does.
        unreadable.filter(|_| result.done == 0).map_or(Ok(result), Err)
    }
}

/// What would keep a call from changing an instance, as it is now.
async fn obstacle(client: Client, preview: BulkPreview, found: Match) -> Result<Option<Obstacle>, Error> {
    let Some(row) = found.row else { return Ok(Some(Obstacle::Unreadable)) };
    let has_ended = match preview {
        BulkPreview::Send => return Ok(row.has_ended.then_some(Obstacle::Ended)),
        _ if !row.is_root => return Ok(Some(Obstacle::Child)),
        BulkPreview::ForceDelete => true,
        BulkPreview::Delete => row.has_ended && have_ended_below(&client, found.id).await?,
    };
    Ok((!has_ended).then_some(Obstacle::Running))
}

/// Whether all descendants of an instance have ended.
async fn have_ended_below(client: &Client, root: String) -> Result<bool, Error> {
    let store = &client.store;
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

/// What is done to each.
#[derive(Clone)]
enum Act {
    Cancel(Arc<str>),
    Pause(Arc<str>),
    Resume,
    Delete { force: bool },
}

impl Act {
    async fn on(self, client: Client, id: String) -> Result<Option<Obstacle>, Error> {
        match self {
            Act::Cancel(reason) => client.cancel(&id, &*reason).await?,
            Act::Pause(reason) => client.pause(&id, &*reason).await?,
            Act::Resume => client.resume(&id).await?,
            Act::Delete { force } => drop(client.delete(&id, force).await?),
        }
        Ok(None)
    }
}
