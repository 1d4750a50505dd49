//! The rows that a part of work has in memory.
//!
//! The batch, its phases and its init steps are always there: they decide. Members, steps, rollbacks
//! and removals are loaded as they are needed. Reading a row that is not loaded is [`Missing`], which
//! names it: the change that was begun is undone, the driver loads the row and applies the message again. So a
//! driver that prefetches too little is slow, but not wrong.

use std::collections::BTreeMap;
use std::ops::Range;

use super::batch::BatchRow;
use super::ids::{InitId, MemberId, PhaseId, StepId};
use super::init::InitRow;
use super::key::{Row, RowKey, Table, WorkKey};
use super::member::{MemberKeyRow, MemberRow};
use super::numbering::Place;
use super::phase::PhaseRow;
use super::removal::RemovalRow;
use super::rollback::{Origin, RollbackRow};
use super::state::{RowState, Stateful};
use super::status::MemberStatus;
use super::step::StepRow;
use super::work::Work;

/// Something that has to be loaded before a message can be applied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// A row, or the knowledge that it does not exist.
    Row(RowKey),
    /// All rows of a table of numbered rows with ids in a range.
    Range {
        /// `batch_members` or `step_executions`.
        table: Table,
        /// First id.
        from: u64,
        /// First id after the range.
        to: u64,
    },
    /// Fresh ids, higher than all that were drawn before.
    Ids {
        /// The table that they are for.
        table: Table,
        /// How many in a row.
        count: u64,
    },
    /// The definition of a version of the runbook.
    Definition(u32),
}

/// What has to be loaded before a message can be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub Vec<Want>);

impl From<RowKey> for Missing {
    fn from(key: RowKey) -> Self {
        Missing(vec![Want::Row(key)])
    }
}

/// Fresh ids by table, reserved by the driver. Ids that are never used leave a gap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ids(BTreeMap<Table, Range<u64>>);

impl Ids {
    /// Gives ids for a table. What is left of earlier ones is dropped.
    pub fn grant(&mut self, table: Table, ids: Range<u64>) {
        self.0.insert(table, ids);
    }

    /// Takes ids that are higher than those which the batch has, so that ids keep the order of creation.
    fn take(&mut self, table: Table, count: u64, above: u64) -> Result<u64, Missing> {
        let missing = || Missing(vec![Want::Ids { table, count }]);
        let ids = self.0.get_mut(&table).ok_or_else(missing)?;
        if ids.end.saturating_sub(ids.start) < count || ids.start <= above {
            return Err(missing());
        }
        let first = ids.start;
        ids.start += count;
        Ok(first)
    }
}

#[derive(Debug, Clone)]
struct Entry<R> {
    row: Option<R>,
    is_changed: bool,
    /// The state of the row that is stored; none if the row is new.
    stored: Option<RowState>,
    /// The input in which it was saved for undo.
    saved_in: u64,
}

/// The rows that a commit writes.
#[derive(Debug, Default)]
pub struct Changes {
    /// The rows.
    pub rows: Vec<Row>,
    /// The states of those whose state is another one than before.
    pub states: Vec<RowState>,
}

/// Rows of one table.
#[derive(Debug, Clone)]
struct Loaded<K, R> {
    entries: BTreeMap<K, Entry<R>>,
    /// Whether a row that is not here does not exist.
    is_complete: bool,
    /// Rows that were changed since the last commit, so that a commit does not look at all that are loaded. One
    /// whose change was taken back, or that was changed twice, may be here as well.
    changed: Vec<K>,
    input: u64,
    /// Entries as they were before the current input; `None` where there was none.
    undo: Vec<(K, Option<Entry<R>>)>,
}

impl<K: Ord + Clone, R: Clone + Stateful> Loaded<K, R> {
    fn new(is_complete: bool) -> Self {
        Loaded { entries: BTreeMap::new(), is_complete, changed: Vec::new(), input: 1, undo: Vec::new() }
    }

    fn begin(&mut self) {
        self.input += 1;
        self.undo.clear();
    }

    fn undo(&mut self) {
        for (key, entry) in self.undo.drain(..).rev() {
            match entry {
                Some(entry) => self.entries.insert(key, entry),
                None => self.entries.remove(&key),
            };
        }
    }

    fn load(&mut self, key: K, row: Option<R>) {
        let stored = row.as_ref().and_then(Stateful::state);
        self.entries.entry(key).or_insert(Entry { row, is_changed: false, stored, saved_in: 0 });
    }

    fn knows(&self, key: &K) -> bool {
        self.is_complete || self.entries.contains_key(key)
    }

    /// The row; `Some(None)` if it does not exist, `None` if it is not loaded.
    fn get(&self, key: &K) -> Option<Option<&R>> {
        match self.entries.get(key) {
            Some(entry) => Some(entry.row.as_ref()),
            None => self.is_complete.then_some(None),
        }
    }

    fn get_mut(&mut self, key: &K) -> Option<&mut R> {
        let entry = self.entries.get_mut(key)?;
        if entry.saved_in != self.input {
            self.undo.push((key.clone(), Some(entry.clone())));
            entry.saved_in = self.input;
        }
        if !entry.is_changed {
            entry.is_changed = true;
            self.changed.push(key.clone());
        }
        entry.row.as_mut()
    }

    fn put(&mut self, key: K, row: R) {
        let saved_in = self.input;
        let stored = self.entries.get(&key).and_then(|before| before.stored);
        let entry = Entry { row: Some(row), is_changed: true, stored, saved_in };
        let before = self.entries.insert(key.clone(), entry);
        if before.as_ref().is_none_or(|before| !before.is_changed) {
            self.changed.push(key.clone());
        }
        if before.as_ref().is_none_or(|before| before.saved_in != saved_in) {
            self.undo.push((key, before));
        }
    }

    fn rows(&self) -> impl Iterator<Item = &R> {
        self.entries.values().filter_map(|entry| entry.row.as_ref())
    }

    fn take_changes(&mut self, changes: &mut Changes, wrap: impl Fn(R) -> Row) {
        self.changed.sort_unstable();
        for key in self.changed.drain(..) {
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.is_changed) else { continue };
            entry.is_changed = false;
            let state = entry.row.as_ref().and_then(Stateful::state);
            if state != entry.stored {
                entry.stored = state;
                changes.states.extend(state);
            }
            changes.rows.extend(entry.row.clone().map(&wrap));
        }
    }

    fn forget_unchanged(&mut self) {
        self.undo.clear();
        self.entries.retain(|_, entry| entry.is_changed);
    }
}

/// The rows that a part of work has in memory.
#[derive(Debug, Clone)]
pub struct Rows {
    batch: Loaded<(), BatchRow>,
    phases: Loaded<PhaseId, PhaseRow>,
    inits: Loaded<InitId, InitRow>,
    members: Loaded<MemberId, MemberRow>,
    member_keys: Loaded<String, MemberKeyRow>,
    steps: Loaded<StepId, StepRow>,
    rollbacks: Loaded<(Origin, u32), RollbackRow>,
    removals: Loaded<(MemberId, u32), RemovalRow>,
    ids: Ids,
    ids_before: Ids,
}

impl Rows {
    /// A batch with all its phases and init steps; nothing for one that is yet to be created.
    pub fn new(batch: Option<BatchRow>, phases: Vec<PhaseRow>, inits: Vec<InitRow>) -> Self {
        let mut rows = Rows {
            batch: Loaded::new(true),
            phases: Loaded::new(true),
            inits: Loaded::new(true),
            members: Loaded::new(false),
            member_keys: Loaded::new(false),
            steps: Loaded::new(false),
            rollbacks: Loaded::new(false),
            removals: Loaded::new(false),
            ids: Ids::default(),
            ids_before: Ids::default(),
        };
        if let Some(batch) = batch {
            rows.batch.load((), Some(batch));
        }
        for phase in phases {
            rows.phases.load(phase.id, Some(phase));
        }
        for init in inits {
            rows.inits.load(init.id, Some(init));
        }
        rows
    }

    /// Fresh ids.
    pub fn ids(&mut self) -> &mut Ids {
        &mut self.ids
    }

    /// Adds a row that was read. One that is loaded already stays as it is.
    pub fn load(&mut self, row: Row) {
        match row {
            Row::Batch(row) => self.batch.load((), Some(row)),
            Row::Phase(row) => self.phases.load(row.id, Some(row)),
            Row::Init(row) => self.inits.load(row.id, Some(row)),
            Row::Member(row) => self.members.load(row.id, Some(row)),
            Row::MemberKey(row) => self.member_keys.load(row.key.clone(), Some(row)),
            Row::Step(row) => self.steps.load(row.id, Some(row)),
            Row::Rollback(row) => {
                if let Some(origin) = row.origin() {
                    self.rollbacks.load((origin, row.work.step_index), Some(row));
                }
            }
            Row::Removal(row) => {
                self.removals.load((row.batch_member_id, row.work.step_index), Some(row));
            }
        }
    }

    /// Notes that a row does not exist, unless it is loaded.
    pub fn load_absent(&mut self, key: &RowKey) {
        match key {
            RowKey::Batch | RowKey::Phase(_) | RowKey::Work(WorkKey::Init(_)) => {}
            RowKey::Member(id) => self.members.load(*id, None),
            RowKey::MemberKey(key) => self.member_keys.load(key.clone(), None),
            RowKey::Work(WorkKey::Step(id)) => self.steps.load(*id, None),
            RowKey::Work(WorkKey::Rollback(origin, index)) => self.rollbacks.load((*origin, *index), None),
            RowKey::Work(WorkKey::Removal(id, index)) => self.removals.load((*id, *index), None),
        }
    }

    /// Notes that the rows of a range which were not found do not exist.
    pub fn load_absent_range(&mut self, table: Table, ids: Range<u64>) {
        for id in ids {
            match table {
                Table::BatchMembers => self.members.load(MemberId(id), None),
                Table::StepExecutions => self.steps.load(StepId(id), None),
                _ => {}
            }
        }
    }

    /// Whether something is loaded.
    pub fn has(&self, want: &Want) -> bool {
        match want {
            Want::Row(key) => match key {
                RowKey::Batch | RowKey::Phase(_) | RowKey::Work(WorkKey::Init(_)) => true,
                RowKey::Member(id) => self.members.knows(id),
                RowKey::MemberKey(key) => self.member_keys.knows(key),
                RowKey::Work(WorkKey::Step(id)) => self.steps.knows(id),
                RowKey::Work(WorkKey::Rollback(origin, index)) => self.rollbacks.knows(&(*origin, *index)),
                RowKey::Work(WorkKey::Removal(id, index)) => self.removals.knows(&(*id, *index)),
            },
            Want::Range { table: Table::BatchMembers, from, to } => {
                (*from..*to).all(|id| self.members.knows(&MemberId(id)))
            }
            Want::Range { table: Table::StepExecutions, from, to } => {
                (*from..*to).all(|id| self.steps.knows(&StepId(id)))
            }
            Want::Range { .. } | Want::Definition(_) => true,
            // Only a message that takes them can tell.
            Want::Ids { .. } => false,
        }
    }

    /// The rows that were changed since the last call, for the commit of the part.
    pub fn take_changes(&mut self) -> Changes {
        let mut changes = Changes::default();
        self.batch.take_changes(&mut changes, Row::Batch);
        self.phases.take_changes(&mut changes, Row::Phase);
        self.inits.take_changes(&mut changes, Row::Init);
        self.members.take_changes(&mut changes, Row::Member);
        self.member_keys.take_changes(&mut changes, Row::MemberKey);
        self.steps.take_changes(&mut changes, Row::Step);
        self.rollbacks.take_changes(&mut changes, Row::Rollback);
        self.removals.take_changes(&mut changes, Row::Removal);
        changes
    }

    /// Drops everything but the batch, its phases and its init steps, and what has yet to be committed.
    pub fn forget_unchanged(&mut self) {
        self.members.forget_unchanged();
        self.member_keys.forget_unchanged();
        self.steps.forget_unchanged();
        self.rollbacks.forget_unchanged();
        self.removals.forget_unchanged();
    }

    /// Rows that [`Rows::forget_unchanged`] would drop, and what is known not to exist.
    pub fn loaded(&self) -> usize {
        self.members.entries.len()
            + self.member_keys.entries.len()
            + self.steps.entries.len()
            + self.rollbacks.entries.len()
            + self.removals.entries.len()
    }

    /// Makes what follows undoable.
    pub(crate) fn begin(&mut self) {
        self.batch.begin();
        self.phases.begin();
        self.inits.begin();
        self.members.begin();
        self.member_keys.begin();
        self.steps.begin();
        self.rollbacks.begin();
        self.removals.begin();
        self.ids_before.clone_from(&self.ids);
    }

    /// Takes back everything since [`Rows::begin`].
    pub(crate) fn undo(&mut self) {
        self.batch.undo();
        self.phases.undo();
        self.inits.undo();
        self.members.undo();
        self.member_keys.undo();
        self.steps.undo();
        self.rollbacks.undo();
        self.removals.undo();
        self.ids.clone_from(&self.ids_before);
    }

    /// Takes ids that are higher than those which the batch has.
    pub(crate) fn take_ids(&mut self, table: Table, count: u64, above: u64) -> Result<u64, Missing> {
        self.ids.take(table, count, above)
    }

    /// The batch, unless it is yet to be created.
    pub fn batch(&self) -> Option<&BatchRow> {
        self.batch.get(&()).flatten()
    }

    pub(crate) fn batch_mut(&mut self) -> Option<&mut BatchRow> {
        self.batch.get_mut(&())
    }

    pub(crate) fn put_batch(&mut self, row: BatchRow) {
        self.batch.put((), row);
    }

    /// The phases, by id.
    pub fn phases(&self) -> impl Iterator<Item = &PhaseRow> {
        self.phases.rows()
    }

    /// A phase.
    pub fn phase(&self, id: PhaseId) -> Option<&PhaseRow> {
        self.phases.get(&id).flatten()
    }

    pub(crate) fn phase_mut(&mut self, id: PhaseId) -> Option<&mut PhaseRow> {
        self.phases.get_mut(&id)
    }

    pub(crate) fn put_phase(&mut self, row: PhaseRow) {
        self.phases.put(row.id, row);
    }

    /// The init steps, by id: older versions first, in order.
    pub fn inits(&self) -> impl Iterator<Item = &InitRow> {
        self.inits.rows()
    }

    /// An init step.
    pub fn init(&self, id: InitId) -> Option<&InitRow> {
        self.inits.get(&id).flatten()
    }

    pub(crate) fn put_init(&mut self, row: InitRow) {
        self.inits.put(row.id, row);
    }

    /// A member.
    ///
    /// # Errors
    /// When it is not loaded.
    pub fn member(&self, id: MemberId) -> Result<Option<&MemberRow>, Missing> {
        self.members.get(&id).ok_or_else(|| RowKey::Member(id).into())
    }

    /// Writes a member and counts it.
    pub(crate) fn put_member(&mut self, row: MemberRow) {
        let before = self.members.get(&row.id).flatten().map(|before| (before.status, before.is_leaving()));
        if let Some(batch) = self.batch.get_mut(&()) {
            let counts = &mut batch.member_counts;
            let of = |status| match status {
                MemberStatus::Active => 0,
                MemberStatus::Removed => 1,
                MemberStatus::Failed => 2,
                MemberStatus::Cancelled => 3,
            };
            let by_status =
                [&mut counts.active, &mut counts.removed, &mut counts.failed, &mut counts.cancelled];
            if let Some((status, is_leaving)) = before {
                *by_status[of(status)] -= 1;
                counts.leaving -= u32::from(is_leaving);
            }
            *by_status[of(row.status)] += 1;
            counts.leaving += u32::from(row.is_leaving());
        }
        self.members.put(row.id, row);
    }

    /// The member that has a key.
    ///
    /// # Errors
    /// When it is not loaded.
    pub fn member_key(&self, key: &str) -> Result<Option<&MemberKeyRow>, Missing> {
        self.member_keys.get(&key.to_owned()).ok_or_else(|| RowKey::MemberKey(key.to_owned()).into())
    }

    pub(crate) fn put_member_key(&mut self, row: MemberKeyRow) {
        self.member_keys.put(row.key.clone(), row);
    }

    /// A step.
    ///
    /// # Errors
    /// When it is not loaded.
    pub fn step(&self, id: StepId) -> Result<Option<&StepRow>, Missing> {
        self.steps.get(&id).ok_or_else(|| RowKey::Work(WorkKey::Step(id)).into())
    }

    /// The phase of a step, and its place in it, by arithmetic.
    pub fn locate(&self, id: StepId) -> Option<(&PhaseRow, Place)> {
        self.phases.rows().find_map(|phase| phase.place(id).map(|place| (phase, place)))
    }

    /// Writes a step and counts it in its phase.
    pub(crate) fn put_step(&mut self, row: StepRow) {
        let before = self.steps.get(&row.id).flatten();
        if let Some(phase) = self.phases.get_mut(&row.phase_execution_id)
            && let Some(place) = phase.place(row.id)
        {
            phase.count(place.ordinal, before, &row);
        }
        self.steps.put(row.id, row);
    }

    /// A step of a rollback.
    ///
    /// # Errors
    /// When it is not loaded.
    pub fn rollback(&self, origin: Origin, index: u32) -> Result<Option<&RollbackRow>, Missing> {
        self.rollbacks.get(&(origin, index)).ok_or_else(|| WorkKey::Rollback(origin, index).missing())
    }

    pub(crate) fn put_rollback(&mut self, origin: Origin, row: RollbackRow) {
        self.rollbacks.put((origin, row.work.step_index), row);
    }

    /// A step of a removal.
    ///
    /// # Errors
    /// When it is not loaded.
    pub fn removal(&self, member: MemberId, index: u32) -> Result<Option<&RemovalRow>, Missing> {
        self.removals.get(&(member, index)).ok_or_else(|| WorkKey::Removal(member, index).missing())
    }

    pub(crate) fn put_removal(&mut self, row: RemovalRow) {
        self.removals.put((row.batch_member_id, row.work.step_index), row);
    }

    /// A piece of work of any kind.
    ///
    /// # Errors
    /// When it is not loaded.
    pub fn work(&self, key: WorkKey) -> Result<Option<&Work>, Missing> {
        Ok(match key {
            WorkKey::Step(id) => self.step(id)?.map(|row| &row.work),
            WorkKey::Init(id) => self.init(id).map(|row| &row.work),
            WorkKey::Rollback(origin, index) => self.rollback(origin, index)?.map(|row| &row.work),
            WorkKey::Removal(member, index) => self.removal(member, index)?.map(|row| &row.work),
        })
    }

    /// Writes a piece of work that exists.
    pub(crate) fn put_work(&mut self, key: WorkKey, work: Work) -> Result<(), Missing> {
        match key {
            WorkKey::Step(id) => {
                if let Some(row) = self.step(id)? {
                    let row = StepRow { work, ..row.clone() };
                    self.put_step(row);
                }
            }
            WorkKey::Init(id) => {
                if let Some(row) = self.inits.get_mut(&id) {
                    row.work = work;
                }
            }
            WorkKey::Rollback(origin, index) => {
                if let Some(row) = self.rollbacks.get_mut(&(origin, index)) {
                    row.work = work;
                }
            }
            WorkKey::Removal(member, index) => {
                if let Some(row) = self.removals.get_mut(&(member, index)) {
                    row.work = work;
                }
            }
        }
        Ok(())
    }
}

impl WorkKey {
    fn missing(self) -> Missing {
        RowKey::Work(self).into()
    }
}
