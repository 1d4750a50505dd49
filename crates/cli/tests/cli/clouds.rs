//! A ledger in a bucket: probed, refused, used by whole DAG runs while the bucket goes away in the middle, and queried.
//!
//! `scripts/clouds.sh` starts object stores with the interfaces of S3 and of Azure Blob Storage, and runs this against each,
//! in a build with their features.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::spawn;
use std::time::Duration;

use segno::clock::{Clock as _, SystemClock};
use segno::ids::SystemIds;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{Process, segno};

/// Nine tasks, one of which takes as long as a parameter says.
const DAG: &str = "name: cloudy
params: {seconds: 0}
tasks:
  - {key: list, function: echo, input: [1, 2, 3, 4, 5]}
  - {key: each, function: echo, depends_on: [list], for_each: '{{ tasks.list.output }}', input: '{{ item }}'}
  - {key: wait, function: slow, depends_on: [each], input: {seconds: '{{ params.seconds }}'}}
  - {key: sum, function: echo, depends_on: [each, wait], input: '{{ tasks.each.output }}'}
";

/// Runs beside the first one. They make more deltas than are kept before they are merged.
const MORE_RUNS: usize = 15;

/// Longer than anything here takes, however busy the machine is.
const PATIENCE_MS: u64 = 120_000;

/// The bucket of `scripts/clouds.sh`.
struct Bucket {
    /// Its URL, with a folder that nothing else uses.
    url: String,
    /// The variable with the endpoint, and its value.
    endpoint: (String, String),
    /// The variable with the secret.
    secret: String,
}

impl Bucket {
    fn of_environment() -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        let endpoint = variable("SEGNO_TEST_BUCKET_ENDPOINT");
        let url = format!("{}/{:x}", variable("SEGNO_TEST_BUCKET"), SystemIds::shared().new_seed());
        let secret = variable("SEGNO_TEST_BUCKET_SECRET");
        Bucket { url, endpoint: (endpoint.clone(), variable(&endpoint)), secret }
    }

    /// A command whose ledger is in the bucket, by way of a proxy.
    fn command(&self, proxy: &Proxy) -> Command {
        let mut command = segno();
        command.env("SEGNO_LEDGER__URL", &self.url).env(&self.endpoint.0, &proxy.url);
        command
    }
}

/// A proxy in front of an object store, which can be cut.
struct Proxy {
    url: String,
    is_up: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    /// In front of what is at a URL.
    fn before(url: &str) -> Self {
        let (_, rest) = url.split_once("://").unwrap();
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = format!("http://{}/{path}", listener.local_addr().unwrap());
        let proxy = Proxy {
            url: own.trim_end_matches('/').to_owned(),
            is_up: Arc::new(AtomicBool::new(true)),
            open: Arc::default(),
        };
        let (host, is_up, open) = (host.to_owned(), Arc::clone(&proxy.is_up), Arc::clone(&proxy.open));
        spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if is_up.load(Ordering::Acquire)
                    && let Ok(server) = TcpStream::connect(&host)
                {
                    let both = [client.try_clone().unwrap(), server.try_clone().unwrap()];
                    open.lock().unwrap().extend(both);
                    forward(client.try_clone().unwrap(), server.try_clone().unwrap());
                    forward(server, client);
                }
            }
        });
        proxy
    }

    /// Ends all connections, and every further one at once.
    fn cut(&self) {
        self.is_up.store(false, Ordering::Release);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn mend(&self) {
        self.is_up.store(true, Ordering::Release);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream) {
    spawn(move || {
        let _ = copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}

/// Looks until it is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let until_ms = SystemClock.now_ms() + PATIENCE_MS;
    while !is_so() {
        assert!(SystemClock.now_ms() < until_ms, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn refused(output: &Output, says: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("ledger.url") && said.contains(says), "{said}");
}

#[test]
#[ignore = "needs a bucket; scripts/clouds.sh runs it"]
fn a_bucket_that_cannot_be_used_is_refused_with_the_reason_before_a_server_relies_on_it() {
    let bucket = Bucket::of_environment();
    let proxy = Proxy::before(&bucket.endpoint.1);
    let check = |command: &mut Command| command.args(["ledger", "check", "-o", "json"]).output().unwrap();
    let passed = check(&mut bucket.command(&proxy));
    assert!(passed.status.success(), "{}", String::from_utf8_lossy(&passed.stderr));
    let passed: Value = serde_json::from_slice(&passed.stdout).unwrap();
    assert_eq!(passed["places"][0]["usage"], "the log, manifests and tables");
    let (scheme, rest) = bucket.url.split_once("://").unwrap();
    let missing = format!("{scheme}://segno-missing-{rest}");
    refused(&check(bucket.command(&proxy).env("SEGNO_LEDGER__URL", &missing)), "create it first");
    // The key of no account, in base64, which one of the two stores needs.
    let wrong = "d3Jvbmcga2V5IG9mIG5vIGFjY291bnQ=";
    refused(&check(bucket.command(&proxy).env(&bucket.secret, wrong)), "the credentials");
    let directory = TempDir::new().unwrap();
    let mut command = bucket.command(&proxy);
    command.env(&bucket.secret, wrong);
    let data = directory.path().join("data");
    let started =
        Process::try_start_by(command, &["dev", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    let said = started.err().expect("a server does not start with credentials that are refused").join("\n");
    assert!(said.contains("ledger.url: cannot be used") && said.contains("the credentials"), "{said}");
    proxy.cut();
    refused(&check(&mut bucket.command(&proxy)), "check endpoint, region and network");
}

#[test]
#[ignore = "needs a bucket; scripts/clouds.sh runs it"]
fn runs_end_and_are_queried_in_a_bucket_that_goes_away_in_the_middle() {
    let (bucket, directory) = (Bucket::of_environment(), TempDir::new().unwrap());
    let proxy = Proxy::before(&bucket.endpoint.1);
    let data = directory.path().join("data");
    let server = Process::dev_by(bucket.command(&proxy), &data);
    publish(&server, directory.path());
    let started = server.json(&["run", "start", "cloudy", "--param", "seconds=3"]);
    let id = started["id"].as_str().unwrap().to_owned();
    until("the start of the slow task", || {
        let status = server.json(&["task", "show", &id, "wait"])["status"].clone();
        status == "running" || status == "dispatched"
    });
    proxy.cut();
    until("the warning", || {
        let health = server.json(&["health"]);
        let warnings = health["warnings"].as_array().cloned().unwrap_or_default();
        warnings.iter().any(|warning| warning == "the ledger cannot be written")
    });
    proxy.mend();
    let watched = server.run(&["run", "watch", &id]);
    assert!(watched.status.success(), "{}", String::from_utf8_lossy(&watched.stderr));
    assert_eq!(server.said(&["task", "output", &id, "sum"]).trim(), "[1,2,3,4,5]");
    for _ in 0..MORE_RUNS {
        let run = server.run(&["run", "start", "cloudy", "--watch"]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
    let (runs, tasks) = (MORE_RUNS + 1, (MORE_RUNS + 1) * 9);
    let queried = |server: &Process| {
        let of_runs = server.items(&["sql", "SELECT status, count(*) AS runs FROM runs GROUP BY 1"]);
        let of_tasks = server.items(&["sql", "SELECT status, count(*) AS tasks FROM tasks GROUP BY 1"]);
        assert_eq!(of_runs, [json!({ "status": "succeeded", "runs": runs })]);
        assert_eq!(of_tasks, [json!({ "status": "succeeded", "tasks": tasks })]);
    };
    queried(&server);
    drop(server);
    queried(&Process::dev_by(bucket.command(&proxy), &data));
}

fn publish(server: &Process, directory: &Path) {
    let file = directory.join("dag.yaml");
    std::fs::write(&file, DAG).unwrap();
    server.said(&["dag", "publish", file.to_str().unwrap()]);
}
