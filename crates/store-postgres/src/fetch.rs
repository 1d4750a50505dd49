//! A fetch that waits inside the store, and locks that find their way back when nobody takes them.

use std::time::Duration;

use segno::clock::{deadline_ms, sleep_until};
use segno::store::{LockToken, ProviderError};
use tokio::sync::oneshot;

use crate::core::{Core, closed};
use crate::fetches::{Fetches, Locked};
use crate::item::{GiveBack, Item};
use crate::waiting::Waiting;

/// One of the two queues.
pub(crate) struct Queue<W, T> {
    pub(crate) operation: &'static str,
    pub(crate) fetches: fn(&mut Waiting) -> &mut Fetches<W, T>,
    pub(crate) give_back: fn(GiveBack) -> Item,
}

/// What a fetch asks for.
pub(crate) struct Ask<W> {
    pub(crate) wish: W,
    pub(crate) max_items: usize,
    pub(crate) poll_timeout: Duration,
}

/// Locked things that are given back unless somebody takes them.
pub(crate) struct Lease<'a, T: Locked> {
    core: &'a Core,
    make: fn(GiveBack) -> Item,
    items: Vec<T>,
}

impl<T: Locked> Lease<'_, T> {
    /// The locked things.
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    /// Takes them; from now on they are the caller's to give back.
    pub(crate) fn take(mut self) -> Vec<T> {
        std::mem::take(&mut self.items)
    }
}

impl<T: Locked> Drop for Lease<'_, T> {
    fn drop(&mut self) {
        if !self.items.is_empty() {
            let tokens: Vec<LockToken> = self.items.iter().map(Locked::lock_token).collect();
            self.core.give_back(tokens, self.make);
        }
    }
}

/// A place among the fetches that wait; given up when the fetch ends or is dropped.
struct Ticket<'a, W: Clone + PartialEq, T: Locked> {
    core: &'a Core,
    queue: &'a Queue<W, T>,
    id: u64,
    answer: oneshot::Receiver<Result<Vec<T>, ProviderError>>,
}

impl<W: Clone + PartialEq, T: Locked> Drop for Ticket<'_, W, T> {
    fn drop(&mut self) {
        (self.queue.fetches)(&mut self.core.waiting()).leave(self.id);
        self.answer.close();
        if let Ok(Ok(items)) = self.answer.try_recv() {
            drop(Lease { core: self.core, make: self.queue.give_back, items });
        }
    }
}

impl Core {
    /// Locks what is there, or waits for it. Without patience it looks once.
    pub(crate) async fn fetch<'a, W: Clone + PartialEq, T: Locked>(
        &'a self,
        queue: &Queue<W, T>,
        ask: Ask<W>,
    ) -> Result<Lease<'a, T>, ProviderError> {
        let is_patient = !ask.poll_timeout.is_zero();
        let deadline_ms = deadline_ms(self.clock(), ask.poll_timeout);
        let (id, answer) = {
            let mut waiting = self.waiting();
            if waiting.is_closed {
                return Err(closed(queue.operation));
            }
            let joined = (queue.fetches)(&mut waiting).join(ask.wish, ask.max_items, is_patient);
            self.wake_exchanger(&waiting);
            joined
        };
        let mut ticket = Ticket { core: self, queue, id, answer };
        let patience = async {
            if !is_patient {
                std::future::pending::<()>().await;
            }
            sleep_until(self.clock(), deadline_ms).await;
        };
        let answer = tokio::select! {
            biased;
            answer = &mut ticket.answer => answer,
            () = patience => Ok(Ok(Vec::new())),
        };
        let items = answer.unwrap_or_else(|_| Err(closed(queue.operation)))?;
        Ok(Lease { core: self, make: queue.give_back, items })
    }
}
