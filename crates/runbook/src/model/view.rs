//! Looking at the committed rows of a model.

use super::Model;
use crate::rows::{
    BatchRow, InitRow, MemberRow, PhaseRow, RemovalRow, RollbackRow, Row, RowKey, StepRow, Table,
};
use crate::step::{Effect, Explanation, explain};

impl Model {
    /// All rows, by key.
    pub fn rows(&self) -> impl Iterator<Item = (&RowKey, &Row)> {
        self.store.iter()
    }

    /// The batch.
    pub fn batch(&self) -> &BatchRow {
        match self.store.get(&RowKey::Batch) {
            Some(Row::Batch(row)) => row,
            _ => unreachable!("the batch was created"),
        }
    }

    /// Whether the batch was created.
    pub fn has_batch(&self) -> bool {
        self.store.contains_key(&RowKey::Batch)
    }

    fn of_table(&self, table: Table) -> impl Iterator<Item = &Row> {
        self.store.iter().filter(move |(key, _)| key.table() == table).map(|(_, row)| row)
    }

    /// The members, by id.
    pub fn members(&self) -> impl Iterator<Item = &MemberRow> {
        self.of_table(Table::BatchMembers).filter_map(|row| match row {
            Row::Member(row) => Some(row),
            _ => None,
        })
    }

    /// The phases, in order.
    pub fn phases(&self) -> impl Iterator<Item = &PhaseRow> {
        self.of_table(Table::PhaseExecutions).filter_map(|row| match row {
            Row::Phase(row) => Some(row),
            _ => None,
        })
    }

    /// The steps, by id.
    pub fn steps(&self) -> impl Iterator<Item = &StepRow> {
        self.of_table(Table::StepExecutions).filter_map(|row| match row {
            Row::Step(row) => Some(row),
            _ => None,
        })
    }

    /// The init steps, in order.
    pub fn inits(&self) -> impl Iterator<Item = &InitRow> {
        self.of_table(Table::InitExecutions).filter_map(|row| match row {
            Row::Init(row) => Some(row),
            _ => None,
        })
    }

    /// The rollback steps, by failed step and index.
    pub fn rollbacks(&self) -> impl Iterator<Item = &RollbackRow> {
        self.of_table(Table::RollbackExecutions).filter_map(|row| match row {
            Row::Rollback(row) => Some(row),
            _ => None,
        })
    }

    /// The removal steps, by member and index.
    pub fn removals(&self) -> impl Iterator<Item = &RemovalRow> {
        self.of_table(Table::RemovalExecutions).filter_map(|row| match row {
            Row::Removal(row) => Some(row),
            _ => None,
        })
    }

    /// The member with a key.
    pub fn member(&self, key: &str) -> &MemberRow {
        let found = self.members().find(|member| member.member_key == key);
        found.unwrap_or_else(|| unreachable!("there is no member {key:?}"))
    }

    /// The newest phase with a name.
    pub fn phase(&self, name: &str) -> &PhaseRow {
        let found = self.phases().filter(|phase| phase.phase_name == name).last();
        found.unwrap_or_else(|| unreachable!("there is no phase {name:?}"))
    }

    /// The step of a member in the newest phase that has one of the name.
    pub fn step(&self, member: &str, step: &str) -> &StepRow {
        let id = self.member(member).id;
        let found = self.steps().filter(|row| row.batch_member_id == id && row.work.step_name == step).last();
        found.unwrap_or_else(|| unreachable!("member {member:?} has no step {step:?}"))
    }

    /// Ids of all jobs that were sent, in order.
    pub fn jobs(&self) -> Vec<&str> {
        fn job_id(effect: &Effect) -> Option<&str> {
            match effect {
                Effect::Dispatch(dispatch) => Some(&dispatch.job_id),
                _ => None,
            }
        }
        self.effects.iter().filter_map(job_id).collect()
    }

    /// Explains a row.
    pub fn explain(&mut self, key: &RowKey) -> Explanation {
        let mut rows = self.open();
        loop {
            match explain(&mut rows, key, &self.context()) {
                Ok(explanation) => return explanation,
                Err(missing) => self.load(&mut rows, &missing.0),
            }
        }
    }
}
