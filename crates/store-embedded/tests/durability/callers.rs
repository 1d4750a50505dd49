//! Very many callers at once. They delegate their operations to each other and to the writer. Every
//! caller gets its answer, whatever happens meanwhile, and what was acknowledged is there after
//! reopening.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::store::{ErrorKind, ProviderAdmin, ProviderError, RecordBatch, Records};
use segno_embedded::{EmbeddedStore, OpenOptions};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::disk::{Disk, Fault};
use crate::new_record;

const CALLERS: u64 = 300;
const CALLS_EACH: u64 = 20;
const KIND: &str = "called";

fn open(disk: &Arc<Disk>) -> Arc<EmbeddedStore> {
    let options = OpenOptions::default()
        .files(disk.mount())
        .checkpoint_bytes(200_000)
        .retry_full_disk_after(Duration::from_millis(1));
    EmbeddedStore::open_with("", options).unwrap()
}

fn batch(id: &str) -> RecordBatch {
    let write = new_record(KIND, id, Bytes::copy_from_slice(id.as_bytes()));
    RecordBatch { writes: vec![write], ..RecordBatch::default() }
}

/// Calls and says which calls were acknowledged; the others were refused.
async fn call(
    store: Arc<EmbeddedStore>,
    caller: u64,
    answered: Arc<Semaphore>,
) -> (Vec<String>, Vec<ProviderError>) {
    let (mut acknowledged, mut refused) = (Vec::new(), Vec::new());
    for number in 0..CALLS_EACH {
        let id = format!("{caller}-{number}");
        match store.commit_records(batch(&id)).await {
            Ok(_) => acknowledged.push(id),
            Err(error) => refused.push(error),
        }
        answered.add_permits(1);
    }
    (acknowledged, refused)
}

/// Makes calls from several threads, causes an event in the middle, and checks what was acknowledged. Returns why
/// others were not.
fn crowd(happens: impl FnOnce(&Disk, &EmbeddedStore), goes_on: GoesOn) -> Vec<ProviderError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    runtime.block_on(call_all(happens, goes_on))
}

/// Whether a store takes calls again when the disk is well.
#[derive(PartialEq)]
enum GoesOn {
    Yes,
    No,
}

async fn call_all(happens: impl FnOnce(&Disk, &EmbeddedStore), goes_on: GoesOn) -> Vec<ProviderError> {
    let disk = Disk::empty();
    let store = open(&disk);
    let (mut callers, answered) = (JoinSet::new(), Arc::new(Semaphore::new(0)));
    for caller in 0..CALLERS {
        callers.spawn(call(Arc::clone(&store), caller, Arc::clone(&answered)));
    }
    drop(answered.acquire_many((CALLERS * CALLS_EACH / 2) as u32).await.unwrap());
    happens(&disk, &store);
    let (mut acknowledged, mut refused) = (Vec::new(), Vec::new());
    while let Some(called) = callers.join_next().await {
        let (more_acknowledged, more_refused) = called.unwrap();
        acknowledged.extend(more_acknowledged);
        refused.extend(more_refused);
    }
    assert_eq!((acknowledged.len() + refused.len()) as u64, CALLERS * CALLS_EACH, "every call has an answer");
    disk.fail(None);
    while goes_on == GoesOn::Yes && store.commit_records(batch("goes on")).await.is_err() {
        tokio::task::yield_now().await;
    }
    drop(store);
    let store = open(&disk);
    for id in &acknowledged {
        let record = store.get_record(KIND, id).await.unwrap();
        assert_eq!(record.map(|record| record.body), Some(Bytes::copy_from_slice(id.as_bytes())), "{id}");
    }
    assert!(store.get_system_metrics().await.is_ok());
    refused
}

#[test]
fn every_caller_is_served() {
    assert_eq!(crowd(|_, _| {}, GoesOn::Yes), []);
}

/// From now on the log cannot be written.
fn refuse_writes(disk: &Disk, error: io::ErrorKind, short: bool) {
    disk.fail(Some(Fault { at: disk.done(), error, lasts: true, short, on: "log-" }));
}

fn assert_refused(refused: &[ProviderError], kind: ErrorKind) {
    assert!(!refused.is_empty());
    refused.iter().for_each(|error| assert_eq!(error.kind(), kind, "{error}"));
}

#[test]
fn every_caller_gets_the_error_of_a_failed_disk() {
    let refused = crowd(|disk, _| refuse_writes(disk, io::ErrorKind::Other, false), GoesOn::No);
    assert_refused(&refused, ErrorKind::Unavailable);
}

#[test]
fn every_caller_gets_the_error_of_a_full_disk_and_continues_later() {
    let refused = crowd(|disk, _| refuse_writes(disk, io::ErrorKind::StorageFull, true), GoesOn::Yes);
    assert_refused(&refused, ErrorKind::Unavailable);
}

#[test]
fn every_caller_gets_the_error_of_a_closed_store() {
    assert_refused(&crowd(|_, store| store.close(), GoesOn::No), ErrorKind::Closed);
}
