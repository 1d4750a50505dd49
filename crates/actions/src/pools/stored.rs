//! What is stored of pools: those that workers have announced, and the state of any pool.

use jiff::Timestamp;
use segno::store::{Expect, Record, RecordWrite};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::pool::AllowList;
use crate::functions::{FunctionError, PoolName, Scope};

/// Kind of the records of pools that workers have announced.
pub const POOL_KIND: &str = "segno.pool";

/// Kind of the records with the states of pools.
pub const POOL_STATE_KIND: &str = "segno.pool-state";

/// The form in which both are stored.
const FORMAT: u32 = 1;

/// A pool that was announced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Announced {
    format: u32,
    /// All functions that a worker of it has announced.
    pub(super) functions: AllowList,
    /// When that last changed.
    pub(super) announced_at: Timestamp,
    /// The worker that changed it.
    pub(super) worker: String,
}

impl Announced {
    pub(super) fn new(functions: AllowList, announced_at: Timestamp, worker: &str) -> Self {
        Announced { format: FORMAT, functions, announced_at, worker: worker.to_owned() }
    }
}

/// The state of a pool in a namespace and tenant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoolState {
    pub(super) format: u32,
    /// While it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// Until when nothing is handed out because a worker was throttled, in Unix milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_until_ms: Option<u64>,
    /// How often in a row it was throttled.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub throttles: u32,
    /// When the calls that were handed out are paid for, in Unix microseconds; of use with a rate only.
    #[serde(default, skip_serializing_if = "is_zero_us")]
    pub(super) free_at_us: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero_us(time_us: &u64) -> bool {
    *time_us == 0
}

impl Default for PoolState {
    fn default() -> Self {
        PoolState { format: FORMAT, paused: None, throttled_until_ms: None, throttles: 0, free_at_us: 0 }
    }
}

impl PoolState {
    /// What it takes in memory beside its id, about.
    pub(super) fn bytes(&self) -> usize {
        let reason = self.paused.as_ref().and_then(|pause| pause.reason.as_ref());
        size_of::<Self>() + reason.map_or(0, String::len)
    }
}

/// Since when and why a pool is paused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pause {
    /// Since when.
    pub at: Timestamp,
    /// Why, in the words of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The id of a record of a pool. No name has a slash, so two pools never have the same.
pub(super) fn record_id(scope: &Scope, pool: &PoolName) -> String {
    format!("{}{pool}", scope.id_prefix())
}

/// The write of a record, and how many bytes it stores.
pub(super) fn write(
    kind: &str,
    id: String,
    expect: Expect,
    value: &impl Serialize,
) -> Result<(RecordWrite, usize), FunctionError> {
    let body = serde_json::to_vec(value)
        .map_err(|error| FunctionError::invalid_pool("pool", format!("it has no JSON form: {error}")))?;
    let bytes = body.len();
    let write = RecordWrite::Put {
        kind: kind.to_owned(),
        id,
        expect,
        due_at_ms: None,
        time_to_live: None,
        body: body.into(),
    };
    Ok((write, bytes))
}

pub(super) fn decode<T: DeserializeOwned>(record: &Record) -> Result<T, FunctionError> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let unreadable = |reason: String| FunctionError::Unreadable {
        what: format!("the record {:?} of kind {}", record.id, record.kind),
        reason,
    };
    let Format { format } =
        serde_json::from_slice(&record.body).map_err(|error| unreadable(error.to_string()))?;
    if format != FORMAT {
        return Err(unreadable(format!("its format is {format}, this version reads {FORMAT}")));
    }
    serde_json::from_slice(&record.body).map_err(|error| unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_and_states_are_stored_in_a_form_that_does_not_change() {
        let at: Timestamp = "2026-02-10T14:00:00Z".parse().unwrap();
        let announced = Announced::new(AllowList::new(["New-EntraUser"]).unwrap(), at, "w-1");
        let text = r#"{"format":1,"functions":["New-EntraUser"],"announced_at":"2026-02-10T14:00:00Z","worker":"w-1"}"#;
        assert_eq!(serde_json::to_string(&announced).unwrap(), text);
        assert_eq!(serde_json::from_str::<Announced>(text).unwrap(), announced);
        let whole = PoolState {
            paused: Some(Pause { at, reason: Some("maintenance".to_owned()) }),
            throttled_until_ms: Some(5),
            throttles: 2,
            free_at_us: 7,
            ..PoolState::default()
        };
        for (state, text) in [
            (PoolState::default(), r#"{"format":1}"#),
            (
                whole,
                r#"{"format":1,"paused":{"at":"2026-02-10T14:00:00Z","reason":"maintenance"},"throttled_until_ms":5,"throttles":2,"free_at_us":7}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&state).unwrap(), text);
            assert_eq!(serde_json::from_str::<PoolState>(text).unwrap(), state);
        }
    }
}
