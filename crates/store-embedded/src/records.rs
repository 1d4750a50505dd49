//! The third facet: records.

use async_trait::async_trait;
use segno::store::memory::wishes::DueWish;
use segno::store::{DueRecords, ListRecords, ProviderError, ReadableRecords, Record, RecordBatch, Records};

use crate::error::RowError;
use crate::listing::DueQuery;
use crate::state::State;
use crate::store::EmbeddedStore;
use crate::waiting::{Fetch, Fetched, Found, Taken};

#[async_trait]
impl Records for EmbeddedStore {
    async fn get_record(&self, kind: &str, id: &str) -> Result<Option<Record>, ProviderError> {
        let row = self.core().look_at_record(kind, id).await?;
        Ok(row.map(|row| row.into_record(kind, id)))
    }

    async fn list_records(&self, request: ListRecords<'_>) -> Result<Vec<Record>, ProviderError> {
        let read = |state: &mut State, now_ms| state.tables.list_records(&request, now_ms);
        self.core().look("list_records", read).await
    }

    async fn list_records_around_damage(
        &self,
        request: ListRecords<'_>,
    ) -> Result<ReadableRecords, ProviderError> {
        let read = |state: &mut State, now_ms| state.tables.list_records_around_damage(&request, now_ms);
        let read = self.core().look("list_records", read).await?;
        read.damaged.iter().for_each(|what| self.core().damage.note(what));
        Ok(read)
    }

    async fn due_records(&self, request: DueRecords<'_>) -> Result<Vec<Record>, ProviderError> {
        const OPERATION: &str = "due_records";
        let DueRecords { kind, id_prefix, limit, .. } = request;
        if limit == 0 {
            return Ok(Vec::new());
        }
        if let Some(due_by_ms) = request.now_ms {
            let query = DueQuery { kind, id_prefix, due_by_ms, limit };
            return self.core().look(OPERATION, |state, now_ms| due(state, &query, now_ms)).await;
        }
        let wish = DueWish { kind: kind.to_owned(), id_prefix: id_prefix.to_owned() };
        let wanted = wish.clone();
        let attempt = move |state: &mut State, now_ms| {
            let DueWish { kind, id_prefix } = &wanted;
            let items = due(state, &DueQuery { kind, id_prefix, due_by_ms: now_ms, limit }, now_ms)?;
            Ok(Found { items, depends_on: state.unsynced.newest() })
        };
        let fetch =
            Fetch { operation: OPERATION, wish, poll_timeout: request.poll_timeout, lease: None, attempt };
        self.core().wait_for(fetch).await
    }

    async fn next_due_ms(&self, kind: &str) -> Result<Option<u64>, ProviderError> {
        self.core().look("next_due_ms", |state, now_ms| Ok(state.records.next_due_ms(kind, "", now_ms))).await
    }

    async fn commit_records(&self, batch: RecordBatch) -> Result<Vec<u64>, ProviderError> {
        self.core().commit("commit_records", move |state, now_ms| state.commit_records(batch, now_ms)).await
    }
}

fn due(state: &mut State, query: &DueQuery<'_>, now_ms: u64) -> Result<Vec<Record>, RowError> {
    state.records.prepare(query.kind, query.id_prefix);
    state.tables.due_records(&mut state.records, query, now_ms)
}

impl Fetched for Record {
    fn taken(&self) -> Option<Taken> {
        None
    }
}
