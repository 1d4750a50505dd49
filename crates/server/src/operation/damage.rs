//! Listings around damage: while a page of a listing is read, records that cannot be read do not
//! hide the others, and what is missing is collected for the page to report. Rooms list records in
//! many ways, so the request carries this, not each call.

use std::cell::RefCell;
use std::future::Future;

use segno_api::Unreadable;

use crate::problem::Refusal;

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

/// The same for an answer that is not a list: what is missing of it, as its field `unreadable`
/// shows it.
pub async fn shown_in_parts<T>(read: impl Future<Output = T>) -> (T, Vec<Unreadable>) {
    let (read, missing) = shown_around(read).await;
    (read, missing.into_iter().map(|reason| Unreadable { id: String::new(), reason }).collect())
}

/// A part of an answer that is shown around damage; `None` when the part cannot be read, which the
/// answer reports.
///
/// # Errors
/// All others, and that one too when the answer is not shown around damage.
pub fn part<T>(read: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
    match read {
        Ok(part) => Ok(Some(part)),
        Err(refusal) => match refusal.damage().filter(|_| is_shown_around()) {
            Some(reason) => {
                note(reason.to_owned());
                Ok(None)
            }
            None => Err(refusal),
        },
    }
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
