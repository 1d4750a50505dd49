//! A gate for CPU-bound polls: work on much data occupies at most half of the threads of an async runtime.
//!
//! Parsing and copying a megabyte takes a thread for milliseconds, and a few hundred such polls in the queue of the
//! runtime hold up everything behind them. So a future that is about much data takes a permit for each poll, and
//! gives it back when the poll ends. It holds no permit while it waits, and futures that are about little pass
//! without one, on the threads that are left.
//!
//! Gated futures must not be inside each other: the inner one could get the permit that the outer one needs to be
//! polled. Tasks are gated where they begin.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::OnceLock;
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Work on more bytes than this is gated.
pub const MAX_FREE_BYTES: usize = 64 * 1024;

/// The permits of the process: one for every two threads of the runtime that asks first, at least one.
fn permits() -> &'static Semaphore {
    static PERMITS: OnceLock<Semaphore> = OnceLock::new();
    PERMITS.get_or_init(|| {
        let threads = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        Semaphore::new((threads / 2).max(1))
    })
}

/// Runs a future, whose polls take a permit from when it is about much data on.
pub async fn gated<F: Future>(is_about_much: impl Fn() -> bool, future: F) -> F::Output {
    run(permits(), is_about_much, future).await
}

async fn run<F: Future>(permits: &Semaphore, is_about_much: impl Fn() -> bool, future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        // Never closed.
        let permit = if is_about_much() { permits.acquire().await.ok() } else { None };
        let polled = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        drop(permit);
        match polled {
            Poll::Ready(output) => return output,
            Poll::Pending => woken().await,
        }
    }
}

/// Waits until the task is woken, by whatever its last poll left its waker with.
async fn woken() {
    let mut is_woken = false;
    poll_fn(|_| match std::mem::replace(&mut is_woken, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_future_about_much_is_not_polled_without_a_permit_and_holds_none_while_it_waits() {
        let permits = Semaphore::new(1);
        let (is_much, polls) = (AtomicBool::new(true), AtomicUsize::new(0));
        let (release, released) = tokio::sync::oneshot::channel();
        let work = async {
            polls.fetch_add(1, Ordering::Relaxed);
            assert_eq!(permits.available_permits(), 0, "its poll has the permit");
            released.await.unwrap()
        };
        let mut gated = pin!(run(&permits, || is_much.load(Ordering::Relaxed), work));
        let mut poll = async || poll_fn(|context| Poll::Ready(gated.as_mut().poll(context))).await;
        let taken = permits.acquire().await.unwrap();
        assert_eq!(poll().await, Poll::Pending);
        assert_eq!(polls.load(Ordering::Relaxed), 0);
        drop(taken);
        assert_eq!(poll().await, Poll::Pending);
        assert_eq!((polls.load(Ordering::Relaxed), permits.available_permits()), (1, 1));
        release.send(7).unwrap();
        let taken = permits.acquire().await.unwrap();
        assert_eq!(poll().await, Poll::Pending);
        is_much.store(false, Ordering::Relaxed);
        drop(taken);
        assert_eq!(poll().await, Poll::Ready(7));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_wake_up_is_lost() {
        let permits = Arc::new(Semaphore::new(2));
        let tasks: Vec<_> = (0..100)
            .map(|number| {
                let permits = permits.clone();
                tokio::spawn(async move {
                    let work = async {
                        for _ in 0..100 {
                            tokio::task::yield_now().await;
                        }
                        number
                    };
                    run(&permits, || number % 2 == 0, work).await
                })
            })
            .collect();
        for (number, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.unwrap(), number);
        }
    }
}
