//! The counts of all nodes, summed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use segno::store::{ListRecords, ProviderError, QueueDepths, Store};
use serde::{Deserialize, Serialize};

use super::collector::Collector;
use super::minute::MinuteCounts;
use super::{KEPT_MINUTES, KIND, QUEUES_KIND, minute_id};

/// Records that are read at once.
const PAGE: usize = 64;

/// Most records that one call reads: a day of 13 nodes that all count for the tenant in every
/// minute.
const MAX_READ: usize = 20_000;

/// How long the queues of the store were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSample {
    /// The minute, counted from 1970.
    pub minute: u64,
    /// Turns that wait for a node.
    pub orchestrator: u64,
    /// Activities that wait for a worker.
    pub worker: u64,
    /// What is not due yet, of both.
    pub delayed: u64,
    /// What is worked on.
    pub locked: u64,
}

impl QueueSample {
    /// The lengths in a minute.
    pub fn of(minute: u64, depths: QueueDepths) -> Self {
        QueueSample {
            minute,
            orchestrator: depths.orchestrator_queue,
            worker: depths.worker_queue,
            delayed: depths.delayed(),
            locked: depths.locked,
        }
    }

    /// Whether nothing is in the queues.
    pub fn is_empty(&self) -> bool {
        QueueSample { minute: 0, ..*self } == QueueSample::default()
    }
}

/// The counts of a tenant by minute, of all processes, and whether all could be read. Minutes
/// without an event are left out.
///
/// # Errors
/// When the store is away.
pub async fn read_minutes(
    store: &dyn Store,
    own: &Collector,
    prefix: &str,
    minutes: RangeInclusive<u64>,
) -> Result<(BTreeMap<u64, MinuteCounts>, bool), ProviderError> {
    let mut found: BTreeMap<u64, MinuteCounts> = BTreeMap::new();
    // What this process has counted is newer in memory than in its record.
    let unfinished = own.unfinished(prefix);
    for (minute, counts) in unfinished.values().filter(|(minute, _)| minutes.contains(minute)) {
        found.entry(*minute).or_default().merge(counts);
    }
    // Ids go on with a slash behind the minute, and none is the minute alone.
    let mut after = format!("{prefix}{}", minute_id(*minutes.start()));
    let (mut read, mut is_whole) = (0, true);
    loop {
        let request =
            ListRecords { kind: KIND, id_prefix: prefix, after_id: Some(after.as_str()), limit: PAGE };
        let page = store.list_records_around_damage(request).await?;
        is_whole &= page.damaged.is_empty();
        for record in &page.records {
            let rest = record.id.get(prefix.len()..).unwrap_or_default();
            let minute = rest.split_once('/').and_then(|(minute, _)| minute.parse::<u64>().ok());
            let Some(minute) = minute else { continue };
            if minute > *minutes.end() {
                return Ok((found, is_whole));
            }
            if unfinished.contains_key(&record.id) {
                continue;
            }
            match serde_json::from_slice::<MinuteCounts>(&record.body) {
                Ok(counts) => found.entry(minute).or_default().merge(&counts),
                Err(_) => is_whole = false,
            }
        }
        read += page.records.len();
        match page.records.last() {
            Some(last) if page.records.len() == PAGE => after.clone_from(&last.id),
            _ => return Ok((found, is_whole)),
        }
        if read >= MAX_READ {
            return Ok((found, false));
        }
        // A store in this process answers without a pause.
        tokio::task::yield_now().await;
    }
}

/// How long the queues of the store were, by minute. Minutes in which they were empty may be left
/// out.
///
/// # Errors
/// When the store is away.
pub async fn read_queues(
    store: &dyn Store,
    minutes: RangeInclusive<u64>,
) -> Result<Vec<QueueSample>, ProviderError> {
    let before = minutes.start().checked_sub(1).map(minute_id);
    let limit = usize::try_from(KEPT_MINUTES).unwrap_or(usize::MAX);
    let request = ListRecords { kind: QUEUES_KIND, id_prefix: "", after_id: before.as_deref(), limit };
    let records = store.list_records_around_damage(request).await?.records;
    let samples = records.iter().filter_map(|record| serde_json::from_slice(&record.body).ok());
    Ok(samples.filter(|sample: &QueueSample| minutes.contains(&sample.minute)).collect())
}
