//! `segno action …` and `segno recurring …` against a server.

use std::time::Duration;

use crate::process::Process;
use segno::clock::{self, SystemClock};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until the answer is as it should be.
async fn until(server: &Process, arguments: &[&str], is_there: impl Fn(&Value) -> bool) -> Value {
    let look = async {
        loop {
            let answer = server.json(arguments);
            if is_there(&answer) {
                return answer;
            }
            crate::process::look_again().await;
        }
    };
    clock::timeout(&SystemClock, PATIENCE, look)
        .await
        .unwrap_or_else(|| panic!("{arguments:?} takes too long"))
}

#[tokio::test]
async fn a_recurring_action_is_made_seen_firing_changed_and_deleted() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    let created =
        server.json(&["recurring", "create", "--every", "1s", "--function", "greet", "--input", "\"Ada\""]);
    let id = created["recurring_id"].as_str().unwrap();
    let history = until(&server, &["recurring", "history", id], |history| {
        let entries = history["items"].as_array().unwrap();
        entries.iter().any(|entry| entry["outcome"] == "completed")
    })
    .await;
    let time = history["items"][0]["time"].as_str().unwrap();
    assert!(server.said(&["recurring", "explain", id, "--time", time]).contains("fired"));
    let listed = server.said(&["recurring", "list"]);
    assert!(listed.contains(id) && listed.contains("active"), "{listed}");
    let updated = server.json(&["recurring", "update", id, "--every", "1h", "--description", "hourly"]);
    assert_eq!((&updated["every"], &updated["description"]), (&"1h".into(), &"hourly".into()));
    assert_eq!(updated["action_template"]["provider"], "greet");
    let cleared = server.json(&["recurring", "update", id, "--clear", "description"]);
    assert_eq!(cleared["description"], Value::Null);
    assert!(
        server.said(&["recurring", "pause", id, "--note", "rest", "--until", "now+1h"]).contains("paused")
    );
    assert!(server.said(&["recurring", "show", id]).contains("rest"));
    assert!(server.said(&["recurring", "resume", id]).contains("fires next"));
    server.said(&["recurring", "delete", id]);
    assert_eq!(server.run(&["recurring", "show", id]).status.code(), Some(6));
    let wrong = server.run(&["recurring", "create", "--cron", "0 0 30 2 *", "--function", "greet"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("--cron"));
}

#[tokio::test]
async fn an_action_is_added_run_and_cancelled() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    let later =
        server.json(&["action", "add", "later", "--function", "greet", "--at", "now+1h", "--every", "90s"]);
    let id = later["id"].as_str().unwrap();
    assert_eq!((&later["status"]["type"], &later["recurrence"]), (&"pending".into(), &90.into()));
    server.said(&["action", "run", id]);
    let done =
        until(&server, &["action", "show", id], |action| action["status"]["type"] == "completed").await;
    assert_eq!(done["status"]["result"], "Hello, world!");
    let next = server.items(&["action", "list", "--status", "pending"]);
    let next = next[0]["id"].as_str().unwrap();
    assert_eq!(server.json(&["action", "cancel", next])["status"]["reason"], "cancelled");
    assert_eq!(server.run(&["action", "cancel", next]).status.code(), Some(5));
    assert!(server.said(&["action", "list"]).contains("later"));
}
