//! Lingering close: a connection that the server ends while its peer still sends.
//!
//! A socket that is closed with bytes in it that nothing has read makes the system reset the connection, and the
//! peer loses the answer that was sent to it. So the server ends its own direction, then reads and drops what the
//! peer sends, for a while and up to a bound. A peer that has sent a request and gets no answer because its
//! connection gives way to another one is told so.

use std::io::{self, Read as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use segno::clock::{self, Clock};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::activity::{Activity, Ending};
use crate::problem::{Code, Refusal};

/// Most connections that linger at once; further ones are closed at once.
pub const MAX_LINGERING: usize = 256;

/// For so long a connection lingers at most.
const LINGER: Duration = Duration::from_secs(5);

/// Most bytes that are read from a connection that lingers: more than the largest body of a request.
const MAX_LINGER_BYTES: usize = 32 * 1024 * 1024;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// Bytes that tell the protocol of a connection.
const HEAD_BYTES: usize = 3;

/// The first bytes of a connection.
#[derive(Debug, Clone, Copy, Default)]
struct Head {
    bytes: [u8; HEAD_BYTES],
    len: usize,
}

impl Head {
    fn add(&mut self, bytes: &[u8]) {
        let new = bytes.len().min(HEAD_BYTES - self.len);
        self.bytes[self.len..self.len + new].copy_from_slice(&bytes[..new]);
        self.len += new;
    }

    /// Whether it is the beginning of a request in HTTP/1: one in HTTP/2 begins with `PRI`, and a TLS
    /// handshake with a byte that is no letter.
    fn is_http1(self) -> bool {
        let bytes = &self.bytes[..self.len];
        self.len == HEAD_BYTES && bytes.iter().all(u8::is_ascii_uppercase) && bytes != b"PRI"
    }
}

/// A socket that lingers when it is dropped while its peer still sends.
pub struct LingeringStream {
    stream: Option<TcpStream>,
    activity: Arc<Activity>,
    lingering: Arc<Semaphore>,
    head: Head,
    has_ended: bool,
}

impl LingeringStream {
    /// A socket of a connection.
    pub fn new(stream: TcpStream, activity: Arc<Activity>, lingering: Arc<Semaphore>) -> Self {
        LingeringStream { stream: Some(stream), activity, lingering, head: Head::default(), has_ended: false }
    }

    fn poll<T>(
        &mut self,
        poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        let polled = poll(Pin::new(stream));
        self.has_ended |= matches!(polled, Poll::Ready(Err(_)));
        polled
    }

    /// What the peer is sent when the connection ends; `None` when it is closed at once.
    fn farewell(&self, waiting: Head) -> Option<Vec<u8>> {
        let may_be_told = Head::is_http1(if self.head.len > 0 { self.head } else { waiting });
        let is_cut_off = match self.activity.ending() {
            Ending::AtOnce => return None,
            Ending::InOrder if waiting.len == 0 && !self.activity.has_unread_body() => return None,
            Ending::InOrder => false,
            Ending::WithoutRequest if waiting.len == 0 => return None,
            Ending::WithoutRequest | Ending::WithoutAnswer => true,
        };
        let detail = "all connections of the server are taken (server.max_connections), and this one waited \
                      for the longest; nothing was changed; try again";
        let refusal = || Refusal::new(Code::TooManyConnections, detail).into_http1();
        Some(if is_cut_off && may_be_told { refusal() } else { Vec::new() })
    }
}

/// Takes the first of the bytes that nothing has read yet.
fn waiting(stream: &TcpStream) -> Head {
    let (mut bytes, mut head) = ([0; HEAD_BYTES], Head::default());
    // The socket does not block: without bytes, this is an error. The reactor is not asked, because it may
    // not have heard of them yet.
    if let Ok(read) = (&*socket2::SockRef::from(stream)).read(&mut bytes) {
        head.add(&bytes[..read]);
    }
    head
}

impl Drop for LingeringStream {
    fn drop(&mut self) {
        let (Some(stream), false) = (self.stream.take(), self.has_ended) else { return };
        let Some(farewell) = self.farewell(waiting(&stream)) else { return };
        let (Ok(permit), Ok(runtime)) = (self.lingering.clone().try_acquire_owned(), Handle::try_current())
        else {
            return;
        };
        let clock = self.activity.clock();
        runtime.spawn(async move {
            linger(stream, &farewell, &*clock).await;
            drop(permit);
        });
    }
}

async fn linger(mut stream: TcpStream, farewell: &[u8], clock: &dyn Clock) {
    let drained = async {
        stream.write_all(farewell).await?;
        stream.shutdown().await?;
        let (mut left, mut bytes) = (MAX_LINGER_BYTES, vec![0; READ_BYTES]);
        while left > 0 {
            match stream.read(&mut bytes).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        io::Result::Ok(())
    };
    // Whatever comes first: the end, an error, or the end of the time.
    let _ = clock::timeout(clock, LINGER, drained).await;
}

impl AsyncRead for LingeringStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, has_room) = (buffer.filled().len(), buffer.remaining() > 0);
        let polled = self.poll(|stream| stream.poll_read(context, buffer));
        if polled.is_ready() {
            let read = &buffer.filled()[before..];
            self.has_ended |= has_room && read.is_empty();
            self.head.add(read);
        }
        polled
    }
}

impl AsyncWrite for LingeringStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(|stream| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll(|stream| stream.poll_write_vectored(context, buffers))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(|stream| stream.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use segno_testkit::clock::VirtualClock;
    use tokio::net::TcpListener;

    use super::super::activity::WaitsFor;
    use super::*;

    /// A connection on whose clock no time passes, and its peer.
    async fn connection() -> (LingeringStream, TcpStream, Arc<Activity>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let activity = Activity::new(VirtualClock::new());
        let lingering = Arc::new(Semaphore::new(1));
        (LingeringStream::new(stream, activity.clone(), lingering), peer, activity)
    }

    /// What the peer of a connection reads that gives way after the peer has sent this.
    async fn told(sent: &[u8], waits_for: WaitsFor) -> String {
        let (stream, mut peer, activity) = connection().await;
        peer.write_all(sent).await.unwrap();
        activity.displace(waits_for);
        drop(stream);
        let mut read = Vec::new();
        peer.read_to_end(&mut read).await.unwrap();
        String::from_utf8(read).unwrap()
    }

    #[tokio::test]
    async fn a_request_on_a_connection_that_gives_way_is_answered_in_http1() {
        let answer = told(b"GET / HTTP/1.1\r\n\r\n", WaitsFor::Request).await;
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n") && answer.contains("\r\nretry-after: 1\r\n"));
        assert!(answer.contains("\"code\":\"too-many-connections\""), "{answer}");
        for other in [&b""[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\x00"] {
            assert_eq!(told(other, WaitsFor::Request).await, "", "{other:?}");
        }
    }

    #[tokio::test]
    async fn a_connection_without_anything_unread_is_closed_at_once() {
        let (mut stream, mut peer, activity) = connection().await;
        peer.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let mut bytes = [0; 18];
        stream.read_exact(&mut bytes).await.unwrap();
        let lingering = stream.lingering.clone();
        drop(stream);
        assert_eq!(lingering.available_permits(), 1);
        assert_eq!(activity.ending(), Ending::InOrder);
        assert_eq!(peer.read(&mut bytes).await.unwrap(), 0, "there is no reset");
    }
}
