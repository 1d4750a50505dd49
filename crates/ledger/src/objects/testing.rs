//! The object store of tests: memory, or a bucket by command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object_store::ObjectStore;
use object_store::memory::InMemory;

use super::Location;

/// URL of the bucket of tests; credentials are those of the environment.
const BUCKET: &str = "SEGNO_TEST_BUCKET";

/// An empty place that no other test uses.
pub(crate) fn place() -> Arc<dyn ObjectStore> {
    static PLACES: AtomicU64 = AtomicU64::new(0);
    let Ok(bucket) = std::env::var(BUCKET) else { return Arc::new(InMemory::new()) };
    let number = PLACES.fetch_add(1, Ordering::Relaxed);
    let seed = segno::ids::SystemIds::shared().new_seed();
    let url = format!("{bucket}/{}-{number}-{seed:x}", std::process::id());
    Location { url: &url, options: &[] }.open().expect("the bucket of tests can be opened")
}
