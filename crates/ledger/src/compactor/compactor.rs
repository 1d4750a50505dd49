//! A compactor: opening it, taking a scope over, and what callers read of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use segno::clock::Clock;
use segno::ids::IdSource;
use segno::store::ErrorKind;
use segno_actions::functions::Scope;

use super::archive::ArchivedRuns;
use super::background::{Background, Doomed};
use super::change::Entries;
use super::limits::{
    ARCHIVE_AGE_MS, ARCHIVE_ROWS, ARCHIVE_RUNS, FOLD_TRIES, GRACE_MS, PLACE_CHECK_MS, RUN_RETENTION_MS,
};
use super::merge::Shelves;
use super::projection::Projection;
use crate::fold::{ChangedRun, FailedRun};
use crate::ids::{Ulid, Ulids};
use crate::log::{EventRecord, LogReader};
use crate::manifest::limits::{L0_AGE_MS, L0_DELTAS, L0_ROWS};
use crate::manifest::{
    Catalog, Group, L0Limits, LogState, Manifest, Manifests, Outcome, Piece, Place, SCHEMA_VERSION,
    Watermarks,
};
use crate::objects::{Objects, Paths, StorageError, Stores};
use crate::snapshot::{Tables, key_of, live_rows, rows_of};

/// What a compactor needs.
#[derive(Clone)]
pub struct Setup {
    /// Whose tables.
    pub scope: Scope,
    /// Where they are.
    pub stores: Stores,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness, for names of files and ids of revisions.
    pub ids: Arc<dyn IdSource>,
    /// The fencing token: it grows with every holder of the scope.
    pub epoch: u64,
    /// Limits that callers may change.
    pub options: Options,
}

/// Limits that callers may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long files that are no longer named are kept for readers.
    pub grace_ms: u64,
    /// Deltas before they are merged.
    pub max_deltas: usize,
    /// Rows of all deltas before they are merged.
    pub max_delta_rows: u64,
    /// Age of the oldest delta before they are merged.
    pub max_delta_age_ms: u64,
    /// Finished runs that are moved to day partitions together.
    pub archive_runs: usize,
    /// Rows of finished runs that one fold moves, unless the first run alone has more.
    pub archive_rows: u64,
    /// How long a finished run waits for others.
    pub archive_age_ms: u64,
    /// Folded batches after which they are joined.
    pub join_batches: usize,
    /// How long day partitions are kept after the last end of their runs; for ever without it.
    pub run_retention_ms: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            grace_ms: GRACE_MS,
            max_deltas: L0_DELTAS,
            max_delta_rows: L0_ROWS,
            max_delta_age_ms: L0_AGE_MS,
            archive_runs: ARCHIVE_RUNS,
            archive_rows: ARCHIVE_ROWS,
            archive_age_ms: ARCHIVE_AGE_MS,
            join_batches: crate::log::limits::JOIN_BATCHES,
            run_retention_ms: Some(RUN_RETENTION_MS),
        }
    }
}

/// The outcome of a fold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Published {
    /// The newest manifest.
    pub manifest_id: u64,
    /// Events that were folded; 0 if nothing waited.
    pub events: usize,
    /// Runs that were rebuilt because one of their events arrived late.
    pub rebuilt_runs: usize,
    /// Whether more waits than one fold takes.
    pub has_more: bool,
    /// Whether a manifest was written.
    pub wrote: bool,
    /// Objects that were moved out of the log, and why.
    pub quarantined: Vec<(String, String)>,
    /// Runs that have failed, and those with tasks that have.
    pub failed: Vec<FailedRun>,
    /// The runs that changed, if changes are observed.
    pub changed: Vec<ChangedRun>,
}

/// What stays the same while a compactor lives.
pub(super) struct Context {
    pub(super) scope: Scope,
    pub(super) shelves: Shelves,
    pub(super) log: LogReader,
    pub(super) manifests: Manifests,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) revisions: Ulids,
    pub(super) epoch: u64,
    pub(super) token: String,
    pub(super) options: Options,
}

/// Batches of the log that are folded and may still be in its folder.
#[derive(Default)]
pub(super) struct Batches {
    /// Folded and not joined, with what is kept of their events if that is in memory.
    pub(super) folded: BTreeMap<Ulid, Option<Vec<EventRecord>>>,
    /// Joined; about to be deleted.
    pub(super) joined: BTreeSet<Ulid>,
    /// Bytes of the events in memory.
    pub(super) cached_bytes: usize,
}

/// Folds the log of a scope into its tables.
pub struct Compactor<P> {
    pub(super) context: Context,
    pub(super) projection: P,
    /// The newest manifest; number 0 before the first.
    pub(super) published: Manifest,
    pub(super) catalog: Catalog,
    /// Changes since the base: the content of all deltas.
    pub(super) overlay: Entries,
    pub(super) batches: Batches,
    pub(super) archived: Option<ArchivedRuns>,
    /// When the last run of a day has ended, of days whose partitions were read for that.
    pub(super) last_ends: BTreeMap<String, u64>,
    /// The newest day whose partition was removed.
    pub(super) expired_through: Option<String>,
    /// Since when finished runs wait to be moved to day partitions.
    pub(super) finished_since_ms: Option<u64>,
    pub(super) background: Background,
    /// Files that merges replaced; they are deleted after a manifest that does not name them.
    pub(super) replaced: Vec<Doomed>,
    /// Groups that may need a merge.
    pub(super) touched: BTreeSet<Group>,
    /// Whether memory may differ from the newest manifest.
    pub(super) is_stale: bool,
    pub(super) checked_at_ms: u64,
    /// Tokens handed out so far.
    pub(super) tokens: u64,
    /// Whether changes are returned.
    pub(super) is_observed: bool,
}

impl<P: Projection> Compactor<P> {
    /// Opens a scope: takes it over from compactors of lower epochs, and reads the active rows.
    ///
    /// # Errors
    /// `LockLost` when a compactor of a higher epoch has the scope; `Corrupt`, `Unavailable`.
    pub async fn open(setup: Setup) -> Result<Self, StorageError> {
        let paths = Arc::new(Paths::new(setup.scope.clone()));
        let objects = |store| Objects::new(store, Arc::clone(&setup.clock));
        let (ledger, state) = (objects(setup.stores.ledger), objects(setup.stores.state));
        let context = Context {
            log: LogReader::new(ledger.clone(), Paths::clone(&paths)),
            manifests: Manifests::new(state.clone(), Paths::clone(&paths)),
            shelves: Shelves { ledger, state, paths },
            revisions: Ulids::new(Arc::clone(&setup.clock), Arc::clone(&setup.ids)),
            token: format!("{:016x}", setup.ids.new_seed()),
            scope: setup.scope,
            clock: setup.clock,
            epoch: setup.epoch,
            options: setup.options,
        };
        let mut compactor = Compactor {
            projection: P::load(&context.scope, crate::tables::Rows::default(), None),
            published: first_manifest(&context),
            context,
            catalog: Catalog::default(),
            overlay: Entries::default(),
            batches: Batches::default(),
            archived: None,
            last_ends: BTreeMap::new(),
            expired_through: None,
            finished_since_ms: None,
            background: Background::new(),
            replaced: Vec::new(),
            touched: BTreeSet::new(),
            is_stale: true,
            checked_at_ms: 0,
            tokens: 0,
            is_observed: false,
        };
        compactor.take_over().await?;
        compactor.doom_old_manifests().await?;
        Ok(compactor)
    }

    /// The folded state: the active rows.
    pub fn state(&self) -> &P {
        &self.projection
    }

    /// Has folds return the runs that they change, or no longer.
    pub fn observe(&mut self, is_observed: bool) {
        self.is_observed = is_observed;
    }

    /// The newest folded event.
    pub fn watermark(&self) -> Option<Ulid> {
        self.published.watermarks.events_processed_through
    }

    /// The newest manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.published
    }

    /// When the log was last seen without anything waiting, or folded: how fresh the state is, also
    /// when nothing happens.
    pub fn checked_at_ms(&self) -> u64 {
        self.checked_at_ms
    }

    /// The time at which [`Compactor::fold_waiting`] has something to do even if nothing was
    /// appended.
    pub fn next_due_ms(&self) -> Option<u64> {
        let options = &self.context.options;
        let oldest = self
            .catalog
            .deltas
            .first()
            .map(|delta| delta.created_at.saturating_add(options.max_delta_age_ms));
        let archive = self.finished_since_ms.map(|since| since.saturating_add(options.archive_age_ms));
        [oldest, archive, self.background.next_deletion_ms()].into_iter().flatten().min()
    }

    /// Publishes a first manifest of this epoch, so that compactors of lower epochs cannot publish
    /// any more.
    async fn take_over(&mut self) -> Result<(), StorageError> {
        for _ in 0..FOLD_TRIES {
            self.reload().await?;
            if self.published.epoch == self.context.epoch && self.published.manifest_id > 0 {
                return Ok(());
            }
            let next = self.next_manifest(self.context.clock.now_ms());
            match self.context.manifests.publish(&next).await? {
                Outcome::Published => {
                    self.background.point_to(&self.context.manifests, &next);
                    self.published = next;
                    return Ok(());
                }
                Outcome::Fenced(epoch) => return Err(self.fenced(epoch)),
                Outcome::Overtaken => self.is_stale = true,
            }
        }
        Err(self.contended())
    }

    /// Reads the newest manifest and everything that it names, if memory may differ from it.
    pub(super) async fn reload(&mut self) -> Result<(), StorageError> {
        if !self.is_stale {
            return Ok(());
        }
        for _ in 0..FOLD_TRIES {
            let newest = self.context.manifests.newest(self.published.manifest_id).await?;
            if newest.is_none() && self.published.manifest_id > 0 {
                return Err(self.gone());
            }
            let manifest = newest.unwrap_or_else(|| first_manifest(&self.context));
            if manifest.epoch > self.context.epoch {
                return Err(self.fenced(manifest.epoch));
            }
            match self.load(manifest).await {
                // A newer manifest replaced it while it was read.
                Err(error) if error.kind() == ErrorKind::NotFound => (),
                outcome => return outcome,
            }
        }
        Err(self.contended())
    }

    async fn load(&mut self, manifest: Manifest) -> Result<(), StorageError> {
        let catalog = self.context.manifests.catalog(&manifest).await?;
        let shelves = &self.context.shelves;
        let mut active = BTreeMap::new();
        let mut overlay = Entries::default();
        for (table, spec) in Tables::all() {
            let group = Group { table: table.to_owned(), place: Place::Active };
            let pieces = catalog.all_pieces(&group);
            let rows = live_rows(&shelves.state, &shelves.paths, spec, &pieces, &[]).await?;
            active.insert(table, rows.into_values().collect());
            let deltas = &pieces[catalog.pieces(&group).len()..];
            for piece in deltas {
                self.add_to_overlay(&mut overlay, table, piece).await?;
            }
        }
        self.projection =
            P::load(&self.context.scope, rows_of(active)?, manifest.watermarks.events_processed_through);
        self.overlay = overlay;
        self.batches = Batches {
            folded: manifest.log.folded.iter().map(|first| (*first, None)).collect(),
            joined: manifest.log.joined.iter().copied().collect(),
            cached_bytes: 0,
        };
        self.archived = None;
        self.finished_since_ms = None;
        self.last_ends.clear();
        self.expired_through.clone_from(&manifest.expired_through);
        // What merges replaced may be named again.
        self.replaced.clear();
        self.touched = catalog.groups().map(|(group, _)| group).collect();
        self.catalog = catalog;
        self.published = manifest;
        self.is_stale = false;
        Ok(())
    }

    async fn add_to_overlay(
        &self,
        overlay: &mut Entries,
        table: &'static str,
        piece: &Piece,
    ) -> Result<(), StorageError> {
        let Some(spec) = Tables::find(table) else { return Ok(()) };
        let shelves = &self.context.shelves;
        for (file, layout, is_row) in
            [(&piece.deletions, &spec.tombstones, false), (&piece.rows, &spec.rows, true)]
        {
            let Some(file) = file else { continue };
            let path = shelves.paths.state_file(&file.path);
            let file = crate::snapshot::TableFile::open(&shelves.state, path, file, layout).await?;
            for group in 0..file.groups() {
                let rows = file.rows(group).await?;
                let entries = overlay.table_mut(table);
                entries.extend(rows.into_iter().map(|row| (key_of(layout, &row), is_row.then_some(row))));
            }
        }
        Ok(())
    }

    /// Manifests that an earlier compactor left behind are deleted after the grace period.
    async fn doom_old_manifests(&mut self) -> Result<(), StorageError> {
        let due_ms = self.context.clock.now_ms().saturating_add(self.context.options.grace_ms);
        for number in self.context.manifests.listed().await? {
            if number < self.published.manifest_id {
                let path = self.context.shelves.paths.manifest(number);
                let objects = self.context.shelves.state.clone();
                self.background.doom_manifest(Doomed { due_ms, objects, path });
            }
        }
        let joined: Vec<Ulid> = self.batches.joined.iter().copied().collect();
        self.delete_batches(&joined);
        Ok(())
    }

    /// Deletes batches that are joined.
    pub(super) fn delete_batches(&mut self, batches: &[Ulid]) {
        let shelves = &self.context.shelves;
        for first in batches {
            let (objects, path) = (shelves.ledger.clone(), shelves.paths.batch(*first));
            self.background.doom_now(Doomed { due_ms: 0, objects, path });
        }
    }

    /// The manifests are not there any more: the place was unmounted, renamed or deleted. Nothing may be begun again in it.
    pub(super) fn gone(&self) -> StorageError {
        let problem =
            "the manifests are gone: the place of the ledger is another one, or empty; mount or restore it";
        StorageError::new(ErrorKind::Unavailable, self.context.shelves.paths.manifests(), problem)
    }

    /// Before the first write after a pause: whether the newest manifest is still where it was put. While folds follow each other,
    /// each publication finds out.
    pub(super) async fn check_place(&self, now_ms: u64) -> Result<(), StorageError> {
        let is_recent = now_ms.saturating_sub(self.published.published_at) < PLACE_CHECK_MS && !self.is_stale;
        if is_recent || self.published.manifest_id == 0 {
            return Ok(());
        }
        let path = self.context.shelves.paths.manifest(self.published.manifest_id);
        if self.context.shelves.state.exists(&path).await? {
            return Ok(());
        }
        // It may have been replaced and deleted; then a newer one is there.
        match self.context.manifests.newest(self.published.manifest_id).await? {
            Some(_) => Ok(()),
            None => Err(self.gone()),
        }
    }

    pub(super) fn fenced(&self, epoch: u64) -> StorageError {
        let problem = format!(
            "epoch {} is fenced by epoch {epoch}: another node has the scope; stop",
            self.context.epoch
        );
        StorageError::new(ErrorKind::LockLost, self.context.shelves.paths.manifests(), problem)
    }

    pub(super) fn contended(&self) -> StorageError {
        let problem = format!("other compactors of epoch {} were first; try again", self.context.epoch);
        StorageError::new(ErrorKind::Conflict, self.context.shelves.paths.manifests(), problem)
    }

    /// The manifest after the newest one, with nothing changed.
    pub(super) fn next_manifest(&self, now_ms: u64) -> Manifest {
        let previous = (self.published.manifest_id > 0)
            .then(|| self.context.shelves.paths.manifest(self.published.manifest_id).to_string());
        Manifest {
            manifest_id: self.published.manifest_id + 1,
            epoch: self.context.epoch,
            previous_manifest_path: previous,
            schema_version: SCHEMA_VERSION,
            revision_ulid: self.context.revisions.next_id(),
            published_at: now_ms,
            ..self.published.clone()
        }
    }
}

/// What a scope without any manifest has.
fn first_manifest(context: &Context) -> Manifest {
    let options = &context.options;
    Manifest {
        manifest_id: 0,
        epoch: 0,
        previous_manifest_path: None,
        schema_version: SCHEMA_VERSION,
        revision_ulid: Ulid::MIN,
        published_at: 0,
        watermarks: Watermarks::default(),
        base_snapshot: None,
        l0_deltas: Vec::new(),
        l0_count: 0,
        l0_limits: L0Limits {
            max_count: options.max_deltas,
            max_rows: options.max_delta_rows,
            max_age_ms: options.max_delta_age_ms,
        },
        history: None,
        expired_through: None,
        log: LogState::default(),
    }
}
