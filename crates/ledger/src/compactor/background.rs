//! Work beside folding: deleting what no manifest names any more, the pointer copy, and merges. All
//! of it ends with the compactor.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use object_store::path::Path;
use tokio::task::JoinSet;

use super::limits::DELETIONS;
use super::merge::{Merge, Merged, Shelves, merge};
use crate::manifest::{Manifest, Manifests};
use crate::objects::limits::CONCURRENT_CALLS;
use crate::objects::{Objects, StorageError};

/// Tasks beside folding.
pub(super) struct Background {
    tasks: JoinSet<()>,
    merges: JoinSet<Result<Merged, StorageError>>,
    doomed: VecDeque<Doomed>,
    /// Manifests to be deleted, and the task that deletes some of them: one at a time, the oldest
    /// first, and no further after a failure. So those that are left never have a gap.
    manifests: VecDeque<Doomed>,
    manifest_task: JoinSet<bool>,
    /// The newest manifest that the pointer copy does not have yet, and whether a task is at it.
    pointer: Arc<Mutex<(Option<Manifest>, bool)>>,
}

/// An object that is deleted when its grace period is over.
#[derive(Debug)]
pub(super) struct Doomed {
    pub(super) due_ms: u64,
    pub(super) objects: Objects,
    pub(super) path: Path,
}

impl Background {
    pub(super) fn new() -> Self {
        Background {
            tasks: JoinSet::new(),
            merges: JoinSet::new(),
            doomed: VecDeque::new(),
            manifests: VecDeque::new(),
            manifest_task: JoinSet::new(),
            pointer: Arc::default(),
        }
    }

    /// Deletes an object later.
    pub(super) fn doom(&mut self, doomed: Doomed) {
        self.doomed.push_back(doomed);
    }

    /// Deletes a manifest later; the caller passes them in the order of their numbers.
    pub(super) fn doom_manifest(&mut self, doomed: Doomed) {
        self.manifests.push_back(doomed);
    }

    /// Deletes an object as soon as possible.
    pub(super) fn doom_now(&mut self, doomed: Doomed) {
        self.doomed.push_front(doomed);
    }

    /// Forgets all deletions; the next sweep finds what has to go.
    pub(super) fn spare_all(&mut self) {
        self.doomed.clear();
        self.manifests.clear();
    }

    /// When the next deletion is due.
    pub(super) fn next_deletion_ms(&self) -> Option<u64> {
        let fronts = [self.doomed.front(), self.manifests.front()];
        fronts.into_iter().flatten().map(|doomed| doomed.due_ms).min()
    }

    /// Starts the deletions that are due. One that fails is tried again by the next sweep.
    pub(super) fn delete_due(&mut self, now_ms: u64) {
        while let Some(Ok(())) = self.tasks.try_join_next() {}
        let due: Vec<Doomed> = drain_due(&mut self.doomed, now_ms);
        if !due.is_empty() {
            self.tasks.spawn(async move {
                let due = futures_util::stream::iter(due);
                let delete = async |doomed| {
                    delete(doomed).await;
                };
                due.for_each_concurrent(CONCURRENT_CALLS, delete).await;
            });
        }
        self.delete_due_manifests(now_ms);
    }

    fn delete_due_manifests(&mut self, now_ms: u64) {
        if matches!(self.manifest_task.try_join_next(), Some(Ok(false) | Err(_))) {
            // The next opening lists them.
            self.manifests.clear();
        }
        if !self.manifest_task.is_empty() {
            return;
        }
        let due = drain_due(&mut self.manifests, now_ms);
        if !due.is_empty() {
            self.manifest_task.spawn(async move {
                for doomed in due {
                    if !delete(doomed).await {
                        return false;
                    }
                }
                true
            });
        }
    }

    /// Copies a manifest to the fixed name; of several that wait only the newest is copied.
    pub(super) fn point_to(&mut self, manifests: &Manifests, manifest: &Manifest) {
        let mut pointer = self.pointer.lock().unwrap_or_else(PoisonError::into_inner);
        pointer.0 = Some(manifest.clone());
        if std::mem::replace(&mut pointer.1, true) {
            return;
        }
        drop(pointer);
        let (manifests, pointer) = (manifests.clone(), Arc::clone(&self.pointer));
        self.tasks.spawn(async move {
            while let Some(manifest) = next(&pointer) {
                if let Err(error) = manifests.point_to(&manifest).await {
                    // Readers take it as a hint and find the newest manifest without it.
                    tracing::warn!(%error, "the pointer copy of the manifest could not be written");
                }
            }
        });
    }

    /// Whether merges are under way.
    pub(super) fn is_merging(&self) -> bool {
        !self.merges.is_empty()
    }

    /// Starts a merge on a thread for blocking work, because decoding and encoding take the
    /// processor.
    pub(super) fn start(&mut self, shelves: Shelves, job: Merge) {
        let runtime = tokio::runtime::Handle::current();
        self.merges.spawn_blocking(move || runtime.block_on(merge(shelves, job)));
    }

    /// A merge that has ended.
    pub(super) fn ended_merge(&mut self) -> Option<Merged> {
        loop {
            if let Some(merged) = note(self.merges.try_join_next()?) {
                return Some(merged);
            }
        }
    }

    /// Waits until a merge ends.
    pub(super) async fn merged(&mut self) -> Option<Merged> {
        note(self.merges.join_next().await?)
    }

    /// Waits until deletions and the pointer copy are done.
    pub(super) async fn settle(&mut self) {
        while self.tasks.join_next().await.is_some() {}
        if matches!(self.manifest_task.join_next().await, Some(Ok(false) | Err(_))) {
            self.manifests.clear();
        }
    }
}

fn drain_due(doomed: &mut VecDeque<Doomed>, now_ms: u64) -> Vec<Doomed> {
    let due = doomed.iter().take(DELETIONS).take_while(|doomed| doomed.due_ms <= now_ms).count();
    doomed.drain(..due).collect()
}

fn note(ended: Result<Result<Merged, StorageError>, tokio::task::JoinError>) -> Option<Merged> {
    match ended {
        Ok(Ok(merged)) => Some(merged),
        // It is planned again.
        Ok(Err(error)) => {
            tracing::warn!(%error, "a merge of ledger files failed");
            None
        }
        Err(_) => None,
    }
}

fn next(pointer: &Mutex<(Option<Manifest>, bool)>) -> Option<Manifest> {
    let mut pointer = pointer.lock().unwrap_or_else(PoisonError::into_inner);
    pointer.1 = pointer.0.is_some();
    pointer.0.take()
}

/// Deletes an object; false if it may still be there.
async fn delete(doomed: Doomed) -> bool {
    let deleted = doomed.objects.delete(&doomed.path).await;
    if let Err(error) = &deleted {
        tracing::warn!(%error, "an object that no manifest names could not be deleted");
    }
    deleted.is_ok()
}
