//! Connections that keep the server waiting, over real sockets and in virtual time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::SystemClock;
use segno_server::settings::{Authentication, Role, Settings};
use segno_server::{Server, samples};
use segno_testkit::clock::VirtualClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stand::{Ground, PATIENCE, listener, settings};

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// A server whose time only moves when a test moves it.
struct Still {
    server: Server,
    clock: Arc<VirtualClock>,
    _ground: Ground,
}

impl Still {
    async fn new(change: impl FnOnce(&mut Settings)) -> Self {
        let ground = Ground::new().await;
        let clock = VirtualClock::new();
        let mut settings = settings(Authentication::None);
        settings.server.roles = [Role::Api].into();
        change(&mut settings);
        let builder = Server::builder(ground.store.clone(), settings).clock(clock.clone());
        let server = builder.functions(samples::functions).start(listener().await).await.unwrap();
        Still { server, clock, _ground: ground }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.server.address()).await.unwrap()
    }

    /// Lets time pass until a future is done.
    async fn while_time_passes<T>(&self, work: impl Future<Output = T>) -> T {
        let passing = async {
            loop {
                self.clock.advance(Duration::from_millis(500));
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
            }
        };
        let done = async {
            tokio::select! {
                done = work => done,
                () = passing => unreachable!("time passes for ever"),
            }
        };
        segno::clock::timeout(&SystemClock, PATIENCE, done).await.expect("it does not end")
    }
}

/// A hook that takes bodies from anybody, and the beginning of a request to it.
async fn with_hook(still: &Still) -> &'static [u8] {
    let hook = serde_json::json!({ "store_only": true, "verification": "none" });
    let url = format!("http://{}/v1/hooks/default/h", still.server.address());
    let put = crate::stand::http().put(url).header("if-none-match", "*").json(&hook).send().await.unwrap();
    assert_eq!(put.status(), 201);
    b"POST /v1/hooks/default/h HTTP/1.1\r\nhost: localhost\r\ncontent-length: 20480\r\n\r\n"
}

/// One answer of `/healthz`.
async fn answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\"ok\"}") {
        let mut byte = [0; 1];
        assert_eq!(stream.read(&mut byte).await.unwrap(), 1, "{}", String::from_utf8_lossy(&text));
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

/// Reads until the server closes.
async fn closed(mut stream: TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // A reset is an end too.
    let _ = stream.read_to_end(&mut rest).await;
    rest
}

#[tokio::test]
async fn a_connection_without_a_whole_request_head_is_closed() {
    let still = Still::new(|_| {}).await;
    for sent in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n", b"GET /healthz HTTP/1.1\r\nhost: lo"] {
        let mut stream = still.connect().await;
        stream.write_all(sent).await.unwrap();
        assert_eq!(still.while_time_passes(closed(stream)).await, b"", "{}", String::from_utf8_lossy(sent));
    }
    for sent in [&b""[..], b"GET /he"] {
        let mut stream = still.connect().await;
        stream.write_all(HEALTH).await.unwrap();
        assert!(answer(&mut stream).await.starts_with("HTTP/1.1 200"));
        stream.write_all(sent).await.unwrap();
        assert_eq!(still.while_time_passes(closed(stream)).await, b"", "{}", String::from_utf8_lossy(sent));
    }
}

#[tokio::test]
async fn requests_are_served_while_silent_sockets_take_every_place() {
    let still = Still::new(|settings| settings.server.max_connections = 20).await;
    let mut busy = still.connect().await;
    busy.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert_eq!(busy.read_u8().await.unwrap(), b'H');
    // Time stands still, so none of these is ever closed for being slow.
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(still.connect().await);
    }
    let mut stream = still.connect().await;
    stream.write_all(HEALTH).await.unwrap();
    let answered = segno::clock::timeout(&SystemClock, PATIENCE, answer(&mut stream)).await;
    assert!(answered.expect("no answer").starts_with("HTTP/1.1 200"));
    let first = silent.remove(0);
    let ended = segno::clock::timeout(&SystemClock, PATIENCE, closed(first)).await;
    assert_eq!(ended.expect("the first silent socket gave way"), b"");
    let mut head = [0; 8];
    busy.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"TTP/1.1 ", "a connection with a request keeps its place");
}

#[tokio::test]
async fn requests_are_served_while_slow_bodies_take_every_place() {
    let still = Still::new(|settings| settings.server.max_connections = 20).await;
    let head = with_hook(&still).await;
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut stream = still.connect().await;
        stream.write_all(head).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        slow.push(stream);
    }
    let mut stream = still.connect().await;
    stream.write_all(HEALTH).await.unwrap();
    let mut answered = Box::pin(answer(&mut stream));
    // Less time passes than a body may take, so that none of them is ended for being slow.
    let mut waited = Duration::ZERO;
    let answered = loop {
        tokio::select! {
            biased;
            answered = &mut answered => break answered,
            () = async { for _ in 0..1_000 { tokio::task::yield_now().await } } => {}
        }
        waited += Duration::from_millis(50);
        assert!(waited < Duration::from_secs(4), "a new connection waits for slow bodies");
        still.clock.advance(Duration::from_millis(50));
    };
    assert!(answered.starts_with("HTTP/1.1 200"));
    let ended = segno::clock::timeout(&SystemClock, PATIENCE, closed(slow.remove(0))).await;
    let ended = String::from_utf8(ended.expect("the slowest one gave way")).unwrap();
    assert!(ended.starts_with("HTTP/1.1 503") && ended.contains("too-many-connections"), "{ended}");
}

#[tokio::test]
async fn a_peer_that_sends_a_large_body_reads_why_it_was_refused() {
    let still = Still::new(|settings| settings.auth.mode = Authentication::Keys).await;
    for (method, path, status) in [("POST", "/v1/instances", 401), ("PUT", "/nowhere", 404)] {
        let body = vec![b'x'; 20 * 1024 * 1024];
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        let mut stream = still.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        let sent = segno::clock::timeout(&SystemClock, PATIENCE, stream.write_all(&body)).await;
        sent.expect("the server reads on").unwrap();
        let answer = String::from_utf8(closed(stream).await).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_peer_that_sends_for_ever_after_a_refusal_is_cut_off() {
    let still = Still::new(|settings| settings.auth.mode = Authentication::Keys).await;
    let mut stream = still.connect().await;
    let head = b"POST /v1/instances HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head).await.unwrap();
    let chunk = [b"10000\r\n", &[b'x'; 0x10000][..], b"\r\n"].concat();
    let sending = async {
        let mut sent = 0_usize;
        while stream.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
        }
        sent
    };
    let sent = segno::clock::timeout(&SystemClock, PATIENCE, sending).await.expect("it may send for ever");
    assert!(sent > 32 * 1024 * 1024, "{sent} bytes were taken");
}

#[tokio::test]
async fn a_body_that_trickles_is_refused_and_one_that_flows_is_taken() {
    let still = Still::new(|_| {}).await;
    let head = with_hook(&still).await;
    let mut trickling = still.connect().await;
    trickling.write_all(head).await.unwrap();
    trickling.write_all(b"x").await.unwrap();
    let mut flowing = still.connect().await;
    flowing.write_all(head).await.unwrap();
    let mut seconds = 0;
    for part in [[b'x'; 2_048]; 10] {
        flowing.write_all(&part).await.unwrap();
        // The parts are read one by one, each at its time.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        seconds += 1;
        if seconds < 10 {
            still.clock.advance(Duration::from_secs(1));
        }
    }
    for (mut stream, status) in [(trickling, "408"), (flowing, "202")] {
        let mut head = [0; 12];
        let read = segno::clock::timeout(&SystemClock, PATIENCE, stream.read_exact(&mut head)).await;
        read.expect("no answer").unwrap();
        assert_eq!(std::str::from_utf8(&head).unwrap(), format!("HTTP/1.1 {status}"));
    }
}

#[tokio::test]
async fn a_request_is_not_behind_all_those_that_another_connection_has_sent_in_advance() {
    let still = Still::new(|_| {}).await;
    let (mut many, mut one) = (still.connect().await, still.connect().await);
    for stream in [&mut many, &mut one] {
        stream.write_all(HEALTH).await.unwrap();
        answer(stream).await;
    }
    many.write_all(&HEALTH.repeat(1_000)).await.unwrap();
    one.write_all(HEALTH).await.unwrap();
    answer(&mut one).await;
    let mut bytes = vec![0; 1024 * 1024];
    let read = many.try_read(&mut bytes).unwrap_or(0);
    let answers = String::from_utf8_lossy(&bytes[..read]).matches("HTTP/1.1 200").count();
    assert!(answers < 10, "{answers} answers were before it");
}

#[tokio::test]
async fn a_peer_that_reads_none_of_its_pipelined_answers_is_disconnected() {
    let still = Still::new(|_| {}).await;
    let mut stream = still.connect().await;
    let request = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n";
    stream.write_all(&request.repeat(400)).await.unwrap();
    let refused = async {
        // More requests are taken until the answers of the first ones fill all buffers; then only
        // the end is left.
        while stream.write_all(request).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    still.while_time_passes(refused).await;
}

#[tokio::test]
async fn a_stream_that_is_read_outlives_every_time_limit() {
    let still = Still::new(|_| {}).await;
    let mut stream = still.connect().await;
    stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut bytes = [0; 4096];
    assert_ne!(stream.read(&mut bytes).await.unwrap(), 0);
    for _ in 0..300 {
        still.clock.advance(Duration::from_secs(1));
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }
    loop {
        match stream.try_read(&mut bytes) {
            Ok(0) => panic!("the stream was closed"),
            Ok(_) => {}
            Err(error) => return assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}

#[tokio::test]
async fn idle_and_unread_http2_connections_are_closed() {
    let still = Still::new(|_| {}).await;
    for (window, path) in [(65_535, "/healthz"), (0, "/openapi.json")] {
        let stream = still.connect().await;
        let handshake = h2::client::Builder::new().initial_window_size(window).handshake::<_, Bytes>(stream);
        let (mut sender, connection) = handshake.await.unwrap();
        let ended = tokio::spawn(connection);
        let uri = format!("http://{}{path}", still.server.address());
        let request = http::Request::get(uri).body(()).unwrap();
        let (answer, _) = sender.send_request(request, true).unwrap();
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        // Pings are answered all the time: only a request, or reading, keeps a connection open.
        let _ = still.while_time_passes(ended).await;
    }
}

#[tokio::test]
async fn a_page_of_the_server_itself_may_post_over_http2_and_no_other() {
    let still = Still::new(|_| {}).await;
    let stream = still.connect().await;
    let (mut sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let own = still.server.address().to_string();
    for (authority, origin, status) in [
        (own.as_str(), format!("http://{own}"), 400),
        (own.as_str(), "http://evil.example".to_owned(), 403),
        ("evil.example", "http://evil.example".to_owned(), 403),
    ] {
        let request = http::Request::post(format!("http://{authority}/v1/instances"))
            .header("origin", &origin)
            .header("content-type", "application/json");
        let (answer, mut body) = sender.send_request(request.body(()).unwrap(), false).unwrap();
        body.send_data(Bytes::from_static(b"{}"), true).unwrap();
        assert_eq!(answer.await.unwrap().status(), status, "{authority} {origin}");
    }
}

#[tokio::test]
async fn a_request_without_a_host_is_refused_by_a_server_without_keys() {
    let still = Still::new(|_| {}).await;
    let mut stream = still.connect().await;
    stream.write_all(b"GET /v1/instances HTTP/1.0\r\n\r\n").await.unwrap();
    let answer = closed(stream).await;
    assert!(answer.starts_with(b"HTTP/1.0 403"), "{}", String::from_utf8_lossy(&answer));
}
