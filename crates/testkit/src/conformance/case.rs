//! What a case is, and how one is run: by the macro as a test, or by hand through [`cases`] and [`run`].

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Runtime};

use super::fixture::Env;
use super::harness::{ClockHandle, StoreHarness};
use super::stalls::Stalls;

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

/// How often a case in real time is tried on a machine that stalls every time.
const MAX_TRIES: usize = 10;

/// Runs one case against a fresh store of the harness. Panics when the store breaks the rule.
pub fn run<H: StoreHarness + 'static>(group: &str, name: &str, harness: fn() -> H) {
    let case = cases().iter().find(|case| case.group == group && case.name == name);
    let case = case.unwrap_or_else(|| panic!("there is no case {group}::{name}"));
    insist(|| try_once(case, harness));
}

/// What came of a try that failed.
struct Failed {
    panic: Box<dyn Any + Send>,
    /// Whether the machine stalled meanwhile, so that nothing is proved.
    was_stalled: bool,
}

/// Tries until it works, fails for good, or has failed too often.
fn insist(mut attempt: impl FnMut() -> Result<(), Failed>) {
    for tries_left in (0..MAX_TRIES).rev() {
        match attempt() {
            Ok(()) => return,
            Err(failed) if failed.was_stalled && tries_left > 0 => {
                eprintln!("the machine stalled during the case; once more");
            }
            Err(failed) => resume_unwind(failed.panic),
        }
    }
}

fn try_once<H: StoreHarness + 'static>(case: &'static Case, harness: fn() -> H) -> Result<(), Failed> {
    let stalls = Arc::new(Stalls::new());
    let watched = Arc::clone(&stalls);
    // On a thread of its own, because a store that spins never lets go of its runtime.
    let (done, outcome) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        case.runtime().block_on(async {
            let harness: Arc<dyn StoreHarness> = Arc::new(harness());
            case.run_on(&harness, &watched).await;
            harness.close().await;
        });
        // The receiver is gone only when the case was given up already.
        let _ = done.send(());
    });
    match outcome.recv_timeout(CASE_LIMIT) {
        Ok(()) => Ok(()),
        Err(RecvTimeoutError::Timeout) => panic!("the store is stuck: no end after {CASE_LIMIT:?}"),
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Ok(()) => unreachable!("the case ends by saying so or by panicking"),
            Err(panic) => Err(Failed { panic, was_stalled: stalls.were_there() }),
        },
    }
}

impl Case {
    /// Runs the case, with an eye on the time where that is real.
    async fn run_on(&self, harness: &Arc<dyn StoreHarness>, stalls: &Stalls) {
        let open = harness.open().await;
        let is_real = matches!(open.clock, ClockHandle::Real);
        let case = (self.run)(Env::new(open, Arc::clone(harness)));
        if !is_real {
            stalls.ignore();
            return case.await;
        }
        tokio::select! {
            biased;
            () = stalls.watch() => {}
            () = case => {}
        }
    }

    fn runtime(&self) -> Runtime {
        let mut builder = match self.threads {
            Threads::One => Builder::new_current_thread(),
            Threads::Many => Builder::new_multi_thread(),
        };
        let runtime = builder.worker_threads(MANY_THREADS).enable_all().build();
        runtime.expect("a test process can start a runtime")
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// How often a case is tried whose tries end like this, and whether it passes in the end.
    fn tries(outcome: impl Fn(usize) -> Option<bool>) -> (usize, bool) {
        let mut tries = 0;
        let passed = catch_unwind(AssertUnwindSafe(|| {
            insist(|| {
                tries += 1;
                outcome(tries).map_or(Ok(()), |was_stalled| Err(Failed { panic: Box::new(()), was_stalled }))
            });
        }));
        (tries, passed.is_ok())
    }

    #[test]
    fn only_a_case_that_was_stalled_is_tried_again() {
        assert_eq!(tries(|_| None), (1, true));
        assert_eq!(tries(|_| Some(false)), (1, false));
        assert_eq!(tries(|tries| (tries < 3).then_some(true)), (3, true));
        assert_eq!(tries(|tries| Some(tries < 3)), (3, false));
        assert_eq!(tries(|_| Some(true)), (MAX_TRIES, false));
    }
}
