//! Stored functions: one record each, of kind `segno.function` with the id `namespace/tenant/name`.

use segno::Payload;
use segno::store::{Expect, ListRecords, Record, RecordBatch, RecordWrite, Store};
use serde::{Deserialize, Serialize};

use super::error::FunctionError;
use super::function::Function;
use super::limits::MAX_STORED_FUNCTION_BYTES;
use super::names::{FunctionName, Scope};
use crate::listed::Listed;

/// Kind of the records that are functions.
const FUNCTION_KIND: &str = "segno.function";
/// The form in which functions are stored.
const FORMAT: u32 = 1;
#[derive(Serialize, Deserialize)]
struct StoredFunction {
    format: u32,
    function: Function,
}

fn id(scope: &Scope, name: &FunctionName) -> String {
    format!("{}{name}", scope.id_prefix())
}

/// The function of this name and its version.
pub(super) async fn get(
    store: &dyn Store,
    scope: &Scope,
    name: &FunctionName,
) -> Result<Option<(Function, u64)>, FunctionError> {
    store.get_record(FUNCTION_KIND, &id(scope, name)).await?.as_ref().map(decode).transpose()
}

/// The version of the function of this name, also of one that cannot be read.
pub(super) async fn version(
    store: &dyn Store,
    scope: &Scope,
    name: &FunctionName,
) -> Result<Option<u64>, FunctionError> {
    Ok(store.get_record(FUNCTION_KIND, &id(scope, name)).await?.map(|record| record.version))
}

/// A page of functions after a name.
pub(super) async fn list(
    store: &dyn Store,
    scope: &Scope,
    after: Option<&FunctionName>,
    limit: usize,
) -> Result<Vec<Listed<(FunctionName, Function, u64)>>, FunctionError> {
    let (id_prefix, after_id) = (scope.id_prefix(), after.map(|name| id(scope, name)));
    let request =
        ListRecords { kind: FUNCTION_KIND, id_prefix: &id_prefix, after_id: after_id.as_deref(), limit };
    let records = store.list_records(request).await?;
    let functions = records.iter().map(|record| {
        let name = record.id.strip_prefix(&id_prefix).unwrap_or(&record.id);
        let read =
            decode(record).and_then(|(function, version)| Ok((FunctionName::new(name)?, function, version)));
        Listed::of(read, name)
    });
    Ok(functions.collect())
}

/// Writes a function and returns its new version. A conflict is the store's.
pub(super) async fn put(
    store: &dyn Store,
    scope: &Scope,
    name: &FunctionName,
    function: &Function,
    expect: Expect,
) -> Result<u64, FunctionError> {
    // What is stored must be readable: the rule about nesting, numbers and texts holds for declarations too.
    Payload::encode(function).map_err(|error| FunctionError::invalid("function", error.to_string()))?;
    let stored = StoredFunction { format: FORMAT, function: function.clone() };
    let body = serde_json::to_vec(&stored)
        .map_err(|error| FunctionError::invalid("function", format!("it has no JSON form: {error}")))?;
    if body.len() > MAX_STORED_FUNCTION_BYTES {
        let problem = format!("it has {} bytes, the limit is {MAX_STORED_FUNCTION_BYTES}", body.len());
        return Err(FunctionError::invalid("function", problem));
    }
    let write = RecordWrite::Put {
        kind: FUNCTION_KIND.to_owned(),
        id: id(scope, name),
        expect,
        due_at_ms: None,
        time_to_live: None,
        body: body.into(),
    };
    commit(store, write).await
}

/// Removes a function of a known version.
pub(super) async fn delete(
    store: &dyn Store,
    scope: &Scope,
    name: &FunctionName,
    version: u64,
) -> Result<(), FunctionError> {
    let (kind, id) = (FUNCTION_KIND.to_owned(), id(scope, name));
    commit(store, RecordWrite::Delete { kind, id, expect: Expect::Version(version) }).await?;
    Ok(())
}

async fn commit(store: &dyn Store, write: RecordWrite) -> Result<u64, FunctionError> {
    let batch = RecordBatch { writes: vec![write], ..RecordBatch::default() };
    Ok(store.commit_records(batch).await?.first().copied().unwrap_or_default())
}

fn decode(record: &Record) -> Result<(Function, u64), FunctionError> {
    let unreadable = |reason: String| FunctionError::Unreadable {
        what: format!("the stored function {:?}", record.id),
        reason,
    };
    let stored: StoredFunction =
        serde_json::from_slice(&record.body).map_err(|error| unreadable(error.to_string()))?;
    if stored.format != FORMAT {
        return Err(unreadable(format!("its format is {}, this version reads {FORMAT}", stored.format)));
    }
    Ok((stored.function, record.version))
}
