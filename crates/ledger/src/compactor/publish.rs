//! What a fold writes: a delta or a base, day partitions, joined events; then the manifest that
//! names them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;

use super::background::Doomed;
use super::change::{Entries, TableEntries};
use super::compactor::Compactor;
use super::merge::{Merge, Merged};
use super::output::{Naming, Output, PieceTarget};
use super::plan::due;
use super::projection::Projection;
use crate::columnar::Damaged;
use crate::event::Envelope;
use crate::ids::Ulid;
use crate::log::limits::JOIN_BYTES;
use crate::log::{EVENTS, EventRecord, encode_days};
use crate::manifest::{Delta, EventRange, FileRef, Group, Manifest, Outcome, Piece, Place, sha256};
use crate::objects::{Objects, StorageError};

/// What one publication has.
#[derive(Default)]
pub(super) struct Step {
    pub(super) now_ms: u64,
    /// Batches that were folded.
    pub(super) batches: Vec<(Ulid, Vec<EventRecord>)>,
    /// The one of them that is not in the log yet.
    pub(super) appended: Option<(Ulid, Bytes)>,
    pub(super) delta: Entries,
    pub(super) days: BTreeMap<Arc<str>, Entries>,
    pub(super) is_merge_due: bool,
    pub(super) first: Option<Ulid>,
    pub(super) last: Option<Ulid>,
    pub(super) count: u64,
}

impl Step {
    pub(super) fn note_events(&mut self, events: &[Envelope]) {
        self.first = events.first().map(|event| event.event_id);
        self.last = events.last().map(|event| event.event_id);
        self.count = events.len() as u64;
    }
}

/// What a publication replaces.
#[derive(Default)]
struct Superseded {
    /// Objects that the new manifest does not name.
    objects: Vec<(Objects, Path)>,
    /// Batches that are in a segment now.
    joined: Vec<Ulid>,
}

impl<P: Projection> Compactor<P> {
    /// Whether deltas are merged into the base instead of writing one more.
    pub(super) fn is_delta_merge_due(&self, delta: &Entries, now_ms: u64) -> bool {
        let (options, deltas) = (&self.context.options, &self.catalog.deltas);
        let too_many = deltas.len() >= options.max_deltas && !delta.is_empty();
        let rows = self.overlay.count() + delta.count();
        let oldest = deltas.first().map(|delta| delta.created_at.saturating_add(options.max_delta_age_ms));
        too_many || rows > options.max_delta_rows || oldest.is_some_and(|due_ms| due_ms <= now_ms)
    }

    /// Writes everything, then the manifest. False: another compactor of this epoch was first.
    pub(super) async fn publish(&mut self, step: Step) -> Result<bool, StorageError> {
        self.check_place(step.now_ms).await?;
        let mut manifest = self.next_manifest(step.now_ms);
        let naming = Naming { sequence: manifest.manifest_id, token: self.fresh_token() };
        advance(&mut manifest, &step, &self.context.shelves.paths.log());
        let (mut output, mut superseded) = (Output::default(), Superseded::default());
        if let Some((first, bytes)) = &step.appended {
            let path = self.context.shelves.paths.batch(*first);
            output.add(&self.context.shelves.ledger, path, bytes.clone());
        }
        let damaged = |damaged: Damaged| StorageError::damaged("a file of a table", &damaged);
        self.write_changes(&step, &manifest, &naming, &mut output, &mut superseded).map_err(damaged)?;
        self.write_days(&step.days, &manifest, &naming, &mut output).map_err(damaged)?;
        // What is folded now is joined later: it may not be in the log yet.
        self.join_batches(&naming, &mut output, &mut superseded).await?;
        for (first, records) in step.batches {
            self.batches.remember(first, records);
        }
        manifest.expired_through.clone_from(&self.expired_through);
        manifest.l0_deltas.clone_from(&self.catalog.deltas);
        manifest.l0_count = manifest.l0_deltas.len();
        manifest.log.folded = self.batches.folded.keys().copied().collect();
        manifest.log.joined = self.batches.joined.iter().copied().collect();
        // Files and parts do not depend on each other; the manifest comes after both.
        let manifests = &self.context.manifests;
        let parts = manifests.put_parts(&mut manifest, &mut self.catalog, &naming.token);
        let (parts, ()) = futures_util::future::try_join(parts, output.put()).await?;
        match manifests.publish(&manifest).await? {
            Outcome::Published => (),
            Outcome::Overtaken => return Ok(false),
            Outcome::Fenced(epoch) => return Err(self.fenced(epoch)),
        }
        let (state, paths) = (&self.context.shelves.state, &self.context.shelves.paths);
        superseded.objects.extend(parts.iter().map(|part| (state.clone(), paths.part(part))));
        self.adopt(manifest, superseded);
        Ok(true)
    }

    /// The manifest is published: memory follows.
    fn adopt(&mut self, manifest: Manifest, superseded: Superseded) {
        let due_ms = manifest.published_at.saturating_add(self.context.options.grace_ms);
        for (objects, path) in superseded.objects {
            self.background.doom(Doomed { due_ms, objects, path });
        }
        let previous = self.published.manifest_id;
        if previous > 0 {
            let (objects, path) =
                (self.context.shelves.state.clone(), self.context.shelves.paths.manifest(previous));
            self.background.doom_manifest(Doomed { due_ms, objects, path });
        }
        for doomed in self.replaced.drain(..) {
            self.background.doom(doomed);
        }
        self.delete_batches(&superseded.joined);
        self.catalog.base_changed = false;
        self.catalog.months_changed.clear();
        self.background.point_to(&self.context.manifests, &manifest);
        self.published = manifest;
    }

    /// The changes of active rows: one more delta, or all deltas as pieces of the base.
    fn write_changes(
        &mut self,
        step: &Step,
        manifest: &Manifest,
        naming: &Naming,
        output: &mut Output,
        superseded: &mut Superseded,
    ) -> Result<(), Damaged> {
        self.overlay.extend(&step.delta);
        let buried_by = manifest.watermarks.events_processed_through.unwrap_or(Ulid::MIN);
        if !step.is_merge_due {
            let delta = self.delta(step, manifest, naming, output)?;
            self.catalog.deltas.extend(delta);
            return Ok(());
        }
        for (table, entries) in self.overlay.tables() {
            let group = Group { table: table.to_owned(), place: Place::Active };
            let keeps_tombstones = !self.catalog.pieces(&group).is_empty();
            let target = PieceTarget { group: &group, level: 1, buried_by, keeps_tombstones };
            let piece = output.add_piece(&self.context.shelves, naming, &target, entries)?;
            if piece.files().next().is_some() {
                self.catalog.pieces_mut(&group).push(piece);
                self.touched.insert(group);
            }
        }
        self.overlay.clear();
        let (state, paths) = (&self.context.shelves.state, &self.context.shelves.paths);
        for delta in self.catalog.deltas.drain(..) {
            let files = delta.tables.values().chain(delta.deletions.values());
            superseded.objects.extend(files.map(|file| (state.clone(), paths.state_file(&file.path))));
        }
        // Nothing may be left of the deltas in a manifest without a base.
        self.catalog.base_changed = true;
        Ok(())
    }

    fn delta(
        &self,
        step: &Step,
        manifest: &Manifest,
        naming: &Naming,
        output: &mut Output,
    ) -> Result<Option<Delta>, Damaged> {
        if step.delta.is_empty() {
            return Ok(None);
        }
        let buried_by = manifest.watermarks.events_processed_through.unwrap_or(Ulid::MIN);
        let mut delta = Delta {
            delta_id: format!("{:020}", naming.sequence),
            created_at: step.now_ms,
            event_range: EventRange { from: step.first, to: step.last, count: step.count },
            tables: BTreeMap::new(),
            row_counts: BTreeMap::new(),
            deletions: BTreeMap::new(),
            deletion_count: 0,
        };
        for (table, entries) in step.delta.tables() {
            let group = Group { table: table.to_owned(), place: Place::Active };
            let target = PieceTarget { group: &group, level: 0, buried_by, keeps_tombstones: true };
            let piece = output.add_piece(&self.context.shelves, naming, &target, entries)?;
            if let Some(file) = piece.rows {
                delta.row_counts.insert(table.to_owned(), file.rows);
                delta.tables.insert(table.to_owned(), file);
            }
            if let Some(file) = piece.deletions {
                delta.deletion_count += file.rows;
                delta.deletions.insert(table.to_owned(), file);
            }
        }
        Ok(Some(delta))
    }

    /// Rows that move to day partitions, and tombstones of those that leave them.
    fn write_days(
        &mut self,
        days: &BTreeMap<Arc<str>, Entries>,
        manifest: &Manifest,
        naming: &Naming,
        output: &mut Output,
    ) -> Result<(), Damaged> {
        let buried_by = manifest.watermarks.events_processed_through.unwrap_or(Ulid::MIN);
        for (day, entries) in days {
            for (table, entries) in entries.tables() {
                let group = Group { table: table.to_owned(), place: Place::Day(day.to_string()) };
                self.write_day(group, buried_by, entries, naming, output)?;
            }
        }
        Ok(())
    }

    fn write_day(
        &mut self,
        group: Group,
        buried_by: Ulid,
        entries: &TableEntries,
        naming: &Naming,
        output: &mut Output,
    ) -> Result<(), Damaged> {
        let keeps_tombstones = !self.catalog.pieces(&group).is_empty();
        let target = PieceTarget { group: &group, level: 1, buried_by, keeps_tombstones };
        let piece = output.add_piece(&self.context.shelves, naming, &target, entries)?;
        if piece.files().next().is_some() {
            self.catalog.pieces_mut(&group).push(piece);
            self.touched.insert(group);
        }
        Ok(())
    }

    /// Joins folded batches once there are enough: the folder of the log stays short.
    async fn join_batches(
        &mut self,
        naming: &Naming,
        output: &mut Output,
        superseded: &mut Superseded,
    ) -> Result<(), StorageError> {
        let batches = &self.batches;
        if batches.folded.len() < self.context.options.join_batches && batches.cached_bytes < JOIN_BYTES {
            return Ok(());
        }
        self.load_batches().await?;
        let records = self.batches.folded.values().flatten().flatten();
        let segments = encode_days(&self.context.scope, records);
        for segment in segments.map_err(|damaged| StorageError::damaged(EVENTS, &damaged))? {
            let path =
                format!("{EVENTS}/day={}/{:020}-L1-{}.parquet", segment.day, naming.sequence, naming.token);
            let file = FileRef {
                sha256: sha256(&segment.bytes),
                bytes: segment.bytes.len() as u64,
                rows: segment.rows,
                first_key: Some(segment.first.to_string()),
                last_key: Some(segment.last.to_string()),
                path,
            };
            let shelves = &self.context.shelves;
            output.add(&shelves.ledger, shelves.paths.segment(&file.path), segment.bytes);
            let group = Group { table: EVENTS.to_owned(), place: Place::Day(segment.day) };
            let piece = Piece { sequence: naming.sequence, level: 1, rows: Some(file), deletions: None };
            self.catalog.pieces_mut(&group).push(piece);
            self.touched.insert(group);
        }
        let joined: Vec<Ulid> = std::mem::take(&mut self.batches.folded).into_keys().collect();
        self.batches.cached_bytes = 0;
        self.batches.joined.extend(&joined);
        superseded.joined = joined;
        Ok(())
    }

    /// Puts the outputs of merges that have ended in the place of their inputs; the next manifest
    /// names them.
    pub(super) fn adopt_merges(&mut self) {
        while let Some(merged) = self.background.ended_merge() {
            self.adopt_merge(merged);
        }
    }

    pub(super) fn adopt_merge(&mut self, merged: Merged) {
        let Merged { merge, output } = merged;
        let pieces = self.catalog.pieces(&merge.group);
        let start = merge.inputs.first().and_then(|first| pieces.iter().position(|piece| piece == first));
        let range = start.map(|start| start..start + merge.inputs.len());
        let Some(range) = range.filter(|range| pieces.get(range.clone()) == Some(&merge.inputs[..])) else {
            // Memory was read again meanwhile, and the pieces are others.
            return;
        };
        self.catalog.pieces_mut(&merge.group).splice(range, output);
        let due_ms = self.context.clock.now_ms().saturating_add(self.context.options.grace_ms);
        for file in merge.inputs.iter().flat_map(Piece::files) {
            let (objects, path) = self.context.shelves.of(&merge.group.table, &file.path);
            let objects = objects.clone();
            self.replaced.push(Doomed { due_ms, objects, path });
        }
        self.touched.insert(merge.group);
    }

    /// A token that no other publication and no other merge has, also not of this compactor: a try
    /// that failed may have written files, and the next one writes others.
    fn fresh_token(&mut self) -> String {
        self.tokens += 1;
        format!("{}{:06x}", self.context.token, self.tokens)
    }

    /// Starts the next merge, if one is due and none is under way.
    pub(super) fn start_merge(&mut self) {
        while !self.background.is_merging() {
            let Some(group) = self.touched.pop_first() else { return };
            let pieces = self.catalog.pieces(&group);
            if let Some(due) = due(&group.place, pieces) {
                let (group, pieces) = (group, pieces.to_vec());
                let merge = Merge::new(group, &pieces, &due, self.fresh_token());
                self.background.start(self.context.shelves.clone(), merge);
            }
        }
    }

    /// Waits for merges, deletions that are due and the pointer copy, and publishes what the merges
    /// made: for the end of a node, and for tests.
    ///
    /// # Errors
    /// As [`Compactor::fold_waiting`].
    pub async fn settle(&mut self) -> Result<(), StorageError> {
        loop {
            self.start_merge();
            let Some(merged) = self.background.merged().await else { break };
            if !self.is_stale {
                self.adopt_merge(merged);
            }
            self.fold_waiting().await?;
        }
        self.background.delete_due(self.context.clock.now_ms());
        self.background.settle().await;
        Ok(())
    }
}

/// The watermarks after a fold.
fn advance(manifest: &mut Manifest, step: &Step, log: &Path) {
    let watermarks = &mut manifest.watermarks;
    let newest = watermarks.events_processed_through.max(step.last);
    watermarks.last_committed_event_id = newest;
    watermarks.last_visible_event_id = newest;
    watermarks.events_processed_through = newest;
    if let Some((first, _)) = step.batches.last() {
        watermarks.last_processed_file = Some(format!("{log}/{first}.json"));
        watermarks.last_processed_at = Some(step.now_ms);
    }
}
