//! What a node does for the archive: records whose time is over move there, and its files are kept
//! up.

use std::sync::Arc;

use segno::clock::Clock;
use segno::store::Store;
use segno_ledger::archive::{ArchiveStore, RetiredActions, RetiredOccurrences, Retirement, Retiring, Upkeep};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::audit_archive::RetiredEntries;
use crate::settings::Settings;

/// Starts the tasks of a node; they end when it stops. Without an archive, what became due while
/// there was one is removed.
pub fn start(
    archive: Option<&ArchiveStore>,
    (store, clock): (&Arc<dyn Store>, &Arc<dyn Clock>),
    settings: &Settings,
    stopping: &CancellationToken,
) -> Vec<JoinHandle<()>> {
    let retirement = Retirement::new(store.clone(), clock.clone(), archive.cloned(), retiring());
    let mut tasks = vec![tokio::spawn(retirement.run(stopping.clone().cancelled_owned()))];
    if let Some(archive) = archive {
        let upkeep = Upkeep::new(archive.clone(), clock.clone(), settings.archive_upkeep());
        tasks.push(tokio::spawn(upkeep.run(stopping.clone().cancelled_owned())));
    }
    tasks
}

/// The kinds of records that are archived when their time is over.
fn retiring() -> Vec<Arc<dyn Retiring>> {
    vec![Arc::new(RetiredActions), Arc::new(RetiredOccurrences), Arc::new(RetiredEntries)]
}
