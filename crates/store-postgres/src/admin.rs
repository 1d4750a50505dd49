//! The second facet: listing, reading, counting, deleting and pruning.

use async_trait::async_trait;
use segno::store::{
    DeleteInstanceResult, EndedCursor, EndedPage, EndedQuery, ErrorKind, ExecutionInfo, ExecutionStatus,
    HistoryPage, HistoryQuery, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, InstanceVersion,
    LockToken, ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, QueuePlace,
    QueuedActivity, QueuedWork, ReadableHistoryPage, StoredEvent, SystemMetrics,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::PostgresStore;
use crate::answer::{get, instance_info, optional_body, stored_event, unreadable};
use crate::columns::{Parameter, tag};
use crate::number::{bits, limit, status, status_code, time, unsigned};

fn unknown_instance(operation: &'static str, instance: &str) -> ProviderError {
    ProviderError::new(ErrorKind::NotFound, operation, format!("there is no instance {instance}"))
}

fn unknown_execution(operation: &'static str, instance: &str, execution_id: u64) -> ProviderError {
    let message = format!("there is no execution {execution_id} of an instance {instance}");
    ProviderError::new(ErrorKind::NotFound, operation, message)
}

/// Counts from a place in a row on.
fn counts<const N: usize>(row: &Row, at: usize) -> Result<[u64; N], ProviderError> {
    let mut counts = [0; N];
    for (place, count) in counts.iter_mut().enumerate() {
        *count = unsigned(get(row, at + place)?);
    }
    Ok(counts)
}

/// What [`queued_work`] reads of an activity. One whose lock has run out is ready, whether or not a fetch has noticed it.
fn queued_columns(schema: &str) -> String {
    format!(
        "a.ready OR a.next_at_ms <= {schema}.now_ms(), a.next_at_ms, a.lock_token, a.attempts, a.lane, a.session_id"
    )
}

/// How an activity stands, by the columns of [`queued_columns`].
fn queued_work(row: &Row) -> Result<QueuedWork, ProviderError> {
    let next_at_ms = unsigned(get(row, 1)?);
    let place = match (get::<bool>(row, 0)?, get::<Option<i64>>(row, 2)?) {
        (true, _) => QueuePlace::Ready,
        (false, Some(token)) => {
            QueuePlace::Locked { lock_token: LockToken(unsigned(token)), until_ms: next_at_ms }
        }
        (false, None) => QueuePlace::Delayed { visible_at_ms: next_at_ms },
    };
    let attempts: i32 = get(row, 3)?;
    let lane: String = get(row, 4)?;
    Ok(QueuedWork {
        place,
        attempt_count: u32::try_from(attempts).unwrap_or_default(),
        tag: tag(&lane),
        session_id: get(row, 5)?,
    })
}

impl PostgresStore {
    async fn one_row(
        &self,
        operation: &'static str,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Row, ProviderError> {
        let rows = self.core().rows(operation, sql, parameters).await?;
        rows.into_iter().next().ok_or_else(|| unreadable("a row is missing".to_owned()))
    }

    async fn texts(
        &self,
        operation: &'static str,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<String>, ProviderError> {
        self.core().rows(operation, sql, parameters).await?.iter().map(|row| get(row, 0)).collect()
    }

    async fn prune(
        &self,
        operation: &'static str,
        ids: &[String],
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let sql = format!("SELECT * FROM {}.prune($1, $2, $3)", self.core().schema());
        let keep = i64::from(options.keep_last.unwrap_or(1).max(1));
        let before_ms = options.completed_before_ms.map(time);
        let parameters =
            [(&ids as _, Type::TEXT_ARRAY), (&keep as _, Type::INT8), (&before_ms as _, Type::INT8)];
        let rows = self.core().rows_of_change(operation, &sql, &parameters).await?;
        let row = rows.first().ok_or_else(|| unreadable("a row is missing".to_owned()))?;
        let [instances_processed, executions_deleted, events_deleted] = counts(row, 0)?;
        Ok(PruneResult { instances_processed, executions_deleted, events_deleted })
    }
}

#[async_trait]
impl ProviderAdmin for PostgresStore {
    async fn query_instances(&self, query: InstanceQuery) -> Result<InstancePage, ProviderError> {
        self.page(query).await
    }

    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        let schema = self.core().schema();
        let sql = format!(
            "SELECT i.instance_id FROM {schema}.instance i ORDER BY i.created_at_ms DESC, i.instance_id"
        );
        self.texts("list_instances", &sql, &[]).await
    }

    async fn list_instances_by_status(&self, status: ExecutionStatus) -> Result<Vec<String>, ProviderError> {
        let schema = self.core().schema();
        let sql = format!(
            "SELECT i.instance_id FROM {schema}.instance i WHERE i.status = {}
              ORDER BY i.created_at_ms DESC, i.instance_id",
            status_code(status)
        );
        self.texts("list_instances_by_status", &sql, &[]).await
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        let schema = self.core().schema();
        let sql = format!(
            "SELECT e.execution_id FROM {schema}.execution e WHERE e.instance_id = $1 ORDER BY e.execution_id"
        );
        let rows = self.core().rows("list_executions", &sql, &[(&instance, Type::TEXT)]).await?;
        rows.iter().map(|row| get(row, 0).map(unsigned)).collect()
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<StoredEvent>, ProviderError> {
        const OPERATION: &str = "read_history_with_execution_id";
        let events = self.events(OPERATION, instance, Some(execution_id)).await?;
        if events.is_empty() && !self.list_executions(instance).await?.contains(&execution_id) {
            return Err(unknown_execution(OPERATION, instance, execution_id));
        }
        Ok(events)
    }

    async fn read_history_page(&self, query: HistoryQuery) -> Result<HistoryPage, ProviderError> {
        const OPERATION: &str = "read_history_page";
        let (instance, execution_id) = (query.instance_id.as_str(), query.execution_id);
        // A row has an event behind `last_id > $3`, so as many rows as events are always enough.
        let sql = format!(
            "SELECT e.event_id, e.data
               FROM (SELECT b.last_id, b.ids, b.data FROM {}.event_batch b
                      WHERE b.instance_id = $1 AND b.execution_id = $2 AND b.last_id > $3
                      ORDER BY b.last_id LIMIT $4) b
              CROSS JOIN LATERAL unnest(b.ids, b.data) AS e(event_id, data)
              WHERE e.event_id > $3 ORDER BY b.last_id, e.event_id LIMIT $4",
            self.core().schema()
        );
        let (execution, after) = (bits(execution_id), bits(query.after_event_id));
        let rows = limit(query.limit.saturating_add(1));
        let parameters = [
            (&instance as _, Type::TEXT),
            (&execution as _, Type::INT8),
            (&after as _, Type::INT8),
            (&rows as _, Type::INT8),
        ];
        let rows = self.core().rows(OPERATION, &sql, &parameters).await?;
        let events = rows.iter().map(stored_event).collect::<Result<Vec<_>, _>>()?;
        if events.is_empty() && !self.list_executions(instance).await?.contains(&execution_id) {
            return Err(unknown_execution(OPERATION, instance, execution_id));
        }
        Ok(HistoryPage::cut(events, query.limit))
    }

    async fn read_history_around_damage(
        &self,
        query: HistoryQuery,
    ) -> Result<ReadableHistoryPage, ProviderError> {
        let page = self.read_history_page(query).await?;
        Ok(ReadableHistoryPage { page, unreadable: Vec::new() })
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        const OPERATION: &str = "latest_execution_id";
        let schema = self.core().schema();
        let sql = format!("SELECT i.execution_id FROM {schema}.instance i WHERE i.instance_id = $1");
        let rows = self.core().rows(OPERATION, &sql, &[(&instance, Type::TEXT)]).await?;
        let row = rows.first().ok_or_else(|| unknown_instance(OPERATION, instance))?;
        get(row, 0).map(unsigned)
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        const OPERATION: &str = "get_instance_info";
        let sql = format!("SELECT * FROM {}.instance_info($1)", self.core().schema());
        let rows = self.core().rows(OPERATION, &sql, &[(&instance, Type::TEXT)]).await?;
        instance_info(rows.first().ok_or_else(|| unknown_instance(OPERATION, instance))?, 0)
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        const OPERATION: &str = "get_execution_info";
        let schema = self.core().schema();
        let sql = format!(
            "SELECT e.status::bigint, e.output, e.started_at_ms, e.completed_at_ms,
                    (SELECT coalesce(sum(cardinality(b.ids)), 0)::bigint FROM {schema}.event_batch b
                      WHERE b.instance_id = e.instance_id AND b.execution_id = e.execution_id)
               FROM {schema}.execution e WHERE e.instance_id = $1 AND e.execution_id = $2"
        );
        let execution = bits(execution_id);
        let parameters = [(&instance as _, Type::TEXT), (&execution as _, Type::INT8)];
        let rows = self.core().rows(OPERATION, &sql, &parameters).await?;
        let row = rows.first().ok_or_else(|| unknown_execution(OPERATION, instance, execution_id))?;
        Ok(ExecutionInfo {
            execution_id,
            status: status(OPERATION, get(row, 0)?)?,
            output: optional_body(row, 1)?,
            started_at_ms: unsigned(get(row, 2)?),
            completed_at_ms: get::<Option<i64>>(row, 3)?.map(unsigned),
            event_count: unsigned(get(row, 4)?),
        })
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        let schema = self.core().schema();
        let by_status: Vec<String> =
            (1..=7).map(|place| format!("sum(w.instances[{place}])::bigint")).collect();
        let sql = format!(
            "SELECT sum(w.executions)::bigint, sum(w.events)::bigint, {} FROM {schema}.writer w",
            by_status.join(", ")
        );
        let row = self.one_row("get_system_metrics", &sql, &[]).await?;
        let [executions, events, pending, running, paused, completed, failed, cancelled, continued] =
            counts(&row, 0)?;
        Ok(SystemMetrics {
            total_instances: pending + running + paused + completed + failed + cancelled + continued,
            total_executions: executions,
            pending_instances: pending,
            running_instances: running + continued,
            paused_instances: paused,
            completed_instances: completed,
            failed_instances: failed,
            cancelled_instances: cancelled,
            total_events: events,
        })
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        let sql = format!(
            "SELECT q.orchestrator_queue, q.worker_queue, q.orchestrator_delayed, q.worker_delayed, q.locked
               FROM {}.queue_depths q",
            self.core().schema()
        );
        let row = self.one_row("get_queue_depths", &sql, &[]).await?;
        let [orchestrator_queue, worker_queue, orchestrator_delayed, worker_delayed, locked] =
            counts(&row, 0)?;
        Ok(QueueDepths { orchestrator_queue, worker_queue, orchestrator_delayed, worker_delayed, locked })
    }

    async fn known_damage(&self) -> Result<Option<String>, ProviderError> {
        // The database checks its own pages and refuses what it cannot read.
        Ok(None)
    }

    async fn list_children(&self, instance: &str) -> Result<Vec<String>, ProviderError> {
        let schema = self.core().schema();
        let sql = format!(
            "SELECT i.instance_id FROM {schema}.instance i WHERE i.parent_id = $1
              ORDER BY i.created_at_ms, i.instance_id"
        );
        self.texts("list_children", &sql, &[(&instance, Type::TEXT)]).await
    }

    async fn queued_start_ms(&self, instance: &str) -> Result<Option<u64>, ProviderError> {
        let schema = self.core().schema();
        let sql = format!(
            "SELECT least(m.visible_at_ms, {schema}.now_ms()) FROM {schema}.turn t
               JOIN {schema}.message m ON m.instance_id = t.instance_id AND m.id = t.start_id
              WHERE t.instance_id = $1"
        );
        let rows = self.core().rows("queued_start_ms", &sql, &[(&instance, Type::TEXT)]).await?;
        rows.first().map(|row| get(row, 0).map(unsigned)).transpose()
    }

    async fn queued_activities(&self, instance: &str) -> Result<Vec<QueuedActivity>, ProviderError> {
        let schema = self.core().schema();
        let columns = queued_columns(schema);
        let sql = format!(
            "SELECT {columns}, a.execution_id, a.activity_id FROM {schema}.activity a
              WHERE a.instance_id = $1 ORDER BY a.execution_id, a.activity_id, a.id"
        );
        let rows = self.core().rows("queued_activities", &sql, &[(&instance, Type::TEXT)]).await?;
        let queued = rows.iter().map(|row| {
            let (execution_id, activity_id) = (unsigned(get(row, 6)?), unsigned(get(row, 7)?));
            Ok(QueuedActivity { execution_id, activity_id, work: queued_work(row)? })
        });
        queued.collect()
    }

    async fn size_bytes(&self) -> Result<Option<u64>, ProviderError> {
        let sql = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
                    WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'S', 'm')";
        let rows = self.core().rows("size_bytes", sql, &[(&self.core().schema() as _, Type::TEXT)]).await?;
        rows.first().map(|row| get(row, 0).map(unsigned)).transpose()
    }

    async fn expedite_activities(&self, instance: &str) -> Result<u64, ProviderError> {
        let schema = self.core().schema();
        // Rows are locked in the order in which all statements lock them. A fetch that locks one meanwhile has it.
        let sql = format!(
            "WITH moment AS MATERIALIZED (SELECT {schema}.now_ms() AS at), delayed AS (
                 SELECT a.id FROM {schema}.activity a, moment
                  WHERE a.instance_id = $1 AND NOT a.ready AND a.lock_token IS NULL AND a.next_at_ms > moment.at
                  ORDER BY a.id FOR UPDATE OF a)
             UPDATE {schema}.activity a SET next_at_ms = moment.at FROM delayed, moment
              WHERE a.id = delayed.id RETURNING 1"
        );
        // Doing it twice is doing it once, so it may be tried again when its connection broke.
        let rows = self.core().rows("expedite_activities", &sql, &[(&instance, Type::TEXT)]).await?;
        if !rows.is_empty() {
            self.core().waiting().work.look();
            self.core().wake.notify_one();
            self.core().outbox.note_activities();
        }
        Ok(rows.len() as u64)
    }

    async fn get_parent_id(&self, instance: &str) -> Result<Option<String>, ProviderError> {
        const OPERATION: &str = "get_parent_id";
        let sql =
            format!("SELECT i.parent_id FROM {}.instance i WHERE i.instance_id = $1", self.core().schema());
        let rows = self.core().rows(OPERATION, &sql, &[(&instance, Type::TEXT)]).await?;
        get(rows.first().ok_or_else(|| unknown_instance(OPERATION, instance))?, 0)
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        const OPERATION: &str = "delete_instances_atomic";
        let sql = format!("SELECT * FROM {}.delete_instances($1, $2)", self.core().schema());
        let mut unique: Vec<&String> = ids.iter().collect();
        unique.sort_unstable();
        unique.dedup();
        let parameters = [(&unique as _, Type::TEXT_ARRAY), (&force as _, Type::BOOL)];
        let rows = self.core().rows_of_change(OPERATION, &sql, &parameters).await?;
        let row = rows.first().ok_or_else(|| unreadable("a row is missing".to_owned()))?;
        let (outcome, id): (i16, Option<&str>) = (get(row, 0)?, get(row, 1)?);
        let id = id.unwrap_or_default();
        match outcome {
            0 => deleted(row, 2),
            1 => {
                let text = format!("{id} has not ended; cancel it first or force the deletion");
                Err(ProviderError::new(ErrorKind::Conflict, OPERATION, text))
            }
            _ => {
                let text = format!("{id} has a child that would be orphaned; delete the whole tree");
                Err(ProviderError::new(ErrorKind::Conflict, OPERATION, text))
            }
        }
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let sql = format!("SELECT * FROM {}.delete_bulk($1, $2, $3)", self.core().schema());
        let before_ms = filter.completed_before_ms.map(time);
        let most = filter.limit.map_or(i64::MAX, i64::from);
        let parameters = [
            (&filter.instance_ids as _, Type::TEXT_ARRAY),
            (&before_ms as _, Type::INT8),
            (&most as _, Type::INT8),
        ];
        let rows = self.core().rows_of_change("delete_instance_bulk", &sql, &parameters).await?;
        deleted(rows.first().ok_or_else(|| unreadable("a row is missing".to_owned()))?, 0)
    }

    async fn ended_trees(&self, query: EndedQuery) -> Result<EndedPage, ProviderError> {
        const OPERATION: &str = "ended_trees";
        let sql = format!("SELECT * FROM {}.ended_trees($1, $2, $3, $4)", self.core().schema());
        let before_ms = query.completed_before_ms.map(time);
        let after_ms = query.after.as_ref().map(|after| time(after.completed_at_ms));
        let after_id = query.after.as_ref().map(|after| after.instance_id.as_str());
        // One more than is considered tells whether another page follows.
        let most = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
        let parameters = [
            (&before_ms as _, Type::INT8),
            (&after_ms as _, Type::INT8),
            (&after_id as _, Type::TEXT),
            (&most as _, Type::INT8),
        ];
        let rows = self.core().rows(OPERATION, &sql, &parameters).await?;
        let mut roots: Vec<Root> = Vec::new();
        for row in &rows {
            let root: &str = get(row, 0)?;
            if roots.last().is_none_or(|last| last.place.instance_id != root) {
                let completed_at_ms = unsigned(get(row, 1)?);
                let place = EndedCursor { completed_at_ms, instance_id: root.to_owned() };
                roots.push(Root { place, tree: Vec::new(), has_ended: true });
            }
            if let Some(last) = roots.last_mut() {
                last.has_ended &= get::<bool>(row, 5)?;
                last.tree.push(InstanceVersion {
                    instance_id: get(row, 2)?,
                    created_at_ms: unsigned(get(row, 3)?),
                    revision: unsigned(get(row, 4)?),
                });
            }
        }
        let is_more = roots.len() > query.limit;
        roots.truncate(query.limit);
        let next = roots.last().filter(|_| is_more).map(|last| last.place.clone());
        let trees = roots.into_iter().filter(|root| root.has_ended).map(|root| root.tree).collect();
        Ok(EndedPage { trees, next })
    }

    async fn delete_unchanged(
        &self,
        trees: &[Vec<InstanceVersion>],
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let sql = format!("SELECT * FROM {}.delete_unchanged($1, $2, $3, $4)", self.core().schema());
        let numbered = trees.iter().zip(0_i64..);
        let all: Vec<(&InstanceVersion, i64)> =
            numbered.flat_map(|(tree, number)| tree.iter().map(move |one| (one, number))).collect();
        let ids: Vec<&str> = all.iter().map(|(one, _)| one.instance_id.as_str()).collect();
        let created: Vec<i64> = all.iter().map(|(one, _)| time(one.created_at_ms)).collect();
        let revisions: Vec<i64> = all.iter().map(|(one, _)| time(one.revision)).collect();
        let numbers: Vec<i64> = all.iter().map(|(_, number)| *number).collect();
        let parameters = [
            (&ids as _, Type::TEXT_ARRAY),
            (&created as _, Type::INT8_ARRAY),
            (&revisions as _, Type::INT8_ARRAY),
            (&numbers as _, Type::INT8_ARRAY),
        ];
        let rows = self.core().rows_of_change("delete_unchanged", &sql, &parameters).await?;
        deleted(rows.first().ok_or_else(|| unreadable("a row is missing".to_owned()))?, 0)
    }

    async fn prune_executions(
        &self,
        instance: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        const OPERATION: &str = "prune_executions";
        let pruned = self.prune(OPERATION, &[instance.to_owned()], options).await?;
        if pruned.instances_processed == 0 {
            return Err(unknown_instance(OPERATION, instance));
        }
        Ok(pruned)
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        const OPERATION: &str = "prune_executions_bulk";
        let sql = format!(
            "SELECT m.instance_id FROM {}.matching_instances($1, $2) m LIMIT $3",
            self.core().schema()
        );
        let before_ms = filter.completed_before_ms.map(time);
        let most = filter.limit.map_or(i64::MAX, i64::from);
        let parameters = [
            (&filter.instance_ids as _, Type::TEXT_ARRAY),
            (&before_ms as _, Type::INT8),
            (&most as _, Type::INT8),
        ];
        let mut ids = self.texts(OPERATION, &sql, &parameters).await?;
        ids.sort_unstable();
        self.prune(OPERATION, &ids, options).await
    }
}

/// An ended root with its descendants.
struct Root {
    place: EndedCursor,
    tree: Vec<InstanceVersion>,
    has_ended: bool,
}

fn deleted(row: &Row, at: usize) -> Result<DeleteInstanceResult, ProviderError> {
    let [instances_deleted, executions_deleted, events_deleted, queue_messages_deleted] = counts(row, at)?;
    Ok(DeleteInstanceResult { instances_deleted, executions_deleted, events_deleted, queue_messages_deleted })
}
