//! The third facet: records.

use std::collections::BTreeSet;

use async_trait::async_trait;
use segno::clock::{deadline_ms, sleep_until};
use segno::store::{
    DueRecords, ErrorKind, ListRecords, ProviderError, ReadableRecords, Record, RecordBatch, RecordWrite,
    Records, folder_of,
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
    async fn due_now(&self, request: &DueRecords<'_>) -> Result<Due, ProviderError> {
        let DueRecords { kind, id_prefix, limit: most, .. } = *request;
        let schema = self.core().schema();
        // One more row than asked for: the next one tells when to look again.
        let (by_ms, most_rows) = (request.now_ms.map(time), limit(most.saturating_add(1)));
        let (folder, end) = (folder_of(id_prefix), prefix_end(id_prefix));
        let mut parameters =
            vec![(&kind as _, Type::TEXT), (&by_ms as _, Type::INT8), (&most_rows as _, Type::INT8)];
        let sql = if id_prefix.is_empty() {
            due_of_kind(schema)
        } else {
            parameters.extend([(&folder as _, Type::TEXT), (&id_prefix as _, Type::TEXT)]);
            parameters.extend(end.as_ref().map(|end| (end as _, Type::TEXT)));
            due_under_prefix(schema, if end.is_some() { PrefixEnd::Given } else { PrefixEnd::Open })
        };
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

/// Due records of a kind: $1 the kind, $2 the time, $3 how many.
fn due_of_kind(schema: &str) -> String {
    format!(
        "WITH moment AS MATERIALIZED (SELECT {schema}.now_ms() AS at)
         SELECT {COLUMNS}, moment.at, r.due_at_ms <= coalesce($2, moment.at)
           FROM {schema}.record r, moment
          WHERE r.kind = $1 AND r.due_at_ms IS NOT NULL AND (r.expires_at_ms IS NULL OR r.expires_at_ms > moment.at)
          ORDER BY r.due_at_ms, r.id LIMIT $3"
    )
}

/// The same with $4 the folder that the prefix ends in, $5 the prefix and $6 its end, if it has one. Folders under the
/// prefix are found by one step in the index each (a loose index scan), and each gives no more rows than are asked for.
fn due_under_prefix(schema: &str, end: PrefixEnd) -> String {
    let below = |what: &str| match end {
        PrefixEnd::Open => String::new(),
        PrefixEnd::Given => format!("AND {what} < $6"),
    };
    let folder = format!("{schema}.folder(r.id) COLLATE \"C\"");
    let (folders_end, ids_end) = (below(&folder), below("r.id"));
    format!(
        "WITH RECURSIVE moment AS MATERIALIZED (SELECT {schema}.now_ms() AS at),
         folder AS (
             SELECT $4::text COLLATE \"C\" AS name
             UNION ALL
             SELECT (SELECT {folder} FROM {schema}.record r
                      WHERE r.kind = $1 AND r.due_at_ms IS NOT NULL AND {folder} > f.name AND {folder} >= $5 {folders_end}
                      ORDER BY {folder} LIMIT 1)
               FROM folder f WHERE f.name IS NOT NULL
         )
         SELECT {COLUMNS}, moment.at, r.due_at_ms <= coalesce($2, moment.at)
           FROM moment, folder f CROSS JOIN LATERAL (
                SELECT r.* FROM {schema}.record r, moment
                 WHERE r.kind = $1 AND {folder} = f.name AND r.due_at_ms IS NOT NULL AND r.id >= $5 {ids_end}
                   AND (r.expires_at_ms IS NULL OR r.expires_at_ms > moment.at)
                 ORDER BY r.due_at_ms, r.id LIMIT $3) r
          WHERE f.name IS NOT NULL
          ORDER BY r.due_at_ms, r.id LIMIT $3"
    )
}

/// Whether there is a text after all that begin with a prefix.
#[derive(Clone, Copy)]
enum PrefixEnd {
    Open,
    Given,
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

    async fn list_records_around_damage(
        &self,
        request: ListRecords<'_>,
    ) -> Result<ReadableRecords, ProviderError> {
        Ok(ReadableRecords { records: self.list_records(request).await?, damaged: Vec::new() })
    }

    async fn due_records(&self, request: DueRecords<'_>) -> Result<Vec<Record>, ProviderError> {
        if request.limit == 0 {
            return Ok(Vec::new());
        }
        if request.now_ms.is_some() {
            return Ok(self.due_now(&request).await?.records);
        }
        let core = self.core();
        let deadline_ms = deadline_ms(core.clock(), request.poll_timeout);
        // Before looking, so that a change in between is not missed.
        let wait = core.due_waits.enter(request.kind, request.id_prefix);
        loop {
            let due = self.due_now(&request).await?;
            if !due.records.is_empty() || core.clock().now_ms() >= deadline_ms {
                return Ok(due.records);
            }
            let look_ms = due.next_look_ms.map_or(deadline_ms, |next_ms| next_ms.min(deadline_ms));
            tokio::select! {
                biased;
                () = wait.changed() => {}
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
