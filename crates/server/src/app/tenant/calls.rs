//! How far a call of a tenant is: what its history and the queue say, and the workers that are known.

use segno::client::Instance;
use segno::store::{ErrorKind, ProviderError, QueuePlace};
use segno_actions::functions::{CallStatus, FunctionError, PoolName, Route, call_status};
use segno_actions::pools::Pause;

use super::Tenant;
use crate::problem::Refusal;
use crate::work::{Announced, Holder};

/// A call, with the workers that it concerns.
pub struct CallFound {
    /// How far it is.
    pub status: CallStatus,
    /// The worker that holds its current attempt, if that is one elsewhere and known.
    pub holder: Option<Holder>,
    /// Workers that could take it, if it waits for one elsewhere.
    pub announced: Option<Announced>,
    /// Whether its pool hands out calls, if it goes through one and has not ended.
    pub pool: Option<PoolCondition>,
}

/// Whether a pool hands out calls.
pub enum PoolCondition {
    /// It does.
    Active,
    /// It is paused.
    Paused(Pause),
    /// Its workers were throttled.
    Throttled {
        /// Until when nothing is handed out, in Unix milliseconds.
        until_ms: u64,
    },
    /// There is no such pool.
    Missing,
}

impl Tenant {
    /// How far the call is that an instance makes; `None` for one that makes none or has not begun. The instance is as
    /// [`Tenant::instance`] gives it; if its history cannot be read, it says so afterwards.
    ///
    /// # Errors
    /// When the store is away.
    pub async fn call_of_instance(&self, shown: &mut Instance) -> Result<Option<CallFound>, Refusal> {
        let instance = Instance { id: self.stored(&shown.id), ..shown.clone() };
        let status = match call_status(&self.resources().client, &instance).await {
            // It is shown without, and says so.
            Err(error) if error.code() == segno::Code::StoredDataUnreadable => {
                let reason = error.store_error().and_then(ProviderError::condition);
                let reason = reason.unwrap_or("its events do not decode");
                shown.unreadable.get_or_insert_with(|| format!("its history cannot be read: {reason}"));
                return Ok(None);
            }
            // It was deleted, or began another execution, since it was read.
            Err(error) if error.code() == segno::Code::NotFound => return Ok(None),
            status => status.map_err(|error| self.refused(error))?,
        };
        let Some(status) = status else { return Ok(None) };
        let (mut holder, mut announced) = (None, None);
        let presence = &self.resources().presence;
        let route = &status.invocation.route;
        match (route, status.queued.as_ref().map(|queued| queued.place)) {
            (Route::Remote { .. } | Route::Pool { .. }, Some(QueuePlace::Locked { lock_token, .. })) => {
                holder = presence.holder(&self.scope, lock_token.0).await?;
            }
            (Route::Remote { tag }, Some(QueuePlace::Ready)) => {
                let tag = tag.as_ref().map(|tag| tag.as_str());
                let function = status.invocation.function.as_str();
                announced = Some(presence.announced(&self.scope, function, tag).await?);
            }
            (Route::Pool { pool }, Some(QueuePlace::Ready)) => {
                announced = Some(presence.announced_to_pool(&self.scope, pool.as_str()).await?);
            }
            _ => {}
        }
        let pool = match route {
            Route::Pool { pool } if !shown.has_ended() => {
                let condition = self.pool_condition(pool).await?;
                if condition.is_none() {
                    let reason = "whether its pool is paused or rests cannot be read".to_owned();
                    shown.unreadable.get_or_insert(reason);
                }
                condition
            }
            _ => None,
        };
        Ok(Some(CallFound { status, holder, announced, pool }))
    }

    /// Whether a pool hands out calls; `None` when that cannot be read.
    async fn pool_condition(&self, name: &PoolName) -> Result<Option<PoolCondition>, Refusal> {
        let pools = &self.resources().pools;
        match pools.find(&self.owner(), name).await {
            Err(FunctionError::UnknownPool { .. }) => return Ok(Some(PoolCondition::Missing)),
            Ok(_) => {}
            // What is stored of it cannot be read; whether it hands out calls is stored elsewhere.
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            Err(error) => return Err(self.refused(error)),
        }
        let state = match pools.state(&self.owner(), name).await {
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(None),
            state => state.map_err(|error| self.refused(error))?,
        };
        if let Some(pause) = state.paused {
            return Ok(Some(PoolCondition::Paused(pause)));
        }
        let now_ms = self.app.clock.now_ms();
        Ok(Some(match state.throttled_until_ms.filter(|until_ms| *until_ms > now_ms) {
            Some(until_ms) => PoolCondition::Throttled { until_ms },
            None => PoolCondition::Active,
        }))
    }
}
