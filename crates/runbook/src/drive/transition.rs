//! What publishing a version does to the open batches of its runbook, before it is published: how
//! many batches and members move to it, which phases run again in them, and which approvals are
//! wanted again.
//!
//! Each batch is moved in memory by the same [`step`] that moves it when the version is published,
//! so the answer cannot differ from what happens. Nothing is committed.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno::store::ListRecords;
use segno_actions::functions::Scope;

use super::definitions::LoadedDefinitions;
use super::error::{DriveError, RunbookError};
use super::holder::publish_request;
use super::load::Loader;
use super::place::{BATCH_INDEX, BatchPlace, index_folder};
use super::published::{BatchSummary, RunbookHead};
use super::runbooks::{PAGE, Runbooks};
use crate::definition::Definition;
use crate::message::Message;
use crate::rows::{BatchId, PhaseRow, PhaseStatus, Rows, Want};
use crate::step::limits::{DISPATCH_TIMEOUT_SEC, ROWS_PER_PART};
use crate::step::{Context, Input, StepTemplates, step};

/// Most open batches whose phases are looked at.
pub const MAX_MOVED_BATCHES: u64 = 1_000;

/// Loads after which a batch is given up, which would be a defect.
const MAX_LOADS: usize = 100;

/// What publishing a version does to open batches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transition {
    /// Batches with a start time, which move to the version.
    pub batches: u64,
    /// Members that take part in them.
    pub members: u64,
    /// Batches that are advanced by hand, which stay with their version.
    pub staying: u64,
    /// Batches in which init steps run again.
    pub init_again: u64,
    /// Phases of the version that change something that was begun or decided, in order.
    pub phases: Vec<PhaseTransition>,
    /// Batches that move and were not looked at, because there are too many.
    pub not_counted: u64,
}

/// What becomes of a phase of the version in the batches that move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PhaseTransition {
    /// Name of the phase.
    pub phase_name: String,
    /// Batches that have begun it in an older version and run it again.
    pub runs_again: u64,
    /// Members that take part in those batches.
    pub members: u64,
    /// Of those batches, the ones in which it is in progress: that ends first.
    pub in_progress: u64,
    /// Batches that skip it, because it is overdue.
    pub skipped: u64,
    /// Batches in which it was approved and has to be approved again.
    pub approval_again: u64,
}

impl PhaseTransition {
    fn is_empty(&self) -> bool {
        self.runs_again + self.skipped + self.approval_again == 0
    }
}

impl Runbooks {
    /// What a version does to the open batches of its runbook.
    pub(super) async fn transition(
        &self,
        scope: &Scope,
        definition: &Arc<Definition>,
        head: &RunbookHead,
    ) -> Result<Transition, RunbookError> {
        let phase =
            |name: &String| PhaseTransition { phase_name: name.clone(), ..PhaseTransition::default() };
        let names = definition.phases.iter().map(|phase| &phase.name);
        let mut found = Transition { phases: names.map(phase).collect(), ..Transition::default() };
        let folder = index_folder(scope, &head.name);
        let mut after: Option<String> = None;
        loop {
            let after_id = after.as_deref();
            let request = ListRecords { kind: BATCH_INDEX, id_prefix: &folder, after_id, limit: PAGE };
            let page = self.store.list_records(request).await?;
            let open = page.iter().filter_map(|record| BatchSummary::read(record).ok());
            for batch in open.filter(|batch| !batch.status.is_terminal()) {
                if batch.batch_start_time.is_none() {
                    found.staying += 1;
                } else if found.batches >= MAX_MOVED_BATCHES {
                    found.not_counted += 1;
                } else {
                    self.move_in_memory(scope, batch.batch_id, (definition, head), &mut found).await?;
                }
            }
            if page.len() < PAGE {
                break;
            }
            after = page.last().map(|record| record.id.clone());
        }
        found.phases.retain(|phase| !phase.is_empty());
        Ok(found)
    }

    /// Moves one batch, and counts what that changes.
    async fn move_in_memory(
        &self,
        scope: &Scope,
        batch: BatchId,
        (definition, head): (&Arc<Definition>, &RunbookHead),
        found: &mut Transition,
    ) -> Result<(), RunbookError> {
        let place = BatchPlace::new(scope.clone(), batch);
        let loader = Loader { store: &*self.store, place: &place, definitions: &self.definitions };
        let mut rows = loader.begin().await?;
        let Some(row) = rows.batch() else { return Ok(()) };
        if row.status.is_terminal() || row.ending.is_some() || row.runbook_version >= head.active_version {
            return Ok(());
        }
        let members = u64::from(row.member_counts.active);
        let before: Vec<PhaseRow> = rows.phases().cloned().collect();
        let inits = rows.inits().count();
        self.publish_in_memory(&loader, &mut rows, (definition, head)).await?;
        found.batches += 1;
        found.members += members;
        found.init_again += u64::from(rows.inits().count() > inits);
        let after: BTreeMap<&str, &PhaseRow> = rows
            .phases()
            .filter(|phase| phase.runbook_version == head.active_version)
            .map(|phase| (phase.phase_name.as_str(), phase))
            .collect();
        for (counted, defined) in found.phases.iter_mut().zip(&definition.phases) {
            let Some(new) = after.get(defined.name.as_str()) else { continue };
            counted.count(&before, new, members, defined.approval.is_some());
        }
        Ok(())
    }

    async fn publish_in_memory(
        &self,
        loader: &Loader<'_>,
        rows: &mut Rows,
        (definition, head): (&Arc<Definition>, &RunbookHead),
    ) -> Result<(), RunbookError> {
        let mut known = LoadedDefinitions::from([(head.active_version, Arc::clone(definition))]);
        let input = Input::Message(Message::Request(publish_request(head)));
        let now = self.now().await?;
        let mut last = Vec::new();
        for _ in 0..MAX_LOADS {
            let context = Context {
                now,
                definitions: &known,
                templates: &StepTemplates,
                zones: self.definitions.zones(),
                rows_per_part: ROWS_PER_PART,
                dispatch_timeout_sec: DISPATCH_TIMEOUT_SEC,
            };
            match step(rows, &input, &context) {
                Ok(_) => return Ok(()),
                Err(missing) => last = missing.0,
            }
            let mut wants = Vec::new();
            for want in last.iter().cloned() {
                match want {
                    // Nothing is committed, so ids need not be drawn; higher ones keep the order of
                    // phases.
                    Want::Ids { table, .. } => rows.ids().grant(table, u64::MAX / 2..u64::MAX),
                    want => wants.push(want),
                }
            }
            loader.load(rows, &mut known, &head.name, wants).await?;
        }
        Err(DriveError::StillMissing(last).into())
    }
}

impl PhaseTransition {
    fn count(&mut self, before: &[PhaseRow], new: &PhaseRow, members: u64, wants_approval: bool) {
        let name = new.phase_name.to_lowercase();
        let same: Vec<&PhaseRow> =
            before.iter().filter(|phase| phase.phase_name.to_lowercase() == name).collect();
        let was_approved = same.iter().any(|phase| phase.approved_at.is_some());
        if new.status == PhaseStatus::Skipped {
            self.skipped += 1;
            return;
        }
        self.approval_again += u64::from(was_approved && wants_approval && new.approved_at.is_none());
        if same.iter().any(|phase| phase.dispatched_at.is_some()) {
            self.runs_again += 1;
            self.members += members;
            self.in_progress += u64::from(same.iter().any(|phase| phase.status == PhaseStatus::Dispatched));
        }
    }
}
