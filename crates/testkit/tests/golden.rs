//! Histories that must replay for ever, in both their forms. `UPDATE_GOLDEN=1` records them anew; look at the difference
//! before committing it, for running instances have histories like these.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed assertion of a test panics")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use segno::event::EventKind;
use segno::{Activity, Context, Failure, Mailbox, Orchestration, Registry, Retry, Signal, join_all, race};
use segno_testkit::histories::{self, History};
use segno_testkit::{Fake, TestEnv, run};

const ORDER: Orchestration<u32, Vec<u32>> = Orchestration::new("order");
const RACES: Orchestration<u32, u32> = Orchestration::new("races");
const COUNTER: Orchestration<u32, u32> = Orchestration::new("counter");
const CLEANUP: Orchestration<u32, u32> = Orchestration::new("cleanup");
const WAITER: Orchestration<u32, u32> = Orchestration::new("waiter");
const BROKEN: Orchestration<u32, u32> = Orchestration::new("broken");
const CHARGE: Activity<u32, u32> = Activity::new("charge");
const REFUSE: Activity<u32, u32> = Activity::new("refuse");
const HANG: Activity<u32, u32> = Activity::new("hang");
const GO: Signal<u32> = Signal::new("go");
const ORDERS: Mailbox<u32> = Mailbox::new("orders");
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Activities with retries, steps, children, detached starts, status, labels and patches.
async fn order(ctx: Context, input: u32) -> Result<Vec<u32>, Failure> {
    ctx.set_status(&"charging")?;
    ctx.set_label("customer", "c1")?;
    let retry = Retry::fixed(3, Duration::from_secs(1));
    let charged = ctx.activity(CHARGE, input).retry(retry).timeout(HOUR).deadline(2 * HOUR).await?;
    let refused = ctx.activity(REFUSE, input).tag("slow").await.unwrap_or(1);
    if ctx.patched("receipts") {
        ctx.run("receipt", || async { Ok("r1") }.map_output()).await?;
    }
    let failed = ctx.run("broken step", || async { Err(Failure::application("no").code("nope")) }).await;
    let children = [WAITER, BROKEN].map(|child| ctx.child(child, 0));
    let children = join_all(children).await.into_iter().map(|child| child.unwrap_or(2)).collect::<Vec<u32>>();
    ctx.start_detached(WAITER, 0).id("golden-detached").await?;
    ctx.remove_label("customer");
    ctx.clear_status();
    Ok([vec![charged, refused, failed.unwrap_or(3)], children].concat())
}

/// Losers of every sort.
async fn races(ctx: Context, input: u32) -> Result<u32, Failure> {
    let first = race! { value = ctx.signal(GO) => value?, _ = ctx.sleep(HOUR) => 0 };
    race! { _ = ctx.sleep(HOUR) => (), _ = ctx.signal(GO) => () };
    race! { _ = ctx.sleep(HOUR) => (), _ = ctx.activity(HANG, input) => () };
    race! { _ = ctx.sleep(HOUR) => (), _ = ctx.child(WAITER, 1) => () };
    Ok(first)
}

async fn counter(ctx: Context, sum: u32) -> Result<u32, Failure> {
    let sum = sum + ctx.mailbox(ORDERS).receive().await?;
    ctx.set_status(&sum)?;
    if sum < 6 { ctx.continue_as_new(sum).await } else { Ok(sum) }
}

async fn cleanup(ctx: Context, input: u32) -> Result<u32, Failure> {
    let waited = ctx.signal(GO).await;
    ctx.shielded().activity(CHARGE, input).attempts(3).await?;
    waited
}

async fn waiter(ctx: Context, wait: u32) -> Result<u32, Failure> {
    if wait > 0 { ctx.signal(GO).await } else { Ok(4) }
}

async fn broken(_: Context, _: u32) -> Result<u32, Failure> {
    Err(Failure::application("broken").code("broken").details(serde_json::json!({ "part": 7 })))
}

/// Gives the future of a step its type.
trait MapOutput: Future<Output = Result<&'static str, Failure>> + Sized {
    async fn map_output(self) -> Result<String, Failure> {
        self.await.map(str::to_owned)
    }
}

impl<F: Future<Output = Result<&'static str, Failure>>> MapOutput for F {}

fn registry() -> Registry {
    let charge = Fake::new(CHARGE).answers(|call| match call.attempt {
        1 => Err(Failure::application("busy")),
        _ => Ok(call.input),
    });
    let refuse = Fake::new(REFUSE).fails(Failure::application("never").non_retryable());
    let registry = Registry::builder()
        .orchestration(ORDER, order)
        .orchestration(RACES, races)
        .orchestration(COUNTER, counter)
        .orchestration(CLEANUP, cleanup)
        .orchestration(WAITER, waiter)
        .orchestration(BROKEN, broken)
        .activity(HANG, |ctx, input| async move {
            ctx.cancelled().await;
            Ok(input)
        });
    refuse.register(charge.register(registry)).build().unwrap()
}

/// Plays all scenarios and gives their histories.
fn record_all() -> Vec<History> {
    run(async {
        let options = segno::RuntimeOptions {
            tag_filter: segno::store::TagFilter::Any,
            ..segno::RuntimeOptions::default()
        };
        let env = TestEnv::builder(registry()).options(options).seed(7).start().await;
        let client = env.client();
        client
            .start(ORDER, 5)
            .id("golden-order")
            .label("kind", "golden")
            .traceparent("00-1-2-01")
            .await
            .unwrap();
        client.start(RACES, 5).id("golden-races").await.unwrap();
        client.start(COUNTER, 0).id("golden-counter").await.unwrap();
        client.start(CLEANUP, 5).id("golden-cleanup").await.unwrap();
        env.sleep(Duration::from_secs(60)).await;
        client.signal("golden-races", GO, 9).message_id("go").await.unwrap();
        client.pause("golden-counter", "for a while").await.unwrap();
        for order in [1, 2, 3] {
            client.enqueue("golden-counter", ORDERS, order).message_id(format!("m{order}")).await.unwrap();
        }
        env.sleep(Duration::from_secs(60)).await;
        client.resume("golden-counter").await.unwrap();
        client.cancel("golden-cleanup", "enough").await.unwrap();
        let mut histories = Vec::new();
        for instance in ["golden-order", "golden-races", "golden-counter", "golden-cleanup"] {
            client.wait_until_ended(instance, 24 * HOUR).await.unwrap();
            for execution_id in client.executions(instance).await.unwrap() {
                histories.push(History::of(client, instance, execution_id).await.unwrap());
            }
        }
        histories
    })
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden")
}

fn file(history: &History, extension: &str) -> PathBuf {
    directory().join(format!("{}-{}.{extension}", history.instance, history.execution_id))
}

/// All golden histories with their files.
fn golden() -> Vec<(PathBuf, History)> {
    let files = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|extension| extension == histories::EXTENSION))
        .collect();
    files.sort();
    let read = |file: PathBuf| {
        let history = History::from_json_lines(&std::fs::read_to_string(&file).unwrap());
        (file.clone(), history.unwrap_or_else(|error| panic!("{}: {error}", file.display())))
    };
    files.into_iter().map(read).collect()
}

/// Compares a file with what was recorded today, or writes it when asked to.
fn check_file(file: &PathBuf, recorded: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(directory()).unwrap();
        std::fs::write(file, recorded).unwrap();
    }
    let stored = std::fs::read_to_string(file).unwrap_or_default();
    let lines = stored.lines().zip(recorded.lines()).enumerate().find(|(_, (old, new))| old != new);
    if let Some((at, (old, new))) = lines {
        panic!("{} line {}:\n- {old}\n+ {new}\nUPDATE_GOLDEN=1 records it anew", file.display(), at + 1);
    }
    let counts = (stored.lines().count(), recorded.lines().count());
    assert_eq!(counts.0, counts.1, "{}: lines stored and recorded", file.display());
}

#[test]
fn golden_histories_replay() {
    assert_eq!(histories::replay_dir(directory(), &registry()).unwrap(), golden().len());
}

#[test]
fn stored_bytes_decode_to_the_events_of_the_readable_form() {
    for (file, history) in golden() {
        let stored = std::fs::read_to_string(file.with_extension("stored")).unwrap();
        let events = histories::read_stored_lines(&stored)
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(events, history.events, "{}", file.display());
    }
}

#[test]
fn what_is_recorded_today_is_what_was_recorded_then() {
    for history in record_all() {
        check_file(&file(&history, "jsonl"), &history.to_json_lines());
        check_file(&file(&history, "stored"), &history.to_stored_lines());
    }
}

#[test]
fn every_kind_of_event_is_in_a_golden_history() {
    let golden = golden();
    let covered: BTreeSet<&str> =
        golden.iter().flat_map(|(_, history)| &history.events).map(|event| event.kind.name()).collect();
    let missing: Vec<String> =
        event_kinds().into_iter().filter(|kind| !covered.contains(kind.as_str())).collect();
    assert!(missing.is_empty(), "no golden history has {missing:?}");
}

/// The stored names of all kinds of events, as the decoder lists them when it meets an unknown one.
fn event_kinds() -> Vec<String> {
    let error = serde_json::from_str::<EventKind>(r#""?""#).unwrap_err().to_string();
    let names: Vec<String> = error.split('`').skip(3).step_by(2).map(str::to_owned).collect();
    assert!(names.len() > 20 && names.iter().any(|name| name == "Patched"), "{error}");
    names
}
