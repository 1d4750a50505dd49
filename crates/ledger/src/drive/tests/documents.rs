//! Documents that take long to parse.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;

use segno::store::ErrorKind;
use segno_actions::functions::compute;
use segno_actions::functions::limits::{MAX_WAITING_CHECKS_PER_TENANT, SCHEMA_THREADS_PER_TENANT};
use tokio::task::JoinSet;

use super::world::{World, all_succeed};
use crate::drive::LedgerError;
use crate::drive::limits::MAX_INLINE_DOCUMENT_BYTES;

const SMALL: &str = "{name: small, tasks: [{key: a, function: work}]}";

#[test]
fn large_documents_are_parsed_on_the_shared_threads_and_refused_when_too_much_waits_for_them() {
    segno_testkit::run(async {
        let world = World::new(all_succeed());
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let mut jobs = JoinSet::new();
        for _ in 0..SCHEMA_THREADS_PER_TENANT + MAX_WAITING_CHECKS_PER_TENANT {
            let (scope, held) = (world.scope.clone(), Arc::clone(&held));
            let wait = move || {
                // It ends when the sender is gone.
                let _ = held.lock().unwrap().recv();
            };
            jobs.spawn(async move { compute(&scope, wait).await });
        }
        let large = SMALL.replace("small", "large") + "\n# " + &"x".repeat(MAX_INLINE_DOCUMENT_BYTES);
        let dags = world.ledger.dags();
        let publish = async |text: &str| dags.publish(&world.scope, text.as_bytes(), None).await;
        // Until all jobs are in the queue, a document may still be admitted to it, and waits.
        let refused = loop {
            tokio::task::yield_now().await;
            let mut published = pin!(publish(&large));
            let polled = poll_fn(|context| Poll::Ready(published.as_mut().poll(context))).await;
            if let Poll::Ready(published) = polled {
                break published.unwrap_err();
            }
        };
        assert!(matches!(refused, LedgerError::Busy), "{refused}");
        assert_eq!((refused.code(), refused.kind()), ("unavailable", ErrorKind::Unavailable));
        assert!(publish(SMALL).await.unwrap().is_new);
        drop(release);
        while let Some(done) = jobs.join_next().await {
            // Those that found the queue full, because a document was in it, were refused.
            let _ = done.unwrap();
        }
        assert!(publish(&large).await.unwrap().is_new);
    });
}
