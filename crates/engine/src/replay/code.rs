//! The code of an orchestration: its future, polled until it is pending.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};

use crate::event::EventKind;
use crate::failure::{self, Failure};
use crate::limits::{MAX_COMMANDS_PER_TURN, MAX_POLLS_PER_DELIVERY};

use super::journal::{Command, Excess};
use super::shared::{OrchestrationFuture, OrchestrationHandler, Shared};

/// Records wake-ups of the code, and whether the engine caused them.
struct RootWake {
    woken: AtomicBool,
    /// Set while the engine processes this execution; a wake-up at any other time comes from
    /// outside.
    engine_active: AtomicBool,
    woken_from_outside: AtomicBool,
}

impl Wake for RootWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        if !self.engine_active.load(Ordering::Relaxed) {
            self.woken_from_outside.store(true, Ordering::Relaxed);
        }
    }
}

/// The result of polling the code.
enum Polled {
    Pending,
    Ended(EventKind),
}

/// The future of an orchestration and its waker.
pub(super) struct Code {
    shared: Arc<Shared>,
    future: Option<OrchestrationFuture>,
    root: Arc<RootWake>,
    waker: Waker,
}

impl Code {
    /// Creates the future. It is polled for the first time by [`Code::run`].
    pub(super) fn new(shared: Shared, handler: &OrchestrationHandler) -> Self {
        let shared = Arc::new(shared);
        let input = shared.started.input.clone();
        // Woken from the start: the first poll needs no event.
        let root = Arc::new(RootWake {
            woken: AtomicBool::new(true),
            engine_active: AtomicBool::new(false),
            woken_from_outside: AtomicBool::new(false),
        });
        Code { future: Some(handler(shared.clone(), input)), waker: Waker::from(root.clone()), root, shared }
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The engine begins to process the execution.
    pub(super) fn enter(&self) {
        self.root.engine_active.store(true, Ordering::Relaxed);
    }

    /// The engine is done with the execution for now.
    pub(super) fn leave(&self) {
        self.root.engine_active.store(false, Ordering::Relaxed);
    }

    /// Whether the code was woken from outside the engine since the last call.
    pub(super) fn take_outside_wake(&self) -> bool {
        self.root.woken_from_outside.swap(false, Ordering::Relaxed)
    }

    /// Polls the code until nothing that it awaits is ready. Its end becomes the last command.
    pub(super) fn run(&mut self) {
        if let Polled::Ended(kind) = self.poll() {
            self.shared.journal().commands.push_back(Command { token: None, kind });
            self.close();
        }
    }

    fn poll(&mut self) -> Polled {
        let Some(future) = &mut self.future else { return Polled::Pending };
        self.shared.journal().begin_delivery();
        let mut cx = TaskContext::from_waker(&self.waker);
        for _ in 0..MAX_POLLS_PER_DELIVERY {
            if !self.root.woken.swap(false, Ordering::Relaxed) {
                return Polled::Pending;
            }
            let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
            if let Some(next) = self.shared.journal().next_execution.take() {
                return Polled::Ended(EventKind::OrchestrationContinuedAsNew {
                    input: next.input,
                    version: next.version,
                });
            }
            match polled {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(Ok(output))) => {
                    return Polled::Ended(EventKind::OrchestrationCompleted { output });
                }
                Ok(Poll::Ready(Err(failure))) => {
                    return Polled::Ended(EventKind::OrchestrationFailed { failure: failure.bounded() });
                }
                Err(panic) => {
                    let excess = self.shared.journal().excess();
                    if let Some(excess) = excess {
                        return Polled::Ended(self.exceeded(excess));
                    }
                    let failure = failure::from_panic("the orchestration", &*panic).non_retryable().bounded();
                    return Polled::Ended(EventKind::OrchestrationFailed { failure });
                }
            }
        }
        Polled::Ended(self.exceeded(Excess::Spinning))
    }

    /// The end of code that exceeds a limit. A cancelled execution ends as cancelled, whatever its
    /// code does.
    fn exceeded(&self, excess: Excess) -> EventKind {
        let cancelled = self.shared.journal().cancelled.clone();
        let failure = match (excess, cancelled) {
            (Excess::Commands, _) => {
                let message = format!(
                    "the orchestration asked for more than {MAX_COMMANDS_PER_TURN} things at once; \
                     start fewer things at once, or let children share the work"
                );
                Failure::configuration("too-many-commands", message)
            }
            (Excess::Spinning, Some(reason)) => {
                let message = format!("{reason} (the orchestration did not stop by itself; it spins)");
                Failure::cancelled(message).code("busy-loop")
            }
            (Excess::Spinning, None) => {
                let message = "the orchestration goes on and on without waiting for anything; it spins";
                Failure::configuration("busy-loop", message)
            }
        };
        EventKind::OrchestrationFailed { failure }
    }

    /// Drops the future. The drops of its operations issue no commands.
    pub(super) fn close(&mut self) {
        self.shared.journal().closed = true;
        // A panic in a destructor of user code must not reach the engine.
        let future = self.future.take();
        if catch_unwind(AssertUnwindSafe(|| drop(future))).is_err() {
            tracing::warn!(
                instance = &*self.shared.id.instance,
                "a destructor of the orchestration panicked"
            );
        }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        self.close();
        self.shared.clear_epilogue();
    }
}
