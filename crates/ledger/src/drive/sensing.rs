//! Polling: sensors that are due are called, a few at a time, and what they return becomes events in the commit that arms the
//! sensor again. A poll that is repeated, because its node died, is the same call; of two nodes one commits.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use segno::clock;
use segno::store::{DueRecords, ErrorKind, Expect, Record};
use segno::{Failure, Payload};
use segno_actions::functions::{FunctionName, HumanDuration, InvokeRequest, Scope};
use serde_json::json;
use tokio::task::JoinSet;

use super::dispatch::once;
use super::error::LedgerError;
use super::holder::{Services, as_time};
use super::limits::{MAX_POLLS, MAX_POLLS_OF_SCOPE, POLL_TIMEOUT};
use super::outbox::WaitingEvent;
use super::place::{SENSORS, scope_of};
use super::post::{Posting, post};
use super::sensor::{Findings, SensorRow};
use super::settler::cut;
use crate::event::{EvalSource, EvalStatus, RunRequested, SensorEvaluated, SensorRunRequest};
use crate::ids::run_id_of_key;
use crate::snapshot::Days;
use crate::tables::SensorStateRow;

/// Longest wait for a sensor that is due.
const WAIT: Duration = Duration::from_secs(30);

/// Pause when the store refuses, and when all that is due is being polled.
const PAUSE: Duration = Duration::from_secs(1);

/// Due records that are read at once: more than one tenant may have, so that it hides no other.
const PAGE: usize = 1_024;

/// The polls of a node that are under way, by the id of the sensor's record.
type Running = Arc<Mutex<HashMap<String, Scope>>>;

/// Polls sensors until the node stops. A poll that is cut off is made again.
pub(super) async fn watch(services: Arc<Services>) {
    let (running, mut polls) = (Running::default(), JoinSet::new());
    loop {
        while polls.try_join_next().is_some() {}
        let request =
            DueRecords { kind: SENSORS, id_prefix: "", now_ms: None, limit: PAGE, poll_timeout: WAIT };
        let due = match services.ledger.store().due_records(request).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "sensors cannot be read; trying again");
                clock::sleep(services.ledger.clock(), PAUSE).await;
                continue;
            }
        };
        let is_idle = due.is_empty();
        let mut begun = 0;
        for record in due {
            let Some(scope) = scope_of(&record.id) else { continue };
            if take(&running, &record.id, &scope) {
                begun += 1;
                polls.spawn(poll_one(Arc::clone(&services), Arc::clone(&running), scope, record));
            }
        }
        if begun == 0 && !is_idle {
            clock::sleep(services.ledger.clock(), PAUSE).await;
        }
    }
}

/// Takes a place for a poll, if there is one for its tenant.
fn take(running: &Running, id: &str, scope: &Scope) -> bool {
    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
    let of_scope = running.values().filter(|other| *other == scope).count();
    if running.len() >= MAX_POLLS || of_scope >= MAX_POLLS_OF_SCOPE || running.contains_key(id) {
        return false;
    }
    running.insert(id.to_owned(), scope.clone());
    true
}

async fn poll_one(services: Arc<Services>, running: Running, scope: Scope, record: Record) {
    if let Err(error) = poll(&services, &scope, &record).await {
        tracing::warn!(sensor = %record.id, %error, "a sensor cannot be polled; it is tried again");
        clock::sleep(services.ledger.clock(), PAUSE).await;
    }
    running.lock().unwrap_or_else(PoisonError::into_inner).remove(&record.id);
}

/// Polls a sensor once.
async fn poll(services: &Services, scope: &Scope, record: &Record) -> Result<(), LedgerError> {
    let ledger = &services.ledger;
    let sensor =
        SensorRow::read(record).map_err(|error| LedgerError::unreadable(SENSORS, &record.id, &error))?;
    let sensor_id = sensor.sensor_id();
    let snapshot = ledger.snapshot(scope).await?;
    let state = match &snapshot {
        Some(snapshot) => snapshot.row::<SensorStateRow>(&[Arc::clone(&sensor_id)], Days::None).await?,
        None => None,
    };
    let cursor = state.as_ref().and_then(|row| row.cursor.clone());
    // The same on every node until the sensor is armed again.
    let poll_epoch = as_time(record.due_at_ms.unwrap_or_default()) / 1_000;
    let job = format!("sensor:{sensor_id}:{}:{poll_epoch}", record.version);
    let input = json!({
        "dag": sensor.dag, "sensor": sensor.name, "cursor": cursor.as_deref(), "input": sensor.input,
    });
    let found = call(services, scope, &job, &sensor, &input).await;
    let eval_id: Arc<str> = format!("{sensor_id}:{}:{poll_epoch}", record.version).into();
    let secret = ledger.secret(scope).await?;
    let run_id = |key: &str| run_id_of_key(&secret, scope.tenant.as_str(), scope.namespace.as_str(), key);
    let (status, cursor_after, requests) = match found {
        Ok(Findings { cursor, runs }) => {
            let runs = runs.into_iter().map(|run| run.requested(&sensor, &eval_id, run_id));
            let runs: Vec<RunRequested> = runs.collect();
            let status = if runs.is_empty() { EvalStatus::NoNewData } else { EvalStatus::Triggered };
            (status, cursor.map(Arc::from), runs)
        }
        Err(problem) => (EvalStatus::Error { message: cut(&problem).into() }, None, Vec::new()),
    };
    let has_failed = matches!(status, EvalStatus::Error { .. });
    let evaluated = SensorEvaluated {
        sensor_id,
        eval_id,
        cursor_before: cursor,
        cursor_after,
        expected_state_version: Some(state.map_or(0, |row| row.state_version)),
        trigger_source: EvalSource::Poll { poll_epoch },
        run_requests: requests.iter().map(shown).collect(),
        status,
    };
    let mut events = vec![WaitingEvent::from(evaluated)];
    events.extend(distinct(requests).map(WaitingEvent::from));
    let sensor = sensor.polled(has_failed);
    let next_ms = sensor.next_ms(ledger.store().now_ms().await?);
    let armed = sensor.write(scope, Expect::Version(record.version), Some(next_ms));
    match post(ledger.store(), scope, Posting { key: job.clone(), events, writes: vec![armed] }).await {
        // Another node was first, or the DAG was published, paused or deleted meanwhile.
        Err(error) if error.kind() == ErrorKind::Conflict => return Ok(()),
        posted => posted?,
    }
    if !has_failed {
        // What a poll has found is in the ledger; calls that failed are kept for people.
        let instance = services.calls.instance_id(scope, &job);
        if let Err(error) = ledger.store().delete_instance(&instance, false).await {
            tracing::debug!(%instance, %error, "the call of a poll is left to retention");
        }
    }
    Ok(())
}

/// Calls the function of a sensor.
async fn call(
    services: &Services,
    scope: &Scope,
    job: &str,
    sensor: &SensorRow,
    input: &serde_json::Value,
) -> Result<Findings, String> {
    let function = FunctionName::new(&*sensor.function).map_err(|error| error.to_string())?;
    let input = Payload::encode(input).map_err(|error| error.to_string())?;
    let mut request = InvokeRequest::new(function, input);
    request.retry = Some(once());
    request.timeout = Some(HumanDuration::from_secs(POLL_TIMEOUT.as_secs()));
    request.deadline = Some(HumanDuration::from_secs(2 * POLL_TIMEOUT.as_secs()));
    let failed = |failure: Failure| failure.message;
    Findings::read(&services.calls.call(scope, job, request).await.map_err(failed)?)
}

fn shown(request: &RunRequested) -> SensorRunRequest {
    SensorRunRequest {
        run_key: Arc::clone(&request.run_key),
        request_fingerprint: Arc::clone(&request.request_fingerprint),
        asset_selection: Vec::new(),
        partition_selection: request.partition_selection.clone(),
    }
}

/// Each key once: the first request counts.
fn distinct(requests: Vec<RunRequested>) -> impl Iterator<Item = RunRequested> {
    let mut seen = HashSet::new();
    requests.into_iter().filter(move |request| seen.insert(Arc::clone(&request.run_key)))
}
