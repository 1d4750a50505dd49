//! Ids of rows, drawn from counters of the tenant.

use std::ops::Range;

use segno::store::{ErrorKind, Expect, ProviderError, Record, RecordBatch, RecordWrite, Store};
use segno_actions::functions::Scope;

use super::place::COUNTERS;

/// Reserves ids of a table. They are higher than all that were reserved before; what is not used
/// leaves a gap.
///
/// # Errors
/// Those of the store.
pub(super) async fn reserve(
    store: &dyn Store,
    scope: &Scope,
    table: &str,
    count: u64,
) -> Result<Range<u64>, ProviderError> {
    let id = format!("{}{table}", scope.id_prefix());
    loop {
        let record = store.get_record(COUNTERS, &id).await?;
        let expect = record.as_ref().map_or(Expect::Absent, |record| Expect::Version(record.version));
        let next = next_of(record.as_ref(), &id)?;
        let end = next.saturating_add(count);
        let write = RecordWrite::Put {
            kind: COUNTERS.to_owned(),
            id: id.clone(),
            expect,
            due_at_ms: None,
            time_to_live: None,
            body: end.to_string().into(),
        };
        match store.commit_records(RecordBatch { writes: vec![write], ..RecordBatch::default() }).await {
            Ok(_) => return Ok(next..end),
            // Another has drawn ids: each conflict is progress of another node.
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sets a counter: the next number that is drawn from it.
pub(super) fn write(scope: &Scope, name: &str, next: u64) -> RecordWrite {
    RecordWrite::Put {
        kind: COUNTERS.to_owned(),
        id: format!("{}{name}", scope.id_prefix()),
        expect: Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: next.to_string().into(),
    }
}

/// The next id of a table: all that were reserved are lower.
///
/// # Errors
/// Those of the store.
pub(super) async fn next(store: &dyn Store, scope: &Scope, table: &str) -> Result<u64, ProviderError> {
    let id = format!("{}{table}", scope.id_prefix());
    next_of(store.get_record(COUNTERS, &id).await?.as_ref(), &id)
}

fn next_of(counter: Option<&Record>, id: &str) -> Result<u64, ProviderError> {
    let Some(counter) = counter else { return Ok(1) };
    next_id(&counter.body).ok_or_else(|| {
        ProviderError::new(ErrorKind::Corrupt, "reserve", format!("counter {id} is not a number"))
    })
}

fn next_id(body: &[u8]) -> Option<u64> {
    std::str::from_utf8(body).ok()?.parse().ok()
}
