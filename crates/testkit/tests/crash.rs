//! Scenarios that must not notice a crash of their node, at whichever commit it happens.

#![expect(clippy::unwrap_used, reason = "a failed assertion of a test panics")]

use std::time::Duration;

use segno::{Activity, Context, Failure, Mailbox, Orchestration, Registry, Signal, join_all, race};
use segno_testkit::Fake;
use segno_testkit::crash::{CrashReport, CrashTest, Outside};

const WORK: Orchestration<u32, Vec<u32>> = Orchestration::new("work");
const DOUBLE: Activity<u32, u32> = Activity::new("double");
const UNDO: Activity<u32, u32> = Activity::new("undo");
const GO: Signal<u32> = Signal::new("go");
const ORDERS: Mailbox<u32> = Mailbox::new("orders");
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A registry with one orchestration and the activities that all scenarios use.
fn registry<F, Fut>(code: F) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<u32>, Failure>> + Send + 'static,
{
    let double = Fake::new(DOUBLE).answers(|call| match call.input {
        13 => Err(Failure::application("unlucky").non_retryable()),
        9 if call.attempt < 3 => Err(Failure::application("not yet")),
        number => Ok(number * 2),
    });
    let undo = Fake::new(UNDO).answers(|call| Ok(call.input));
    let registry = Registry::builder().orchestration(WORK, code);
    undo.register(double.register(registry)).build().unwrap()
}

/// Starts the orchestration and gives its result, or the message of its failure.
async fn outcome(outside: &Outside, input: u32) -> Result<Vec<u32>, String> {
    let result = outside.client.start(WORK, input).id("w").result().await;
    result.map_err(|error| error.failure().map_or_else(|| error.to_string(), ToString::to_string))
}

#[test]
fn hello_survives_every_crash() {
    let registry = registry(|_, input| async move { Ok(vec![input]) });
    let report = CrashTest::new(registry, |outside| async move { outcome(&outside, 7).await }).run();
    assert_eq!(report, CrashReport { commits: 1, joined_commits: 1, runs: 4 });
}

#[test]
fn a_sequence_of_activities_with_retries_survives_every_crash() {
    let registry = registry(|ctx, input| async move {
        let first = ctx.activity(DOUBLE, input).attempts(4).await?;
        let second = ctx.activity(DOUBLE, first).await?;
        Ok(vec![first, second])
    });
    let report = CrashTest::new(registry, |outside| async move {
        assert_eq!(outcome(&outside, 9).await, Ok(vec![18, 36]));
    })
    .run();
    // Without joins a start, and for each of four attempts its end and a turn.
    assert_eq!(report, CrashReport { commits: 9, joined_commits: 5, runs: 28 });
}

#[test]
fn a_fan_out_and_join_survives_every_crash() {
    let registry = registry(|ctx, input| async move {
        join_all((0..input).map(|number| ctx.activity(DOUBLE, number))).await.into_iter().collect()
    });
    let scenario = |outside| async move { assert_eq!(outcome(&outside, 4).await, Ok(vec![0, 2, 4, 6])) };
    let report = CrashTest::new(registry, scenario).any_order().run();
    assert!(report.commits >= 6, "{report:?}");
}

#[test]
fn a_race_of_a_signal_and_a_timer_survives_every_crash() {
    let registry = registry(|ctx, input| async move {
        let first = race! {
            signal = ctx.signal(GO) => signal?,
            _ = ctx.sleep(3 * DAY) => 0,
        };
        let second = race! {
            signal = ctx.signal(GO) => signal?,
            _ = ctx.sleep(3 * DAY) => 0,
        };
        Ok(vec![input, first, second])
    });
    let scenario = |outside: Outside| async move {
        let signal = async {
            outside.sleep(DAY).await;
            outside.client.signal("w", GO, 5).await.unwrap();
        };
        let (result, ()) = segno::join(outcome(&outside, 1), signal).await;
        assert_eq!(result, Ok(vec![1, 5, 0]));
    };
    let report = CrashTest::new(registry, scenario).run();
    assert!(report.commits >= 3, "{report:?}");
}

#[test]
fn a_time_limit_survives_every_crash() {
    let registry = registry(|ctx, input| async move {
        let doubled_and_received = async {
            let doubled = ctx.activity(DOUBLE, input).await?;
            Ok(doubled + ctx.signal(GO).await?)
        };
        let in_time = ctx.timeout(3 * DAY, doubled_and_received).await?;
        let too_late = ctx.timeout(3 * DAY, ctx.signal(GO)).await?;
        Ok(vec![in_time.unwrap_or(77), too_late.unwrap_or(99)])
    });
    let scenario = |outside: Outside| async move {
        let signal = async {
            outside.sleep(DAY).await;
            outside.client.signal("w", GO, 5).await.unwrap();
        };
        let (result, ()) = segno::join(outcome(&outside, 1), signal).await;
        assert_eq!(result, Ok(vec![7, 99]));
    };
    let report = CrashTest::new(registry, scenario).run();
    assert!(report.commits >= 4, "{report:?}");
}

#[test]
fn inline_steps_survive_every_crash() {
    let registry = registry(|ctx, input| async move {
        let first = ctx.run("first", move || async move { Ok(input + 1) }).await?;
        let doubled = ctx.activity(DOUBLE, first).await?;
        let steps = [1, 2].map(|more| ctx.run("more", move || async move { Ok(doubled + more) }));
        let mut results: Vec<u32> = join_all(steps).await.into_iter().collect::<Result<_, _>>()?;
        results.push(ctx.run("last", || async { Err(Failure::application("no")) }).await.unwrap_or(99));
        Ok(results)
    });
    let scenario = |outside| async move { assert_eq!(outcome(&outside, 1).await, Ok(vec![5, 6, 99])) };
    let report = CrashTest::new(registry, scenario).run();
    assert!(report.commits >= 4, "{report:?}");
}

#[test]
fn children_survive_every_crash() {
    let registry = registry(|ctx, input| async move {
        if input == 0 {
            return ctx.activity(DOUBLE, 13).await.map(|number| vec![number]);
        }
        if input < 3 {
            return ctx.activity(DOUBLE, input).await.map(|number| vec![number]);
        }
        let children = (0..input).map(|child| ctx.child(WORK, child % 3));
        let children = join_all(children).await;
        Ok(children.into_iter().map(|child| child.map_or(77, |results| results[0])).collect())
    });
    let scenario = |outside| async move { assert_eq!(outcome(&outside, 3).await, Ok(vec![77, 2, 4])) };
    let report = CrashTest::new(registry, scenario).any_order().run();
    assert!(report.commits >= 10, "{report:?}");
}

#[test]
fn continue_as_new_with_a_mailbox_survives_every_crash() {
    let registry = registry(|ctx, read| async move {
        let order = ctx.mailbox(ORDERS).receive().await?;
        if read + order >= 6 {
            return Ok(vec![read + order]);
        }
        ctx.continue_as_new(read + order).await
    });
    let scenario = |outside: Outside| async move {
        let send = async {
            for order in [1, 2, 3] {
                outside.client.enqueue("w", ORDERS, order).await.unwrap();
                outside.sleep(Duration::from_secs(60)).await;
            }
        };
        let (result, ()) = segno::join(outcome(&outside, 0), send).await;
        assert_eq!(result, Ok(vec![6]));
    };
    let report = CrashTest::new(registry, scenario).run();
    assert!(report.commits >= 4, "{report:?}");
}

#[test]
fn a_saga_compensates_through_every_crash() {
    let registry = registry(|ctx, input| async move {
        let mut done = Vec::new();
        for number in [input, input + 1, 13] {
            match ctx.activity(DOUBLE, number).await {
                Ok(_) => done.push(number),
                Err(_) => break,
            }
        }
        let mut undone = Vec::new();
        for number in done.into_iter().rev() {
            undone.push(ctx.activity(UNDO, number).attempts(3).await?);
        }
        Ok(undone)
    });
    let scenario = |outside| async move { assert_eq!(outcome(&outside, 1).await, Ok(vec![2, 1])) };
    let report = CrashTest::new(registry, scenario).run();
    assert!(report.commits >= 11, "{report:?}");
}

#[test]
fn cancellation_with_cleanup_survives_every_crash() {
    let registry = registry(|ctx, input| async move {
        let waited = ctx.signal(GO).await;
        ctx.shielded().activity(UNDO, input).attempts(3).await?;
        waited.map(|value| vec![value])
    });
    let scenario = |outside: Outside| async move {
        let cancel = async {
            outside.sleep(DAY).await;
            outside.client.cancel("w", "enough").await.unwrap();
        };
        let (result, ()) = segno::join(outcome(&outside, 4), cancel).await;
        assert_eq!(result, Err("cancelled: enough".to_owned()));
    };
    let report = CrashTest::new(registry, scenario).run();
    assert!(report.commits >= 4, "{report:?}");
}

#[test]
fn a_restart_of_what_failed_survives_every_crash() {
    let registry = registry(|ctx, input| async move {
        let doubled = ctx.activity(DOUBLE, input).await?;
        let signal = ctx.signal(GO).await?;
        if signal == 0 {
            return Err(Failure::application("not this time"));
        }
        Ok(vec![doubled, signal])
    });
    let scenario = |outside: Outside| async move {
        let (client, id) = (&outside.client, "w");
        client.start(WORK, 4).id(id).await.unwrap();
        client.signal(id, GO, 0).await.unwrap();
        client.wait_until_ended(id, DAY).await.unwrap();
        assert_eq!(client.restart(id).await.unwrap().execution_id, 2);
        outside.sleep(DAY).await;
        // The second execution waits; it is cut off, and a third one takes its place.
        assert_eq!(client.restart(id).force().await.unwrap().execution_id, 3);
        client.signal(id, GO, 5).await.unwrap();
        let ended = client.wait_until_ended(id, DAY).await.unwrap();
        assert_eq!(ended.result().unwrap().decode::<Vec<u32>>().unwrap(), [8, 5]);
        client.executions(id).await.unwrap()
    };
    let report = CrashTest::new(registry, scenario).run();
    assert!(report.commits >= 7, "{report:?}");
}
