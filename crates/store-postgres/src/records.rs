//! The third facet: records.

use std::collections::BTreeSet;
use std::pin::pin;

use async_trait::async_trait;
use segno::clock::{deadline_ms, sleep_until};
use segno::store::{
    DueRecords, ErrorKind, ListRecords, ProviderError, Record, RecordBatch, RecordWrite, Records,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::PostgresStore;
use crate::answer::{body, get};
use crate::item::Item;
use crate::number::{limit, time, unsigned};

/// Columns of a record, for every statement that returns records.
pub(crate) const COLUMNS: &str = "r.kind, r.id, r.version, r.due_at_ms, r.expires_at_ms, r.body";

pub(crate) fn record(row: &Row) -> Result<Record, ProviderError> {
    Ok(Record {
        kind: get(row, 0)?,
        id: get(row, 1)?,
        version: unsigned(get(row, 2)?),
        due_at_ms: get::<Option<i64>>(row, 3)?.map(unsigned),
        expires_at_ms: get::<Option<i64>>(row, 4)?.map(unsigned),
        body: body(row, 5)?,
    })
}

/// Fails when a key occurs twice.
pub(crate) fn check_keys(operation: &'static str, writes: &[RecordWrite]) -> Result<(), ProviderError> {
    let mut keys = BTreeSet::new();
    match writes.iter().map(RecordWrite::key).find(|key| !keys.insert(*key)) {
        None => Ok(()),
        Some((kind, id)) => {
            let message = format!("the record {kind} {id} occurs twice in a batch; write it once");
            Err(ProviderError::new(ErrorKind::Invalid, operation, message))
        }
    }
}

impl PostgresStore {
    /// Due records, and the local time to look again: when the next one is due.
    async fn due_now(&self, kind: &str, due_by_ms: Option<u64>, most: usize) -> Result<Due, ProviderError> {
        let schema = self.core().schema();
        // One more row than asked for: the next one tells when to look again.
        let sql = format!(
            "WITH moment AS MATERIALIZED (SELECT {schema}.now_ms() AS at)
             SELECT {COLUMNS}, moment.at, r.due_at_ms <= coalesce($2, moment.at)
               FROM {schema}.record r, moment
              WHERE r.kind = $1 AND r.due_at_ms IS NOT NULL AND (r.expires_at_ms IS NULL OR r.expires_at_ms > moment.at)
              ORDER BY r.due_at_ms, r.id LIMIT $3"
        );
        let (by_ms, most_rows) = (due_by_ms.map(time), limit(most.saturating_add(1)));
        let parameters = [(&kind as _, Type::TEXT), (&by_ms as _, Type::INT8), (&most_rows as _, Type::INT8)];
        let rows = self.core().rows("due_records", &sql, &parameters).await?;
        let mut due = Due { records: Vec::new(), next_look_ms: None };
        for row in &rows {
            if get(row, 7)? && due.records.len() < most {
                due.records.push(record(row)?);
                continue;
            }
            let (at_ms, now_ms): (i64, i64) = (get(row, 3)?, get(row, 6)?);
            let distance_ms = u64::try_from(at_ms - now_ms).unwrap_or(0);
            due.next_look_ms = Some(self.core().clock().now_ms().saturating_add(distance_ms));
            break;
        }
        Ok(due)
    }
}

struct Due {
    records: Vec<Record>,
    next_look_ms: Option<u64>,
}

#[async_trait]
impl Records for PostgresStore {
    async fn get_record(&self, kind: &str, id: &str) -> Result<Option<Record>, ProviderError> {
        self.core().look_up(kind, id).await
    }

    async fn list_records(&self, request: ListRecords<'_>) -> Result<Vec<Record>, ProviderError> {
        let schema = self.core().schema();
        let sql = format!(
            "SELECT {COLUMNS} FROM {schema}.record r
              WHERE r.kind = $1 AND r.id >= $2 AND ($3::text IS NULL OR r.id < $3) AND ($4::text IS NULL OR r.id > $4)
                AND (r.expires_at_ms IS NULL OR r.expires_at_ms > {schema}.now_ms())
              ORDER BY r.id LIMIT $5"
        );
        let end = prefix_end(request.id_prefix);
        let most = limit(request.limit);
        let parameters = [
            (&request.kind as _, Type::TEXT),
            (&request.id_prefix as _, Type::TEXT),
            (&end as _, Type::TEXT),
            (&request.after_id as _, Type::TEXT),
            (&most as _, Type::INT8),
        ];
        self.core().rows("list_records", &sql, &parameters).await?.iter().map(record).collect()
    }

    async fn due_records(&self, request: DueRecords<'_>) -> Result<Vec<Record>, ProviderError> {
        if request.limit == 0 {
            return Ok(Vec::new());
        }
        if request.now_ms.is_some() {
            return Ok(self.due_now(request.kind, request.now_ms, request.limit).await?.records);
        }
        let core = self.core();
        let deadline_ms = deadline_ms(core.clock(), request.poll_timeout);
        loop {
            // Before looking, so that a change in between is not missed.
            let mut changed = pin!(core.due_changed.notified());
            changed.as_mut().enable();
            let due = self.due_now(request.kind, None, request.limit).await?;
            if !due.records.is_empty() || core.clock().now_ms() >= deadline_ms {
                return Ok(due.records);
            }
            let look_ms = due.next_look_ms.map_or(deadline_ms, |next_ms| next_ms.min(deadline_ms));
            tokio::select! {
                biased;
                () = changed => {}
                () = sleep_until(core.clock(), look_ms) => {}
            }
        }
    }

    async fn next_due_ms(&self, kind: &str) -> Result<Option<u64>, ProviderError> {
        let schema = self.core().schema();
        let sql = format!(
            "SELECT r.due_at_ms FROM {schema}.record r WHERE r.kind = $1 AND r.due_at_ms IS NOT NULL
                AND (r.expires_at_ms IS NULL OR r.expires_at_ms > {schema}.now_ms())
              ORDER BY r.due_at_ms, r.id LIMIT 1"
        );
        let rows = self.core().rows("next_due_ms", &sql, &[(&kind, Type::TEXT)]).await?;
        rows.first().map(|row| get(row, 0).map(unsigned)).transpose()
    }

    async fn commit_records(&self, batch: RecordBatch) -> Result<Vec<u64>, ProviderError> {
        check_keys("commit_records", &batch.writes)?;
        self.core().commit(Item::Records(batch)).await
    }
}

/// The first text after all that begin with a prefix; `None` when there is none.
pub(crate) fn prefix_end(prefix: &str) -> Option<String> {
    let mut letters: Vec<char> = prefix.chars().collect();
    while let Some(last) = letters.pop() {
        // Skips what is no character: between these two there are only surrogates.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            letters.push(next);
            return Some(letters.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_follows_all_that_begin_with_it() {
        for (prefix, end) in [
            ("", None),
            ("a", Some("b")),
            ("a/", Some("a0")),
            ("\u{10FFFF}", None),
            ("a\u{10FFFF}", Some("b")),
            ("\u{d7ff}", Some("\u{e000}")),
            ("\u{7f}", Some("\u{80}")),
        ] {
            assert_eq!(prefix_end(prefix).as_deref(), end, "{prefix:?}");
        }
    }
}
