//! Finding, reading, deleting and pruning.

use futures_util::StreamExt;

use super::{Client, EventList, ExecutionList, Instance, InstanceList};
use crate::error::{Code, Error};
use crate::event::Event;
use crate::limits::{MAX_BULK_INSTANCES, MAX_PAGE_ROWS};
use crate::names;
use crate::store::{
    DeleteInstanceResult, ErrorKind, ExecutionInfo, HistoryQuery, InstanceFilter, InstancePage,
    InstanceQuery, InstanceTree, PruneOptions, PruneResult, QueueDepths, QueuedActivity, StoredEvent,
    SystemMetrics, UnreadableEvents,
};

/// Executions that are read at once.
const CONCURRENT_READS: usize = 16;

impl Client {
    /// What is known of an instance. One whose start is stored but not processed yet is pending, with revision 0.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn instance(&self, instance: &str) -> Result<Instance, Error> {
        names::check_instance_id(instance)?;
        match self.store.get_instance_info(instance).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            info => return Ok(Instance::from_info(info?)),
        }
        if let Some(since_ms) = self.store.queued_start_ms(instance).await? {
            return Ok(Instance::queued(instance, since_ms));
        }
        // Its first turn may have come between the two looks.
        Ok(Instance::from_info(self.store.get_instance_info(instance).await?))
    }

    /// A page of instances, newest first. A limit of 0 is the default of 100; the most is [`MAX_PAGE_ROWS`].
    ///
    /// # Errors
    /// `invalid-option` when the limit is too high.
    pub async fn list(&self, mut query: InstanceQuery) -> Result<InstanceList, Error> {
        query.limit = page_rows(query.limit)?;
        let page = self.store.query_instances(query).await?;
        let InstancePage { instances, unreadable, damaged, next } = page;
        let instances = instances.into_iter().map(Instance::from_info).collect();
        Ok(InstanceList { instances, unreadable, damaged, next })
    }

    /// The instance and all its descendants, by their ids. [`Client::tree_page`] reads a large tree in parts.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn tree(&self, instance: &str) -> Result<InstanceTree, Error> {
        self.store.get_instance_info(instance).await?;
        Ok(self.store.get_instance_tree(instance).await?)
    }

    /// History of the current execution.
    ///
    /// # Errors
    /// `not-found` when there is no such instance, `stored-data-unreadable` when an event cannot be read.
    pub async fn history(&self, instance: &str) -> Result<Vec<Event>, Error> {
        decode(instance, self.store.read_history(instance).await?)
    }

    /// History of one execution.
    ///
    /// # Errors
    /// `not-found` when there is no such execution, `stored-data-unreadable` when an event cannot be read.
    pub async fn history_of_execution(&self, instance: &str, execution_id: u64) -> Result<Vec<Event>, Error> {
        decode(instance, self.store.read_history_with_execution_id(instance, execution_id).await?)
    }

    /// A page of the history of one execution. A limit of 0 is the default of 100; the most is [`MAX_PAGE_ROWS`]. What
    /// it costs does not depend on the length of the history.
    ///
    /// # Errors
    /// `not-found` when there is no such execution, `invalid-option` when the limit is too high,
    /// `stored-data-unreadable` when an event cannot be read.
    pub async fn history_page(&self, mut query: HistoryQuery) -> Result<EventList, Error> {
        query.limit = page_rows(query.limit)?;
        let instance = query.instance_id.clone();
        let page = self.store.read_history_page(query).await?;
        let events = decode(&instance, page.events)?;
        Ok(EventList { events, unreadable: Vec::new(), next: page.next })
    }

    /// The same for showing it: unreadable events are reported, and do not hide the others.
    ///
    /// # Errors
    /// `not-found` when there is no such execution, `invalid-option` when the limit is too high.
    pub async fn readable_history(&self, mut query: HistoryQuery) -> Result<EventList, Error> {
        query.limit = page_rows(query.limit)?;
        let read = self.store.read_history_around_damage(query).await?;
        let (mut events, mut unreadable) = (Vec::new(), read.unreadable);
        for stored in &read.page.events {
            let event_id = stored.event_id;
            match Event::from_stored(stored) {
                Ok(event) => events.push(event),
                Err(reason) => unreadable.push(UnreadableEvents {
                    after_event_id: event_id.saturating_sub(1),
                    before_event_id: Some(event_id + 1),
                    reason: reason.to_string(),
                }),
            }
        }
        unreadable.sort_by_key(|events| events.after_event_id);
        Ok(EventList { events, unreadable, next: read.page.next })
    }

    /// Numbers of the executions that are stored, ascending.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn executions(&self, instance: &str) -> Result<Vec<u64>, Error> {
        Ok(self.store.list_executions(instance).await?)
    }

    /// Executions that are stored, newest first: at most `limit` before `before`, or from the current one on. A limit of 0 is
    /// the default of 100; the most is [`MAX_PAGE_ROWS`]. What it costs does not depend on how many there are.
    ///
    /// # Errors
    /// `not-found` when there is no such instance, `invalid-option` when the limit is too high.
    pub async fn execution_page(
        &self,
        instance: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<ExecutionList, Error> {
        let limit = page_rows(limit)?;
        let current = self.store.get_instance_info(instance).await?.current_execution_id;
        let newest = before.map_or(current, |before| before.saturating_sub(1).min(current));
        // They are numbered without gaps, and pruning removes the oldest: the first that is missing is the end.
        let numbers = (1..=newest).rev().take(limit + 1);
        let reads = numbers.map(|number| self.store.get_execution_info(instance, number));
        let mut reads = futures_util::stream::iter(reads).buffered(CONCURRENT_READS);
        let (mut executions, mut unreadable) = (Vec::new(), Vec::new());
        let mut number = newest;
        while let Some(read) = reads.next().await {
            match read {
                Ok(info) => executions.push(info),
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    let reason = error.condition().unwrap_or("its row cannot be read");
                    unreadable.push((number, reason.to_owned()));
                }
                Err(error) => return Err(error.into()),
            }
            number = number.saturating_sub(1);
        }
        let is_more = executions.len() + unreadable.len() > limit;
        // One more than requested was read, and the page ends before it.
        let last = newest.saturating_sub(limit as u64 - 1);
        if is_more {
            executions.retain(|info| info.execution_id >= last);
            unreadable.retain(|(number, _)| *number >= last);
        }
        Ok(ExecutionList { executions, unreadable, next: is_more.then_some(last) })
    }

    /// How the activities of an instance stand in the worker queue, by execution and activity.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn queued_activities(&self, instance: &str) -> Result<Vec<QueuedActivity>, Error> {
        Ok(self.store.queued_activities(instance).await?)
    }

    /// What is known of one execution.
    ///
    /// # Errors
    /// `not-found` when there is no such execution.
    pub async fn execution(&self, instance: &str, execution_id: u64) -> Result<ExecutionInfo, Error> {
        Ok(self.store.get_execution_info(instance, execution_id).await?)
    }

    /// Deletes a root instance with all its descendants and everything that belongs to them. Running ones only with
    /// `force`; their activities lose their locks, so nothing comes back.
    ///
    /// # Errors
    /// `not-found`, `instance-running` without `force`, or an error of the store for a child.
    pub async fn delete(&self, instance: &str, force: bool) -> Result<DeleteInstanceResult, Error> {
        match self.store.delete_instance(instance, force).await {
            Err(error) if error.kind() == ErrorKind::Conflict && !force => {
                let message =
                    format!("instance {instance:?} or a child of it still runs; cancel it, or use force");
                Err(Error::new(Code::InstanceRunning, message))
            }
            other => Ok(other?),
        }
    }

    /// Deletes ended root instances that match, each with its descendants.
    ///
    /// # Errors
    /// `too-many-instances` when the filter's limit or list is above [`MAX_BULK_INSTANCES`].
    pub async fn delete_ended(&self, filter: InstanceFilter) -> Result<DeleteInstanceResult, Error> {
        Ok(self.store.delete_instance_bulk(bounded(filter)?).await?)
    }

    /// Removes old executions of an instance; the current one and running ones stay.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn prune(&self, instance: &str, options: PruneOptions) -> Result<PruneResult, Error> {
        Ok(self.store.prune_executions(instance, options).await?)
    }

    /// Removes old executions of all instances that match.
    ///
    /// # Errors
    /// `too-many-instances` when the filter's limit or list is above [`MAX_BULK_INSTANCES`].
    pub async fn prune_many(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, Error> {
        Ok(self.store.prune_executions_bulk(bounded(filter)?, options).await?)
    }

    /// Counts over the whole store.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn system_metrics(&self) -> Result<SystemMetrics, Error> {
        Ok(self.store.get_system_metrics().await?)
    }

    /// Queue lengths.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn queue_depths(&self) -> Result<QueueDepths, Error> {
        Ok(self.store.get_queue_depths().await?)
    }
}

/// Rows of a page, or why there cannot be so many.
pub(super) fn page_rows(limit: usize) -> Result<usize, Error> {
    /// Without a limit.
    const DEFAULT_ROWS: usize = 100;
    match limit {
        0 => Ok(DEFAULT_ROWS),
        1..=MAX_PAGE_ROWS => Ok(limit),
        _ => {
            let message = format!("a page of {limit} rows is too long, the limit is {MAX_PAGE_ROWS}");
            Err(Error::new(Code::InvalidOption, message))
        }
    }
}

fn bounded(mut filter: InstanceFilter) -> Result<InstanceFilter, Error> {
    let asked = filter.limit.map_or(0, |limit| limit as usize);
    let listed = filter.instance_ids.as_ref().map_or(0, Vec::len);
    if asked.max(listed) > MAX_BULK_INSTANCES {
        let message = format!(
            "{} instances are too many for one call, the limit is {MAX_BULK_INSTANCES}",
            asked.max(listed)
        );
        return Err(Error::new(Code::TooManyInstances, message));
    }
    filter.limit.get_or_insert(MAX_BULK_INSTANCES as u32);
    Ok(filter)
}

fn decode(instance: &str, stored: Vec<StoredEvent>) -> Result<Vec<Event>, Error> {
    let events: Result<Vec<Event>, String> = stored.iter().map(Event::from_stored).collect();
    events.map_err(|reason| {
        Error::new(Code::StoredDataUnreadable, format!("the history of instance {instance:?}: {reason}"))
    })
}
