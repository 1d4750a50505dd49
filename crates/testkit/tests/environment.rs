//! The environment and the fakes, used as a user of the library would.

#![expect(clippy::unwrap_used, reason = "a failed assertion of a test panics")]

use std::time::Duration;

use segno::clock::Clock;
use segno::{Activity, Context, Failure, Orchestration, Registry, RuntimeOptions};
use segno_testkit::{Fake, TestEnv, histories, run};

const NAP: Orchestration<u64, u64> = Orchestration::new("nap");
const CALL: Activity<u64, u64> = Activity::new("call");

async fn nap(ctx: Context, days: u64) -> Result<u64, Failure> {
    let started_ms = ctx.now_ms();
    ctx.sleep(Duration::from_secs(days * 24 * 60 * 60)).await?;
    ctx.activity(CALL, ctx.now_ms() - started_ms).attempts(3).await
}

fn registry(call: &Fake<u64, u64>) -> Registry {
    call.register(Registry::builder().orchestration(NAP, nap)).build().unwrap()
}

#[test]
fn three_days_pass_at_once() {
    run(async {
        let call = Fake::new(CALL).answers(|call| Ok(call.input));
        let env = TestEnv::start(registry(&call)).await;
        let slept_ms = env.client().start(NAP, 3).result().await.unwrap();
        assert_eq!(slept_ms, 3 * 24 * 60 * 60 * 1_000);
    });
}

#[test]
fn a_restart_in_the_middle_of_a_timer_changes_nothing() {
    run(async {
        let call = Fake::new(CALL).answers(|call| Ok(call.input));
        let mut env = TestEnv::start(registry(&call)).await;
        env.client().start(NAP, 3).id("n").await.unwrap();
        env.sleep(Duration::from_secs(24 * 60 * 60)).await;
        env.crash().await;
        assert_eq!(env.node_count(), 0);
        env.sleep(Duration::from_secs(10 * 24 * 60 * 60)).await;
        env.restart().await;
        env.add_node(RuntimeOptions::default()).await;
        let slept_ms = env.client().result(NAP, "n").await.unwrap();
        assert!(slept_ms >= 11 * 24 * 60 * 60 * 1_000, "nobody was there to see it fire: {slept_ms}");
        assert_eq!(call.calls().len(), 1);
    });
}

#[test]
fn a_fake_follows_its_script_and_remembers_its_calls() {
    run(async {
        let call = Fake::new(CALL).fails_then(2, Failure::application("busy"), 5);
        let env = TestEnv::start(registry(&call)).await;
        assert_eq!(env.client().start(NAP, 0).id("n").result().await.unwrap(), 5);
        let calls = call.calls();
        assert_eq!(calls.iter().map(|call| call.attempt).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(calls.iter().all(|call| call.instance == "n" && call.delivery == 1));
        assert!(calls.iter().all(|call| call.idempotency_key == calls[0].idempotency_key));
    });
}

#[test]
fn the_same_seed_gives_the_same_history_and_another_seed_another() {
    let history = |seed| {
        run(async move {
            let call = Fake::new(CALL).returns(1);
            let env = TestEnv::builder(registry(&call)).seed(seed).start().await;
            let started = env.client().start(NAP, 1).await.unwrap();
            started.result().await.unwrap();
            assert!(env.clock().now_ms() > 0);
            histories::record(env.client(), started.id(), 1).await.unwrap()
        })
    };
    assert_eq!(history(5), history(5));
    assert_ne!(history(5), history(6));
}

#[test]
fn a_replay_in_ci_names_the_file_and_the_event_that_no_longer_fits() {
    let recorded = run(async {
        let call = Fake::new(CALL).returns(1);
        let env = TestEnv::start(registry(&call)).await;
        env.client().start(NAP, 1).id("n").result().await.unwrap();
        histories::record(env.client(), "n", 1).await.unwrap()
    });
    let directory = std::env::temp_dir().join(format!("segno-histories-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("nap.jsonl"), &recorded).unwrap();
    let same = registry(&Fake::new(CALL));
    let other = Registry::builder()
        .orchestration(NAP, |ctx: Context, _| async move { ctx.activity(CALL, 1).await })
        .build()
        .unwrap();
    let (fits, broken) =
        (histories::replay_dir(&directory, &same), histories::replay_dir(&directory, &other));
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(fits.unwrap(), 1);
    let message = broken.unwrap_err().to_string();
    assert!(message.contains("nap.jsonl") && message.contains("TimerCreated"), "{message}");
}
