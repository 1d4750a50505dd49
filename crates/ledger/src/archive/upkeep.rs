//! Upkeep: small files of a day are merged into one, days beyond the archive's own retention are removed, and files are indexed.
//!
//! One node at a time does it: it claims the interval with a record. A second one would do no harm, because a file is put before
//! those that it replaces are deleted.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{self, Clock, duration_ms};
use segno::store::{ErrorKind, Expect, RecordBatch, RecordWrite};
use segno_actions::functions::Scope;

use super::erase::Erasures;
use super::file::{ArchivedFile, day_of};
use super::kind::{Group, KINDS, Kind};
use super::limits::MAX_MERGED_BYTES;
use super::store::{ArchiveFault, ArchiveStore};
use super::write::Rows;
use crate::telemetry;

/// Kind of the record by which a node claims an interval.
const CLAIM: &str = "segno.archive-upkeep";

/// Settings of the upkeep.
#[derive(Debug, Clone)]
pub struct UpkeepOptions {
    /// How often it is done.
    pub interval: Duration,
    /// Rows that ended longer ago than this are removed, a day at a time; `None` keeps them for ever.
    pub keep: Option<Duration>,
    /// The same for groups that have a time of their own.
    pub keep_of: BTreeMap<Group, Duration>,
}

impl Default for UpkeepOptions {
    fn default() -> Self {
        UpkeepOptions { interval: Duration::from_secs(24 * 60 * 60), keep: None, keep_of: BTreeMap::new() }
    }
}

/// Merges and removes files of an archive.
pub struct Upkeep {
    archive: ArchiveStore,
    clock: Arc<dyn Clock>,
    options: UpkeepOptions,
}

impl Upkeep {
    /// The upkeep of an archive.
    pub fn new(archive: ArchiveStore, clock: Arc<dyn Clock>, options: UpkeepOptions) -> Self {
        Upkeep { archive, clock, options }
    }

    /// Works until `stopping` resolves.
    pub async fn run(self, stopping: impl Future<Output = ()>) {
        tokio::select! {
            () = self.work() => {}
            () = stopping => {}
        }
    }

    async fn work(&self) {
        loop {
            if let Err(error) = self.turn().await {
                metrics::counter!(telemetry::ARCHIVE_UPKEEP_FAILURES).increment(1);
                tracing::warn!(%error, "files of the archive were not merged; the next interval tries again");
            }
            clock::sleep(&*self.clock, self.options.interval / 10).await;
        }
    }

    /// One look, which does the work if it is due.
    async fn turn(&self) -> Result<(), ArchiveFault> {
        if !self.claim().await? {
            return Ok(());
        }
        let done = self.sweep().await;
        if done.is_err() {
            self.release().await?;
        }
        done
    }

    /// Merges and removes files of all scopes.
    ///
    /// # Errors
    /// Those of the object store and of the store. What was done until then stays done.
    pub async fn sweep(&self) -> Result<(), ArchiveFault> {
        let now_ms = self.archive.inner.records.now_ms().await?;
        let oldest_day = |group: Group| {
            let keep = self.options.keep_of.get(&group).copied().or(self.options.keep)?;
            let oldest_ms = now_ms.saturating_sub(duration_ms(keep));
            Some(day_of(i64::try_from(oldest_ms).unwrap_or(i64::MAX)))
        };
        for scope in self.archive.scopes().await? {
            let erased = self.archive.erasures(&scope).await?;
            // For rows that a node wrote that ended before it could look for erasures.
            self.archive.apply(&scope, &erased).await?;
            for kind in KINDS {
                self.remove_old(&scope, kind, oldest_day(kind.group).as_deref()).await?;
                self.merge(&scope, kind, &erased).await?;
                self.archive.index(&scope, kind).await?;
            }
            self.archive.settle_old_doubts(&scope).await?;
            let now = self.archive.erasures(&scope).await?;
            if now != erased {
                self.archive.apply(&scope, &now).await?;
            }
        }
        Ok(())
    }

    async fn remove_old(
        &self,
        scope: &Scope,
        kind: &'static Kind,
        oldest_day: Option<&str>,
    ) -> Result<(), ArchiveFault> {
        let Some(oldest_day) = oldest_day else { return Ok(()) };
        for file in self.archive.files(scope, kind).await? {
            if file.name.day.as_str() < oldest_day {
                self.archive.inner.objects.delete(&file.path).await?;
                metrics::counter!(telemetry::ARCHIVE_FILES_EXPIRED).increment(1);
            }
        }
        Ok(())
    }

    async fn merge(&self, scope: &Scope, kind: &'static Kind, erased: &Erasures) -> Result<(), ArchiveFault> {
        let mut days: BTreeMap<String, Vec<ArchivedFile>> = BTreeMap::new();
        for file in self.archive.files(scope, kind).await? {
            days.entry(file.name.day.clone()).or_default().push(file);
        }
        for group in days.into_values().flat_map(groups) {
            self.merge_group(scope, kind, &group, erased).await?;
        }
        Ok(())
    }

    async fn merge_group(
        &self,
        scope: &Scope,
        kind: &'static Kind,
        files: &[ArchivedFile],
        erased: &Erasures,
    ) -> Result<(), ArchiveFault> {
        let mut rows = Rows::new();
        for file in files {
            // Another node was faster.
            let Some(found) = self.archive.all_rows(kind, file).await? else { return Ok(()) };
            rows.extend(found);
        }
        rows.retain(|row| !erased.covers(kind, row));
        let merged = self.archive.put(scope, kind, rows).await?;
        for file in files {
            // A file that has all rows of the others is its own merge.
            if !merged.contains(&file.name) {
                self.archive.inner.objects.delete(&file.path).await?;
            }
        }
        metrics::counter!(telemetry::ARCHIVE_FILES_MERGED).increment(files.len() as u64);
        Ok(())
    }

    async fn claim(&self) -> Result<bool, ArchiveFault> {
        let write = RecordWrite::Put {
            kind: CLAIM.to_owned(),
            id: "all".to_owned(),
            expect: Expect::Absent,
            due_at_ms: None,
            // A little less, or the same node would find its own claim every other time.
            time_to_live: Some(self.options.interval / 20 * 19),
            body: bytes::Bytes::new(),
        };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        match self.archive.inner.records.commit_records(batch).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the interval back: the work is not done.
    async fn release(&self) -> Result<(), ArchiveFault> {
        let write =
            RecordWrite::Delete { kind: CLAIM.to_owned(), id: "all".to_owned(), expect: Expect::Anything };
        let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
        self.archive.inner.records.commit_records(batch).await?;
        Ok(())
    }
}

/// Files of one day that are merged together: neighbours by name, several of them, none of them large.
fn groups(files: Vec<ArchivedFile>) -> Vec<Vec<ArchivedFile>> {
    let mut groups: Vec<Vec<ArchivedFile>> = Vec::new();
    let mut bytes = 0;
    for file in files.into_iter().filter(|file| file.bytes < MAX_MERGED_BYTES / 2) {
        match groups.last_mut() {
            Some(group) if bytes + file.bytes <= MAX_MERGED_BYTES => {
                bytes += file.bytes;
                group.push(file);
            }
            _ => {
                bytes = file.bytes;
                groups.push(vec![file]);
            }
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}
