//! Files that no manifest names: left behind by a crash between writing them and the manifest, or
//! by a deletion that failed.

use std::collections::BTreeSet;

use object_store::path::Path;
use segno::store::ErrorKind;

use super::background::Doomed;
use super::compactor::Compactor;
use super::limits::ORPHAN_AGE_MS;
use super::projection::Projection;
use crate::log::EVENTS;
use crate::objects::StorageError;

impl<P: Projection> Compactor<P> {
    /// Deletes files that no manifest names and that are so old that no compactor can still be
    /// about to name them. It lists everything, so it is for the start of a node and for once a
    /// day.
    ///
    /// # Errors
    /// `Unavailable`, or those of reading the newest manifest.
    pub async fn sweep(&mut self) -> Result<usize, StorageError> {
        self.reload().await?;
        let shelves = self.context.shelves.clone();
        let named = self.named();
        let now_ms = self.context.clock.now_ms().cast_signed();
        let folders = [
            (&shelves.state, shelves.paths.state()),
            (&shelves.state, shelves.paths.parts()),
            (&shelves.ledger, shelves.paths.segments()),
        ];
        let mut doomed = 0;
        for (objects, folder) in folders {
            for listed in objects.list(&folder).await? {
                let is_old = now_ms.saturating_sub(listed.written_at_ms) > ORPHAN_AGE_MS.cast_signed();
                if is_old && !named.contains(&listed.path) {
                    let objects = objects.clone();
                    self.background.doom_now(Doomed { due_ms: 0, objects, path: listed.path });
                    doomed += 1;
                }
            }
        }
        // A newer manifest could name what this one does not: only the newest one may decide.
        let newest = self.context.manifests.newest(self.published.manifest_id).await?;
        if newest.is_some_and(|newest| newest.revision_ulid != self.published.revision_ulid) {
            self.is_stale = true;
            self.background.spare_all();
            let problem = "another compactor has published; nothing was deleted";
            return Err(StorageError::new(ErrorKind::Conflict, shelves.paths.manifests(), problem));
        }
        self.background.delete_due(self.context.clock.now_ms());
        self.background.settle().await;
        Ok(doomed)
    }

    /// Everything that the newest manifest names.
    fn named(&self) -> BTreeSet<Path> {
        let paths = &self.context.shelves.paths;
        let files = self.catalog.files().map(|(table, file)| match table {
            EVENTS => paths.segment(&file.path),
            _ => paths.state_file(&file.path),
        });
        let base = self.published.base_snapshot.as_ref().map(|base| &base.part);
        let parts = base.into_iter().chain(&self.published.history).chain(self.catalog.month_parts.values());
        files.chain(parts.map(|part| paths.part(&part.path))).collect()
    }
}
