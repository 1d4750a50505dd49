//! A server on a store with a damaged block: what is whole is served, what is not says so, and its health tells.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use crate::process::{Process, segno};
use serde_json::Value;

const CALLS: usize = 20;

/// The input of a call: long, so that few share a block, and with its number.
fn input(number: usize) -> String {
    format!("{{\"number\":{number},\"text\":\"{}\"}}", text(number).repeat(100))
}

fn text(number: usize) -> String {
    format!("call-{number:03} of many ")
}

/// Where a file has a text, again and again: the first place of each stretch.
fn stretches(bytes: &[u8], text: &str) -> Vec<usize> {
    let mut places: Vec<usize> = Vec::new();
    let mut last = None;
    for place in (0..bytes.len().saturating_sub(text.len()))
        .filter(|place| bytes[*place..].starts_with(text.as_bytes()))
    {
        if last.is_none_or(|last| place > last + text.len()) {
            places.push(place);
        }
        last = Some(place);
    }
    places
}

/// An instance as the server shows it, or the problem that it has with it.
fn instance(server: &Process, id: &str) -> Value {
    let address = server.address.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let path = id.replace('/', "%2F");
    write!(stream, "GET /v1/instances/{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    // Of a body in chunks, the one with the object.
    let body = body.find('{').map(|start| &body[start..=body.rfind('}').unwrap()]);
    serde_json::from_str(body.unwrap()).unwrap()
}

fn report(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stderr).unwrap_or_default()
}

/// A refusal names the block, and the command that finds all damage.
fn check_refusal(output: &std::process::Output) {
    let report = report(output);
    assert_eq!(report["code"], "stored-data-unreadable", "{report}");
    let message = report["message"].as_str().unwrap();
    assert!(message.contains("of state.redb fails its checksum"), "{message}");
    assert!(message.contains("segno store check"), "{message}");
    assert!(!message.contains("deleted"), "{message}");
}

/// Which histories can be read; the others must say why not.
fn readable<'a>(server: &Process, ids: &'a [String]) -> BTreeSet<&'a String> {
    let is_readable = |id: &&String| {
        let output = server.run(&["history", id, "-o", "json"]);
        if !output.status.success() {
            // Its own row is on the block.
            check_refusal(&output);
            return false;
        }
        let page: Value = serde_json::from_slice(&output.stdout).unwrap();
        let Some(lost) = page.get("unreadable") else { return true };
        assert!(lost[0]["reason"].as_str().unwrap().contains("of state.redb fails its checksum"), "{lost}");
        assert!(lost[0]["id"].as_str().unwrap().contains("event"), "{lost}");
        // What can be read is shown, with what cannot.
        let shown = server.json(&["show", id]);
        assert_eq!(shown["instance"]["id"], id.as_str());
        assert_eq!(shown["unreadable"][0]["reason"], lost[0]["reason"], "{shown}");
        false
    };
    ids.iter().filter(is_readable).collect()
}

/// A server on a store with a damaged block. Returns how many instances are shown with a mark, if the damage was met.
fn serve_damaged(directory: &Path, ids: &[String]) -> Option<usize> {
    let server = Process::dev(directory);
    server.said(&["health"]);
    let whole = readable(&server, ids);
    if whole.len() == ids.len() {
        // A block that is not in use any more.
        return None;
    }
    assert!(whole.len() > ids.len() / 2, "only {} of {} can be read", whole.len(), ids.len());
    assert_eq!(readable(&server, ids), whole, "and again the same");
    let mut marked = 0;
    for id in ids {
        let shown = instance(&server, id);
        if shown["code"] == "stored-data-unreadable" {
            assert!(!whole.contains(id), "{shown}");
            continue;
        }
        let is_marked = shown["unreadable"].as_str().is_some_and(|why| why.contains("fails its checksum"));
        // A call whose history ends where the damage begins is marked too: its end is looked for there.
        assert!(is_marked || whole.contains(id), "{shown}");
        marked += usize::from(is_marked);
    }
    let health = server.run(&["health", "-o", "json"]);
    assert_eq!(health.status.code(), Some(4), "{}", String::from_utf8_lossy(&health.stderr));
    let report = report(&health);
    assert_eq!(report["code"], "store-damaged");
    let message = report["message"].as_str().unwrap();
    assert!(message.contains("of state.redb fails its checksum"), "{message}");
    // What is new is kept.
    server.said(&["invoke", "echo", "--call-key", "new", "--input", "1"]);
    Some(marked)
}

/// Fills a store with calls and closes it. Returns their ids.
fn stopped_store(data: &Path) -> Vec<String> {
    let mut server = Process::dev(data);
    for number in 0..CALLS {
        let key = format!("k{number:03}");
        server.said(&["invoke", "echo", "--call-key", &key, "--input", &input(number)]);
    }
    let found = server.items(&["list", "--limit", "100"]);
    let ids: Vec<String> = found.iter().map(|found| found["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids.len(), CALLS);
    // It makes a last checkpoint.
    server.signal("TERM");
    server.child.wait().unwrap();
    ids
}

/// A copy of a store with another state.
fn copy_with(data: &Path, copy: &Path, state: &[u8]) -> PathBuf {
    fs::create_dir(copy).unwrap();
    // The ledger is a folder of its own beside the files of the store.
    let files = fs::read_dir(data).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file());
    for entry in files {
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    fs::write(copy.join("state.redb"), state).unwrap();
    copy.to_owned()
}

#[test]
fn what_is_not_damaged_is_served_and_what_is_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let ids = stopped_store(&data);
    let bytes = fs::read(data.join("state.redb")).unwrap();
    let (mut met, mut marked) = (0, 0);
    for (number, place) in stretches(&bytes, &text(CALLS / 2)).into_iter().enumerate() {
        let mut bytes = bytes.clone();
        bytes[place] ^= 1;
        let copy = copy_with(&data, &directory.path().join(format!("copy-{number}")), &bytes);
        if let Some(shown) = serve_damaged(&copy, &ids) {
            met += 1;
            marked += shown;
        }
    }
    assert!(met > 0 && marked > 0, "{met} times the damage was met, {marked} instances were marked");
}

const BLOCK: usize = 4_096;

/// Blocks that are damaged in turn. All of them are in the tests of the store itself; a server for
/// each would take too long.
const SAMPLE: usize = 6;

/// What a server on a store with one overwritten block lists, shows, deletes and starts. Returns
/// whether it starts.
fn check_around(copy: &Path, ids: &[String]) -> bool {
    let mut server = match Process::try_dev(copy) {
        Ok(server) => server,
        Err(said) => {
            let said = said.join("\n");
            assert!(said.contains("state.redb") && said.contains("fails its checksum"), "{said}");
            return false;
        }
    };
    // Every instance is listed, by its id at least, on pages that end.
    let page = server.json(&["list", "--limit", "100"]);
    let unreadable = page["unreadable"].as_array().cloned().unwrap_or_default();
    let rows = page["items"].as_array().unwrap().iter().chain(&unreadable);
    let listed: BTreeSet<&str> = rows.map(|row| row["id"].as_str().unwrap()).collect();
    for row in &unreadable {
        assert!(row["reason"].as_str().unwrap().contains("fails its checksum"), "{row}");
    }
    for id in ids {
        assert!(listed.contains(id.as_str()) || listed.contains(""), "{id} is not in {page}");
    }
    for list in
        [&["functions", "list"][..], &["action", "list"], &["dead-letters", "list"], &["hook", "list"]]
    {
        server.said(list);
    }
    let shown = server.run(&["show", &ids[0], "-o", "json"]);
    if !shown.status.success() {
        check_refusal(&shown);
    }
    for arguments in
        [&["delete", &ids[0], "-o", "json"][..], &["invoke", "echo", "--input", "1", "-o", "json"]]
    {
        let output = server.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || said.contains("state.redb"), "{arguments:?}: {said}");
    }
    let health = server.run(&["health", "-o", "json"]);
    let is_damage_known = health.status.code() == Some(4);
    assert!(is_damage_known || health.status.success(), "{}", String::from_utf8_lossy(&health.stderr));
    assert!(is_damage_known || unreadable.is_empty(), "what is missing is known");
    if is_damage_known {
        let backup = copy.with_extension("backup");
        let store = copy.to_str().unwrap();
        let output = segno().args(["store", "backup", store, backup.to_str().unwrap()]).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    }
    server.signal("TERM");
    server.child.wait().unwrap();
    true
}

#[test]
fn a_server_starts_around_an_overwritten_block_or_names_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let ids = stopped_store(&data);
    let bytes = fs::read(data.join("state.redb")).unwrap();
    let used: Vec<usize> = (0..bytes.len() / BLOCK)
        .filter(|block| bytes[block * BLOCK..][..BLOCK].iter().any(|byte| *byte != 0))
        .collect();
    let sample: Vec<usize> = used.iter().copied().step_by(used.len().div_ceil(SAMPLE)).collect();
    let mut started = 0;
    for block in &sample {
        let mut bytes = bytes.clone();
        bytes[block * BLOCK..][..BLOCK].fill(0xa5);
        let copy = copy_with(&data, &directory.path().join(format!("block-{block}")), &bytes);
        started += usize::from(check_around(&copy, &ids));
    }
    assert!(2 * started > sample.len(), "{started} of {} servers start", sample.len());
}
