//! A server that is killed and started again on the same port: clients go on as if nothing had happened.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::process::{Process, segno};
use segno_api::instance::{OnConflict, StartInstance, Status};
use segno_api::{Client, Json};
use tempfile::TempDir;

/// Longer than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// The same server again, where it was.
fn again(killed: &Process, data: &Path) -> Process {
    let listen = killed.address.strip_prefix("http://").unwrap();
    Process::start(&["dev", "--listen", listen, "--data", data.to_str().unwrap()])
}

fn spawn(server: &Process, arguments: &[&str]) -> Child {
    let mut command = segno();
    command.args(arguments).args(["--server", &server.address]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn wait_and_tail_outlive_a_restart() {
    let directory = TempDir::new().unwrap();
    let mut server = Process::dev(directory.path());
    server.said(&["start", "greet", "--id", "a", "--input", r#"{"name":"Ada","wait":true}"#]);
    let wait = spawn(&server, &["wait", "a", "--timeout", "120"]);
    let mut tail = spawn(&server, &["tail", "a"]);
    // Its first line: from then on it follows.
    let mut followed = BufReader::new(tail.stdout.take().unwrap());
    let mut line = String::new();
    followed.read_line(&mut line).unwrap();
    assert!(line.contains("OrchestrationStarted"), "{line}");
    server.kill();
    let server = again(&server, directory.path());
    server.said(&["signal", "a", "wave", "--data", "null"]);

    let waited = wait.wait_with_output().unwrap();
    assert!(waited.status.success(), "{}", String::from_utf8_lossy(&waited.stderr));
    assert_eq!(String::from_utf8(waited.stdout).unwrap().trim(), r#""Hello, Ada! Goodbye, Ada.""#);
    let rest: Vec<String> = followed.lines().map(Result::unwrap).collect();
    let tailed = tail.wait_with_output().unwrap();
    assert!(tailed.status.success(), "{}", String::from_utf8_lossy(&tailed.stderr));
    let ends = rest.iter().filter(|line| line.contains("OrchestrationCompleted")).count();
    assert_eq!(ends, 1, "each event once, also after the restart: {rest:?}");
    assert!(!rest.iter().any(|line| line.contains("OrchestrationStarted")), "{rest:?}");
}

#[test]
fn commands_and_waits_that_meet_no_server_say_so_in_time() {
    let directory = TempDir::new().unwrap();
    let mut server = Process::dev(directory.path());
    server.said(&["start", "greet", "--id", "a", "--input", r#"{"name":"Ada","wait":true}"#]);
    let timed_out = server.run(&["wait", "a", "--timeout", "1"]);
    assert_eq!(timed_out.status.code(), Some(124));
    server.kill();
    let unanswered = server.run(&["wait", "a", "--timeout", "1"]);
    let message = String::from_utf8_lossy(&unanswered.stderr).into_owned();
    assert_eq!(unanswered.status.code(), Some(1), "{message}");
    assert!(
        message.contains("the server did not answer, so whether a ended within 1s is not known"),
        "{message}"
    );
    let verbs = [&["list"][..], &["wait", "a"], &["tail", "a"]];
    for (verb, command) in verbs.map(|verb| (verb, spawn(&server, verb))) {
        let refused = command.wait_with_output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{verb:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot connect to"), "{verb:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_starts_and_waits_across_a_restart() {
    let directory = TempDir::new().unwrap();
    let mut server = Process::dev(directory.path());
    let client = Client::new(&server.address).unwrap().retry_for(PATIENCE);
    server.kill();
    let request = StartInstance {
        orchestration: "greet".to_owned(),
        version: None,
        id: Some("b".to_owned()),
        input: Json::from_text(r#"{"name":"Ada"}"#.to_owned()).unwrap(),
        labels: Default::default(),
        start_at: None,
        on_conflict: OnConflict::Reject,
    };
    let starting = tokio::spawn(async move {
        let started = client.start(&request, None, Duration::ZERO).await?;
        client.instance(&started.id, Duration::from_secs(50)).await
    });
    let _server = tokio::task::block_in_place(|| again(&server, directory.path()));
    assert_eq!(starting.await.unwrap().unwrap().status, Status::Completed);
}
