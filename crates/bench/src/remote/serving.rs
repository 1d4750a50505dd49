//! A worker that calls are sent to: a small HTTP/1.1 server that answers every request with the
//! same result.

use anyhow::{Context, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::ADDRESS_MARK;

/// Largest request in bytes.
const MAX_REQUEST_BYTES: usize = 1024 * 1024;

/// The answer to every request.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1\r\n\r\n7";

/// Serves until it is ended.
pub async fn run() -> anyhow::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{ADDRESS_MARK}{}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept().await?;
        // A connection that breaks off ends alone.
        tokio::spawn(serve(stream));
    }
}

async fn serve(mut stream: TcpStream) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        while let Some(length) = whole_request(&buffer)? {
            buffer.drain(..length);
            stream.write_all(ANSWER).await?;
        }
        ensure!(buffer.len() < MAX_REQUEST_BYTES, "a request is larger than {MAX_REQUEST_BYTES} bytes");
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// Length of the first request, once it is whole.
fn whole_request(bytes: &[u8]) -> anyhow::Result<Option<usize>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end])?.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.context("a request has no length")?.trim().parse()?;
    let whole = end + 4 + length;
    Ok((bytes.len() >= whole).then_some(whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_when_it_is_whole() {
        let request = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
        for cut in 0..request.len() {
            assert_eq!(whole_request(&request[..cut]).unwrap(), None, "{cut}");
        }
        assert_eq!(whole_request(&[&request[..], b"POST"].concat()).unwrap(), Some(request.len()));
    }
}
