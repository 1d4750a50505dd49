//! The pipeline of the guide: a backfill of 30 days with a worker in Python, and a server that is killed in the middle of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use segno::clock::{Clock as _, SystemClock};
use serde_json::Value;
use tempfile::TempDir;

use crate::guide::{Comparison, compare};
use crate::process::{Process, segno};

/// Longer than the pipeline takes, however busy the machine is.
const PATIENCE_MS: u64 = 240_000;
/// The pipeline needs the processors more than the test does.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

struct Worker(Child);

impl Worker {
    fn start(server: &str, directory: &Path) -> Self {
        let mut command = Command::new("python3");
        command.arg(examples().join("workers/weather.py")).arg(server);
        command.env("WEATHER_DIR", directory).stdout(Stdio::null()).stderr(Stdio::null());
        Worker(command.spawn().unwrap())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ended(server: &Process, id: &str) -> (u64, String) {
    let shown = &server.json(&["backfill", "show", id])["backfill"];
    let count = |name: &str| shown[name].as_u64().unwrap_or_default();
    (
        count("completed_chunks") + count("failed_chunks"),
        shown["status"].as_str().unwrap_or_default().to_owned(),
    )
}

/// Looks at a backfill until it is as it should be.
fn look(server: &Process, id: &str, is_so: impl Fn(u64, &str) -> bool) {
    let until_ms = SystemClock.now_ms() + PATIENCE_MS;
    loop {
        let (chunks, status) = ended(server, id);
        if is_so(chunks, &status) {
            return;
        }
        assert!(SystemClock.now_ms() < until_ms, "{}", server.said(&["backfill", "show", id]));
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

#[test]
fn a_backfill_of_thirty_days_goes_on_after_the_server_was_killed() {
    let directory = TempDir::new().unwrap();
    let (data, files) = (directory.path().join("data"), directory.path().join("weather"));
    let mut server = Process::dev(&data);
    let address = server.address.clone();
    for name in ["list-stations", "read-station", "store-day", "report-day"] {
        server.said(&["functions", "put", name, r#"{"executor":"remote","timeout":"1m"}"#]);
    }
    let _worker = Worker::start(&address, &files);
    server.said(&["dag", "publish", examples().join("dags/weather.yaml").to_str().unwrap()]);
    let range = ["--partitions", "2026-01-01..2026-01-30", "--chunk-size", "1", "--max-concurrent-runs", "4"];
    let created: Value = server.json(&[&["backfill", "create", "weather"], &range[..]].concat());
    let id = created["id"].as_str().unwrap();
    look(&server, id, |chunks, _| chunks >= 3);
    server.kill();
    // The worker knows this address.
    let listen = address.strip_prefix("http://").unwrap();
    let server = Process::start_by(segno(), &["dev", "--listen", listen, "--data", data.to_str().unwrap()]);
    look(&server, id, |_, status| status != "running");
    assert_eq!(ended(&server, id), (30, "succeeded".to_owned()));
    assert_eq!(fs::read_dir(&files).unwrap().count(), 30, "one file for each day, and no part of one");
    compare("pipeline.md", Comparison::Settled, &server, directory.path());
}

#[test]
fn the_page_shows_the_dag() {
    let page = fs::read_to_string(examples().join("../docs/guide/pipeline.md")).unwrap();
    let dag = fs::read_to_string(examples().join("dags/weather.yaml")).unwrap();
    assert!(page.contains(&dag), "pipeline.md shows another DAG than examples/dags/weather.yaml");
}
