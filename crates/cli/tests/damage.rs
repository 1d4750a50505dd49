//! A server on a store with a damaged block: what is whole is served, what is not says so, and its health tells.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only the tests themselves")]

mod process;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use process::Process;
use serde_json::Value;

const CALLS: usize = 60;

/// The input of a call: long, so that few share a block, and with its number.
fn input(number: usize) -> String {
    format!("{{\"number\":{number},\"text\":\"{}\"}}", format!("call-{number:03} ").repeat(250))
}

/// Flips a bit where a text is; `false` if it is not there.
fn flip(state: &Path, text: &str) -> bool {
    let mut bytes = fs::read(state).unwrap();
    let found = bytes.windows(text.len()).position(|window| window == text.as_bytes());
    if let Some(place) = found {
        bytes[place] ^= 1;
        fs::write(state, &bytes).unwrap();
    }
    found.is_some()
}

/// An instance as the server shows it.
fn instance(server: &Process, id: &str) -> Value {
    let address = server.address.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let path = id.replace('/', "%2F");
    write!(stream, "GET /v1/instances/{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    // Of a body in chunks, the one with the object.
    let body = body.find('{').map(|start| &body[start..=body.rfind('}').unwrap()]);
    serde_json::from_str(body.unwrap()).unwrap()
}

fn report(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stderr).unwrap_or_default()
}

#[test]
fn what_is_not_damaged_is_served_and_what_is_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Process::dev(directory.path());
    for number in 0..CALLS {
        let key = format!("k{number:03}");
        server.said(&["invoke", "echo", "--call-key", &key, "--input", &input(number)]);
    }
    let ids: Vec<String> = server
        .items(&["list", "--limit", "100"])
        .iter()
        .map(|instance| instance["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), CALLS);
    // It makes a last checkpoint.
    server.signal("TERM");
    server.child.wait().unwrap();
    let state = directory.path().join("state.redb");
    assert!(flip(&state, "call-030 call-030 call-030"), "the input of a call is in the state");

    let server = Process::dev(directory.path());
    server.said(&["health"]);
    let histories = || -> BTreeSet<&String> {
        let is_readable = |id: &&String| {
            let output = server.run(&["history", id, "-o", "json"]);
            if !output.status.success() {
                let report = report(&output);
                assert_eq!(report["code"], "stored-data-unreadable", "{id}: {report}");
                let message = report["message"].as_str().unwrap();
                assert!(message.contains("of state.redb fails its checksum"), "{message}");
                assert!(message.contains("segno store check"), "{message}");
            }
            output.status.success()
        };
        ids.iter().filter(is_readable).collect()
    };
    let readable = histories();
    assert!(readable.len() < CALLS, "the damage was met");
    assert!(readable.len() > CALLS / 2, "only {} of {CALLS} can be read", readable.len());
    assert_eq!(histories(), readable, "and again the same");
    for id in &ids {
        let shown = instance(&server, id);
        let is_marked = shown["unreadable"].as_str().is_some_and(|why| why.contains("fails its checksum"));
        assert_eq!(is_marked, !readable.contains(id), "{shown}");
    }

    let health = server.run(&["health", "-o", "json"]);
    assert_eq!(health.status.code(), Some(4), "{}", String::from_utf8_lossy(&health.stderr));
    let report = report(&health);
    assert_eq!(report["code"], "store-damaged");
    let message = report["message"].as_str().unwrap();
    assert!(message.contains("of state.redb fails its checksum"), "{message}");
    // What is new is kept.
    server.said(&["invoke", "echo", "--call-key", "new", "--input", "1"]);
}
