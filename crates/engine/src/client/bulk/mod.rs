//! One change for many instances.
//!
//! | file | what |
//! |---|---|
//! | `found` | the instances: those that match a query, or those that a caller names |
//! | `result` | what was done, and what was in the way |

mod found;
mod result;

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use super::Client;
use crate::error::{Code, Error};
use crate::limits::MAX_BULK_INSTANCES;
use crate::store::{ErrorKind, InstanceQuery, QueuePlace};
use found::{Match, MatchState, Target};
pub use result::{BulkLeft, BulkObstacle, BulkPreview, BulkResult, MAX_BULK_SAMPLE};

/// Instances that are acted on at once, so that their commits can share a write.
const CONCURRENT: usize = 64;

/// Acts on all instances that match a query or that are named, up to a limit.
#[must_use = "nothing happens before count, cancel, pause, resume, delete, retry or apply is called"]
pub struct Bulk {
    client: Client,
    target: Target,
    limit: usize,
    stop: Stop,
    passed_over: Option<PassedOver>,
}

/// Whether it is time to begin nothing more.
type Stop = Box<dyn Fn() -> bool + Send + Sync>;

/// Tells by its id whether an instance is passed over.
type PassedOver = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What came of one instance: an obstacle in the way of it, or an error. An error with an obstacle is about this
/// instance alone; the call ends with any other.
type Outcome<E> = Result<Option<BulkObstacle>, (Option<BulkObstacle>, E)>;

impl Client {
    /// Acts on all instances that match.
    pub fn bulk(&self, query: InstanceQuery) -> Bulk {
        self.bulk_on(Target::Query(Box::new(query)))
    }

    /// Acts on the instances of these ids, in their order; an id that comes twice counts once. With `after`, on those behind
    /// that id: the `next` of the call before.
    pub fn bulk_of(&self, ids: Vec<String>, after: Option<String>) -> Bulk {
        self.bulk_on(Target::Ids { ids, after })
    }

    fn bulk_on(&self, target: Target) -> Bulk {
        Bulk {
            client: self.clone(),
            target,
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

    /// Begins nothing more once this is true: the call ends with what it has begun, and `next` is where to continue.
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
    /// `too-many-instances` when the limit is too high or too many ids are named, `invalid-option` when `after` is none of
    /// the ids, and those of the store.
    pub async fn count(self, preview: BulkPreview) -> Result<BulkResult, Error> {
        let client = self.client.clone();
        self.each(|found| {
            let client = client.clone();
            async move { sorted(obstacle(client, preview, found).await) }
        })
        .await
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

    /// Lets their delayed activities run at once ([`Client::retry_now`]).
    ///
    /// # Errors
    /// As [`Bulk::count`].
    pub async fn retry(self) -> Result<BulkResult, Error> {
        self.act(Act::Retry).await
    }

    /// Does something of the caller's to each, by its id. It returns what is in the way of it, or an error, which ends the call.
    ///
    /// # Errors
    /// As [`Bulk::count`], and those that it returns.
    pub async fn apply<F, E>(self, act: impl Fn(String) -> F) -> Result<BulkResult, E>
    where
        F: Future<Output = Result<Option<BulkObstacle>, E>>,
        E: From<Error>,
    {
        self.each(|found| {
            let done = act(found.id);
            async move { done.await.map_err(|error| (None, error)) }
        })
        .await
    }

    async fn act(self, act: Act) -> Result<BulkResult, Error> {
        let client = self.client.clone();
        self.each(|found| {
            let done = act.clone().on(client.clone(), found.id);
            async move { sorted(done.await) }
        })
        .await
    }

    /// Does something to each instance, and counts those that it was done to, and those that
    /// something was in the way of.
    async fn each<F, E>(self, work: impl Fn(Match) -> F) -> Result<BulkResult, E>
    where
        F: Future<Output = Outcome<E>>,
        E: From<Error>,
    {
        let (found, next) = self.found().await?;
        let mut result = BulkResult { next, ..BulkResult::default() };
        let (mut done, mut left) = (Vec::new(), Vec::new());
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
                let (place, id) = (result.matched, found.id.clone());
                match found.state {
                    _ if self.passes_over(&id) => left.push((place, id, BulkObstacle::PassedOver)),
                    MatchState::Gone => left.push((place, id, BulkObstacle::Gone)),
                    _ => {
                        let work = work(found);
                        running.push(async move { (place, id, work.await) });
                    }
                }
            }
            let Some((place, id, outcome)) = running.next().await else { break };
            let obstacle = match outcome {
                Ok(obstacle) => obstacle,
                Err((Some(obstacle), error)) => {
                    if obstacle == BulkObstacle::Unreadable {
                        unreadable = Some(error);
                    }
                    Some(obstacle)
                }
                Err((None, error)) => return Err(error),
            };
            match obstacle {
                Some(obstacle) => left.push((place, id, obstacle)),
                None => done.push((place, id)),
            }
        }
        if waiting.peek().is_some() {
            result.next = last;
        }
        result.enter(done, left);
        // One that is damaged does not keep the others from being done; a store that is damaged for
        // all of them does.
        unreadable.filter(|_| result.done == 0).map_or(Ok(result), Err)
    }
}

impl BulkResult {
    /// Enters what became of the instances, each with its place among those that matched.
    fn enter(&mut self, mut done: Vec<(usize, String)>, mut left: Vec<(usize, String, BulkObstacle)>) {
        self.done = done.len();
        left.iter().for_each(|(_, _, obstacle)| self.left.add(*obstacle));
        done.sort_unstable_by_key(|(place, _)| *place);
        left.sort_unstable_by_key(|(place, _, _)| *place);
        self.sample = done.into_iter().take(MAX_BULK_SAMPLE).map(|(_, id)| id).collect();
        let left = left.into_iter().take(MAX_BULK_SAMPLE);
        self.left_sample = left.map(|(_, id, obstacle)| (id, obstacle)).collect();
    }
}

/// An outcome with the obstacle that an error reports.
fn sorted(outcome: Result<Option<BulkObstacle>, Error>) -> Outcome<Error> {
    outcome.map_err(|error| (BulkObstacle::of(&error), error))
}

/// What would keep a call from changing an instance, as it is now.
async fn obstacle(client: Client, preview: BulkPreview, found: Match) -> Result<Option<BulkObstacle>, Error> {
    let MatchState::Readable { has_ended, is_root } = found.state else {
        return Ok(Some(BulkObstacle::Unreadable));
    };
    let may_be_done = match preview {
        BulkPreview::Send => return Ok(has_ended.then_some(BulkObstacle::Ended)),
        BulkPreview::Retry if has_ended => return Ok(Some(BulkObstacle::Ended)),
        BulkPreview::Retry => {
            let is_waiting = has_delayed_activity(&client, &found.id).await?;
            return Ok((!is_waiting).then_some(BulkObstacle::NotWaiting));
        }
        BulkPreview::Restart => has_ended,
        BulkPreview::ForceRestart => true,
        _ if !is_root => return Ok(Some(BulkObstacle::Child)),
        BulkPreview::ForceDelete => true,
        BulkPreview::Delete => has_ended && have_ended_below(&client, found.id).await?,
    };
    Ok((!may_be_done).then_some(BulkObstacle::Running))
}

async fn has_delayed_activity(client: &Client, id: &str) -> Result<bool, Error> {
    let queued = client.store.queued_activities(id).await?;
    Ok(queued.iter().any(|activity| matches!(activity.work.place, QueuePlace::Delayed { .. })))
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
    Retry,
}

impl Act {
    async fn on(self, client: Client, id: String) -> Result<Option<BulkObstacle>, Error> {
        match self {
            Act::Cancel(reason) => client.cancel(&id, &*reason).await?,
            Act::Pause(reason) => client.pause(&id, &*reason).await?,
            Act::Resume => client.resume(&id).await?,
            Act::Delete { force } => drop(client.delete(&id, force).await?),
            Act::Retry => match client.retry_now(&id).await {
                Err(error) if error.code() == Code::NothingToRetry => {
                    return Ok(Some(BulkObstacle::NotWaiting));
                }
                retried => drop(retried?),
            },
        }
        Ok(None)
    }
}
