//! What an instance of a tenant waits for.

use std::collections::HashMap;

use segno::client::{HistoryBudget, Instance, OpenKind, OpenOperations};
use segno::store::{QueuePlace, QueuedWork};

use super::Tenant;
use crate::problem::Refusal;

/// Activities whose workers are looked up.
const MAX_HOLDERS: usize = 20;

/// What is open in the current execution of an instance, with where its activities stand in the
/// queue.
pub struct Waits {
    /// What is open. Children are in the caller's ids.
    pub open: OpenOperations,
    /// Its queued activities, by the event that scheduled them.
    pub queued: HashMap<u64, QueuedWork>,
    /// Workers elsewhere that hold activities, by the event that scheduled them.
    pub holders: HashMap<u64, String>,
}

impl Tenant {
    /// What the current execution of an instance waits for. The instance is as [`Tenant::instance`]
    /// gives it.
    ///
    /// # Errors
    /// `not-found`, `stored-data-unreadable`.
    pub async fn waits_of(&self, shown: &Instance, budget: HistoryBudget) -> Result<Waits, Refusal> {
        let (client, id) = (&self.resources().client, self.stored(&shown.id));
        let open = client.open_operations(&id, shown.execution_id, budget).await;
        let mut open = open.map_err(|error| self.refused(error))?;
        for operation in &mut open.operations {
            if let OpenKind::Child { instance, .. } = &mut operation.kind {
                *instance = self.shown_instance(Some(instance.as_str())).unwrap_or_default();
            }
        }
        let mut queued = HashMap::new();
        let (mut holders, mut looked_up) = (HashMap::new(), 0);
        let has_activities =
            open.operations.iter().any(|operation| matches!(operation.kind, OpenKind::Activity { .. }));
        if has_activities {
            let activities = client.queued_activities(&id).await.map_err(|error| self.refused(error))?;
            for activity in activities {
                if activity.execution_id != shown.execution_id {
                    continue;
                }
                if let QueuePlace::Locked { lock_token, .. } = activity.work.place
                    && looked_up < MAX_HOLDERS
                    && let Some(holder) = self.resources().presence.holder(&self.scope, lock_token.0).await?
                {
                    holders.insert(activity.activity_id, holder.worker);
                }
                looked_up += usize::from(matches!(activity.work.place, QueuePlace::Locked { .. }));
                queued.insert(activity.activity_id, activity.work);
            }
        }
        Ok(Waits { open, queued, holders })
    }
}
