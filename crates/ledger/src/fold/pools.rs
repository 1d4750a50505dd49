//! `pools`: slots that tasks of all runs share. The fold admits dispatches, and it is the one place
//! that sees all of them in one order; so a pool is never over its slots, however many controllers
//! request at once.

use std::sync::Arc;

use super::moment::Moment;
use super::shared::{Name, Shared};
use crate::event::PoolDefined;
use crate::tables::PoolRow;

/// Slots of a pool that was not defined: a name that was mistyped slows down and overloads nothing.
pub(crate) const UNDEFINED_POOL_SLOTS: u32 = 1;

impl Shared {
    /// `PoolDefined`: the newest counts.
    pub(super) fn define_pool(&mut self, event: &PoolDefined, at: Moment) -> bool {
        if self.pools.get(&event.pool).is_some_and(|row| row.row_version >= at.id) {
            return false;
        }
        let row = PoolRow {
            tenant_id: Arc::clone(&self.scope.tenant_id),
            workspace_id: Arc::clone(&self.scope.workspace_id),
            pool: Arc::clone(&event.pool),
            slots: event.slots,
            row_version: at.id,
        };
        self.pools.put(Arc::clone(&event.pool), row);
        true
    }

    /// Slots of a pool that no task holds.
    pub(super) fn free_slots(&self, pool: Option<&Name>) -> u32 {
        let Some(pool) = pool else { return u32::MAX };
        let slots = self.pools.get(pool).map_or(UNDEFINED_POOL_SLOTS, |row| row.slots);
        slots.saturating_sub(self.indexes.used.get(pool).copied().unwrap_or(0))
    }
}
