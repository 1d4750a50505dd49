//! A small HTTP server that answers by a script and remembers what it was asked.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What the server was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub line: String,
    pub headers: HashMap<String, String>,
    pub body: String,
}

/// What it answers: a whole response, or nothing for ever.
pub enum Answer {
    Text(String),
    Silence,
}

/// A response with a status line, more headers and a body.
pub fn response(status: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Text(format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}"))
}

/// A response with JSON.
pub fn json(body: &str) -> Answer {
    response("200 OK", "content-type: application/json; charset=utf-8\r\n", body)
}

pub struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<Mutex<usize>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Answers the n-th request, from 0.
    pub async fn start(answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, connections) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (answer, seen, count) = (Arc::new(answer), asked.clone(), connections.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                *count.lock().unwrap() += 1;
                tokio::spawn(serve(stream, answer.clone(), seen.clone()));
            }
        });
        Server { address, asked, connections, task }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How often anybody connected, whatever they said.
    pub fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: Arc<impl Fn(usize, &Asked) -> Answer>,
    asked: Arc<Mutex<Vec<Asked>>>,
) {
    while let Some(request) = read_request(&mut stream).await {
        let number = {
            let mut asked = asked.lock().unwrap();
            asked.push(request.clone());
            asked.len() - 1
        };
        match answer(number, &request) {
            Answer::Silence => std::future::pending().await,
            Answer::Text(text) => {
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).ok()?;
    let mut lines = head.lines();
    let line = lines.next()?.to_owned();
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let body_start = head_end + 4;
    while bytes.len() < body_start + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(bytes[body_start..body_start + length].to_vec()).ok()?;
    Some(Asked { line, headers, body })
}
