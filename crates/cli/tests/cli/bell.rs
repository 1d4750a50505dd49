//! A function over HTTP, in the process of the test, that notes each of its calls: for which occurrence, by which node, when.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use segno::clock::{Clock, SystemClock};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// An occurrence: its scheduled second, and the id of its recurring action.
pub type Occurrence = (i64, String);

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    /// Which node made it.
    pub node: usize,
    /// The same for every delivery of one call.
    pub idempotency_key: String,
    /// When it came.
    pub at_ms: u64,
}

#[derive(Default)]
struct Heard {
    calls: BTreeMap<Occurrence, Vec<Call>>,
    /// Occurrences that were called, by their second.
    bursts: BTreeMap<i64, usize>,
}

/// The function.
pub struct Bell {
    address: String,
    heard: Arc<Mutex<Heard>>,
    rung: watch::Receiver<()>,
}

impl Bell {
    /// Begins to listen on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::<Mutex<Heard>>::default();
        let (ring, rung) = watch::channel(());
        let noted = heard.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, noted.clone(), ring.clone()));
            }
        });
        Bell { address, heard, rung }
    }

    /// The settings of this function for a node.
    pub fn settings(&self, node: usize) -> String {
        let address = &self.address;
        format!(
            "[functions.ring]\nexecutor = \"http\"\nurl = \"{address}/{node}\"\nallow_hosts = [\"127.0.0.1\"]\n"
        )
    }

    /// Waits until so many occurrences of a second were called.
    pub async fn wait_for(&self, second: i64, occurrences: usize) {
        let mut rung = self.rung.clone();
        while self.heard().bursts.get(&second).is_none_or(|heard| *heard < occurrences) {
            rung.changed().await.unwrap();
        }
    }

    /// All calls, in the order in which they came.
    pub fn calls(&self) -> BTreeMap<Occurrence, Vec<Call>> {
        self.heard().calls.clone()
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap()
    }
}

/// Answers the requests of one connection. One that breaks is that of a node that was killed.
async fn serve(mut stream: TcpStream, heard: Arc<Mutex<Heard>>, ring: watch::Sender<()>) {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    while let Some((head, body)) = read_request(&mut reader).await {
        let at_ms = SystemClock.now_ms();
        let (occurrence, call) = understand(&head, &body, at_ms);
        {
            let mut heard = heard.lock().unwrap();
            let is_first = !heard.calls.contains_key(&occurrence);
            *heard.bursts.entry(occurrence.0).or_default() += usize::from(is_first);
            heard.calls.entry(occurrence).or_default().push(call);
        }
        ring.send_replace(());
        if writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.is_err() {
            return;
        }
    }
}

async fn read_request(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let mut body = vec![0; header(&head, "content-length").parse().unwrap()];
    reader.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

fn understand(head: &str, body: &[u8], at_ms: u64) -> (Occurrence, Call) {
    let input: Value = serde_json::from_slice(body).unwrap();
    let metadata = |name: &str| input["metadata"][name].as_str().unwrap().to_owned();
    let time: jiff::Timestamp = metadata("_scheduled_time").parse().unwrap();
    let path = head.split(' ').nth(1).unwrap();
    let node = path.strip_prefix('/').unwrap().parse().unwrap();
    let idempotency_key = header(head, "idempotency-key").to_owned();
    ((time.as_second(), metadata("_recurring_id")), Call { node, idempotency_key, at_ms })
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let value = head.lines().filter_map(|line| line.split_once(": ")).find(|(key, _)| *key == name);
    value.unwrap_or_else(|| panic!("no {name} in {head}")).1
}
