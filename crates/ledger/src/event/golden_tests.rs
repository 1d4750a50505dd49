//! The bytes and the idempotency key of every event, to the letter. Logs with these bytes exist and
//! are read for ever.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Data, Envelope, EventData};

/// One object of a log: every event once, and one of a version to come.
const GOLDEN: &str = include_str!("../../tests/golden/events.json");

fn golden() -> Vec<Envelope> {
    Envelope::decode_batch(GOLDEN.as_bytes()).unwrap()
}

#[test]
fn the_golden_log_has_every_event_and_is_written_as_it_was_read() {
    let envelopes = golden();
    let types: BTreeSet<&str> =
        envelopes.iter().filter_map(Envelope::event).map(EventData::event_type).collect();
    assert_eq!(types, EventData::TYPES.iter().copied().collect());
    let written = Envelope::encode_batch(&envelopes);
    let expected: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&written).unwrap(), expected);
}

#[test]
fn every_event_has_the_published_key() {
    let mut keys = String::new();
    for envelope in golden() {
        if let Some(event) = envelope.event() {
            assert_eq!(*envelope.event_type, *event.event_type());
            assert_eq!(*envelope.idempotency_key, *event.idempotency_key());
            writeln!(keys, "{}: {}", event.event_type(), envelope.idempotency_key).unwrap();
        }
    }
    expect_test::expect_file!["../../tests/golden/keys.txt"].assert_eq(&keys);
}

#[test]
fn an_event_of_a_version_to_come_is_kept_byte_by_byte() {
    let envelopes = golden();
    let unread = envelopes.iter().find_map(|envelope| match &envelope.data {
        Data::Unread(unread) => Some(unread),
        Data::Read(_) => None,
    });
    let json = unread.unwrap().json.get().to_owned();
    assert!(json.contains("1.50"), "{json}");
    let written = String::from_utf8(Envelope::encode_batch(&envelopes)).unwrap();
    assert!(written.contains(&json), "{written}");
}

#[test]
fn a_known_event_that_cannot_be_read_does_not_hide_the_others() {
    let mut log: Vec<serde_json::Value> = serde_json::from_str(GOLDEN).unwrap();
    log[0]["data"]["run_id"] = serde_json::json!(17);
    let envelopes = Envelope::decode_batch(&serde_json::to_vec(&log).unwrap()).unwrap();
    let Data::Unread(unread) = &envelopes[0].data else { panic!("a number is no run id") };
    assert!(unread.problem.contains("invalid type"), "{}", unread.problem);
    assert_eq!(envelopes.len(), log.len());
    assert!(envelopes[1].event().is_some());
}
