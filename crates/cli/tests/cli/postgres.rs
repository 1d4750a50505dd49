//! `segno store copy` into PostgreSQL and back: nothing changes on the way.
//!
//! `SEGNO_COPIED_INSTANCES=200000 scripts/with-postgres.sh cargo nextest run --release -p segno-cli postgres --no-capture`
//! copies a store of the size of a busy one, and says how long it took.

use std::process::Command;
use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime};
use segno_stores::StoreUrl;
use serde_json::Value;
use tokio::task::JoinSet;

const GREET: Orchestration<u32, String> = Orchestration::new("greet");
const SLEEP: Orchestration<u32, ()> = Orchestration::new("sleep");
const COUNT_DOWN: Orchestration<u32, u32> = Orchestration::new("count-down");
const SAY: Activity<u32, String> = Activity::new("say");

/// Instances that are under way at once while the store is filled.
const AT_ONCE: u32 = 256;

fn registry() -> Registry {
    let greet =
        async |ctx: Context, number: u32| -> Result<String, Failure> { ctx.activity(SAY, number).await };
    let sleep = async |ctx: Context, _: u32| -> Result<(), Failure> {
        ctx.sleep(Duration::from_secs(100_000)).await?;
        Ok(())
    };
    let count_down = async |ctx: Context, number: u32| -> Result<u32, Failure> {
        match number {
            0 => Ok(0),
            more => ctx.continue_as_new(more - 1).await,
        }
    };
    let say =
        async |_: ActivityContext, number: u32| -> Result<String, Failure> { Ok(format!("hello {number}")) };
    Registry::builder()
        .orchestration(GREET, greet)
        .orchestration(SLEEP, sleep)
        .orchestration(COUNT_DOWN, count_down)
        .activity(SAY, say)
        .build()
        .unwrap()
}

/// A store with ended instances, some of them labelled or with several executions, and some that wait for timers,
/// signals or their start.
async fn fill(path: &str, instances: u32) {
    let store = path.parse::<StoreUrl>().unwrap().open().await.unwrap();
    let runtime = Runtime::builder(store).registry(registry()).start().await.unwrap();
    let mut clients = JoinSet::new();
    for first in 0..AT_ONCE.min(instances) {
        let client = runtime.client().clone();
        clients.spawn(async move {
            for number in (first..instances).step_by(AT_ONCE as usize) {
                let id = format!("i{number:07}");
                match number % 10 {
                    0 => drop(client.start(SLEEP, number).id(id).await.unwrap()),
                    1 => drop(client.start(COUNT_DOWN, 3).id(id).result().await.unwrap()),
                    2 => {
                        let team = format!("\"{}\\", number % 7);
                        drop(client.start(GREET, number).id(id).label("team", team).result().await.unwrap());
                    }
                    3 => {
                        let later = Duration::from_secs(50_000);
                        drop(client.start(GREET, number).id(id).delay(later).await.unwrap());
                    }
                    _ => drop(client.start(GREET, number).id(id).result().await.unwrap()),
                }
            }
        });
    }
    clients.join_all().await;
    runtime.shutdown(Duration::from_secs(10)).await;
}

fn seconds_since(began_ns: u64) -> f64 {
    Duration::from_nanos(SystemClock.monotonic_ns() - began_ns).as_secs_f64()
}

/// Copies, and returns the checksum over everything that was copied.
fn copy(from: &str, to: &str) -> String {
    let began_ns = SystemClock.monotonic_ns();
    let output = Command::new(env!("CARGO_BIN_EXE_segno"))
        .args(["store", "copy", from, to, "--output", "json"])
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{from} to {to}: {}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let scheme = |url: &str| url.split(':').next().unwrap_or_default().to_owned();
    println!("{} to {}: {:.1} s, {report}", scheme(from), scheme(to), seconds_since(began_ns));
    report["sha256"].as_str().unwrap().to_owned()
}

/// Where the database for tests is.
fn server() -> String {
    std::env::var("SEGNO_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("SEGNO_TEST_POSTGRES is not set: run this test with scripts/with-postgres.sh");
    })
}

#[test]
fn commands_that_read_create_no_schema() {
    let place = tempfile::tempdir().unwrap();
    let [file, target] = ["b.segno", "t"].map(|name| place.path().join(name).display().to_string());
    // A word of SQL is a name like any other.
    let schema = format!("select_{}", std::process::id());
    for schema in [schema.as_str(), "none"] {
        let store = format!("{}?schema={schema}", server());
        for arguments in [
            &["store", "info", &store][..],
            &["store", "backup", &store, &file],
            &["store", "copy", &store, &target],
            &["keys", "list", "--store", &store],
            &["keys", "revoke", "x", "--store", &store],
        ] {
            // The second time there would be a store, had the first one made it.
            for _ in 0..2 {
                let output = Command::new(env!("CARGO_BIN_EXE_segno")).args(arguments).output().unwrap();
                let message = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(output.status.code(), Some(6), "{arguments:?}: {message}");
                assert!(message.contains(&format!("has no schema {schema}")), "{message}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn a_store_goes_into_postgres_and_back_unchanged() {
    let server = server();
    let instances = std::env::var("SEGNO_COPIED_INSTANCES").map_or(300, |value| value.parse().unwrap());
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| format!("segno:{}", place.path().join(name).display());
    let database = format!("{server}?schema=copy_{}", std::process::id());
    let began_ns = SystemClock.monotonic_ns();
    let (first, second) = (at("first"), at("second"));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(fill(&first, instances));
    // Ends what is left of the node, so that nobody has the store open.
    drop(runtime);
    println!("{instances} instances in {:.1} s", seconds_since(began_ns));
    let there = copy(&first, &database);
    let back = copy(&database, &second);
    assert_eq!(there, back);
    assert_eq!(copy(&second, &at("third")), there);
}
