//! Tables, keys of rows, and rows of any table.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::batch::BatchRow;
use super::ids::{InitId, MemberId, PhaseId, StepId};
use super::init::InitRow;
use super::member::{MemberKeyRow, MemberRow};
use super::phase::PhaseRow;
use super::removal::RemovalRow;
use super::rollback::{Origin, RollbackRow};
use super::step::StepRow;

/// A kind of row. The names are those of the seed's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// `batches`
    Batches,
    /// `batch_members`
    BatchMembers,
    /// `member_keys`
    MemberKeys,
    /// `phase_executions`
    PhaseExecutions,
    /// `step_executions`
    StepExecutions,
    /// `init_executions`
    InitExecutions,
    /// `rollback_executions`
    RollbackExecutions,
    /// `removal_executions`
    RemovalExecutions,
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 8] = [
        Table::Batches,
        Table::BatchMembers,
        Table::MemberKeys,
        Table::PhaseExecutions,
        Table::StepExecutions,
        Table::InitExecutions,
        Table::RollbackExecutions,
        Table::RemovalExecutions,
    ];

    /// The kind of its records.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Batches => "batches",
            Table::BatchMembers => "batch_members",
            Table::MemberKeys => "member_keys",
            Table::PhaseExecutions => "phase_executions",
            Table::StepExecutions => "step_executions",
            Table::InitExecutions => "init_executions",
            Table::RollbackExecutions => "rollback_executions",
            Table::RemovalExecutions => "removal_executions",
        }
    }
}

/// A piece of work: a row of one of the four tables that have jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkKey {
    /// A step of a phase.
    Step(StepId),
    /// An init step.
    Init(InitId),
    /// A step of a rollback: the failed step and the index.
    Rollback(Origin, u32),
    /// A step of a removal: the member and the index.
    Removal(MemberId, u32),
}

/// A row within its batch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKey {
    /// The batch.
    Batch,
    /// A member.
    Member(MemberId),
    /// A member's key, in small letters.
    MemberKey(String),
    /// A phase.
    Phase(PhaseId),
    /// A piece of work.
    Work(WorkKey),
}

impl From<WorkKey> for RowKey {
    fn from(key: WorkKey) -> Self {
        RowKey::Work(key)
    }
}

impl RowKey {
    /// The table.
    pub fn table(&self) -> Table {
        match self {
            RowKey::Batch => Table::Batches,
            RowKey::Member(_) => Table::BatchMembers,
            RowKey::MemberKey(_) => Table::MemberKeys,
            RowKey::Phase(_) => Table::PhaseExecutions,
            RowKey::Work(WorkKey::Step(_)) => Table::StepExecutions,
            RowKey::Work(WorkKey::Init(_)) => Table::InitExecutions,
            RowKey::Work(WorkKey::Rollback(..)) => Table::RollbackExecutions,
            RowKey::Work(WorkKey::Removal(..)) => Table::RemovalExecutions,
        }
    }

    /// The last part of the record's id: numbers in 20 digits, so that they sort. The batch's own row
    /// has none, because its id is the batch's.
    pub fn record_id(&self) -> String {
        match self {
            RowKey::Batch => String::new(),
            RowKey::Member(MemberId(id)) => format!("{id:020}"),
            RowKey::MemberKey(key) => key.clone(),
            RowKey::Phase(PhaseId(id)) => format!("{id:020}"),
            RowKey::Work(WorkKey::Step(StepId(id))) => format!("{id:020}"),
            RowKey::Work(WorkKey::Init(InitId(id))) => format!("{id:020}"),
            RowKey::Work(WorkKey::Rollback(Origin::Step(StepId(id)), index)) => {
                format!("step-{id:020}-{index:04}")
            }
            RowKey::Work(WorkKey::Rollback(Origin::Init(InitId(id)), index)) => {
                format!("init-{id:020}-{index:04}")
            }
            RowKey::Work(WorkKey::Removal(MemberId(id), index)) => format!("{id:020}-{index:04}"),
        }
    }

    /// Reads what [`RowKey::record_id`] wrote.
    pub fn parse(table: Table, record_id: &str) -> Option<Self> {
        let number = |text: &str| text.parse::<u64>().ok();
        let indexed = |text: &str| {
            let (id, index) = text.split_once('-')?;
            Some((id.parse::<u64>().ok()?, index.parse::<u32>().ok()?))
        };
        Some(match table {
            Table::Batches => record_id.is_empty().then_some(RowKey::Batch)?,
            Table::BatchMembers => RowKey::Member(MemberId(number(record_id)?)),
            Table::MemberKeys => RowKey::MemberKey(record_id.to_owned()),
            Table::PhaseExecutions => RowKey::Phase(PhaseId(number(record_id)?)),
            Table::StepExecutions => WorkKey::Step(StepId(number(record_id)?)).into(),
            Table::InitExecutions => WorkKey::Init(InitId(number(record_id)?)).into(),
            Table::RollbackExecutions => {
                let (origin, rest) = record_id.split_once('-')?;
                let (id, index) = indexed(rest)?;
                let origin = match origin {
                    "step" => Origin::Step(StepId(id)),
                    "init" => Origin::Init(InitId(id)),
                    _ => return None,
                };
                WorkKey::Rollback(origin, index).into()
            }
            Table::RemovalExecutions => {
                let (id, index) = indexed(record_id)?;
                WorkKey::Removal(MemberId(id), index).into()
            }
        })
    }
}

impl fmt::Display for RowKey {
    /// As people read it: `step 1042`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowKey::Batch => f.write_str("batch"),
            RowKey::Member(id) => write!(f, "member {id}"),
            RowKey::MemberKey(key) => write!(f, "member key {key:?}"),
            RowKey::Phase(id) => write!(f, "phase {id}"),
            RowKey::Work(WorkKey::Step(id)) => write!(f, "step {id}"),
            RowKey::Work(WorkKey::Init(id)) => write!(f, "init step {id}"),
            RowKey::Work(WorkKey::Rollback(Origin::Step(id), index)) => {
                write!(f, "rollback step {index} of step {id}")
            }
            RowKey::Work(WorkKey::Rollback(Origin::Init(id), index)) => {
                write!(f, "rollback step {index} of init step {id}")
            }
            RowKey::Work(WorkKey::Removal(id, index)) => write!(f, "removal step {index} of member {id}"),
        }
    }
}

/// A row of any table.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// Of `batches`.
    Batch(BatchRow),
    /// Of `batch_members`.
    Member(MemberRow),
    /// Of `member_keys`.
    MemberKey(MemberKeyRow),
    /// Of `phase_executions`.
    Phase(PhaseRow),
    /// Of `step_executions`.
    Step(StepRow),
    /// Of `init_executions`.
    Init(InitRow),
    /// Of `rollback_executions`.
    Rollback(RollbackRow),
    /// Of `removal_executions`.
    Removal(RemovalRow),
}

impl Row {
    /// The earliest time at which the row has to be looked at. Its record is due then.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self {
            Row::Batch(row) => row.due_at(),
            Row::Member(_) | Row::MemberKey(_) => None,
            Row::Phase(row) => row.wakes_at(),
            Row::Step(row) => row.due_at(),
            Row::Init(row) => row.due_at(),
            Row::Rollback(row) => row.due_at(),
            Row::Removal(row) => row.due_at(),
        }
    }

    /// The body of its record.
    ///
    /// # Errors
    /// None that is known: all keys are texts and all numbers are finite.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        match self {
            Row::Batch(row) => serde_json::to_vec(row),
            Row::Member(row) => serde_json::to_vec(row),
            Row::MemberKey(row) => serde_json::to_vec(row),
            Row::Phase(row) => serde_json::to_vec(row),
            Row::Step(row) => serde_json::to_vec(row),
            Row::Init(row) => serde_json::to_vec(row),
            Row::Rollback(row) => serde_json::to_vec(row),
            Row::Removal(row) => serde_json::to_vec(row),
        }
    }

    /// Reads the body of a record.
    ///
    /// # Errors
    /// When it is not a row of the table.
    pub fn decode(table: Table, body: &[u8]) -> Result<Self, serde_json::Error> {
        Ok(match table {
            Table::Batches => Row::Batch(serde_json::from_slice(body)?),
            Table::BatchMembers => Row::Member(serde_json::from_slice(body)?),
            Table::MemberKeys => Row::MemberKey(serde_json::from_slice(body)?),
            Table::PhaseExecutions => Row::Phase(serde_json::from_slice(body)?),
            Table::StepExecutions => Row::Step(serde_json::from_slice(body)?),
            Table::InitExecutions => Row::Init(serde_json::from_slice(body)?),
            Table::RollbackExecutions => Row::Rollback(serde_json::from_slice(body)?),
            Table::RemovalExecutions => Row::Removal(serde_json::from_slice(body)?),
        })
    }

    /// The row's key. `None` for a rollback step that names no origin, which is a broken record.
    pub fn key(&self) -> Option<RowKey> {
        Some(match self {
            Row::Batch(_) => RowKey::Batch,
            Row::Member(row) => RowKey::Member(row.id),
            Row::MemberKey(row) => RowKey::MemberKey(row.key.clone()),
            Row::Phase(row) => RowKey::Phase(row.id),
            Row::Step(row) => WorkKey::Step(row.id).into(),
            Row::Init(row) => WorkKey::Init(row.id).into(),
            Row::Rollback(row) => WorkKey::Rollback(row.origin()?, row.work.step_index).into(),
            Row::Removal(row) => WorkKey::Removal(row.batch_member_id, row.work.step_index).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_ids_are_read_back_and_sort_by_number() {
        let keys: Vec<RowKey> = vec![
            RowKey::Batch,
            RowKey::Member(MemberId(501)),
            RowKey::MemberKey("a/b-c@contoso.com".to_owned()),
            RowKey::Phase(PhaseId(108)),
            WorkKey::Step(StepId(1_042)).into(),
            WorkKey::Init(InitId(7)).into(),
            WorkKey::Rollback(Origin::Step(StepId(1_042)), 3).into(),
            WorkKey::Rollback(Origin::Init(InitId(7)), 0).into(),
            WorkKey::Removal(MemberId(501), 1).into(),
        ];
        for key in keys {
            assert_eq!(RowKey::parse(key.table(), &key.record_id()), Some(key));
        }
        let of = |id| RowKey::from(WorkKey::Step(StepId(id))).record_id();
        assert!(of(9) < of(10) && of(999) < of(u64::MAX));
        assert_eq!(of(1_042), "00000000000000001042");
    }
}
