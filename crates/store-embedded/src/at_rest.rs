//! For tests: a fresh store whose threads sleep.

use std::sync::Arc;

use crate::store::EmbeddedStore;

pub fn open() -> (tempfile::TempDir, Arc<EmbeddedStore>) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = EmbeddedStore::open(directory.path()).expect("an empty directory");
    while store.core().lock().call_writer_at.is_none() {
        // The writer asks for something itself before it sleeps.
        std::thread::yield_now();
    }
    (directory, store)
}
