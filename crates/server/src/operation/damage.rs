//! Listings around damage: while a page of a listing is read, records that cannot be read do not
//! hide the others, and what is missing is collected for the page to report. Rooms list records in
//! many ways, so the request carries this, not each call.

use std::cell::RefCell;
use std::future::Future;

tokio::task_local! {
    static MISSING: RefCell<Vec<String>>;
}

/// Most ranges that a page reports.
const MAX_REPORTED: usize = 16;

/// Runs a read of a listing. Returns what it read, and why records are missing, each reason once.
pub async fn shown_around<T>(read: impl Future<Output = T>) -> (T, Vec<String>) {
    let collected = async {
        let read = read.await;
        (read, MISSING.with(RefCell::take))
    };
    MISSING.scope(RefCell::default(), collected).await
}

/// Whether the current task reads a page of a listing.
pub fn is_shown_around() -> bool {
    MISSING.try_with(|_| ()).is_ok()
}

/// Collects why records are missing.
pub fn note(reason: String) {
    let _elsewhere = MISSING.try_with(|missing| {
        let mut missing = missing.borrow_mut();
        if missing.len() < MAX_REPORTED && !missing.contains(&reason) {
            missing.push(reason);
        }
    });
}
