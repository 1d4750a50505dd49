//! Instances of a tenant.

use std::collections::BTreeSet;
use std::time::Duration;

use segno::client::{
    EventList, ExecutionList, Instance, InstanceList, TreeNode, TreePage, TreeQuery, UnreadableNode,
};
use segno::event::Event;
use segno::store::{
    DeleteInstanceResult, ExecutionStatus, HistoryQuery, InstanceCursor, InstanceQuery, UnreadableInstance,
};
use segno::{Code, Mailbox, Payload, Signal};
use segno_actions::functions::{CallName, LogRow, is_built_in};

use super::reserved::{Steering, check_steerable};
use super::{Located, Tenant};
use crate::problem::Refusal;

/// Which instances, in the caller's ids.
#[derive(Debug, Clone, Default)]
pub struct InstanceFilter {
    /// Ids that begin so.
    pub prefix: Option<String>,
    /// In one of these states; in any if there are none.
    pub statuses: BTreeSet<ExecutionStatus>,
    /// Of this orchestration.
    pub orchestration: Option<String>,
    /// Calls of this function.
    pub function: Option<CallName>,
    /// With all of these labels.
    pub labels: BTreeSet<(String, String)>,
    /// Children of this instance.
    pub parent: Option<String>,
    /// Not created before this time.
    pub created_from_ms: Option<u64>,
    /// Created before this time.
    pub created_before_ms: Option<u64>,
    /// After this place.
    pub cursor: Option<InstanceCursor>,
    /// At most this many.
    pub limit: usize,
}

/// A message to an instance.
pub struct Sent {
    /// The signal or mailbox.
    pub name: String,
    /// What is sent.
    pub data: Payload,
    /// What makes it safe to send again.
    pub message_id: Option<String>,
}

impl Tenant {
    /// One instance.
    ///
    /// # Errors
    /// `not-found` when the tenant has none of this id.
    pub async fn instance(&self, id: &str) -> Result<Instance, Refusal> {
        let found = self.resources().client.instance(&self.stored(id)).await;
        self.shown(found.map_err(|error| self.refused(error))?)
    }

    /// A page of instances, newest first.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn instances(&self, filter: InstanceFilter) -> Result<InstanceList, Refusal> {
        let page = self.resources().client.list(self.query(filter)).await;
        let page = page.map_err(|error| self.refused(error))?;
        let instances = page.instances.into_iter().map(|found| self.shown(found));
        let shown = |row: UnreadableInstance| {
            Some(UnreadableInstance { instance_id: self.shown_instance(Some(&row.instance_id))?, ..row })
        };
        Ok(InstanceList {
            instances: instances.collect::<Result<_, _>>()?,
            unreadable: page.unreadable.into_iter().filter_map(shown).collect(),
            damaged: page.damaged,
            next: self.next(page.next),
        })
    }

    /// Waits for the end of an instance; `None` when it did not come in time.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn ended(&self, id: &str, wait: Duration) -> Result<Option<Instance>, Refusal> {
        let ended = self.resources().client.wait_until_ended(&self.stored(id), wait).await;
        self.in_time(ended)?.map(|ended| self.shown(ended)).transpose()
    }

    /// Waits for a change of an instance; `None` when there was none in time.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn changed(&self, id: &str, seen: u64, wait: Duration) -> Result<Option<Instance>, Refusal> {
        let changed = self.resources().client.wait_for_revision(&self.stored(id), seen, wait).await;
        self.in_time(changed)?.map(|changed| self.shown(changed)).transpose()
    }

    /// Waits for a change of the status that the code of an instance sets, at most so long.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn status_changed(&self, id: &str, seen: u64, wait: Duration) -> Result<(), Refusal> {
        let changed = self.resources().client.status_change(self.stored(id), seen).timeout(wait).await;
        self.in_time(changed).map(drop)
    }

    /// A page of a history that is whole, and where the next one begins. `query` has the caller's
    /// id.
    ///
    /// # Errors
    /// `not-found` when there is no such execution, `stored-data-unreadable` when it cannot be
    /// read.
    pub async fn whole_events(&self, query: HistoryQuery) -> Result<(Vec<Event>, Option<u64>), Refusal> {
        let query = HistoryQuery { instance_id: self.stored(&query.instance_id), ..query };
        let page = self.resources().client.history_page(query).await;
        let page = page.map_err(|error| self.refused(error))?;
        Ok((page.events, page.next))
    }

    /// A page of a history, with what of it cannot be read, and where the next one begins. `query`
    /// has the caller's id.
    ///
    /// # Errors
    /// `not-found` when there is no such execution.
    pub async fn history(&self, query: HistoryQuery) -> Result<EventList, Refusal> {
        let query = HistoryQuery { instance_id: self.stored(&query.instance_id), ..query };
        let page = self.resources().client.readable_history(query).await;
        page.map_err(|error| self.refused(error))
    }

    /// The whole history of an execution.
    ///
    /// # Errors
    /// `not-found` when there is no such execution.
    pub async fn whole_history(&self, id: &str, execution: u64) -> Result<Vec<Event>, Refusal> {
        let history = self.resources().client.history_of_execution(&self.stored(id), execution).await;
        history.map_err(|error| self.refused(error))
    }

    /// Numbers of the executions that are stored.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn executions(&self, id: &str) -> Result<Vec<u64>, Refusal> {
        let executions = self.resources().client.executions(&self.stored(id)).await;
        executions.map_err(|error| self.refused(error))
    }

    /// A page of the executions that are stored, newest first.
    ///
    /// # Errors
    /// `not-found` when there is no such instance.
    pub async fn execution_page(
        &self,
        located: &Located,
        before: Option<u64>,
        limit: usize,
    ) -> Result<ExecutionList, Refusal> {
        if located.archived {
            return self.archived_executions(&located.instance, before, limit).await;
        }
        let id = self.stored(&located.instance.id);
        let page = self.resources().client.execution_page(&id, before, limit).await;
        page.map_err(|error| self.refused(error))
    }

    /// A page of an instance and its descendants. `query` has the caller's ids.
    ///
    /// # Errors
    /// `not-found` when there is no such instance; `invalid-request` for a cursor that is no node of its tree.
    pub async fn tree(&self, query: TreeQuery) -> Result<TreePage, Refusal> {
        let query = TreeQuery {
            instance: self.stored(&query.instance),
            after: query.after.map(|after| self.stored(&after)),
            ..query
        };
        let page = self.resources().client.tree_page(query).await;
        let TreePage { nodes, unreadable, next } = page.map_err(|error| match error.code() {
            // Its limit was checked before: what is left to be wrong is the cursor.
            segno::Code::InvalidOption => Refusal::broken_cursor(),
            _ => self.refused(error),
        })?;
        let shown = |node: TreeNode| Ok(TreeNode { instance: self.shown(node.instance)?, ..node });
        let nodes = nodes.into_iter().map(shown).collect::<Result<_, Refusal>>()?;
        // Without its index the store does not know whose children it cannot read.
        let unreadable = unreadable.into_iter().filter_map(|node| {
            let id = match &node.id {
                Some(id) => Some(self.shown_instance(Some(id))?),
                None => None,
            };
            Some(UnreadableNode { after: self.shown_instance(Some(&node.after))?, id, ..node })
        });
        let unreadable = unreadable.collect();
        Ok(TreePage { nodes, unreadable, next: self.shown_instance(next.as_deref()) })
    }

    /// What the tools of an instance wrote.
    ///
    /// # Errors
    /// Those of the catalogue.
    pub async fn logs(&self, id: &str, after: Option<&str>, limit: usize) -> Result<Vec<LogRow>, Refusal> {
        let logs = self.resources().functions.list_logs(&self.stored(id), after, limit).await;
        logs.map_err(|error| self.refused(error))
    }

    /// Refuses an instance of an orchestration that is part of Segno: a message to it would be recorded and never read.
    async fn check_takes_messages(&self, id: &str) -> Result<(), Refusal> {
        match self.resources().client.instance(&self.stored(id)).await {
            Ok(found) => match found.orchestration.filter(|name| is_built_in(name)) {
                Some(name) => Err(Refusal::takes_no_messages(id, &name)),
                None => Ok(()),
            },
            // Sending tells the same.
            Err(error) if error.code() == Code::NotFound => Ok(()),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Raises a signal.
    ///
    /// # Errors
    /// `built-in-orchestration` for the instance of a call, and those of the engine.
    pub async fn raise(&self, id: &str, sent: Sent) -> Result<(), Refusal> {
        self.check_takes_messages(id).await?;
        let signal = Signal::<Payload>::named(sent.name);
        let call = self.resources().client.signal(self.stored(id), signal, sent.data);
        let call = sent.message_id.into_iter().fold(call, |call, id| call.message_id(id));
        call.only_if_present().await.map_err(|error| self.refused(error))
    }

    /// Puts a message into a mailbox.
    ///
    /// # Errors
    /// `built-in-orchestration` for the instance of a call, and those of the engine.
    pub async fn enqueue(&self, id: &str, sent: Sent) -> Result<(), Refusal> {
        self.check_takes_messages(id).await?;
        let mailbox = Mailbox::<Payload>::named(sent.name);
        let call = self.resources().client.enqueue(self.stored(id), mailbox, sent.data);
        let call = sent.message_id.into_iter().fold(call, |call, id| call.message_id(id));
        call.only_if_present().await.map_err(|error| self.refused(error))
    }

    /// Cancels an instance.
    ///
    /// # Errors
    /// `reserved-id` for a call of a batch, `instance-ended` when there is nothing left to cancel, and those of the engine.
    pub async fn cancel(&self, id: &str, reason: String) -> Result<(), Refusal> {
        check_steerable(id, Steering::Cancel)?;
        let cancelled = self.resources().client.cancel(&self.stored(id), reason).await;
        cancelled.map_err(|error| self.refused(error))
    }

    /// Pauses an instance.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn pause(&self, id: &str, reason: String) -> Result<(), Refusal> {
        check_steerable(id, Steering::Pause)?;
        let paused = self.resources().client.pause(&self.stored(id), reason).await;
        paused.map_err(|error| self.refused(error))
    }

    /// Resumes an instance.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn resume(&self, id: &str) -> Result<(), Refusal> {
        check_steerable(id, Steering::Resume)?;
        self.resources().client.resume(&self.stored(id)).await.map_err(|error| self.refused(error))
    }

    /// Lets the activities of an instance that wait for their next attempt run at once; how many.
    ///
    /// # Errors
    /// `reserved-id` for a call of a batch, `instance-ended`, `nothing-to-retry`, and those of the engine.
    pub async fn retry(&self, id: &str) -> Result<u64, Refusal> {
        check_steerable(id, Steering::Retry)?;
        self.resources().client.retry_now(&self.stored(id)).await.map_err(|error| self.refused(error))
    }

    /// Deletes an instance with its children.
    ///
    /// # Errors
    /// `reserved-id` for a call of a batch, `instance-running` when it has not ended and is not forced.
    pub async fn delete(&self, id: &str, force: bool) -> Result<DeleteInstanceResult, Refusal> {
        check_steerable(id, Steering::Delete)?;
        let deleted = self.resources().client.delete(&self.stored(id), force).await;
        deleted.map_err(|error| self.refused(error))
    }

    pub(super) fn query(&self, filter: InstanceFilter) -> InstanceQuery {
        InstanceQuery {
            id_prefix: Some(self.stored(filter.prefix.as_deref().unwrap_or_default())),
            statuses: filter.statuses,
            orchestration_name: filter.orchestration,
            labels: filter
                .labels
                .into_iter()
                .chain(filter.function.map(|name| name.label(&self.owner())))
                .collect(),
            parent_instance_id: filter.parent.map(|parent| self.stored(&parent)),
            created_from_ms: filter.created_from_ms,
            created_before_ms: filter.created_before_ms,
            cursor: filter
                .cursor
                .map(|cursor| InstanceCursor { instance_id: self.stored(&cursor.instance_id), ..cursor }),
            limit: filter.limit,
        }
    }

    /// An instance with the caller's ids.
    fn shown(&self, found: Instance) -> Result<Instance, Refusal> {
        let id = self.scope.shown(&found.id).ok_or_else(|| Refusal::not_found("instance", &found.id))?;
        let parent = self.shown_instance(found.parent.as_deref());
        Ok(Instance { id: id.to_owned(), parent, ..found })
    }

    pub(super) fn next(&self, cursor: Option<InstanceCursor>) -> Option<InstanceCursor> {
        let cursor = cursor?;
        let instance_id = self.scope.shown(&cursor.instance_id)?.to_owned();
        Some(InstanceCursor { instance_id, ..cursor })
    }

    /// What came of waiting; `None` when nothing came in time.
    fn in_time<T>(&self, waited: Result<T, segno::Error>) -> Result<Option<T>, Refusal> {
        match waited {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.code() == segno::Code::WaitTimedOut => Ok(None),
            Err(error) => Err(self.refused(error)),
        }
    }
}
