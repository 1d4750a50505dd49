//! Instances that a bulk change is about where no index finds them: by failure, time of end, or duration.

use segno::store::InstanceCursor;

use super::list::Wanted;
use crate::app::{InstanceFilter, Tenant};
use crate::problem::Refusal;

/// Rows that are read at once. Each has its result with it, so this bounds memory.
const CHUNK_ROWS: usize = 64;

/// Most rows that one call looks at.
const MAX_SCANNED: usize = 10_000;

/// After this time no more rows are looked at, so that the change of what was found fits into the time of a request.
const SCAN_MS: u64 = 5_000;

/// Instances that match, in the order of the listing.
pub struct Selection {
    places: Vec<InstanceCursor>,
    next: Option<InstanceCursor>,
}

impl Selection {
    /// Their ids.
    pub fn ids(&self) -> Vec<String> {
        self.places.iter().map(|place| place.instance_id.clone()).collect()
    }

    /// Where the next call goes on: after the last instance that the change came to, or else after the last row that was looked
    /// at.
    pub fn after(self, reached: Option<InstanceCursor>) -> Option<InstanceCursor> {
        match reached {
            None => self.next,
            Some(reached) => {
                let place = self.places.into_iter().find(|place| place.instance_id == reached.instance_id);
                Some(place.unwrap_or(reached))
            }
        }
    }
}

/// Looks for instances, newest first, at most as many as the filter says.
///
/// # Errors
/// Those of the engine.
pub async fn select(tenant: &Tenant, filter: InstanceFilter, wanted: &Wanted) -> Result<Selection, Refusal> {
    let now_ms = tenant.now_ms();
    let most = filter.limit;
    let mut places = Vec::new();
    let mut cursor = filter.cursor.clone();
    let mut scanned = 0;
    loop {
        let request = InstanceFilter { cursor: cursor.take(), limit: CHUNK_ROWS, ..filter.clone() };
        let page = tenant.instances(request).await?;
        scanned += page.instances.len() + page.unreadable.len();
        for found in page.instances.iter().filter(|found| wanted.fits(found, now_ms)) {
            let place = InstanceCursor { created_at_ms: found.created_at_ms, instance_id: found.id.clone() };
            places.push(place.clone());
            if places.len() == most {
                return Ok(Selection { places, next: Some(place) });
            }
        }
        let is_enough = scanned >= MAX_SCANNED || tenant.now_ms() >= now_ms.saturating_add(SCAN_MS);
        match page.next {
            Some(next) if !is_enough => cursor = Some(next),
            next => return Ok(Selection { places, next }),
        }
    }
}
