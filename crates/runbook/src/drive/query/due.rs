//! Queries that are due, of all tenants. A page has the oldest; when more are due than it has, the
//! tenants are visited in turn (skip scan by id), so that no backlog hides the queries of others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use segno::store::{DueRecords, ListRecords, ProviderError, Record, Store};

use super::turns::folder_of;
use crate::drive::place::QUERIES;

/// Due queries that are read at once.
pub(super) const PAGE: usize = 1_000;

/// Tenants that are visited at once while more than a page is due, and queries of each.
const TENANTS_PER_VISIT: usize = 100;
const QUERIES_OF_TENANT: usize = 2;

/// Longest wait for a query that is due.
const WAIT: Duration = Duration::from_secs(30);

/// Reads queries that are due.
pub(super) struct DueQueries {
    store: Arc<dyn Store>,
    /// The tenants after this id are visited next.
    after: Option<String>,
}

impl DueQueries {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        DueQueries { store, after: None }
    }

    /// Waits for queries that are due.
    pub(super) async fn next(&mut self) -> Result<Vec<Record>, ProviderError> {
        let request =
            DueRecords { kind: QUERIES, id_prefix: "", now_ms: None, limit: PAGE, poll_timeout: WAIT };
        let mut due = self.store.due_records(request).await?;
        if due.len() >= PAGE {
            self.add_hidden(&mut due).await?;
        }
        Ok(due)
    }

    /// Adds queries of tenants that have none among those that were read.
    async fn add_hidden(&mut self, due: &mut Vec<Record>) -> Result<(), ProviderError> {
        let seen: BTreeSet<String> = due.iter().map(|record| folder_of(record).to_owned()).collect();
        let now_ms = self.store.now_ms().await?;
        for _ in 0..TENANTS_PER_VISIT {
            let after_id = self.after.as_deref();
            let request = ListRecords { kind: QUERIES, id_prefix: "", after_id, limit: 1 };
            let Some(record) = self.store.list_records(request).await?.pop() else {
                self.after = None;
                return Ok(());
            };
            let folder = folder_of(&record);
            // No id is between those of a tenant and this one: '0' is what follows '/'.
            self.after = Some(format!("{}0", folder.trim_end_matches('/')));
            if !seen.contains(folder) {
                let limit = QUERIES_OF_TENANT;
                let (now_ms, poll_timeout) = (Some(now_ms), Duration::ZERO);
                let request = DueRecords { kind: QUERIES, id_prefix: folder, now_ms, limit, poll_timeout };
                due.extend(self.store.due_records(request).await?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use segno::store::memory::MemoryStore;
    use segno::store::{Expect, RecordBatch};
    use segno_actions::functions::Scope;
    use segno_testkit::clock::VirtualClock;

    use super::super::row::QueryRow;
    use super::*;
    use crate::drive::post::timestamp;

    async fn add(store: &dyn Store, tenant: &str, names: std::ops::Range<usize>, due_ms: u64) {
        let scope = Scope::new("eu", tenant).unwrap();
        let write = |number: usize| {
            let next_run_at = Some(timestamp(due_ms));
            let row = QueryRow { next_run_at, ..QueryRow::new(&format!("w{number}")) };
            row.write(&scope, Expect::Absent)
        };
        for number in names {
            let writes = vec![write(number)];
            store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
        }
    }

    #[test]
    fn a_backlog_of_one_tenant_does_not_hide_the_queries_of_others() {
        segno_testkit::run(async {
            let clock = VirtualClock::auto();
            clock.set_ms(10_000);
            let store: Arc<dyn Store> = MemoryStore::with_clock(clock);
            add(&*store, "m-backlog", 0..PAGE + 50, 1_000).await;
            let others: Vec<String> =
                (0..TENANTS_PER_VISIT + 20).map(|number| format!("t{number}")).collect();
            for tenant in &others {
                add(&*store, tenant, 0..3, 2_000).await;
            }
            // Not due yet.
            add(&*store, "a-later", 0..1, 900_000).await;
            let mut due = DueQueries::new(store);
            let mut seen = BTreeSet::new();
            for _ in 0..2 {
                let found = due.next().await.unwrap();
                assert!(found.len() <= PAGE + TENANTS_PER_VISIT * QUERIES_OF_TENANT, "{}", found.len());
                seen.extend(found.iter().map(|record| folder_of(record).to_owned()));
            }
            assert_eq!(seen.len(), others.len() + 1, "{seen:?}");
            assert!(!seen.contains("eu/a-later/"));
        });
    }
}
