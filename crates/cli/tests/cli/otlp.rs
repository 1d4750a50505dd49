//! Spans reach a collector: the test is one, and reads what a server sends it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::process::Process;
use tempfile::TempDir;

/// A span, as far as it is of interest here. Ids are in hexadecimal.
#[derive(Debug, Clone)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    attributes: Vec<String>,
}

/// A collector that keeps all spans that it is sent.
struct Collector {
    address: String,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = bodies.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (head, body) = read_message(&mut stream);
                assert!(head.starts_with("POST /v1/traces "), "{head}");
                assert!(head.contains("application/x-protobuf"), "{head}");
                // Kept before it is answered, so that it is there when the server has ended.
                kept.lock().unwrap().push(body);
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        Collector { address, bodies }
    }

    /// Spans of the message `ExportTraceServiceRequest`; the numbers are those of its fields.
    fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies.lock().unwrap();
        let of_resources = bodies.iter().flat_map(|body| fields(body, 1));
        let of_scopes = of_resources.flat_map(|resource| fields(resource, 2));
        let spans = of_scopes.flat_map(|scope| fields(scope, 2));
        let text = |span: &[u8], number| fields(span, number).concat();
        let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        spans
            .map(|span| Span {
                trace: hex(text(span, 1)),
                id: hex(text(span, 2)),
                parent: hex(text(span, 4)),
                name: String::from_utf8(text(span, 5)).unwrap(),
                attributes: fields(span, 9)
                    .into_iter()
                    .map(|attribute| String::from_utf8(text(attribute, 1)).unwrap())
                    .collect(),
            })
            .collect()
    }
}

/// The fields of a protobuf message that have this number and are bytes, text or messages themselves.
fn fields(mut message: &[u8], number: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let length = match key & 7 {
            0 => {
                varint(&mut message);
                continue;
            }
            1 => 8,
            2 => varint(&mut message) as usize,
            5 => 4,
            other => panic!("there is no wire type {other}"),
        };
        let (value, rest) = message.split_at(length);
        message = rest;
        if key == number << 3 | 2 {
            found.push(value);
        }
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first().unwrap();
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

/// Reads a request or an answer with a body of known length.
fn read_message(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let lower = head.to_lowercase();
    let length = lower.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

/// Starts an instance and waits for its end.
fn greet(server: &Process, traceparent: Option<&str>) {
    let mut stream = TcpStream::connect(server.address.strip_prefix("http://").unwrap()).unwrap();
    let body = r#"{"orchestration":"greet","input":{"name":"Ada"}}"#;
    let header = traceparent.map(|text| format!("traceparent: {text}\r\n")).unwrap_or_default();
    let length = body.len();
    write!(
        stream,
        "POST /v1/instances?wait_ms=60000 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         {header}content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let (head, body) = read_message(&mut stream);
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
    assert!(String::from_utf8_lossy(&body).contains("Hello, Ada!"));
}

#[test]
fn a_request_and_what_it_starts_are_one_trace() {
    let collector = Collector::start();
    let directory = TempDir::new().unwrap();
    let endpoint = format!("telemetry.otlp_endpoint={}", collector.address);
    let data = directory.path().to_str().unwrap();
    let mut server = Process::start(&["dev", "--listen", "127.0.0.1:0", "--data", data, "--set", &endpoint]);
    let (trace, caller) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let unwanted = "1bf7651916cd43dd8448eb211c80319d";
    greet(&server, Some(&format!("00-{trace}-{caller}-01")));
    greet(&server, Some(&format!("00-{unwanted}-{caller}-00")));
    greet(&server, None);
    server.signal("TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));

    let spans = collector.spans();
    let requests: Vec<&Span> = spans.iter().filter(|span| span.name == "POST /v1/instances").collect();
    let [continued, own] = &requests[..] else { panic!("two requests were to be sent: {spans:#?}") };
    assert_eq!((continued.trace.as_str(), continued.parent.as_str()), (trace, caller));
    assert_eq!(own.parent, "", "nobody sent a parent");
    assert_ne!(own.trace, trace);
    for request in requests {
        let below = spans.iter().filter(|span| span.trace == request.trace && span.id != request.id);
        let mut names: Vec<&str> = Vec::new();
        for span in below {
            assert_eq!(span.parent, request.id, "{span:?}");
            names.push(&span.name);
        }
        names.sort_unstable();
        assert_eq!(names, ["segno.activity", "segno.turn", "segno.turn"]);
    }
    assert!(!spans.iter().any(|span| span.trace == unwanted), "the caller does not want it recorded");
    let service = b"service.name\x12\x07\n\x05segno";
    let bodies = collector.bodies.lock().unwrap();
    assert!(bodies.iter().all(|body| body.windows(service.len()).any(|part| part == service)));
}

/// Sends a request and gives the body of the answer.
fn send(server: &Process, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(server.address.strip_prefix("http://").unwrap()).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let (head, body) = read_message(&mut stream);
    assert!(head.starts_with("HTTP/1.1 20"), "{head}");
    String::from_utf8(body).unwrap()
}

#[test]
fn what_is_fired_is_a_trace_of_its_own() {
    let collector = Collector::start();
    let directory = TempDir::new().unwrap();
    let endpoint = format!("telemetry.otlp_endpoint={}", collector.address);
    let data = directory.path().to_str().unwrap();
    let mut server = Process::start(&["dev", "--listen", "127.0.0.1:0", "--data", data, "--set", &endpoint]);
    let once = r#"{"tool_name":"greet","tool_input":"Ada"}"#;
    send(&server, "POST", "/v1/actions", once);
    let again = r#"{"every":"1s","function":"greet","input":"Ada","max_executions":1}"#;
    send(&server, "POST", "/v1/recurring", again);
    while send(&server, "GET", "/v1/instances?status=completed", "").matches("\"id\"").count() < 2 {
        std::thread::yield_now();
    }
    server.signal("TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));

    let spans = collector.spans();
    for (name, attribute) in [("segno.action", "action_id"), ("segno.recurring", "recurring_id")] {
        let fired: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
        let [fired] = &fired[..] else { panic!("one {name} was to be sent: {spans:#?}") };
        assert_eq!(fired.parent, "");
        assert!(fired.attributes.iter().any(|found| found == attribute), "{fired:?}");
        let mut below: Vec<&str> = Vec::new();
        for span in spans.iter().filter(|span| span.trace == fired.trace && span.id != fired.id) {
            assert_eq!(span.parent, fired.id, "{span:?}");
            below.push(&span.name);
        }
        below.sort_unstable();
        below.dedup();
        assert_eq!(below, ["segno.activity", "segno.turn"]);
    }
}

#[test]
fn a_collector_that_is_away_holds_nothing_up() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let directory = TempDir::new().unwrap();
    let endpoint = format!("telemetry.otlp_endpoint=http://{gone}");
    let data = directory.path().to_str().unwrap();
    let mut server = Process::start(&["dev", "--listen", "127.0.0.1:0", "--data", data, "--set", &endpoint]);
    greet(&server, None);
    server.signal("TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}
