//! Tenants that share the threads. Jobs are held by channels, so that each test says what runs and what waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc;

use futures_util::future::poll_immediate;
use segno::store::ErrorKind;
use segno_testkit::clock::VirtualClock;

use super::*;

type Running = Pin<Box<dyn Future<Output = Result<(), FunctionError>>>>;

fn scope(tenant: &str) -> Scope {
    Scope::new("n", tenant).unwrap()
}

fn pool(threads: usize, waiting_per_key: usize) -> Arc<Pool> {
    let bounds = Bounds { running_per_key: threads - 1, waiting: 16, waiting_per_key };
    Arc::new(Pool::start(threads, bounds))
}

/// A job that reports its beginning and ends when it is let go.
struct Held {
    running: Running,
    let_go: mpsc::Sender<()>,
}

impl Held {
    fn queue(pool: &Arc<Pool>, tenant: &str) -> (Held, oneshot::Receiver<()>) {
        let (let_go, gate) = mpsc::channel();
        let (begins, begun) = oneshot::channel();
        let (pool, scope) = (Arc::clone(pool), scope(tenant));
        let running = Box::pin(async move {
            let work = move || {
                begins.send(()).ok();
                gate.recv().ok();
            };
            pool.run(&scope, Patience::Caller, work).await
        });
        (Held { running, let_go }, begun)
    }

    /// One that runs.
    async fn begin(pool: &Arc<Pool>, tenant: &str) -> Held {
        let (mut held, begun) = Self::queue(pool, tenant);
        assert!(poll_immediate(&mut held.running).await.is_none());
        begun.await.unwrap();
        held
    }

    /// One that waits.
    async fn wait(pool: &Arc<Pool>, tenant: &str) -> (Held, oneshot::Receiver<()>) {
        let (mut held, begun) = Self::queue(pool, tenant);
        assert!(poll_immediate(&mut held.running).await.is_none());
        (held, begun)
    }

    async fn end(self) {
        self.let_go.send(()).unwrap();
        self.running.await.unwrap();
    }
}

#[tokio::test]
async fn a_tenant_is_served_while_the_queue_of_another_is_full() {
    let pool = pool(3, 4);
    let mut slow = vec![Held::begin(&pool, "a").await, Held::begin(&pool, "a").await];
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(Held::wait(&pool, "a").await);
    }
    let refused = pool.run(&scope("a"), Patience::Caller, || ()).await.unwrap_err();
    assert_eq!((refused.code(), refused.kind()), ("unavailable", ErrorKind::Unavailable));
    // None of the jobs of the first tenant has ended, and one thread is left for others.
    for n in 0..20 {
        assert_eq!(pool.run(&scope("b"), Patience::Caller, move || n).await.unwrap(), n);
    }
    assert!(waiting.iter_mut().all(|(_, begun)| begun.try_recv().is_err()));
    // With all threads taken, another tenant is next, before those that have waited for longer.
    let other = Held::begin(&pool, "c").await;
    let (mut next, begun) = Held::wait(&pool, "b").await;
    slow.remove(0).end().await;
    begun.await.unwrap();
    assert!(waiting.iter_mut().all(|(_, begun)| begun.try_recv().is_err()));
    next.let_go.send(()).unwrap();
    (&mut next.running).await.unwrap();
    for held in slow.into_iter().chain([other]).chain(waiting.into_iter().map(|(held, _)| held)) {
        held.end().await;
    }
}

#[tokio::test]
async fn a_panic_is_answered_and_leaves_the_threads_at_work() {
    let pool = pool(2, 4);
    for _ in 0..3 {
        let panics = || panic!("on purpose");
        let error = pool.run(&scope("a"), Patience::Caller, panics).await.map(|(): ()| ()).unwrap_err();
        assert_eq!(error.code(), "invalid-function");
    }
    assert_eq!(pool.run(&scope("a"), Patience::Caller, || 9).await.unwrap(), 9);
}

#[tokio::test]
async fn a_job_whose_caller_has_gone_is_skipped() {
    let pool = pool(2, 4);
    let held = Held::begin(&pool, "a").await;
    let (gone, begun) = Held::wait(&pool, "a").await;
    drop(gone);
    held.end().await;
    pool.run(&scope("a"), Patience::Caller, || ()).await.unwrap();
    assert!(begun.await.is_err(), "it was run, or is still kept");
}

#[tokio::test]
async fn a_scheduled_check_gives_up_behind_others_of_its_tenant_and_waits_behind_others() {
    let (pool, clock) = (pool(2, 4), VirtualClock::new());
    let held = Held::begin(&pool, "a").await;
    let other = Held::begin(&pool, "b").await;
    let run = |tenant: &str| {
        let (pool, clock, scope) = (Arc::clone(&pool), clock.clone(), scope(tenant));
        Box::pin(async move { pool.run(&scope, Patience::Scheduler(&*clock), || ()).await })
    };
    let (mut behind_its_own, mut alone) = (run("a"), run("c"));
    assert!(poll_immediate(&mut behind_its_own).await.is_none());
    assert!(poll_immediate(&mut alone).await.is_none());
    clock.advance(SCHEDULED_CHECK_PATIENCE);
    assert_eq!(behind_its_own.await, Err(FunctionError::Busy));
    assert!(poll_immediate(&mut alone).await.is_none());
    other.end().await;
    alone.await.unwrap();
    held.end().await;
    run("a").await.unwrap();
}

#[tokio::test]
async fn a_tenant_with_few_jobs_takes_the_place_of_one_with_many_when_all_places_are_taken() {
    let pool = pool(2, 16);
    let mut held = vec![Held::begin(&pool, "a").await, Held::begin(&pool, "b").await];
    let mut waiting = Vec::new();
    for _ in 0..16 {
        waiting.push(Held::wait(&pool, "a").await.0);
    }
    held.push(Held::wait(&pool, "c").await.0);
    let newest = waiting.pop().unwrap();
    assert_eq!(newest.running.await, Err(FunctionError::Busy));
    for held in held.into_iter().chain(waiting) {
        held.end().await;
    }
}
