//! Freshness of assets: a record for each asset with `freshness` of a DAG that is to be told about stale ones, due when the asset
//! is stale unless it is made before. It is stale once for each time that it was made.

use std::sync::Arc;
use std::time::Duration;

use segno::clock;
use segno::store::{DueRecords, ErrorKind, Expect, Record, RecordBatch, RecordWrite};
use segno_actions::functions::{HumanDuration, Scope};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::error::DriveError;
use super::holder::{Services, as_time};
use super::notices::{self, Notice};
use super::place::{FRESHNESS, freshness_id, plain, scope_of};
use crate::plan::Parsed;
use crate::plan::definition::NotifyEvent;
use crate::snapshot::{Days, Filter};
use crate::tables::PartitionRow;

/// Longest wait for an asset whose time has come.
const WAIT: Duration = Duration::from_secs(30);

/// Pause when the store or the ledger refuses.
const PAUSE: Duration = Duration::from_secs(1);

/// Records that are looked at one after the other.
const PAGE: usize = 256;

/// How often an asset that is stale is looked at.
const LOOK_AGAIN_MS: u64 = 60_000;

/// An asset that is watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct WatchedAsset {
    dag: String,
    asset: String,
    freshness: HumanDuration,
    /// The function that is told.
    function: String,
    /// Since when it is watched, in Unix milliseconds: an asset that was never made counts from then.
    since_ms: u64,
    /// The time since which it was stale when that was last told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told_ms: Option<u64>,
}

impl WatchedAsset {
    /// The assets of a version that are watched from now on.
    pub(super) fn of(parsed: &Parsed, now_ms: u64) -> Vec<Self> {
        let Some(notify) = &parsed.dag.notify else { return Vec::new() };
        if !notify.on.contains(&NotifyEvent::AssetStale) {
            return Vec::new();
        }
        let watched = parsed.dag.assets.iter().filter_map(|(asset, definition)| {
            Some(WatchedAsset {
                dag: parsed.dag.name.clone(),
                asset: asset.clone(),
                freshness: definition.freshness?,
                function: notify.function.clone(),
                since_ms: now_ms,
                told_ms: None,
            })
        });
        watched.collect()
    }

    /// The id of its record.
    pub(super) fn id(&self, scope: &Scope) -> String {
        freshness_id(scope, &self.dag, &self.asset)
    }

    /// Its record. Without a due time it is not watched.
    pub(super) fn write(&self, scope: &Scope, expect: Expect, due_at_ms: Option<u64>) -> RecordWrite {
        RecordWrite::Put {
            kind: FRESHNESS.to_owned(),
            id: self.id(scope),
            expect,
            due_at_ms,
            time_to_live: None,
            body: serde_json::to_vec(self).expect("it has plain fields").into(),
        }
    }

    /// When it is stale, if it was made last at a time.
    pub(super) fn stale_ms(&self, made_ms: Option<u64>) -> u64 {
        made_ms.unwrap_or(self.since_ms).saturating_add(self.freshness.as_ms())
    }
}

/// Watches assets until the node stops.
pub(super) async fn watch(services: Arc<Services>) {
    loop {
        let request =
            DueRecords { kind: FRESHNESS, id_prefix: "", now_ms: None, limit: PAGE, poll_timeout: WAIT };
        let due = match services.ledger.store().due_records(request).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "assets cannot be watched; trying again");
                clock::sleep(services.ledger.clock(), PAUSE).await;
                continue;
            }
        };
        let mut has_failed = false;
        for record in due {
            if let Err(error) = look(&services, &record).await {
                tracing::warn!(asset = %record.id, %error, "an asset cannot be looked at; trying again");
                has_failed = true;
            }
        }
        if has_failed {
            clock::sleep(services.ledger.clock(), PAUSE).await;
        }
    }
}

/// Looks at an asset whose time has come, and arms its record again.
async fn look(services: &Services, record: &Record) -> Result<(), DriveError> {
    let Some(scope) = scope_of(&record.id) else { return Ok(()) };
    let unreadable = |error: serde_json::Error| DriveError::Unreadable {
        kind: FRESHNESS,
        id: record.id.clone(),
        problem: error.to_string(),
    };
    let mut asset: WatchedAsset = serde_json::from_slice(&record.body).map_err(unreadable)?;
    let store = services.ledger.store();
    let now_ms = store.now_ms().await?;
    let made_ms = made_ms(services, &scope, &asset.asset).await?;
    let stale_ms = asset.stale_ms(made_ms);
    let mut batch = RecordBatch::default();
    let mut due_ms = stale_ms;
    if stale_ms <= now_ms {
        due_ms = now_ms.saturating_add(LOOK_AGAIN_MS);
        if asset.told_ms != Some(stale_ms) {
            let job = format!("stale:{}:{}:{stale_ms}", asset.dag, plain(&asset.asset));
            let input = json!({
                "event": "asset_stale",
                "namespace": scope.namespace.as_str(),
                "tenant": scope.tenant.as_str(),
                "dag": asset.dag,
                "asset": asset.asset,
                "freshness": asset.freshness,
                "last_materialization_at": made_ms.and_then(|at| notices::time(as_time(at))),
                "stale_since": notices::time(as_time(stale_ms)),
            });
            let about = (job.as_str(), asset.function.as_str(), &input);
            if notices::add(services, &mut batch, &scope, about).await? == Notice::Done {
                asset.told_ms = Some(stale_ms);
            }
        }
    }
    batch.writes.push(asset.write(&scope, Expect::Version(record.version), Some(due_ms)));
    match store.commit_records(batch).await {
        // Another node was first, or the DAG was changed.
        Err(error) if error.kind() == ErrorKind::Conflict => Ok(()),
        committed => Ok(committed.map(drop)?),
    }
}

/// When an asset was made last, of all its partitions.
async fn made_ms(services: &Services, scope: &Scope, asset: &str) -> Result<Option<u64>, DriveError> {
    let Some(snapshot) = services.ledger.snapshot(scope).await? else { return Ok(None) };
    let filter = Filter { days: Days::None, key: vec![asset.into()] };
    let rows = snapshot.rows::<PartitionRow>(&filter).await.map_err(DriveError::from)?;
    let newest = rows.iter().filter_map(|row| row.last_materialization_at).max();
    Ok(newest.and_then(|at| u64::try_from(at).ok()))
}
