//! Starting runs: by key, so that the same request is the same run, or fresh.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno::store::{ErrorKind, Expect, RecordWrite};
use segno_actions::functions::Scope;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::LedgerError;
use super::ledger::Ledger;
use super::limits::{MAX_LABEL_BYTES, MAX_LABELS, MAX_NAMED_TASKS, MAX_RUN_KEY_BYTES, RUN_KEY_LIFE};
use super::outbox::WaitingEvent;
use super::place::{RUN_KEYS, first_events_of, outbox_id, run_key_id};
use super::planning;
use super::post::{Posting, post};
use super::request::Shown;
use crate::event::{PlanCreated, RunTriggered, Trigger};
use crate::ids::{Ulid, fingerprint, run_id_of_key};
use crate::plan::{OtherOutputs, Parsed, Selection};

/// Runs of a store. Cheap to clone.
#[derive(Clone)]
pub struct Runs {
    pub(super) ledger: Ledger,
}

/// A run that is wanted.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StartRun {
    /// The DAG.
    pub dag: String,
    /// Its version; the active one without it.
    pub version: Option<u32>,
    /// Values of parameters.
    pub params: Map<String, Value>,
    /// The partition.
    pub partition: Option<String>,
    /// The key: the same key is the same run.
    pub run_key: Option<String>,
    /// Which tasks, as in `+load`; all of them if there are none.
    pub select: Vec<String>,
    /// Labels to find it by.
    pub labels: BTreeMap<String, String>,
    /// Who starts it.
    pub by: Option<String>,
    /// What makes the request itself again when it is repeated.
    pub request_id: Option<String>,
}

impl StartRun {
    /// A run of a DAG with the defaults of everything else.
    pub fn new(dag: impl Into<String>) -> Self {
        StartRun { dag: dag.into(), ..StartRun::default() }
    }
}

/// A run that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedRun {
    /// The run.
    pub run_id: String,
    /// Whether it is new; the same key was used for it before otherwise.
    pub is_new: bool,
    /// Whether the tables show it. They do so a moment later otherwise.
    pub visible: bool,
}

/// The reservation of a run key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Reservation {
    run_key: String,
    run_id: String,
    plan_id: String,
    request_fingerprint: String,
}

/// The beginning of a run, about to be posted.
pub(super) struct NewRun {
    /// The run without its id.
    pub(super) triggered: RunTriggered,
    /// Its plan without its id.
    pub(super) plan: PlanCreated,
    /// What follows the plan at once.
    pub(super) more: Vec<WaitingEvent>,
    /// The key under which the request is known.
    pub(super) key: Option<String>,
    /// The fingerprint of the request.
    pub(super) fingerprint: String,
}

/// What the keys of runs begin with that backfills, schedules, sensors and repeated requests start.
const RESERVED_KEYS: [&str; 4] = ["backfill:", "sched:", "sensor:", "request:"];

impl Runs {
    /// Starts a run. Its id is known at once, and the run is durable.
    ///
    /// # Errors
    /// `unknown-dag`, `invalid-run`, `idempotency-mismatch`, `stored-data-unreadable`, `store`.
    pub async fn start(&self, scope: &Scope, wanted: StartRun) -> Result<StartedRun, LedgerError> {
        check(&wanted)?;
        let (version, parsed) = self.ledger.definitions().parsed(scope, &wanted.dag, wanted.version).await?;
        let selection = selection(&parsed, &wanted.select)?;
        let plan = planning::plan_selected(
            &parsed,
            &wanted.params,
            wanted.partition.as_deref(),
            (&selection, OtherOutputs::None),
        )?;
        let mut requested =
            serde_json::json!([wanted.dag, wanted.version, wanted.params, wanted.partition, wanted.labels]);
        if let (Some(requested), false) = (requested.as_array_mut(), wanted.select.is_empty()) {
            let mut terms = wanted.select.clone();
            terms.sort();
            requested.push(terms.into());
        }
        let user_id = wanted.by.as_deref().unwrap_or("unknown").into();
        let triggered = RunTriggered {
            run_id: "".into(),
            plan_id: Arc::clone(&plan.plan_id),
            trigger: Trigger::Manual { user_id },
            root_assets: Vec::new(),
            run_key: wanted.run_key.as_deref().map(Arc::from),
            labels: wanted.labels.iter().map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect(),
            code_version: Some(version.to_string().into()),
            dag: Some(wanted.dag.as_str().into()),
            params: Some(Value::Object(plan.params)),
            parent_run_id: None,
        };
        let plan = PlanCreated { run_id: "".into(), plan_id: plan.plan_id, tasks: plan.tasks };
        let request_key = || wanted.request_id.as_ref().map(|request| format!("request:{request}"));
        let key = wanted.run_key.clone().or_else(request_key);
        let fingerprint = fingerprint(&requested.to_string());
        self.begin(scope, NewRun { triggered, plan, more: Vec::new(), key, fingerprint }).await
    }

    /// Posts the first events of a run with the reservation of its key, and waits until it is visible.
    pub(super) async fn begin(&self, scope: &Scope, mut new: NewRun) -> Result<StartedRun, LedgerError> {
        let run_id = self.run_id(scope, new.key.as_deref()).await?;
        new.triggered.run_id = run_id.as_str().into();
        new.plan.run_id = run_id.as_str().into();
        let plan_id = new.plan.plan_id.to_string();
        let mut events: Vec<WaitingEvent> = vec![new.triggered.into(), new.plan.into()];
        for event in &mut new.more {
            set_run(event, &run_id);
        }
        events.append(&mut new.more);
        let reservation = new.key.map(|run_key| Reservation {
            run_key,
            run_id: run_id.clone(),
            plan_id,
            request_fingerprint: new.fingerprint,
        });
        let writes = reservation.iter().map(|reservation| reservation.write(scope)).collect();
        let record = first_events_of(&run_id);
        let published = self.ledger.wait_published(outbox_id(scope, &record));
        let posting = Posting { key: record, events, writes };
        let is_new = match (post(self.ledger.store(), scope, posting).await, &reservation) {
            (Ok(()), _) => true,
            (Err(error), Some(reservation)) if error.kind() == ErrorKind::Conflict => {
                self.check_reserved(scope, reservation).await?;
                false
            }
            (Err(error), _) => return Err(error.into()),
        };
        let visible = self.ledger.until_visible(scope, published, Shown::Run(&run_id)).await?;
        Ok(StartedRun { visible, run_id, is_new })
    }

    /// The id of a run: derived from its key, or fresh and ordered by time.
    async fn run_id(&self, scope: &Scope, key: Option<&str>) -> Result<String, LedgerError> {
        let Some(key) = key else {
            let seed = u128::from(self.ledger.options().ids.new_seed());
            let id = Ulid::at(self.ledger.store().now_ms().await?, (seed << 16) ^ seed);
            return Ok(format!("run_{}", id.to_string().to_lowercase()));
        };
        let secret = self.ledger.secret(scope).await?;
        Ok(run_id_of_key(&secret, scope.tenant.as_str(), scope.namespace.as_str(), key))
    }

    /// Checks that the run of a key was requested in the same way.
    async fn check_reserved(&self, scope: &Scope, wanted: &Reservation) -> Result<(), LedgerError> {
        let id = run_key_id(scope, &wanted.run_key);
        let record = self.ledger.store().get_record(RUN_KEYS, &id).await?;
        // One that has just expired is tried again by the caller.
        let used = || LedgerError::KeyUsed { key: wanted.run_key.clone() };
        let record = record.ok_or_else(used)?;
        let stored: Reservation = serde_json::from_slice(&record.body)
            .map_err(|error| LedgerError::unreadable(RUN_KEYS, &id, &error))?;
        let is_same =
            stored.run_key == wanted.run_key && stored.request_fingerprint == wanted.request_fingerprint;
        if is_same { Ok(()) } else { Err(used()) }
    }
}

impl Reservation {
    fn write(&self, scope: &Scope) -> RecordWrite {
        RecordWrite::Put {
            kind: RUN_KEYS.to_owned(),
            id: run_key_id(scope, &self.run_key),
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: Some(RUN_KEY_LIFE),
            body: serde_json::to_vec(self).expect("it has texts only").into(),
        }
    }
}

/// Names the run in an event that was made before its id was known.
fn set_run(event: &mut WaitingEvent, run_id: &str) {
    if let crate::event::EventData::TaskMarked(marked) = &mut event.data {
        marked.run_id = run_id.into();
    }
}

/// The tasks that terms name.
fn selection(parsed: &Parsed, terms: &[String]) -> Result<Selection, LedgerError> {
    if terms.is_empty() {
        return Ok(Selection::all(&parsed.dag));
    }
    if terms.len() > MAX_NAMED_TASKS {
        let problem = format!("there are {}; name at most {MAX_NAMED_TASKS}", terms.len());
        return Err(LedgerError::invalid("select", problem));
    }
    Selection::named(&parsed.dag, &parsed.graph, terms.iter().map(String::as_str))
        .map_err(|problem| LedgerError::invalid("select", problem))
}

fn is_label_text(text: &str) -> bool {
    text.len() <= MAX_LABEL_BYTES && !text.chars().any(char::is_control)
}

/// Whether key and labels can be used.
pub(super) fn check(wanted: &StartRun) -> Result<(), LedgerError> {
    for (field, key) in [("run_key", &wanted.run_key), ("request_id", &wanted.request_id)] {
        let Some(key) = key else { continue };
        let is_plain = !key.chars().any(char::is_control);
        if key.is_empty() || key.len() > MAX_RUN_KEY_BYTES || !is_plain {
            let problem = format!("use 1 to {MAX_RUN_KEY_BYTES} bytes without control characters");
            return Err(LedgerError::invalid(field, problem));
        }
    }
    let is_reserved = |key: &String| RESERVED_KEYS.iter().any(|prefix| key.starts_with(prefix));
    if let Some(key) = wanted.run_key.as_ref().filter(|key| is_reserved(key)) {
        let problem = format!(
            "{key:?} is a key of runs that the server starts by itself; use one that does not begin with {}",
            RESERVED_KEYS.join(", ")
        );
        return Err(LedgerError::invalid("run_key", problem));
    }
    if wanted.labels.len() > MAX_LABELS {
        let problem = format!("there are {}; use at most {MAX_LABELS}", wanted.labels.len());
        return Err(LedgerError::invalid("labels", problem));
    }
    let long = wanted
        .labels
        .iter()
        .find(|(key, value)| key.is_empty() || [key, value].into_iter().any(|text| !is_label_text(text)));
    match long {
        Some((key, _)) => {
            let shown: String = key.chars().take(50).collect();
            let problem = format!(
                "label {shown:?}: keys and values have 1 to {MAX_LABEL_BYTES} bytes without control characters"
            );
            Err(LedgerError::invalid("labels", problem))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_labels_are_one_line_and_keys_of_the_server_are_reserved() {
        let with = |run_key: &str, value: &str| StartRun {
            run_key: Some(run_key.to_owned()),
            labels: [("team".to_owned(), value.to_owned())].into(),
            ..StartRun::new("dag")
        };
        for (key, value, problem) in [
            ("monday", "sales", None),
            ("", "sales", Some("use 1 to 512 bytes")),
            ("mon\nday", "sales", Some("without control characters")),
            ("monday", "x\n\u{1b}[2J", Some("without control characters")),
            ("backfill:bf_1:chunk:0", "sales", Some("is a key of runs that the server starts by itself")),
            ("request:1", "sales", Some("is a key of runs that the server starts by itself")),
        ] {
            let checked = check(&with(key, value)).map_err(|error| error.to_string());
            match problem {
                None => assert_eq!(checked, Ok(())),
                Some(problem) => {
                    let refused = checked.unwrap_err();
                    assert!(refused.contains(problem), "{key:?} {value:?}: {refused}");
                }
            }
        }
    }
}
