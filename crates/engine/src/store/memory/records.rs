//! The third facet: records.

use std::time::Duration;

use async_trait::async_trait;

use super::MemoryStore;
use crate::store::core::demand::DueDemand;
use crate::store::{DueRecords, ListRecords, ProviderError, ReadableRecords, Record, RecordBatch, Records};

#[async_trait]
impl Records for MemoryStore {
    async fn get_record(&self, kind: &str, id: &str) -> Result<Option<Record>, ProviderError> {
        Ok(self.look(|state, now_ms| state.records.get(kind, id, now_ms)))
    }

    async fn list_records(&self, request: ListRecords<'_>) -> Result<Vec<Record>, ProviderError> {
        Ok(self.look(|state, now_ms| state.records.list(&request, now_ms)))
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
        let demand = || DueDemand { kind: request.kind.to_owned(), id_prefix: request.id_prefix.to_owned() };
        // A question about a named time does not wait.
        let poll_timeout = if request.now_ms.is_some() { Duration::ZERO } else { request.poll_timeout };
        let attempt = |state: &mut super::state::State, now_ms| state.records.due(&request, now_ms);
        Ok(self.wait_for(demand, poll_timeout, attempt).await)
    }

    async fn next_due_ms(&self, kind: &str) -> Result<Option<u64>, ProviderError> {
        Ok(self.look(|state, now_ms| state.records.next_due_ms(kind, "", now_ms)))
    }

    async fn commit_records(&self, batch: RecordBatch) -> Result<Vec<u64>, ProviderError> {
        self.change(|state, now_ms| state.commit_records(batch, now_ms))
    }
}
