//! Runbooks and batches of a tenant.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use segno::clock;
use segno_actions::{Listed, free_text};
use segno_api::batch::{self as wire, BatchAction, BatchRequest, CreateBatch, PutMembers};
use segno_api::runbook::{PublishPlan, PublishRunbook, Runbook, RunbookVersion};
use segno_runbook::definition::Definition;
use segno_runbook::drive::{
    NewBatch, PublishOptions, Receipt, ReceiptState, RequestedAction, RunbookError, RunbookRow,
};
use segno_runbook::members::{CsvLimits, InvalidMembers, read_csv};
use segno_runbook::message::{Action, MemberEntry};
use segno_runbook::rows::{BatchId, BatchRow, MemberId, Row, RowKey, Table, normal_key};
use segno_runbook::source::{member_entry, read_objects};
use segno_runbook::tables::PublishedVersion;
use segno_runbook::template::columns_needed;
use segno_runbook::yaml::{Parsed, parse};
use serde_json::{Map, Value};

use super::{Rejected, Tenant, runbook_rows as rows};
use crate::operation::damage;
use crate::problem::Refusal;
use crate::scope::Scope;

/// How long an answer waits for a request to be applied.
const APPLIED_WITHIN: Duration = Duration::from_secs(10);
/// How often it looks, at first and at most.
const FIRST_LOOK: Duration = Duration::from_millis(5);
const LONGEST_LOOK: Duration = Duration::from_millis(250);

/// Who requests something, and under which key.
#[derive(Debug, Clone, Default)]
pub struct Requester {
    /// The same for a request that is repeated.
    pub key: Option<String>,
    /// Id of the API key.
    pub by: Option<String>,
}

impl Tenant {
    /// Publishes a runbook.
    ///
    /// # Errors
    /// `invalid-runbook` with all problems.
    pub async fn publish_runbook(
        &self,
        request: PublishRunbook,
        by: Option<String>,
    ) -> Result<RunbookVersion, Refusal> {
        let runbooks = &self.resources().runbooks;
        let options = publish_options(&request, by);
        let (yaml, parsed) = self.parsed(request.yaml_content).await?;
        let of_pools = self.pool_warnings(&parsed).await?;
        let published = runbooks.publish_parsed(&self.owner(), yaml.as_bytes(), parsed, options).await;
        let published = published.map_err(|error| self.refused(error))?;
        let of_views = if published.is_new { self.make_view(&published.row).await } else { None };
        let warnings = published.warnings.iter().map(ToString::to_string).chain(of_pools);
        let warnings = warnings.chain(of_views).collect();
        let moves = rows::moves(published.transition);
        let moves = Some(moves).filter(|moves| moves.batches + moves.staying > 0);
        Ok(RunbookVersion { warnings, moves, ..rows::version(published.row) })
    }

    /// What publishing a runbook would do.
    ///
    /// # Errors
    /// `invalid-runbook` with all problems; `invalid-request` when the document is of another runbook.
    pub async fn plan_publishing(&self, name: &str, request: PublishRunbook) -> Result<PublishPlan, Refusal> {
        let options = publish_options(&request, None);
        let (yaml, parsed) = self.parsed(request.yaml_content).await?;
        if parsed.definition.name != name {
            let problem = format!("is of the runbook {:?}, not of {name:?}", parsed.definition.name);
            return Err(Refusal::field("yaml_content", problem));
        }
        let of_pools = self.pool_warnings(&parsed).await?;
        let runbooks = &self.resources().runbooks;
        let plan = runbooks.plan_publishing(&self.owner(), yaml.as_bytes(), parsed, &options).await;
        let plan = plan.map_err(|error| self.refused(error))?;
        Ok(PublishPlan {
            name: plan.name,
            version: plan.version,
            is_new: plan.is_new,
            warnings: plan.warnings.iter().map(ToString::to_string).chain(of_pools).collect(),
            moves: rows::moves(plan.transition),
        })
    }

    /// A runbook that is to be published, parsed off the threads that serve.
    async fn parsed(&self, yaml: String) -> Result<(Arc<str>, Parsed), Refusal> {
        let zones = Arc::clone(self.resources().runbooks.definitions().zones());
        let yaml = Arc::<str>::from(yaml);
        let text = Arc::clone(&yaml);
        let parsed = self.check_document(move || parse(text.as_bytes(), &zones)).await?;
        Ok((yaml, parsed.map_err(|error| self.refused(RunbookError::from(error)))?))
    }

    /// Deletes a runbook with all its versions.
    ///
    /// # Errors
    /// `unknown-runbook`, `runbook-in-use`.
    pub async fn delete_runbook(&self, name: &str) -> Result<(), Refusal> {
        let deleted = self.resources().runbooks.delete_runbook(&self.owner(), name).await;
        deleted.map_err(|error| self.refused(error))
    }

    /// Deletes a version of a runbook.
    ///
    /// # Errors
    /// `unknown-runbook`, `runbook-in-use`.
    pub async fn delete_runbook_version(&self, name: &str, version: u32) -> Result<(), Refusal> {
        let deleted = self.resources().runbooks.delete_version(&self.owner(), name, version).await;
        deleted.map_err(|error| self.refused(error))
    }

    /// Makes the view of a version that was published. Returns what went wrong: the version is
    /// published all the same.
    async fn make_view(&self, row: &RunbookRow) -> Option<String> {
        let resources = self.resources();
        let views = resources.views.as_ref()?;
        let version = PublishedVersion { runbook: &row.name, version: row.version };
        let zones = resources.runbooks.definitions().zones();
        let error = views.make_for(&*resources.store, zones, version).await.err()?;
        let table = &row.data_table_name;
        tracing::warn!(%error, table, "the view of a published version could not be made");
        Some(format!("the view {table} could not be made: {error}; the next start of a server makes it"))
    }

    /// Runbooks after a name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn runbooks(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed<Runbook>>, Refusal> {
        let found = self.resources().runbooks.list(&self.owner(), after, limit).await;
        let found = found.map_err(|error| self.refused(error))?;
        self.with_automations(found).await
    }

    /// A runbook.
    ///
    /// # Errors
    /// `unknown-runbook`.
    pub async fn runbook(&self, name: &str) -> Result<Runbook, Refusal> {
        let head = self.resources().runbooks.head(&self.owner(), name).await;
        self.with_automation(head.map_err(|error| self.refused(error))?).await
    }

    /// Versions of a runbook after one.
    ///
    /// # Errors
    /// `unknown-runbook`.
    pub async fn runbook_versions(
        &self,
        name: &str,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<Listed<RunbookVersion>>, Refusal> {
        let found = self.resources().runbooks.versions(&self.owner(), name, after, limit).await;
        let found = found.map_err(|error| self.refused(error))?;
        let without_text = |row| RunbookVersion { yaml_content: None, ..rows::version(row) };
        Ok(found.into_iter().map(|row| row.map(without_text)).collect())
    }

    /// A version of a runbook.
    ///
    /// # Errors
    /// `unknown-runbook`.
    pub async fn runbook_version(&self, name: &str, version: u32) -> Result<RunbookVersion, Refusal> {
        let found = self.resources().runbooks.version(&self.owner(), name, Some(version)).await;
        found.map(rows::version).map_err(|error| self.refused(error))
    }

    /// Creates a batch from members that are given.
    ///
    /// # Errors
    /// `unknown-runbook`, `invalid-members` with all problems, `invalid-batch`.
    pub async fn create_batch(
        &self,
        request: CreateBatch,
        requester: Requester,
    ) -> Result<wire::Batch, Refusal> {
        let runbooks = &self.resources().runbooks;
        let row = runbooks.version(&self.owner(), &request.runbook, request.version).await;
        let row = row.map_err(|error| self.refused(error))?;
        let definition = runbooks.definitions().get(&self.owner(), &row.name, row.version).await;
        let definition = definition.map_err(|error| self.refused(RunbookError::from(error)))?;
        let members = self.entries(definition, request.members_csv, request.members).await?;
        let new = NewBatch {
            runbook: request.runbook,
            version: request.version,
            batch_start_time: request.batch_start_time,
            members,
            key: requester.key,
            by: requester.by,
        };
        let id = runbooks.create_batch(&self.owner(), new).await.map_err(|error| self.refused(error))?;
        Ok(rows::batch(&self.batch_row(id).await?))
    }

    /// Members as they are stored, checked by the rules of a runbook's data source, off the threads that serve.
    async fn entries(
        &self,
        definition: Arc<Definition>,
        csv: Option<String>,
        objects: Vec<Map<String, Value>>,
    ) -> Result<Vec<MemberEntry>, Refusal> {
        if csv.is_some() && !objects.is_empty() {
            return Err(Refusal::field("members", "cannot be used with members_csv; send one of them"));
        }
        let most = CsvLimits::MANUAL.max_rows;
        if objects.len() > most {
            return Err(Refusal::field(
                "members",
                format!("has {} members, the limit is {most}", objects.len()),
            ));
        }
        let read = self.compute(move || {
            let (source, required) = (&definition.data_source, columns_needed(&definition));
            let rows = match csv {
                Some(text) => read_csv(text.as_bytes(), source, &required, CsvLimits::MANUAL)?,
                None => read_objects(objects.into_iter().map(Value::Object).collect(), source, &required)?,
            };
            Ok(rows.rows.into_iter().map(member_entry).collect())
        });
        read.await?.map_err(|error: InvalidMembers| self.refused(RunbookError::from(error)))
    }

    /// Batches before an id, newest first, of one runbook if it is named.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn batches(
        &self,
        runbook: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Listed<wire::Batch>>, Refusal> {
        let (runbooks, owner) = (&self.resources().runbooks, self.owner());
        let found = runbooks.newest_batches(&owner, runbook, before.map(BatchId), limit).await;
        let found = found.map_err(|error| self.refused(error))?;
        Ok(found.into_iter().map(|row| row.map(|row| rows::batch(&row))).collect())
    }

    async fn batch_row(&self, id: BatchId) -> Result<BatchRow, Refusal> {
        self.resources().runbooks.batch(&self.owner(), id).await.map_err(|error| self.refused(error))
    }

    /// A batch that is in the store, with its phases and init steps.
    ///
    /// # Errors
    /// `unknown-batch`.
    pub async fn live_batch(&self, id: u64) -> Result<wire::BatchDetails, Refusal> {
        let row = self.batch_row(BatchId(id)).await?;
        let (details, missing) = damage::shown_in_parts(self.batch_parts(rows::batch(&row))).await;
        let mut details = details?;
        details.unreadable.extend(missing);
        // Outside of what is shown around damage: it would be judged by a part of the batch.
        match self.explain(BatchId(id), &RowKey::Batch).await {
            Ok(explanation) => details.explanation = explanation,
            Err(refusal) => match refusal.damage() {
                Some(damage) => details.explanation.why = format!("why it waits cannot be read: {damage}"),
                None => return Err(refusal),
            },
        }
        Ok(details)
    }

    /// What can be read of a batch, without why it waits.
    async fn batch_parts(&self, batch: wire::Batch) -> Result<wire::BatchDetails, Refusal> {
        let id = BatchId(batch.id);
        let (runbooks, owner) = (&self.resources().runbooks, self.owner());
        let phases = runbooks.rows(&owner, id, Table::PhaseExecutions, (None, MAX_PHASES)).await;
        let (phases, mut unreadable) = Listed::split(phases.map_err(|error| self.refused(error))?);
        let phases = phases.into_iter().filter_map(|row| match row {
            Row::Phase(row) => Some(rows::phase(row)),
            _ => None,
        });
        let init = runbooks.rows(&owner, id, Table::InitExecutions, (None, MAX_INIT_STEPS)).await;
        let (init, unreadable_init) = Listed::split(init.map_err(|error| self.refused(error))?);
        let init = init.into_iter().filter_map(|row| match row {
            Row::Init(row) => Some(rows::init(row)),
            _ => None,
        });
        let notices = runbooks.notices(&owner, id, MAX_NOTICES_READ).await;
        let (notices, unreadable_notices) = Listed::split(notices.map_err(|error| self.refused(error))?);
        unreadable.extend(unreadable_init.into_iter().chain(unreadable_notices));
        let older = notices.len().saturating_sub(MAX_NOTICES);
        Ok(wire::BatchDetails {
            notices: notices.into_iter().skip(older).map(rows::notice).collect(),
            batch,
            phases: phases.collect(),
            init: init.collect(),
            explanation: wire::Explanation { why: String::new(), released_by: None, wakes_at: None },
            unreadable: unreadable.into_iter().map(rows::unreadable).collect(),
        })
    }

    /// Why a row of a batch waits.
    ///
    /// # Errors
    /// `unknown-batch`, `not-found` when the batch has no such row.
    pub async fn explain_row(&self, batch: u64, key: &RowKey) -> Result<wire::Explanation, Refusal> {
        let batch = BatchId(batch);
        self.batch_row(batch).await?;
        let row = self.resources().runbooks.row(&self.owner(), batch, key).await;
        if row.map_err(|error| self.refused(error))?.is_none() {
            return Err(Refusal::not_found("row", &key.to_string()));
        }
        self.explain(batch, key).await
    }

    async fn explain(&self, batch: BatchId, key: &RowKey) -> Result<wire::Explanation, Refusal> {
        let explained = self.resources().runbooks.explain(&self.owner(), batch, key).await;
        let explained = explained.map(rows::explanation).map_err(|error| self.refused(error))?;
        self.explain_pools(batch, key, explained).await
    }

    /// Members of a batch that is in the store, after one.
    ///
    /// # Errors
    /// `unknown-batch`.
    pub async fn live_members(
        &self,
        batch: u64,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Listed<wire::Member>>, Refusal> {
        let batch = BatchId(batch);
        let batch_row = damage::part(self.batch_row(batch).await)?;
        let last_query = self.last_query(batch_row.as_ref()).await?;
        let after = after.map(|id| RowKey::Member(MemberId(id)));
        let (runbooks, owner) = (&self.resources().runbooks, self.owner());
        let found = runbooks.rows(&owner, batch, Table::BatchMembers, (after.as_ref(), limit)).await;
        let found = found.map_err(|error| self.refused(error))?;
        let of_member = |row| match row {
            Listed::Readable(Row::Member(row)) => Some(Listed::Readable(rows::member(row, last_query))),
            Listed::Readable(_) => None,
            Listed::Unreadable(row) => Some(Listed::Unreadable(row)),
        };
        Ok(found.into_iter().filter_map(of_member).collect())
    }

    /// The member of a batch that is in the store, by its key; none if no member has it.
    ///
    /// # Errors
    /// `unknown-batch`.
    pub(super) async fn live_member_of_key(
        &self,
        batch: u64,
        key: &str,
    ) -> Result<Option<wire::Member>, Refusal> {
        let batch = BatchId(batch);
        let batch_row = damage::part(self.batch_row(batch).await)?;
        let last_query = self.last_query(batch_row.as_ref()).await?;
        let (runbooks, owner) = (&self.resources().runbooks, self.owner());
        let entry = runbooks.row(&owner, batch, &RowKey::MemberKey(normal_key(key))).await;
        let Some(Row::MemberKey(entry)) = entry.map_err(|error| self.refused(error))? else {
            return Ok(None);
        };
        let row = runbooks.row(&owner, batch, &RowKey::Member(entry.batch_member_id)).await;
        Ok(match row.map_err(|error| self.refused(error))? {
            Some(Row::Member(row)) => Some(rows::member(row, last_query)),
            _ => None,
        })
    }

    /// A member of a batch that is in the store, with its steps.
    ///
    /// # Errors
    /// `unknown-batch`, `not-found`.
    pub async fn live_member(&self, batch: u64, member: u64) -> Result<wire::MemberDetails, Refusal> {
        let (details, missing) = damage::shown_in_parts(self.member_parts(batch, member)).await;
        let mut details = details?;
        details.unreadable.extend(missing);
        Ok(details)
    }

    async fn member_parts(&self, batch: u64, member: u64) -> Result<wire::MemberDetails, Refusal> {
        let (batch, member) = (BatchId(batch), MemberId(member));
        let batch_row = damage::part(self.batch_row(batch).await)?;
        let last_query = self.last_query(batch_row.as_ref()).await?;
        let (runbooks, owner) = (&self.resources().runbooks, self.owner());
        let row = runbooks.row(&owner, batch, &RowKey::Member(member)).await;
        let Some(Row::Member(row)) = row.map_err(|error| self.refused(error))? else {
            return Err(Refusal::not_found("member", &member.to_string()));
        };
        let steps = runbooks.steps_of_member(&owner, batch, member).await;
        let steps = damage::part(steps.map_err(|error| self.refused(error)))?.unwrap_or_default();
        let (steps, unreadable) = Listed::split(steps);
        Ok(wire::MemberDetails {
            member: rows::member(row, last_query),
            steps: steps.into_iter().map(rows::step).collect(),
            unreadable: unreadable.into_iter().map(rows::unreadable).collect(),
        })
    }

    /// When the source of a batch's members was queried last; none for a batch that was made by hand, or if it cannot
    /// be read.
    async fn last_query(&self, batch: Option<&BatchRow>) -> Result<Option<Timestamp>, Refusal> {
        let Some(batch) = batch.filter(|batch| !batch.is_manual) else { return Ok(None) };
        let query = self.resources().runbooks.query(&self.owner(), &batch.runbook_name).await;
        let query = damage::part(query.map_err(|error| self.refused(error)))?;
        Ok(query.and_then(|query| query.last_run_at))
    }

    /// Adds members to a batch, or updates them.
    ///
    /// # Errors
    /// `unknown-batch`, `invalid-members`, `batch-request-refused`.
    pub async fn put_members(
        &self,
        batch: u64,
        request: PutMembers,
        requester: Requester,
    ) -> Result<BatchRequest, Refusal> {
        let batch = BatchId(batch);
        let row = self.batch_row(batch).await?;
        let (runbooks, owner) = (&self.resources().runbooks, self.owner());
        let definition = runbooks.definitions().get(&owner, &row.runbook_name, row.runbook_version).await;
        let definition = definition.map_err(|error| self.refused(RunbookError::from(error)))?;
        let members = self.entries(definition, request.members_csv, request.members).await?;
        if members.is_empty() {
            return Err(Refusal::field("members", "is empty; send at least one member"));
        }
        let key = requester.key.unwrap_or_else(|| self.app.ids.new_uuid().to_string());
        let posted = runbooks.put_members(&owner, batch, members, (&key, requester.by.as_deref())).await;
        self.all_applied(batch, posted.map_err(|error| self.refused(error))?).await
    }

    /// Removes members from a batch.
    ///
    /// # Errors
    /// `unknown-batch`, `batch-request-refused`.
    pub async fn remove_members(
        &self,
        batch: u64,
        keys: Vec<String>,
        requester: Requester,
    ) -> Result<BatchRequest, Refusal> {
        if keys.is_empty() {
            return Err(Refusal::field("keys", "is empty; name at least one member"));
        }
        let (batch, runbooks) = (BatchId(batch), &self.resources().runbooks);
        let key = requester.key.unwrap_or_else(|| self.app.ids.new_uuid().to_string());
        let by = requester.by.as_deref();
        let posted = runbooks.remove_members(&self.owner(), batch, keys, (&key, by)).await;
        self.all_applied(batch, posted.map_err(|error| self.refused(error))?).await
    }

    /// Requests something of a batch, and waits a while for it to be applied.
    ///
    /// # Errors
    /// `unknown-batch`, `batch-request-refused`.
    pub async fn request_of_batch(
        &self,
        batch: u64,
        action: BatchAction,
        requester: Requester,
    ) -> Result<BatchRequest, Refusal> {
        let batch = BatchId(batch);
        if let BatchAction::PauseBatch { reason: Some(reason) }
        | BatchAction::CancelBatch { reason: Some(reason) } = &action
            && let Some(problem) = free_text::problem(reason, MAX_REASON_BYTES)
        {
            return Err(Refusal::field("reason", problem));
        }
        let action: Action = rows::action(action);
        let request = RequestedAction { key: requester.key, by: requester.by, action };
        let posted = self.resources().runbooks.request(&self.owner(), batch, request).await;
        self.all_applied(batch, vec![posted.map_err(|error| self.refused(error))?]).await
    }

    /// A request about a batch, and what became of it.
    ///
    /// # Errors
    /// `not-found`.
    pub async fn batch_request(&self, batch: u64, key: &str) -> Result<BatchRequest, Refusal> {
        let found = self.resources().runbooks.receipt(&self.owner(), BatchId(batch), key).await;
        let found = found.map_err(|error| self.refused(error))?;
        found.map(rows::request).ok_or_else(|| Refusal::not_found("request", key))
    }

    /// The last of several requests that were made for one, once all are applied. Waits for a while only, and not
    /// at all if too many requests of the tenant wait: they are stored and will be applied.
    async fn all_applied(&self, batch: BatchId, receipts: Vec<Receipt>) -> Result<BatchRequest, Refusal> {
        let place = self.wait_place();
        let wait = if place.is_ok() { APPLIED_WITHIN } else { Duration::ZERO };
        let until_ms = self.app.clock.now_ms().saturating_add(clock::duration_ms(wait));
        let mut last = None;
        for receipt in receipts {
            last = Some(self.applied(batch, receipt, until_ms).await?);
        }
        last.ok_or_else(|| Refusal::field("members", "is empty; send at least one member"))
    }

    async fn applied(
        &self,
        batch: BatchId,
        mut receipt: Receipt,
        until_ms: u64,
    ) -> Result<BatchRequest, Refusal> {
        let runbooks = &self.resources().runbooks;
        let mut pause = FIRST_LOOK;
        while receipt.state == ReceiptState::Waiting && self.app.clock.now_ms() < until_ms {
            if self.sleep(pause, until_ms).await.is_none() {
                break;
            }
            pause = (pause * 2).min(LONGEST_LOOK);
            let found = runbooks.receipt(&self.owner(), batch, &receipt.key).await;
            receipt = found.map_err(|error| self.refused(error))?.unwrap_or(receipt);
        }
        match receipt.state {
            ReceiptState::Refused => {
                let code = rows::refusal_code(&receipt);
                Err(Refusal::new(code, receipt.reason.unwrap_or_default()))
            }
            _ => Ok(rows::request(receipt)),
        }
    }
}

fn publish_options(request: &PublishRunbook, by: Option<String>) -> PublishOptions {
    PublishOptions {
        overdue_behavior: rows::stored_overdue(request.overdue_behavior),
        rerun_init: request.rerun_init,
        by,
    }
}

/// Longest reason of a pause or cancellation in bytes.
const MAX_REASON_BYTES: usize = 4 * 1024;

/// Most notices that are shown: the newest of those that are read.
const MAX_NOTICES: usize = 100;
const MAX_NOTICES_READ: usize = 1_000;

/// Most phases that are shown: those of a hundred versions.
const MAX_PHASES: usize = 10_000;

/// Most init steps that are shown: those of a hundred versions.
pub(super) const MAX_INIT_STEPS: usize = 1_000;

impl Rejected for RunbookError {
    fn refusal(&self, scope: &Scope) -> Refusal {
        Refusal::from_runbook(self, scope)
    }
}
