//! The instances of a bulk call: those that match a query, or those that a caller names.

use std::collections::HashSet;

use futures_util::StreamExt;

use super::{Bulk, CONCURRENT};
use crate::client::Client;
use crate::error::{Code, Error};
use crate::limits::MAX_BULK_INSTANCES;
use crate::store::{ErrorKind, InstanceCursor, InstanceInfo, InstanceQuery, UnreadableInstance};

/// Instances that are read at once: their results are in memory until they are processed.
const PAGE_ROWS: usize = 100;

/// Which instances.
pub(super) enum Target {
    /// All that match, newest first.
    Query(Box<InstanceQuery>),
    /// These, in this order, from the one after `after` on.
    Ids { ids: Vec<String>, after: Option<String> },
}

/// What has to be known of an instance.
pub(super) struct Match {
    pub(super) id: String,
    created_at_ms: u64,
    pub(super) state: MatchState,
}

pub(super) enum MatchState {
    Readable {
        has_ended: bool,
        is_root: bool,
    },
    /// Its row cannot be read: it may match, and what is done to it is refused.
    Unreadable,
    /// There is none of this id.
    Gone,
}

impl Match {
    pub(super) fn cursor(&self) -> InstanceCursor {
        InstanceCursor { created_at_ms: self.created_at_ms, instance_id: self.id.clone() }
    }
}

impl From<InstanceInfo> for Match {
    fn from(info: InstanceInfo) -> Self {
        let (has_ended, is_root) = (info.status.is_terminal(), info.parent_instance_id.is_none());
        let state = MatchState::Readable { has_ended, is_root };
        Match { created_at_ms: info.created_at_ms, state, id: info.instance_id }
    }
}

impl From<UnreadableInstance> for Match {
    fn from(found: UnreadableInstance) -> Self {
        Match { id: found.instance_id, created_at_ms: found.created_at_ms, state: MatchState::Unreadable }
    }
}

impl Bulk {
    /// The instances are read first, so that acting on them does not move the pages.
    pub(super) async fn found(&self) -> Result<(Vec<Match>, Option<InstanceCursor>), Error> {
        let asked = match &self.target {
            Target::Query(_) => self.limit,
            Target::Ids { ids, .. } => self.limit.max(ids.len()),
        };
        if asked > MAX_BULK_INSTANCES {
            let message =
                format!("{asked} instances are too many for one call, the limit is {MAX_BULK_INSTANCES}");
            return Err(Error::new(Code::TooManyInstances, message));
        }
        match &self.target {
            Target::Query(query) => self.matching(query).await,
            Target::Ids { ids, after } => self.named(ids, after.as_deref()).await,
        }
    }

    async fn matching(&self, query: &InstanceQuery) -> Result<(Vec<Match>, Option<InstanceCursor>), Error> {
        let mut found = Vec::new();
        let mut query = query.clone();
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

    async fn named(
        &self,
        ids: &[String],
        after: Option<&str>,
    ) -> Result<(Vec<Match>, Option<InstanceCursor>), Error> {
        let mut seen = HashSet::new();
        let unique: Vec<&String> = ids.iter().filter(|id| seen.insert(id.as_str())).collect();
        let begin = match after {
            None => 0,
            Some(after) => match unique.iter().position(|id| *id == after) {
                Some(place) => place + 1,
                None => {
                    let message = format!("{after:?} is none of the ids that the call names");
                    return Err(Error::new(Code::InvalidOption, message));
                }
            },
        };
        let wanted: Vec<String> = unique[begin..].iter().take(self.limit).map(|id| (*id).clone()).collect();
        let reads = wanted.into_iter().map(|id| looked_up(self.client.clone(), id));
        let mut reads = futures_util::stream::iter(reads).buffered(CONCURRENT);
        let mut found = Vec::new();
        while let Some(read) = reads.next().await {
            found.push(read?);
            if found.len().is_multiple_of(PAGE_ROWS) {
                if (self.stop)() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let is_last = begin + found.len() == unique.len();
        let next = found.last().filter(|_| !is_last).map(Match::cursor);
        Ok((found, next))
    }
}

/// What has to be known of the instance of an id.
async fn looked_up(client: Client, id: String) -> Result<Match, Error> {
    let of = |state| Match { id: id.clone(), created_at_ms: 0, state };
    match client.store.get_instance_info(&id).await {
        Ok(info) => Ok(Match::from(info)),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(of(MatchState::Unreadable)),
        // A start that waits for its first turn has no row.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let is_queued = client.store.queued_start_ms(&id).await?.is_some();
            let pending = MatchState::Readable { has_ended: false, is_root: true };
            Ok(of(if is_queued { pending } else { MatchState::Gone }))
        }
        Err(error) => Err(error.into()),
    }
}
