//! Admission control for queries of a node: a few at once, one of each tenant, first come first served among tenants.
//! A tenant whose query has ended is behind all tenants that wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::SqlError;
use super::limits::{MAX_RUNNING, MAX_WAITING, MAX_WAITING_PER_TENANT};

/// The places of a node.
#[derive(Clone)]
pub struct Admission(Arc<Places>);

struct Places {
    free: Arc<Semaphore>,
    lines: Mutex<BTreeMap<String, Line>>,
}

/// The queries of one tenant.
struct Line {
    /// Those that run or wait.
    length: usize,
    /// Held by the one that is in the line of the node.
    turn: Arc<Semaphore>,
}

/// A place in the line of a tenant; leaves it when dropped.
struct InLine {
    places: Arc<Places>,
    tenant: String,
}

/// A place for a query, free again when dropped.
pub struct Place {
    // Dropped in this order: the next query of the tenant is behind all that wait.
    permit: Option<OwnedSemaphorePermit>,
    _turn: OwnedSemaphorePermit,
    line: InLine,
}

impl Default for Admission {
    fn default() -> Self {
        let free = Arc::new(Semaphore::new(MAX_RUNNING as usize));
        Admission(Arc::new(Places { free, lines: Mutex::new(BTreeMap::new()) }))
    }
}

impl Places {
    fn lines(&self) -> MutexGuard<'_, BTreeMap<String, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admission {
    /// Waits for a place.
    ///
    /// # Errors
    /// [`SqlError::Busy`] when too many queries wait.
    pub async fn take(&self, tenant: &str) -> Result<Place, SqlError> {
        let (line, turn) = self.queue(tenant)?;
        let closed = || SqlError::Internal("the places for queries are closed".to_owned());
        let turn = turn.acquire_owned().await.map_err(|_| closed())?;
        let permit = self.0.free.clone().acquire_owned().await.map_err(|_| closed())?;
        Ok(Place { permit: Some(permit), _turn: turn, line })
    }

    fn queue(&self, tenant: &str) -> Result<(InLine, Arc<Semaphore>), SqlError> {
        let mut lines = self.0.lines();
        if lines.values().map(|line| line.length).sum::<usize>() >= MAX_WAITING {
            let detail =
                format!("{MAX_WAITING} queries wait on this node already; try again in some seconds");
            return Err(SqlError::Busy(detail));
        }
        let line = lines.entry(tenant.to_owned());
        let line = line.or_insert_with(|| Line { length: 0, turn: Arc::new(Semaphore::new(1)) });
        if line.length >= MAX_WAITING_PER_TENANT {
            let detail = format!(
                "{MAX_WAITING_PER_TENANT} queries of this tenant run or wait on this node already; try again when one ends"
            );
            return Err(SqlError::Busy(detail));
        }
        line.length += 1;
        let turn = Arc::clone(&line.turn);
        Ok((InLine { places: Arc::clone(&self.0), tenant: tenant.to_owned() }, turn))
    }
}

impl Place {
    /// Gives the place up and waits for all of them, so that the query runs alone.
    ///
    /// # Errors
    /// Never while the node runs.
    pub async fn alone(mut self) -> Result<Self, SqlError> {
        self.permit = None;
        let all = self.line.places.free.clone().acquire_many_owned(MAX_RUNNING).await;
        self.permit =
            Some(all.map_err(|_| SqlError::Internal("the places for queries are closed".to_owned()))?);
        Ok(self)
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let mut lines = self.places.lines();
        if let Some(line) = lines.get_mut(&self.tenant) {
            line.length -= 1;
            if line.length == 0 {
                lines.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn tenants_take_turns_and_one_has_one_place() {
        let admission = Admission::default();
        let first = admission.take("a").await.unwrap();
        let mut second = pin!(admission.take("a"));
        assert!(poll(second.as_mut()).is_none(), "one of each tenant");
        let other = admission.take("b").await.unwrap();
        let mut third = pin!(admission.take("c"));
        assert!(poll(third.as_mut()).is_none(), "all places are taken");
        drop(first);
        assert!(poll(second.as_mut()).is_none(), "the tenant is behind the one that waits");
        let third = poll(third.as_mut()).unwrap().unwrap();
        drop((third, other));
        let second = poll(second.as_mut()).unwrap().unwrap();
        drop(second);
        assert!(admission.0.lines().is_empty());
    }

    #[tokio::test]
    async fn a_query_that_runs_alone_has_all_places() {
        let admission = Admission::default();
        let other = admission.take("b").await.unwrap();
        let mut alone = pin!(admission.take("a").await.unwrap().alone());
        assert!(poll(alone.as_mut()).is_none());
        drop(other);
        let alone = poll(alone.as_mut()).unwrap().unwrap();
        assert!(poll(pin!(admission.take("b"))).is_none());
        drop(alone);
        assert!(poll(pin!(admission.take("b"))).is_some());
    }

    #[tokio::test]
    async fn too_many_queries_of_a_tenant_are_refused() {
        let admission = Admission::default();
        let mut waiting = Vec::new();
        for _ in 0..MAX_WAITING_PER_TENANT {
            let mut take = Box::pin(admission.take("a"));
            let taken = poll(take.as_mut());
            waiting.push((take, taken));
        }
        assert!(matches!(admission.take("a").await, Err(SqlError::Busy(_))));
        assert!(admission.take("b").await.is_ok());
        waiting.clear();
        assert!(admission.take("a").await.is_ok());
    }
}
