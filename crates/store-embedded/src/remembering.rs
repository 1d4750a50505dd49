//! The rows of a checkpoint, with those in mind that were read last. A turn asks for the row of its instance when it is
//! fetched and again when it is committed, and a start, a watch and a first turn ask in vain: each but the first is
//! answered without a walk through the tree.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;

use crate::base::Snapshot;
use crate::error::RowError;
use crate::keys::Key;

/// Most rows that are remembered: a few for each turn that is under way.
const MAX_ROWS: usize = 2_048;

/// Longer rows are read again.
const MAX_ROW_BYTES: usize = 2 * 1024;

/// The rows of a checkpoint and the last answers about them.
#[derive(Debug)]
pub struct Remembering {
    snapshot: Arc<Snapshot>,
    /// What was found under a key. A checkpoint does not change, so it stays true.
    answers: RefCell<HashMap<Key, Option<Bytes>>>,
}

impl Remembering {
    pub fn new(snapshot: Snapshot) -> Self {
        Remembering { snapshot: Arc::new(snapshot), answers: RefCell::default() }
    }

    /// All rows, for reading many of them.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// One row.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>, RowError> {
        if let Some(answer) = self.answers.borrow().get(key) {
            return Ok(answer.clone());
        }
        let answer = self.snapshot.get(key)?;
        if answer.as_ref().is_none_or(|row| row.len() <= MAX_ROW_BYTES) {
            let mut answers = self.answers.borrow_mut();
            // What is forgotten too early is only read once more.
            if answers.len() >= MAX_ROWS {
                answers.clear();
            }
            answers.insert(Key::from_slice(key), answer.clone());
        }
        Ok(answer)
    }
}
