//! Running the code of an execution until it rests.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Wake};

use crate::event::EventKind;
use crate::failure::{self, Failure};
use crate::limits::{MAX_COMMANDS_PER_TURN, MAX_POLLS_PER_DELIVERY};

use super::execution::Execution;
use super::journal::{Command, Excess};

/// Notes that something which the code awaits has become ready, and who said so.
pub(super) struct RootWake {
    pub(super) woken: AtomicBool,
    /// Set while the engine is at work on this execution; a wake-up at any other time comes from outside.
    pub(super) engine_at_work: AtomicBool,
    pub(super) woken_from_outside: AtomicBool,
}

impl RootWake {
    /// Woken from the start: the first poll needs no event.
    pub(super) fn new() -> Self {
        RootWake {
            woken: AtomicBool::new(true),
            engine_at_work: AtomicBool::new(false),
            woken_from_outside: AtomicBool::new(false),
        }
    }
}

impl Wake for RootWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Relaxed);
        if !self.engine_at_work.load(Ordering::Relaxed) {
            self.woken_from_outside.store(true, Ordering::Relaxed);
        }
    }
}

/// How the last drive of the code went.
enum Drive {
    Resting,
    Ended(EventKind),
}

impl Execution {
    /// Polls the code until nothing that it awaits is ready. Its end becomes the last command.
    pub(super) fn drive(&mut self) {
        if let Drive::Ended(kind) = self.poll_until_rest() {
            let mut journal = self.shared.journal();
            journal.commands.push_back(Command { token: None, kind });
            drop(journal);
            self.drop_future();
        }
    }

    fn poll_until_rest(&mut self) -> Drive {
        let Some(future) = &mut self.future else { return Drive::Resting };
        self.shared.journal().begin_delivery();
        let mut cx = TaskContext::from_waker(&self.waker);
        for _ in 0..MAX_POLLS_PER_DELIVERY {
            if !self.root.woken.swap(false, Ordering::Relaxed) {
                return Drive::Resting;
            }
            let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
            if let Some(next) = self.shared.journal().next_execution.take() {
                return Drive::Ended(EventKind::OrchestrationContinuedAsNew {
                    input: next.input,
                    version: next.version,
                });
            }
            match polled {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(Ok(output))) => {
                    return Drive::Ended(EventKind::OrchestrationCompleted { output });
                }
                Ok(Poll::Ready(Err(failure))) => {
                    return Drive::Ended(EventKind::OrchestrationFailed { failure: failure.bounded() });
                }
                Err(panic) => {
                    let excess = self.shared.journal().excess();
                    if let Some(excess) = excess {
                        return Drive::Ended(self.exceeded(excess));
                    }
                    let failure = failure::from_panic("the orchestration", &*panic).non_retryable().bounded();
                    return Drive::Ended(EventKind::OrchestrationFailed { failure });
                }
            }
        }
        Drive::Ended(self.exceeded(Excess::Spinning))
    }

    /// The end of code that asks for too much. What was cancelled is cancelled, whatever the code made of it.
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

    pub(super) fn end(&mut self, kind: EventKind) {
        self.drop_future();
        self.shared.journal().commands.clear();
        self.ended = Some(kind);
    }

    /// Drops the code without taking the drops of its operations for decisions.
    pub(super) fn drop_future(&mut self) {
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
