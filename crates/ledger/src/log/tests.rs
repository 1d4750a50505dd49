//! Appending: idempotent, all or nothing, and within limits.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use object_store::ObjectStore;
use segno::store::ErrorKind;
use segno_actions::functions::Scope;
use segno_testkit::clock::VirtualClock;

use super::limits::{FOLD_BATCHES, MAX_BATCH_EVENTS};
use super::*;
use crate::event::{Envelope, EventData, Header};
use crate::ids::Ulid;
use crate::objects::faulty::{Faults, Faulty};
use crate::objects::testing::place;
use crate::objects::{Objects, Paths};

fn paths() -> Paths {
    Paths::new(Scope::new("prod", "acme").unwrap())
}

fn objects(store: Arc<dyn ObjectStore>) -> Objects {
    Objects::new(store, VirtualClock::new())
}

fn event(id: u128, note: &str) -> Envelope {
    let header =
        Header { tenant_id: "acme".into(), workspace_id: "prod".into(), timestamp: Timestamp::UNIX_EPOCH };
    let cancel = serde_json::json!({"type": "run_cancel_requested", "run_id": note, "requested_by": "ada"});
    Envelope::new(&header, Ulid::at(1, id), serde_json::from_value::<EventData>(cancel).unwrap())
}

async fn waiting(store: &Arc<dyn ObjectStore>) -> Waiting {
    LogReader::new(objects(store.clone()), paths()).waiting(&BTreeSet::new()).await.unwrap()
}

#[tokio::test]
async fn appending_again_is_the_same_append() {
    let store = place();
    let writer = LogWriter::new(objects(store.clone()), paths());
    let batch = [event(1, "a"), event(2, "b")];
    assert_eq!(writer.append(&batch).await.unwrap(), Ulid::at(1, 1));
    assert_eq!(writer.append(&batch).await.unwrap(), Ulid::at(1, 1));
    assert_eq!(waiting(&store).await.batches, [Ulid::at(1, 1)]);
    // The write is done and reported as timed out every time but the read shows it.
    let faults = Faults { time_out_after_success: 100, ..Faults::NONE };
    let writer = LogWriter::new(objects(Faulty::new(store.clone(), faults, 1)), paths());
    assert_eq!(writer.append(&batch).await.unwrap(), Ulid::at(1, 1));
    let other = [event(1, "a"), event(2, "c")];
    assert_eq!(writer.append(&other).await.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn batches_that_break_a_rule_are_refused() {
    let store = place();
    let writer = LogWriter::new(objects(store.clone()), paths());
    let mut foreign = event(1, "a");
    foreign.workspace_id = "test".into();
    let many = (0..=MAX_BATCH_EVENTS as u128).map(|id| event(id, "a")).collect();
    for (batch, says) in [
        (vec![], "append at least one"),
        (vec![event(2, "a"), event(1, "b")], "ids of a batch ascend"),
        (vec![event(1, "a"), event(1, "b")], "ids of a batch ascend"),
        (vec![foreign], "is of acme/test"),
        (many, "append at most 4096 at once"),
        (vec![event(1, &"x".repeat(11 << 20))], "append at most 33554432 at once"),
    ] {
        let error = writer.append(&batch).await.unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains(says), "{error}");
    }
    assert_eq!(waiting(&store).await, Waiting::default());
}

#[tokio::test]
async fn a_fold_takes_a_limited_number_of_batches_the_oldest_first() {
    let store = place();
    let writer = LogWriter::new(objects(store.clone()), paths());
    for id in (0..FOLD_BATCHES as u128 + 3).rev() {
        writer.append(&[event(id, "a")]).await.unwrap();
    }
    let found = waiting(&store).await;
    assert!(found.has_more && found.batches.len() == FOLD_BATCHES);
    assert_eq!((found.batches[0], found.batches[1]), (Ulid::at(1, 0), Ulid::at(1, 1)));
    let folded = found.batches.into_iter().collect();
    let rest = LogReader::new(objects(store.clone()), paths()).waiting(&folded).await.unwrap();
    assert!(!rest.has_more && rest.batches.len() == 3 && rest.present.len() == FOLD_BATCHES);
}
