//! Starts whose caller waits for the end of the instance: one operation, and one wake-up.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use segno::store::{ErrorKind, InstanceInfo, OrchestratorMessage, ProviderError, WatchUntil};
use tokio::sync::oneshot;

use crate::commit::shared::Core;
use crate::state::machine::State;

impl Core {
    /// Starts an instance and waits for its end. `None` when the start is durable and not watched: the instance has ended before, or
    /// the store is being closed.
    pub(crate) async fn start(
        &self,
        instance: &Arc<str>,
        start: OrchestratorMessage,
    ) -> Result<Option<InstanceInfo>, ProviderError> {
        // Dropped after the receiver, so that the watch is closed by then.
        let mut watching = WatchingStart { core: self, instance: Some(instance) };
        let (answer, mut ended) = oneshot::channel();
        let watched = Arc::clone(instance);
        // A caller with a watch is woken by the end.
        let is_quiet = |is_watched: &bool| *is_watched;
        let started = self.commit_quietly("enqueue_for_orchestrator", is_quiet, move |state, now_ms| {
            state.enqueue(start, now_ms)?;
            Ok(state.watch_start(watched, answer))
        });
        tokio::pin!(started);
        let mut has_started = false;
        // An end is answered when it is durable, and with it the start, which precedes it in the log.
        let answered = poll_fn(|context| {
            if !ended.is_terminated()
                && let Poll::Ready(Ok(info)) = Pin::new(&mut ended).poll(context)
            {
                return Poll::Ready(Ok::<_, ProviderError>(Some(info)));
            }
            if !has_started && let Poll::Ready(outcome) = started.as_mut().poll(context) {
                outcome?;
                has_started = true;
            }
            // There is no watch, or none any more: the caller waits only for the start.
            if has_started && ended.is_terminated() { Poll::Ready(Ok(None)) } else { Poll::Pending }
        });
        let answered = answered.await;
        match &answered {
            // The answer has removed the watch, or there is none.
            Ok(_) => watching.instance = None,
            // A start that is refused like this has changed nothing.
            Err(error) if error.kind() == ErrorKind::Conflict => watching.instance = None,
            Err(_) => {}
        }
        answered
    }
}

impl State {
    /// Watches an instance that was just started, if its caller still waits and it has not ended before.
    fn watch_start(&mut self, instance: Arc<str>, answer: oneshot::Sender<InstanceInfo>) -> bool {
        // It cannot fail: the start has read the row. A row without a name may have an end.
        let row = self.tables.busy_instance(&instance).ok().flatten();
        let is_watched = !answer.is_closed() && !row.is_some_and(|row| row.meets(WatchUntil::Terminal));
        if is_watched {
            self.watches.add_answer(instance, WatchUntil::Terminal, answer);
        }
        is_watched
    }
}

/// Removes the watch of a start when its caller stops waiting: answered, timed out or dropped.
struct WatchingStart<'a> {
    core: &'a Core,
    /// `None` when there is none.
    instance: Option<&'a Arc<str>>,
}

impl Drop for WatchingStart<'_> {
    fn drop(&mut self) {
        if let Some(instance) = self.instance {
            self.core.lock().state.watches.remove_closed(instance);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;
    use std::time::Duration;

    use segno::store::{AckOrchestrationItem, ExecutionStatus, Provider, StartGuard};

    use super::*;
    use crate::idle_store::open;
    use crate::state::removal::Unended;
    use crate::store::EmbeddedStore;

    const LONG: Duration = Duration::from_secs(60);

    fn start() -> OrchestratorMessage {
        OrchestratorMessage { guard: StartGuard::IfAbsent, ..OrchestratorMessage::new("i1", "start") }
    }

    /// A turn of the instance with this end.
    async fn turn(
        store: &EmbeddedStore,
        status: ExecutionStatus,
        output: &'static str,
    ) -> AckOrchestrationItem {
        let item = store.fetch_orchestration_item(LONG, LONG, None).await.expect("a store that works");
        let item = item.expect("a message");
        let mut turn = AckOrchestrationItem::empty(item.lock_token, item.execution_id);
        turn.metadata.status = Some(status);
        turn.metadata.output = Some(output.into());
        turn
    }

    /// Polls once, without blocking.
    async fn begin<F: Future + Send>(future: F) -> Pin<Box<F>> {
        let mut future = Box::pin(future);
        let is_pending = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await;
        assert!(is_pending, "it waits");
        future
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(future)
    }

    /// The output in the answer to a delegated start. Then the instance ends with "new".
    fn answered(store: &EmbeddedStore, start: OrchestratorMessage) -> Option<bytes::Bytes> {
        block_on(async {
            let hold = store.core().lock();
            let started = begin(store.start_and_watch(start)).await;
            drop(hold);
            let ended = async {
                let turn = turn(store, ExecutionStatus::Completed, "new").await;
                store.ack_orchestration_item(Arc::new(turn)).await.expect("a lock that holds");
                store.watch_instance("i1", WatchUntil::Terminal, LONG).await.expect("a store that works");
            };
            let (started, ()) = tokio::join!(started, ended);
            started.expect("a start that works").output
        })
    }

    #[test]
    fn a_start_that_was_left_is_answered_with_its_end() {
        let (_directory, store) = open();
        assert_eq!(answered(&store, start()).as_deref(), Some(b"new".as_slice()));
        assert!(store.core().lock().state.watches.watched().is_empty());
    }

    #[test]
    fn a_message_that_was_left_is_answered_without_a_guard_too() {
        let (_directory, store) = open();
        let message = OrchestratorMessage::new("i1", "go");
        assert_eq!(answered(&store, message).as_deref(), Some(b"new".as_slice()));
    }

    #[test]
    fn an_instance_that_ended_without_a_name_answers_at_once() {
        let (_directory, store) = open();
        block_on(async {
            let early = OrchestratorMessage::new("i1", "early");
            store.enqueue_for_orchestrator(early, None).await.expect("a store that works");
            let turn = turn(&store, ExecutionStatus::Failed, "poison").await;
            store.ack_orchestration_item(Arc::new(turn)).await.expect("a lock that holds");
            let info = store.start_and_watch(start()).await.expect("a store that works");
            assert_eq!(info.output.as_deref(), Some(b"poison".as_slice()));
        });
    }

    #[test]
    fn the_end_of_a_deleted_predecessor_is_not_that_of_the_start() {
        let (_directory, store) = open();
        block_on(async {
            store.enqueue_for_orchestrator(start(), None).await.expect("a store that works");
            let watch = begin(store.watch_instance("i1", WatchUntil::Terminal, LONG)).await;
            let mut old = turn(&store, ExecutionStatus::Completed, "old").await;
            old.metadata.orchestration_name = Some("Flow".into());
            // All three are in one batch.
            let hold = store.core().lock();
            let end = begin(store.ack_orchestration_item(Arc::new(old))).await;
            let deletion = begin(
                store
                    .core()
                    .commit("delete", |state, _| state.delete(&BTreeSet::from(["i1"]), Unended::Refuse)),
            )
            .await;
            let started = begin(store.start_and_watch(start())).await;
            drop(hold);
            end.await.expect("a lock that holds");
            deletion.await.expect("an instance that has ended");
            let seen = watch.await.expect("a store that works").expect("its end");
            assert_eq!(seen.output.as_deref(), Some(b"old".as_slice()));
            let ended = async {
                let turn = turn(&store, ExecutionStatus::Completed, "new").await;
                store.ack_orchestration_item(Arc::new(turn)).await.expect("a lock that holds");
            };
            let (started, ()) = tokio::join!(started, ended);
            let output = started.expect("a start that works").output;
            assert_eq!(output.as_deref(), Some(b"new".as_slice()));
        });
    }

    #[test]
    fn a_waiting_caller_gets_the_error_of_a_closed_store() {
        for is_delegated in [true, false] {
            let (_directory, store) = open();
            block_on(async {
                let hold = is_delegated.then(|| store.core().lock());
                let started = begin(store.start_and_watch(start())).await;
                let watch = begin(store.watch_instance("i1", WatchUntil::Terminal, LONG)).await;
                drop(hold);
                store.close();
                let closed = Err(ErrorKind::Closed);
                assert_eq!(started.await.map(|_| ()).map_err(|error| error.kind()), closed);
                assert_eq!(watch.await.map(|_| ()).map_err(|error| error.kind()), closed);
            });
        }
    }

    #[test]
    fn a_dropped_start_leaves_no_watch() {
        for is_delegated in [true, false] {
            let (_directory, store) = open();
            block_on(async {
                let hold = is_delegated.then(|| store.core().lock());
                let started = begin(store.start_and_watch(start())).await;
                thread::scope(|scope| {
                    // The drop waits for the lock holder.
                    let dropping = scope.spawn(|| drop(started));
                    drop(hold);
                    dropping.join().expect("the thread has not panicked");
                });
                let turn = turn(&store, ExecutionStatus::Completed, "new").await;
                assert!(store.core().lock().state.watches.watched().is_empty());
                store.ack_orchestration_item(Arc::new(turn)).await.expect("it was started all the same");
            });
        }
    }
}
