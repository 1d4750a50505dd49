//! What a case is, and how one is run: by the macro as a test, or by hand through [`cases`] and [`run`].

use std::panic::resume_unwind;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Runtime};

use super::fixture::Env;
use super::harness::StoreHarness;

/// Where a case runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// In a current-thread runtime.
    One,
    /// In a runtime with several threads, because the case is about real contention.
    Many,
}

/// How many threads [`Threads::Many`] stands for.
const MANY_THREADS: usize = 4;

/// One rule of the store contract.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The group it belongs to: a file of this directory.
    pub group: &'static str,
    /// The rule, as a sentence.
    pub name: &'static str,
    /// Where it runs.
    pub threads: Threads,
    run: fn(Env) -> BoxFuture<'static, ()>,
}

/// Makes one test of every case of the store contract, in one module per group.
///
/// ```ignore
/// segno_testkit::conformance!(MyHarness::new());
/// ```
///
/// The expression makes a [`StoreHarness`](crate::conformance::StoreHarness) and is evaluated inside the case's
/// runtime, once per case.
#[macro_export]
macro_rules! conformance {
    ($harness:expr) => {
        fn conformance_harness() -> impl $crate::conformance::StoreHarness {
            $harness
        }
        $crate::__for_each_case! { [$crate::__conformance_tests] }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    ($($group:ident $threads:ident { $($name:ident,)* })*) => {
        $(mod $group {
            $(#[test]
            fn $name() {
                $crate::conformance::run(stringify!($group), stringify!($name), super::conformance_harness);
            })*
        })*
    };
}

macro_rules! case_table {
    ($($group:ident $threads:ident { $($name:ident,)* })*) => {
        &[$($(Case {
            group: stringify!($group),
            name: stringify!($name),
            threads: Threads::$threads,
            run: |env| Box::pin(super::$group::$name(env)),
        },)*)*]
    };
}

/// Every case of the store contract.
pub fn cases() -> &'static [Case] {
    crate::__for_each_case! { [case_table] }
}

/// Real time after which a case counts as stuck: the store hangs or spins. Only a failing case takes this long.
const CASE_LIMIT: Duration = Duration::from_secs(60);

/// Runs one case against a fresh store of the harness. Panics when the store breaks the rule.
pub fn run<H: StoreHarness + 'static>(group: &str, name: &str, harness: fn() -> H) {
    let case = cases().iter().find(|case| case.group == group && case.name == name);
    let case = case.unwrap_or_else(|| panic!("there is no case {group}::{name}"));
    // On a thread of its own, because a store that spins never lets go of its runtime.
    let (done, outcome) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        case.runtime().block_on(async {
            let harness = harness();
            (case.run)(Env::new(harness.open().await)).await;
            harness.close().await;
        });
        // The receiver is gone only when the case was given up already.
        let _ = done.send(());
    });
    match outcome.recv_timeout(CASE_LIMIT) {
        Ok(()) => {}
        Err(RecvTimeoutError::Timeout) => panic!("the store is stuck: no end after {CASE_LIMIT:?}"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Ok(()) => unreachable!("the case ends by saying so or by panicking"),
            Err(panic) => resume_unwind(panic),
        },
    }
}

impl Case {
    fn runtime(&self) -> Runtime {
        let mut builder = match self.threads {
            Threads::One => Builder::new_current_thread(),
            Threads::Many => Builder::new_multi_thread(),
        };
        let runtime = builder.worker_threads(MANY_THREADS).enable_all().build();
        runtime.expect("a test process can start a runtime")
    }
}
