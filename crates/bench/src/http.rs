//! Load on a server's HTTP API: connections that send a request, read the answer, and send the next.
//!
//! The client is as small as can be (HTTP/1.1 with a length, over plain sockets), because it shares the machine with the
//! server that it measures.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use hdrhistogram::Histogram;
use segno::clock::{Clock, SystemClock, duration_ms};
use serde::Serialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::arguments::{HttpArguments, HttpLoad};
use crate::report::percentile_ms;

/// Largest answer in bytes; anything larger is not what was asked for.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

/// What was measured. The field names are the JSON that scripts read.
#[derive(Debug, Serialize)]
struct Load {
    load: &'static str,
    connections: u32,
    requests_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// Measures and prints.
pub async fn run(arguments: &HttpArguments) -> anyhow::Result<()> {
    let target = Target::new(&arguments.server, arguments.key.clone())?;
    // Ids of this run are its own, so that it can be repeated on the same store.
    let run = SystemClock.now_ms();
    if arguments.load == HttpLoad::Get {
        let (status, _) = target.connect().await?.exchange(&target.start(&format!("get-{run}"))).await?;
        ensure!(status == 201, "the instance to be read could not be started: status {status}");
    }
    let until_ms = SystemClock.now_ms() + duration_ms(Duration::from_secs(arguments.seconds));
    let mut clients = JoinSet::new();
    for number in 0..arguments.connections {
        clients.spawn(load_until(target.clone(), arguments.load, run, number, until_ms));
    }
    let mut latency_us = Histogram::<u64>::new(3)?;
    while let Some(measured) = clients.join_next().await {
        latency_us.add(measured??)?;
    }
    let load = Load {
        load: arguments.load.name(),
        connections: arguments.connections,
        requests_per_s: (latency_us.len() as f64 / arguments.seconds as f64).round(),
        p50_ms: percentile_ms(&latency_us, 50.0),
        p99_ms: percentile_ms(&latency_us, 99.0),
    };
    if arguments.json {
        println!("{}", serde_json::to_string(&load)?);
    } else {
        let Load { load, connections, requests_per_s, p50_ms, p99_ms } = load;
        println!(
            "{load}: {connections} connections, {requests_per_s} requests/s, p50 {p50_ms:.2} ms, p99 {p99_ms:.2} ms"
        );
    }
    Ok(())
}

async fn load_until(
    target: Target,
    load: HttpLoad,
    run: u64,
    number: u32,
    until_ms: u64,
) -> anyhow::Result<Histogram<u64>> {
    let mut connection = target.connect().await?;
    let mut latency_us = Histogram::new(3)?;
    let get = target.get(&format!("get-{run}"));
    let mut sent = 0_u64;
    while SystemClock.now_ms() < until_ms {
        let began_ns = SystemClock.monotonic_ns();
        let (status, expected) = match load {
            HttpLoad::Get => (connection.exchange(&get).await?.0, 200),
            HttpLoad::Start => {
                let request = target.start(&format!("start-{run}-{number}-{sent}"));
                (connection.exchange(&request).await?.0, 201)
            }
        };
        ensure!(status == expected, "the server answered with status {status}");
        latency_us.record((SystemClock.monotonic_ns() - began_ns) / 1_000)?;
        sent += 1;
    }
    Ok(latency_us)
}

/// A server.
#[derive(Clone)]
pub(crate) struct Target {
    address: String,
    key: Option<String>,
}

impl Target {
    /// The server at a URL.
    pub(crate) fn new(url: &str, key: Option<String>) -> anyhow::Result<Self> {
        let address = url.strip_prefix("http://").context("--server must be http://HOST:PORT")?;
        Ok(Target { address: address.trim_end_matches('/').to_owned(), key })
    }

    /// A connection of its own.
    pub(crate) async fn connect(&self) -> anyhow::Result<Connection> {
        let stream = TcpStream::connect(&self.address)
            .await
            .with_context(|| format!("{} does not answer", self.address))?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::new() })
    }

    fn head(&self, line: &str) -> String {
        let key =
            self.key.as_ref().map_or_else(String::new, |key| format!("authorization: Bearer {key}\r\n"));
        format!("{line} HTTP/1.1\r\nhost: {}\r\n{key}", self.address)
    }

    fn get(&self, id: &str) -> String {
        self.head(&format!("GET /v1/instances/{id}")) + "\r\n"
    }

    fn start(&self, id: &str) -> String {
        let body = format!(r#"{{"orchestration":"greet","id":"{id}","input":{{"name":"Ada"}}}}"#);
        self.post("/v1/instances", &body)
    }

    /// A request with a body of JSON.
    pub(crate) fn post(&self, path: &str, body: &str) -> String {
        let head = self.head(&format!("POST {path}"));
        format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }
}

/// A connection to a server.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Sends a request and reads its answer: status and body.
    pub(crate) async fn exchange(&mut self, request: &str) -> anyhow::Result<(u16, Vec<u8>)> {
        self.stream.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        loop {
            if let Some(answer) = parse(&self.buffer)? {
                return Ok(answer);
            }
            ensure!(
                self.buffer.len() < MAX_ANSWER_BYTES,
                "an answer is larger than {MAX_ANSWER_BYTES} bytes"
            );
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed a connection");
            }
        }
    }
}

/// Status and body of an answer, once it is whole.
fn parse(bytes: &[u8]) -> anyhow::Result<Option<(u16, Vec<u8>)>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end])?;
    let status = head.split(' ').nth(1).context("the answer has no status")?.parse()?;
    if status == 204 {
        return Ok(Some((status, Vec::new())));
    }
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned));
    let length: usize = length.context("the answer has no length")?.trim().parse()?;
    let body = &bytes[end + 4..];
    Ok((body.len() >= length).then(|| (status, body[..length].to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_when_it_is_whole() {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok";
        for cut in 0..answer.len() {
            assert!(parse(&answer[..cut]).unwrap().is_none(), "{cut}");
        }
        assert_eq!(parse(answer).unwrap(), Some((201, b"ok".to_vec())));
    }
}
