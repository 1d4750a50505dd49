//! Secrets that tools and servers repeat: they are written down nowhere, not even in the noisiest log.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::process::script;
use crate::server::{Server, response};
use crate::support::{Node, secret_file};

const CANARY: &str = "canary-in-the-mine";

/// Everything that the program logs, at every level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;

    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

impl Log {
    /// Writes down what this thread logs from now on, until the guard is dropped.
    fn listen() -> (Log, tracing::subscriber::DefaultGuard) {
        let log = Log::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_writer(log.clone());
        (log, subscriber.finish().set_default())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// Calls `it` and looks through everything that is left of the call.
async fn expect_no_canary(node: &Node, log: &Log, what: &str) {
    let instance = node.begin("k", json!(null)).await;
    let _ = node.end(&instance).await;
    let written = node.written_about(&instance).await;
    assert!(written.contains("[redacted]"), "{what}: {written}");
    assert!(!written.contains("canary"), "{what}: {written}");
    let log = log.text();
    assert!(log.contains("segno.activity"), "{what}: the log says nothing: {log}");
    assert!(!log.contains("canary"), "{what}: {log}");
}

// On one thread, because the log is that of a thread.
#[tokio::test]
async fn a_secret_that_a_tool_repeats_is_written_down_nowhere() {
    let (log, _guard) = Log::listen();
    let (_file, reference) = secret_file(CANARY);
    for text in [
        "echo \"key $TOKEN\" >&2; printf '{\"%s\":\"is %s\"}' \"$TOKEN\" \"$TOKEN\"",
        "echo \"key $TOKEN\" >&2; exit 1",
        "echo \"no json $TOKEN\"",
        "echo $TOKEN >&2; kill -9 $$",
    ] {
        let settings = format!("environment = {{ TOKEN = {reference} }}");
        let node = Node::with(&script(text, &settings)).await;
        expect_no_canary(&node, &log, text).await;
    }
}

#[tokio::test]
async fn a_secret_is_taken_out_of_a_log_before_the_log_is_cut() {
    let (log, _guard) = Log::listen();
    let (_file, reference) = secret_file(CANARY);
    // The log is cut within the secret, in a line that is longer than what is kept.
    for kept in 1..=CANARY.len() {
        let text = "printf '%s%s' \"$TOKEN\" ' end' >&2; exit 1";
        let settings =
            format!("environment = {{ TOKEN = {reference} }}\nlog_limit = {}", kept + " end".len());
        let node = Node::with(&script(text, &settings)).await;
        let instance = node.begin("k", json!(null)).await;
        let failure = node.end(&instance).await.unwrap_err();
        assert!(failure.message.ends_with("[redacted] end"), "{kept}: {}", failure.message);
        let written = node.written_about(&instance).await + &log.text();
        let end = &CANARY[CANARY.len() - kept..];
        assert!(kept < 4 || !written.contains(end), "{kept}: {written}");
    }
}

#[tokio::test]
async fn a_secret_that_a_server_repeats_is_written_down_nowhere() {
    let (log, _guard) = Log::listen();
    let (_file, reference) = secret_file(CANARY);
    for (status, content_type) in
        [("200 OK", "application/json"), ("200 OK", "text/plain"), ("500 Oops", "text/plain")]
    {
        let server = Server::start(move |_, asked| {
            let body = format!("{{\"you sent\": \"{}\"}}", asked.headers["authorization"]);
            response(status, &format!("content-type: {content_type}\r\n"), &body)
        })
        .await;
        let toml = format!(
            "executor = \"http\"\nurl = \"http://127.0.0.1:{}/\"\nallow_private = true\n\
             headers = {{ Authorization = {reference} }}",
            server.port()
        );
        let node = Node::with(&toml).await;
        expect_no_canary(&node, &log, status).await;
        assert_eq!(server.asked()[0].headers["authorization"], CANARY);
    }
}
