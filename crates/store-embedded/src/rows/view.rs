//! All rows of one moment, which nothing changes any more: those of a checkpoint, or of a checkpoint and the log beyond it.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::RowError;
use crate::rows::checkpoint_meta::CheckpointMeta;
use crate::rows::keys::{self, Key};
use crate::rows::layers::Rows;
use crate::rows::tables::Tables;

/// Most rows that a walk has in memory at a time.
const CHUNK_ROWS: usize = 256;

/// The same in bytes; one row may have more.
const CHUNK_BYTES: usize = 1024 * 1024;

/// The rows of one moment.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) rows: Rows,
    pub(crate) meta: CheckpointMeta,
}

impl View {
    /// The rows that the tables have now.
    pub(crate) fn of(tables: Tables) -> Arc<Self> {
        let Tables { rows, meta, .. } = tables;
        Arc::new(View { rows, meta })
    }

    /// Rows whose keys start with `prefix`, in key order.
    pub(crate) fn walk(self: &Arc<Self>, prefix: &[u8]) -> ViewWalk {
        let prefix = Key::from_slice(prefix);
        let after = Some(Bound::Included(prefix.clone()));
        ViewWalk { view: Some(Arc::clone(self)), prefix, after, chunk: VecDeque::new() }
    }

    /// The last key that starts with `prefix`, which is not one of a queue.
    pub(crate) fn last_key(&self, prefix: &[u8]) -> Result<Option<Key>, RowError> {
        // No key is as short as what lies behind a prefix.
        keys::behind(prefix).map_or(Ok(None), |behind| self.rows.last_up_to(prefix, &behind))
    }
}

/// A walk over rows. It holds on to the view, and to a few rows of it.
#[derive(Debug)]
pub(crate) struct ViewWalk {
    view: Option<Arc<View>>,
    prefix: Key,
    /// Where the next chunk starts; `None` when there is none.
    after: Option<Bound<Key>>,
    chunk: VecDeque<(Key, Bytes)>,
}

impl ViewWalk {
    /// A walk over nothing.
    pub(crate) fn nowhere() -> Self {
        ViewWalk { view: None, prefix: Key::default(), after: None, chunk: VecDeque::new() }
    }

    fn read_chunk(&mut self) -> Result<(), RowError> {
        let (Some(view), Some(start)) = (&self.view, self.after.take()) else { return Ok(()) };
        let mut bytes = 0;
        for row in view.rows.scan_from(&self.prefix, start.as_ref().map(Key::as_slice))? {
            let (key, value) = row?;
            bytes += key.len() + value.len();
            self.chunk.push_back((key, value));
            if self.chunk.len() >= CHUNK_ROWS || bytes >= CHUNK_BYTES {
                self.after = self.chunk.back().map(|(key, _)| Bound::Excluded(key.clone()));
                break;
            }
        }
        Ok(())
    }
}

impl Iterator for ViewWalk {
    type Item = Result<(Key, Bytes), RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.chunk.is_empty()
            && let Err(error) = self.read_chunk()
        {
            // What is behind a row that cannot be read is not looked for.
            self.chunk.clear();
            return Some(Err(error));
        }
        self.chunk.pop_front().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::disk::directory::Directory;
    use crate::disk::files::Files;
    use crate::disk::full_disk::FullDisk;
    use crate::rows::base::Base;
    use crate::rows::keys::Table;

    #[test]
    fn a_walk_meets_every_row_of_all_layers_once_and_in_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let files: Arc<dyn Files> = Arc::new(Directory::new(directory.path()).expect("an empty directory"));
        let base = Base::open(&files, &FullDisk::new(Duration::ZERO)).expect("a new state");
        let mut tables = Tables::new(base.snapshot().expect("rows")).expect("no meta row");
        let total = 3 * CHUNK_ROWS as u64;
        for id in (0..total).filter(|id| id % 2 == 0) {
            tables.put(keys::queued(Table::WorkerQueue, id), Bytes::from_static(b"base"));
            tables.put(keys::instance(&format!("{id:06}")), Bytes::from_static(b"base"));
        }
        let changes = tables.rows.freeze();
        base.write(&changes, &[]).expect("room");
        tables.rows.thaw(base.snapshot().expect("rows"));
        for id in (0..total).filter(|id| id % 2 == 1) {
            tables.put(keys::queued(Table::WorkerQueue, id), vec![1; 20_000].into());
            tables.put(keys::instance(&format!("{id:06}")), Bytes::from_static(b"over it"));
        }
        tables.delete(keys::instance("000000"));
        let view = View::of(tables);
        let keys_of =
            |prefix: &[u8]| -> Vec<Key> { view.walk(prefix).map(|row| row.expect("a row").0).collect() };
        let queued: Vec<Key> = (0..total).map(|id| keys::queued(Table::WorkerQueue, id)).collect();
        assert_eq!(keys_of(&keys::table(Table::WorkerQueue)), queued);
        let instances: Vec<Key> = (1..total).map(|id| keys::instance(&format!("{id:06}"))).collect();
        assert_eq!(keys_of(&keys::table(Table::Instances)), instances);
        let last = view.last_key(&keys::table(Table::Instances)).expect("rows");
        assert_eq!(last.as_ref(), instances.last());
        assert_eq!(view.walk(&keys::table(Table::Events)).count(), 0);
        assert_eq!(ViewWalk::nowhere().count(), 0);
    }
}
