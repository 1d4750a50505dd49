//! All that is decided about a recurring action at one moment, and the one commit that it becomes.
//!
//! What becomes of occurrences is stored by their times, a stretch of them by the time of its first. So that no entry takes the place
//! of another, a stretch gives way: around an occurrence that has an entry of its own it is split.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use segno::store::{Expect, ListRecords, OrchestratorMessage, RecordBatch, RecordWrite, Store};

use super::advance::later;
use super::backfill::MAX_BACKFILL;
use super::history::{Decision, HistoryEntry, SkipReason};
use super::model::RecurringAction;
use super::record::{RECURRING_HISTORY_KIND, history_id, history_prefix, readable_history};
use crate::action::ActionError;
use crate::keep::Keep;
use crate::schedule::Schedule;

/// What a change may end, as it was before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    is_enabled: bool,
    buffered: Option<Timestamp>,
}

impl RecurringAction {
    /// What a change may end.
    pub(crate) fn before(&self) -> Before {
        Before { is_enabled: self.enabled, buffered: self.progress.buffered }
    }
}

/// All that is decided about a recurring action at one moment: it is committed as one.
#[derive(Default)]
pub(crate) struct Plan {
    /// By time, so that what is decided later about the same occurrence counts.
    entries: BTreeMap<Timestamp, HistoryEntry>,
    pub(super) dedup: BTreeMap<String, RecordWrite>,
    pub(super) messages: Vec<OrchestratorMessage>,
}

impl Plan {
    /// Notes what became of an occurrence.
    pub(crate) fn note(&mut self, entry: HistoryEntry) {
        self.entries.insert(entry.time, entry);
    }

    /// Notes what became of a stretch, but for the occurrences in it that have an entry of their own.
    pub(crate) async fn note_stretch(
        &mut self,
        store: &dyn Store,
        action: &RecurringAction,
        schedule: &Schedule,
        stretch: HistoryEntry,
    ) -> Result<(), ActionError> {
        let mut pieces = vec![stretch.clone()];
        let until = stretch.until.unwrap_or(Timestamp::MAX);
        for entry in entries_before(store, action, until, MAX_BACKFILL).await? {
            if entry.time < stretch.time {
                break;
            }
            pieces = pieces.iter().flat_map(|piece| piece.without(entry.time, schedule)).collect();
        }
        pieces.into_iter().for_each(|piece| self.note(piece));
        Ok(())
    }

    /// Splits the stored stretch that an occurrence is in, if there is one: the occurrence gets an entry of its own.
    pub(crate) async fn split_stretch(
        &mut self,
        store: &dyn Store,
        action: &RecurringAction,
        schedule: &Schedule,
        time: Timestamp,
    ) -> Result<(), ActionError> {
        let after = later(time, Duration::from_millis(1));
        let stored = entries_before(store, action, after, 1).await?;
        for stretch in stored.iter().filter(|entry| entry.until.is_some() && entry.covers(time)) {
            stretch.without(time, schedule).into_iter().for_each(|piece| self.note(piece));
        }
        Ok(())
    }

    /// Notes what a change has ended: an occurrence that waited and will not run, and the action itself.
    pub(crate) async fn conclude(
        &mut self,
        store: &dyn Store,
        before: Before,
        action: &RecurringAction,
        now: Timestamp,
    ) -> Result<(), ActionError> {
        if !before.is_enabled || action.enabled {
            return Ok(());
        }
        if let Some(time) = before.buffered.filter(|time| action.progress.buffered != Some(*time)) {
            let why = action.disabled_reason.as_deref().unwrap_or("paused");
            let detail = format!("it waited for the end of the run before it ({why})");
            let skipped = HistoryEntry::skipped(time, SkipReason::Paused, now);
            // What has been fired in the same commit has not been skipped.
            self.entries.entry(time).or_insert(HistoryEntry { detail: Some(detail), ..skipped });
        }
        let Some(reason) = &action.disabled_reason else { return Ok(()) };
        let mut time = now;
        while self.entries.contains_key(&time) || is_stored(store, action, time).await? {
            time = later(time, Duration::from_millis(1));
        }
        let entry = HistoryEntry::new(time, Decision::Disabled, now);
        self.note(HistoryEntry { detail: Some(reason.clone()), ..entry });
        Ok(())
    }

    /// What became of occurrences.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &HistoryEntry> {
        self.entries.values()
    }

    /// The commit, on condition that the action is as it was read.
    pub(crate) fn into_batch(
        self,
        action: &RecurringAction,
        version: u64,
        keep_history: Keep,
    ) -> Result<RecordBatch, ActionError> {
        let mut writes = vec![action.write(Expect::Version(version))?];
        for entry in self.entries.values() {
            writes.push(action.history_write(entry, keep_history)?);
        }
        writes.extend(self.dedup.into_values());
        Ok(RecordBatch { writes, orchestrator_items: self.messages, ..RecordBatch::default() })
    }
}

/// What is stored about occurrences before a time, newest first.
async fn entries_before(
    store: &dyn Store,
    action: &RecurringAction,
    time: Timestamp,
    limit: usize,
) -> Result<Vec<HistoryEntry>, ActionError> {
    let scope = action.scope();
    let (prefix, after) = (history_prefix(&scope, &action.id), history_id(&scope, &action.id, time));
    let request =
        ListRecords { kind: RECURRING_HISTORY_KIND, id_prefix: &prefix, after_id: Some(&after), limit };
    Ok(store.list_records(request).await?.iter().filter_map(readable_history).collect())
}

pub(super) async fn is_stored(
    store: &dyn Store,
    action: &RecurringAction,
    time: Timestamp,
) -> Result<bool, ActionError> {
    let id = history_id(&action.scope(), &action.id, time);
    Ok(store.get_record(RECURRING_HISTORY_KIND, &id).await?.is_some())
}
