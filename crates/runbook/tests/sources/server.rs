//! A web server that has a few documents.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server on a free port, until the test ends.
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Serves JSON by path and query; anything else is not found.
    pub async fn start(documents: &[(&str, &str)]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let documents: BTreeMap<String, String> =
            documents.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let request = answer(stream, &documents).await;
                seen.lock().unwrap().push(request);
            }
        });
        Server { address, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Heads of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn answer(mut stream: TcpStream, documents: &BTreeMap<String, String>) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.unwrap() > 0 {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match documents.get(path) {
        Some(body) => ("200 OK", body.as_str()),
        None => ("404 Not Found", "\"not found\""),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // A client that has gone does not matter.
    let _ = stream.write_all(answer.as_bytes()).await;
    head
}
