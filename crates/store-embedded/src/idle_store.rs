//! For tests: a fresh store whose threads sleep.

use std::sync::Arc;

use crate::store::EmbeddedStore;

pub(crate) fn open() -> (tempfile::TempDir, Arc<EmbeddedStore>) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = EmbeddedStore::open(directory.path()).expect("an empty directory");
    while store.core().lock().notify_writer_at.is_none() {
        // The writer makes a request of its own before it sleeps.
        std::thread::yield_now();
    }
    (directory, store)
}
