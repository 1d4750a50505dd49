//! `segno bus …` against a server whose bus is built in.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{Process, segno};

/// A message that is not a dead letter after so many looks never becomes one.
const MOST_LOOKS: usize = 500;

const EVENTS: [&str; 2] = ["orchestrator-events", "orchestrator"];

fn of<'a>(verb: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["bus", verb], &EVENTS[..], more].concat()
}

fn items(list: &Value) -> &Vec<Value> {
    list["items"].as_array().unwrap()
}

fn dead_letter(server: &Process) -> Value {
    for _ in 0..MOST_LOOKS {
        if let Some(letter) = items(&server.json(&of("dead-letters", &[]))).first() {
            return letter.clone();
        }
    }
    panic!("there is no dead letter")
}

#[test]
fn messages_are_sent_looked_at_and_dead_letters_are_sent_again_and_discarded() {
    let directory = TempDir::new().unwrap();
    let mut command = segno();
    command.env("SEGNO_BUS__URL", "built-in");
    let server = Process::dev_by(command, &directory.path().join("data"));
    let said = server.said(&["bus", "list"]);
    assert!(said.contains("Sender ≠ segno") && said.contains("all messages"), "{said}");
    let shown = server.said(&of("show", &[]));
    assert!(shown.contains("10 at most") && shown.contains("336 h 0 min"), "{shown}");

    let later = ["bus", "send", "orchestrator-events", "--data", "{}", "--id", "m-later", "--at", "1h"];
    server.said(&[&later[..], &["--time-to-live", "2h", "--type", "member-added"]].concat());
    let waiting = server.json(&of("peek", &[]));
    let one = &items(&waiting)[0];
    assert_eq!((&one["state"], &one["delivery_count"]), (&json!("scheduled"), &json!(0)), "{waiting}");
    assert_eq!(one["message"]["properties"], json!({ "MessageType": "member-added" }));
    assert!(server.said(&of("peek", &[])).contains("m-later"));

    server.said(&["bus", "send", "orchestrator-events", "--data", "{\"a\":1}", "--property", "Team=eu"]);
    let letter = dead_letter(&server);
    assert_eq!(letter["reason"], "UnknownMessageType");
    assert_eq!(letter["message"]["properties"], json!({ "Team": "eu" }));
    let id = letter["id"].as_str().unwrap();
    assert!(server.said(&of("dead-letters", &[])).contains(id));
    assert!(server.said(&of("resubmit", &[id])).contains("sent again"));
    // It is no better than before.
    let again = dead_letter(&server);
    assert_ne!(again["id"], letter["id"]);
    assert!(server.said(&of("discard", &[again["id"].as_str().unwrap()])).contains("discarded"));
    assert!(items(&server.json(&of("dead-letters", &[]))).is_empty());

    let unknown = server.run(&["bus", "show", "jobs", "nowhere"]);
    let told = String::from_utf8(unknown.stderr).unwrap();
    assert_eq!(unknown.status.code(), Some(6), "{told}");
    assert!(told.contains("there is no subscription jobs/nowhere"), "{told}");
}
