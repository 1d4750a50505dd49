//! One row that cannot be read blocks nobody and does not vanish.

use bytes::Bytes;
use segno::client::DeadLetterQuery;
use segno::store::{OrchestratorMessage, Provider, ScheduledActivityIdentifier, StoredEvent, WorkerMessage};
use segno::{
    Category, Client, DeadLetter, Failure, GivenUp, Orchestration, Registry, Runtime, RuntimeOptions, Signal,
};

use crate::support::{ECHO, ECHOES, World};

const GO: Signal<()> = Signal::new("go");
const WAITS: Orchestration<(), String> = Orchestration::new("waits");

async fn letters(client: &Client) -> Vec<DeadLetter> {
    let page =
        client.dead_letters(DeadLetterQuery { limit: 1_000, ..DeadLetterQuery::default() }).await.unwrap();
    page.letters.into_iter().map(Result::unwrap).collect()
}

fn waiting_registry() -> Registry {
    let waits = |ctx: segno::Context, (): ()| async move {
        ctx.signal(GO).await?;
        Ok("went".to_owned())
    };
    Registry::builder().orchestration(WAITS, waits).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_message_is_parked_and_the_rest_of_the_batch_passes() {
    let world = World::new();
    world.client.start(WAITS, ()).id("i").await.unwrap();
    let garbage = Bytes::from_static(b"\xffnot a message");
    world.store.enqueue_for_orchestrator(OrchestratorMessage::new("i", garbage.clone()), None).await.unwrap();
    world.client.signal("i", GO, ()).await.unwrap();
    let builder = Runtime::builder(world.store.clone()).registry(waiting_registry());
    let _node = builder.clock(world.clock.clone()).start().await.unwrap();
    assert_eq!(world.client.result(WAITS, "i").await.unwrap(), "went");

    let letters = letters(&world.client).await;
    assert_eq!(letters.len(), 1);
    let body = world.client.dead_letter(&letters[0].id).await.unwrap().1;
    assert_eq!((letters[0].what, body), (GivenUp::Message, Some(garbage)));
    assert_eq!((letters[0].instance.as_str(), letters[0].deliveries), ("i", 1));
    assert!(letters[0].reason.contains("unknown format 255"), "{}", letters[0].reason);
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_can_be_resubmitted_once_or_thrown_away() {
    let world = World::new();
    world.store.enqueue_for_orchestrator(OrchestratorMessage::new("i", "junk"), None).await.unwrap();
    let node = world.node("a").await;
    world.client.start(ECHOES, 1).id("i").result().await.unwrap();
    let first = letters(&world.client).await.remove(0);
    world.client.resubmit_dead_letter(first.id.as_str()).await.unwrap();
    assert!(world.client.resubmit_dead_letter(first.id.as_str()).await.is_err(), "a letter goes back once");
    world.pass(std::time::Duration::from_secs(1)).await;
    let again = letters(&world.client).await.remove(0);
    assert_ne!(first.id, again.id, "it is parked anew");
    world.client.discard_dead_letter(&again.id).await.unwrap();
    assert!(letters(&world.client).await.is_empty());
    drop(node);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_activity_blocks_no_other_and_its_orchestration_can_catch_it() {
    const CATCHES: Orchestration<(), String> = Orchestration::new("catches");
    let world = World::new();
    let catches = |ctx: segno::Context, (): ()| async move {
        match ctx.activity(ECHO, "x".to_owned()).attempts(5).await {
            Err(Failure { category: Category::Poison, .. }) => Ok("caught".to_owned()),
            other => other,
        }
    };
    let registry = Registry::builder()
        .activity(ECHO, |_, text: String| async move { Ok(text) })
        .orchestration(CATCHES, catches)
        .build()
        .unwrap();
    // The orchestration runs on a node without workers, and its activity is replaced by one that cannot be read.
    let options = RuntimeOptions { worker_concurrency: 0, ..RuntimeOptions::default() };
    let builder = Runtime::builder(world.store.clone()).registry(registry.clone()).options(options);
    let _orchestrator = builder.clock(world.clock.clone()).start().await.unwrap();
    world.client.start(CATCHES, ()).id("i").await.unwrap();
    world.client.wait_for_revision("i", 0, std::time::Duration::MAX).await.unwrap();
    let any = segno::store::TagFilter::Any;
    let lock = std::time::Duration::from_secs(5);
    let taken =
        world.store.fetch_work_item(lock, std::time::Duration::ZERO, None, &any).await.unwrap().unwrap();
    let ack =
        segno::store::AckWorkItem { lock_token: taken.lock_token, completion: None, records: Vec::new() };
    world.store.ack_work_item(ack).await.unwrap();
    world.store.enqueue_for_worker(WorkerMessage { body: "junk".into(), ..taken.message }).await.unwrap();

    let builder = Runtime::builder(world.store.clone()).registry(registry).clock(world.clock.clone());
    let _worker = builder.start().await.unwrap();
    assert_eq!(world.client.result(CATCHES, "i").await.unwrap(), "caught");
    let letters = letters(&world.client).await;
    assert_eq!((letters.len(), letters[0].what), (1, GivenUp::Activity));
    // The orchestration has dealt with it, and nothing would wait for the activity.
    let refused = world.client.resubmit_dead_letter(letters[0].id.as_str()).await.unwrap_err();
    assert_eq!(refused.code(), segno::Code::DeadLetterSettled);
    assert!(refused.to_string().contains("it is completed"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_unreadable_activities_at_the_head_hold_up_nothing() {
    let world = World::new();
    for i in 0..100 {
        let activity = ScheduledActivityIdentifier { instance: "x".into(), execution_id: 1, activity_id: i };
        let message =
            WorkerMessage { activity, session_id: None, tag: None, visible_at_ms: None, body: "junk".into() };
        world.store.enqueue_for_worker(message).await.unwrap();
    }
    let _node = world.node("a").await;
    assert_eq!(world.client.start(ECHOES, 3).result().await.unwrap(), 3);
    assert_eq!(letters(&world.client).await.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn an_unreadable_history_fails_its_instance_clearly_and_no_other() {
    let world = World::new();
    let node = world.node("a").await;
    world.client.start(crate::support::WAITS_FOR_SLOW, 3600).id("bad").await.unwrap();
    world.until_slow_runs(1).await;
    let last = world.client.history("bad").await.unwrap().len() as u64;
    drop(node);
    let junk = StoredEvent { event_id: last + 1, data: Bytes::from_static(b"\x01junk") };
    world.store.append_with_execution("bad", 1, vec![junk]).await.unwrap();

    let _node = world.node("b").await;
    assert_eq!(world.client.start(ECHOES, 3).result().await.unwrap(), 3);
    let ended = world.client.wait_until_ended("bad", std::time::Duration::MAX).await.unwrap();
    let failure = ended.failure().unwrap();
    assert_eq!(failure.category, Category::Poison);
    assert!(failure.message.contains(&format!("event {} cannot be read", last + 1)), "{failure}");
    let letters = letters(&world.client).await;
    assert_eq!((letters[0].what, letters[0].execution_id), (GivenUp::Turn, Some(1)));
    assert_eq!(letters[0].reason, failure.message);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_meets_the_end_of_its_instance_is_parked_and_not_lost() {
    let world = World::new();
    let _node = world.node("a").await;
    world.client.start(ECHOES, 1).id("i").result().await.unwrap();
    // The client refuses it, but one that was sent a moment before the end comes this way.
    assert_eq!(world.client.signal("i", GO, ()).await.unwrap_err().code(), segno::Code::InstanceEnded);
    let late = segno::work_item::WorkItem::ExternalRaised {
        name: "go".to_owned(),
        data: segno::Payload::null(),
        id: Some("m1".to_owned()),
    };
    world.store.enqueue_for_orchestrator(late.for_orchestrator("i"), None).await.unwrap();
    world.pass(std::time::Duration::from_secs(1)).await;
    let letters = letters(&world.client).await;
    assert_eq!(letters.len(), 1);
    assert!(letters[0].reason.contains("had ended"), "{}", letters[0].reason);
}
