//! One change for many instances, counts and searches, on the command line.

use crate::process::Process;
use serde_json::json;
use tempfile::TempDir;

#[test]
fn named_instances_are_restarted_once_under_a_key_and_counted_and_found() {
    let directory = TempDir::new().unwrap();
    let server = Process::dev(directory.path());
    for id in ["one", "two", "three"] {
        server.said(&["start", "greet", "--id", id, "--input", "{\"name\":\"Ada\"}", "--wait"]);
    }
    let ids = directory.path().join("ids.txt");
    std::fs::write(&ids, "one\n\n two \nnobody\n").unwrap();
    let ids = ids.display().to_string();
    let preview = server.json(&["bulk", "restart", "--ids", &ids, "--dry-run"]);
    assert_eq!((&preview["matched"], &preview["would_change"]), (&json!(3), &json!(2)));
    assert_eq!(preview["sample"], json!(["one", "two"]));
    assert_eq!(preview["left_sample"][0]["id"], "nobody");
    let restart =
        ["bulk", "restart", "--ids", &ids, "--idempotency-key", "fix-1", "--reason", "for Ada", "--yes"];
    for _ in 0..2 {
        assert_eq!(server.json(&restart)["changed"], 2, "the second run is answered as the first");
    }
    for (id, execution) in [("one", 2), ("two", 2), ("three", 1)] {
        server.said(&["wait", id]);
        assert_eq!(server.items(&["list", "--prefix", id])[0]["execution"], execution, "{id}");
    }
    let restarted = server.json(&["restart", "three", "--input", "{\"name\":\"Bob\"}", "--reason", "typo"]);
    assert_eq!(restarted["id"], "three");
    assert!(server.said(&["wait", "three"]).contains("Hello, Bob!"));
    let counts = server.json(&["count", "--orchestration", "greet"]);
    assert_eq!(counts["counts"], json!([{ "name": "completed", "count": 3 }]));
    let found = server.json(&["search", "t"]);
    let ids: Vec<_> = found["hits"].as_array().unwrap().iter().map(|hit| hit["id"].clone()).collect();
    assert_eq!(ids, ["three", "two"]);
    assert_eq!(server.json(&["timers"])["timers"], json!([]));
    assert_eq!(server.json(&["usage"])["store"], "embedded");
    let reasons = server.json(&["audit", "--action", "restart"]);
    assert_eq!(reasons["items"][0]["reason"], "typo");
    let output = server.run(&["retry", "three"]);
    assert_eq!(output.status.code(), Some(5), "what has ended has nothing to retry");
}
