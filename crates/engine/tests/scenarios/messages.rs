//! Signals and mailboxes: nothing lost, nothing twice, in order.

use segno::event::EventKind;
use segno::limits::{MAX_PAYLOAD_BYTES, MAX_UNREAD_MESSAGES};
use segno::store::ExecutionStatus;
use segno::{Code, Context, Failure, Mailbox, Orchestration, Registry, Signal, join, race};

use crate::support::{HANG, World, in_both_modes, secs};

const MAIN: Orchestration<u32, Vec<u32>> = Orchestration::new("main");
const GO: Signal<u32> = Signal::new("go");
const STOP: Signal<u32> = Signal::new("stop");
const JOBS: Mailbox<u32> = Mailbox::new("jobs");

fn registry<F, Fut>(main: F) -> Registry
where
    F: Fn(Context, u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Vec<u32>, Failure>> + Send + 'static,
{
    Registry::builder().orchestration(MAIN, main).build().unwrap()
}

async fn read_jobs(ctx: Context, n: u32) -> Result<Vec<u32>, Failure> {
    let mut read = Vec::new();
    for _ in 0..n {
        read.push(ctx.mailbox(JOBS).receive().await?);
    }
    Ok(read)
}

#[tokio::test(start_paused = true)]
async fn the_nth_wait_gets_the_nth_signal_of_its_name() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, _| {
            let (a, b) = join(ctx.signal(GO), ctx.signal(GO)).await;
            let c = ctx.signal(STOP).await?;
            let d = ctx.signal(GO).await?;
            Ok(vec![a?, b?, c, d])
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        for n in 1..=3 {
            world.client.signal("a", GO, n).await.unwrap();
        }
        world.pass(secs(5)).await;
        world.client.signal("a", STOP, 9).await.unwrap();
        assert_eq!(world.output::<Vec<u32>>("a").await, [1, 2, 9, 3]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn messages_sent_before_the_start_are_delivered_after_it() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            let go = ctx.signal(GO).await?;
            let mut jobs = read_jobs(ctx, n).await?;
            jobs.push(go);
            Ok(jobs)
        });
        let _node = world.node(&registry).await;
        world.client.enqueue("a", JOBS, 1).await.unwrap();
        world.client.signal("a", GO, 100).await.unwrap();
        world.pass(secs(60)).await;
        world.client.enqueue("a", JOBS, 2).await.unwrap();
        world.settle().await;
        let waiting = world.client.instance("a").await.unwrap();
        assert_eq!((waiting.status, waiting.orchestration), (ExecutionStatus::Pending, None));
        world.client.start(MAIN, 3).id("a").await.unwrap();
        world.client.enqueue("a", JOBS, 3).await.unwrap();
        assert_eq!(world.output::<Vec<u32>>("a").await, [1, 2, 3, 100]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_message_and_its_start_in_one_batch_keep_the_message() {
    in_both_modes(|world| async move {
        let registry = registry(read_jobs);
        world.client.enqueue("a", JOBS, 1).await.unwrap();
        world.client.start(MAIN, 3).id("a").await.unwrap();
        world.client.enqueue("a", JOBS, 2).await.unwrap();
        world.client.enqueue("a", JOBS, 3).await.unwrap();
        let _node = world.node(&registry).await;
        assert_eq!(world.output::<Vec<u32>>("a").await, [1, 2, 3]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_loser_of_a_race_does_not_eat_a_signal() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, _| {
            let first = race! {
                go = ctx.signal(GO) => go?,
                _ = ctx.sleep(secs(10)) => 0,
            };
            let second = race! {
                _ = ctx.sleep(secs(10)) => 0,
                go = ctx.signal(GO) => go?,
            };
            Ok(vec![first, second, ctx.signal(GO).await?])
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(15)).await;
        world.client.signal("a", GO, 1).await.unwrap();
        world.client.signal("a", GO, 2).await.unwrap();
        assert_eq!(world.output::<Vec<u32>>("a").await, [0, 1, 2]);
        world.assert_queues_are_empty().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_and_a_timeout_in_the_same_turn_lose_nothing() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, _| {
            let first = race! {
                _ = ctx.sleep(secs(10)) => 0,
                go = ctx.signal(GO) => go?,
            };
            Ok(vec![first, ctx.signal(GO).await?])
        });
        let node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(1)).await;
        node.shutdown(secs(1)).await;
        world.pass(secs(100)).await;
        // Timer and signals wait together for the next node.
        world.client.signal("a", GO, 1).await.unwrap();
        world.client.signal("a", GO, 2).await.unwrap();
        let _node = world.node(&registry).await;
        let output: Vec<u32> = world.output("a").await;
        assert!(output == [0, 1] || output == [1, 2], "{output:?}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_repeated_message_id_counts_once_also_across_channels_start_and_continue_as_new() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            if n == 0 {
                let first = ctx.mailbox(JOBS).receive().await?;
                return ctx.continue_as_new(first).await;
            }
            let mut read = vec![n];
            loop {
                race! {
                    job = ctx.mailbox(JOBS).receive() => read.push(job?),
                    _ = ctx.sleep(secs(100)) => return Ok(read),
                }
            }
        });
        world.client.enqueue("a", JOBS, 1).message_id("m1").await.unwrap();
        world.client.enqueue("a", JOBS, 1).message_id("m1").await.unwrap();
        let _node = world.node(&registry).await;
        world.settle().await;
        world.client.enqueue("a", JOBS, 1).message_id("m1").await.unwrap();
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.pass(secs(1)).await;
        assert_eq!(world.client.instance("a").await.unwrap().execution_id, 2);
        world.client.enqueue("a", JOBS, 1).message_id("m1").await.unwrap();
        world.client.enqueue("a", JOBS, 2).message_id("m2").await.unwrap();
        world.client.enqueue("a", JOBS, 2).message_id("m2").await.unwrap();
        world.client.enqueue("a", JOBS, 2).message_id("m3").await.unwrap();
        assert_eq!(world.output::<Vec<u32>>("a").await, [1, 2, 2]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_mailbox_is_first_in_first_out_and_apart_from_others() {
    const OTHER: Mailbox<String> = Mailbox::new("other");
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, n| {
            ctx.signal(GO).await?;
            assert_eq!(ctx.mailbox(OTHER).receive().await?, "x");
            let read = read_jobs(ctx.clone(), n).await?;
            assert_eq!(ctx.mailbox(JOBS).try_receive()?, Some(777));
            assert_eq!(ctx.mailbox(JOBS).try_receive()?, None);
            assert_eq!(ctx.mailbox(OTHER).try_receive()?, Some("y".to_owned()));
            assert_eq!(ctx.mailbox(OTHER).try_receive()?, None);
            Ok(read)
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 500).id("a").await.unwrap();
        for n in 0..500 {
            world.client.enqueue("a", JOBS, n).await.unwrap();
        }
        world.client.enqueue("a", OTHER, "x".to_owned()).await.unwrap();
        world.client.enqueue("a", OTHER, "y".to_owned()).await.unwrap();
        world.client.enqueue("a", JOBS, 777).await.unwrap();
        world.client.signal("a", GO, 0).await.unwrap();
        let read: Vec<u32> = world.output("a").await;
        assert_eq!(read, (0..500).collect::<Vec<u32>>());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn try_receive_sees_what_is_there_and_is_the_same_on_replay() {
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, _| {
            let mut read = Vec::new();
            while read.len() < 4 {
                while let Some(job) = ctx.mailbox(JOBS).try_receive()? {
                    read.push(job);
                }
                ctx.sleep(secs(10)).await?;
            }
            Ok(read)
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        for n in 0..4 {
            world.pass(secs(6)).await;
            world.client.enqueue("a", JOBS, n).await.unwrap();
        }
        assert_eq!(world.output::<Vec<u32>>("a").await, [0, 1, 2, 3]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_message_to_an_ended_instance_is_refused() {
    let world = World::resident();
    let registry = registry(read_jobs);
    let _node = world.node(&registry).await;
    world.client.start(MAIN, 0).id("a").result().await.unwrap();
    let before = world.history("a").await;
    let raised = world.client.signal("a", GO, 1).await.unwrap_err();
    let enqueued = world.client.enqueue("a", JOBS, 1).await.unwrap_err();
    assert_eq!((raised.code(), enqueued.code()), (Code::InstanceEnded, Code::InstanceEnded));
    world.settle().await;
    assert_eq!(world.history("a").await, before);
    world.assert_queues_are_empty().await;
}

#[tokio::test(start_paused = true)]
async fn bad_messages_are_refused_and_change_nothing() {
    const WIDE: Mailbox<String> = Mailbox::new("jobs");
    let world = World::resident();
    let _node = world.node(&registry(read_jobs)).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    world.settle().await;
    let before = world.client.instance("a").await.unwrap();
    let client = &world.client;
    let refusals = [
        (client.enqueue("a", WIDE, "x".repeat(MAX_PAYLOAD_BYTES)).await, Code::PayloadTooLarge),
        (client.enqueue("", JOBS, 1).await, Code::InvalidInstanceId),
        (client.enqueue("a", Mailbox::named(""), 1).await, Code::InvalidName),
        (client.signal("a", Signal::named("a\tb"), 1).await, Code::InvalidName),
        (client.signal("a", GO, 1).message_id("").await, Code::InvalidName),
    ];
    for (refusal, code) in refusals {
        assert_eq!(refusal.unwrap_err().code(), code);
    }
    world.settle().await;
    assert_eq!(world.client.instance("a").await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn a_message_of_the_wrong_type_fails_the_read_and_the_next_one_is_fine() {
    const TEXT: Mailbox<String> = Mailbox::new("jobs");
    in_both_modes(|world| async move {
        let registry = registry(async |ctx: Context, _| {
            let failure = ctx.mailbox(JOBS).receive().await.unwrap_err();
            assert!(failure.has_code("payload-mismatch"), "{failure}");
            Ok(vec![ctx.mailbox(JOBS).receive().await?])
        });
        let _node = world.node(&registry).await;
        world.client.start(MAIN, 0).id("a").await.unwrap();
        world.client.enqueue("a", TEXT, "no number".to_owned()).await.unwrap();
        world.client.enqueue("a", JOBS, 5).await.unwrap();
        assert_eq!(world.output::<Vec<u32>>("a").await, [5]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn messages_beyond_the_limit_are_parked_and_can_be_resubmitted() {
    let world = World::resident();
    let registry = registry(async |ctx: Context, n| {
        ctx.signal(GO).await?;
        read_jobs(ctx, n).await
    });
    let _node = world.node(&registry).await;
    let many = MAX_UNREAD_MESSAGES as u32 + 2;
    world.client.start(MAIN, many).id("a").await.unwrap();
    for n in 0..many {
        world.client.enqueue("a", JOBS, n).await.unwrap();
    }
    world.settle().await;
    let letters = world.dead_letters().await;
    assert_eq!(letters.len(), 2);
    assert!(letters[0].reason.contains(&MAX_UNREAD_MESSAGES.to_string()), "{}", letters[0].reason);
    assert_eq!(letters[0].instance, "a");
    // A signal finds no room either; making room needs the reader to go on.
    world.client.resubmit_dead_letter(letters[0].id.as_str()).await.unwrap();
    world.settle().await;
    assert_eq!(world.dead_letters().await.len(), 2, "still no room");
    world.client.cancel("a", "done").await.unwrap();
    world.ended("a").await;
}

#[tokio::test(start_paused = true)]
async fn messages_beyond_the_limit_before_the_start_are_parked_too() {
    let world = World::resident();
    let _node = world.node(&registry(read_jobs)).await;
    for n in 0..MAX_UNREAD_MESSAGES as u32 + 3 {
        world.client.enqueue("a", JOBS, n).await.unwrap();
    }
    world.settle().await;
    let letters = world.dead_letters().await;
    assert_eq!(letters.len(), 3);
    world.client.start(MAIN, MAX_UNREAD_MESSAGES as u32 + 3).id("a").await.unwrap();
    world.settle().await;
    for letter in letters {
        world.client.resubmit_dead_letter(letter.id).await.unwrap();
    }
    let read = world.client.result(MAIN, "a").timeout(HANG).await.unwrap();
    assert_eq!(read, (0..MAX_UNREAD_MESSAGES as u32 + 3).collect::<Vec<u32>>());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_nobody_can_read_is_parked_and_the_rest_goes_on() {
    use segno::store::{OrchestratorMessage, Provider};
    let world = World::resident();
    let _node = world.node(&registry(read_jobs)).await;
    world.client.start(MAIN, 1).id("a").await.unwrap();
    let garbage = OrchestratorMessage::new("a", bytes::Bytes::from_static(b"\xc1 not a message"));
    world.store.enqueue_for_orchestrator(garbage, None).await.unwrap();
    world.client.enqueue("a", JOBS, 4).await.unwrap();
    assert_eq!(world.output::<Vec<u32>>("a").await, [4]);
    let letters = world.dead_letters().await;
    assert_eq!(letters.len(), 1);
    world.client.discard_dead_letter(&letters[0].id).await.unwrap();
    let again = world.client.discard_dead_letter(&letters[0].id).await.unwrap_err();
    assert_eq!(again.code(), Code::NotFound);
    let received = world.history("a").await;
    assert!(received.iter().any(|event| matches!(event.kind, EventKind::MessageReceived { .. })));
}
