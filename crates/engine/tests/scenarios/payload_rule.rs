//! The rule about payloads: what breaks it is refused with a code, on every replay alike; what was recorded before there was
//! a rule replays as it is.

use std::sync::Arc;

use segno::event::{Event, EventKind, Started};
use segno::{Activity, Category, Context, Failure, Mailbox, Orchestration, Payload, Registry, Signal};
use serde_json::{Value, json};

use crate::support::{World, in_both_modes};

const MAIN: Orchestration<Payload, Payload> = Orchestration::new("main");
const DEEPENS: Orchestration<usize, Value> = Orchestration::new("deepens");
const ECHO: Activity<Payload, Payload> = Activity::new("echo");
const NESTS: Activity<usize, Value> = Activity::new("nests");
const GO: Signal<Payload> = Signal::new("go");

/// Lists in lists.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}

/// JSON that breaks the rule, as it may have been stored before there was one.
fn unruled(text: &str) -> Payload {
    serde_json::from_str(text).unwrap()
}

fn hostile() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("120 levels", nested(120).to_string(), "payload-too-deep"),
        ("10,000 levels", format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)), "payload-too-deep"),
        ("beyond a double", "[1e400]".to_owned(), "payload-not-json"),
        ("beyond a double", "-1e400".to_owned(), "payload-not-json"),
        ("5,000 digits", "7".repeat(5_000), "payload-not-json"),
        ("half a pair", r#""\ud800""#.to_owned(), "payload-not-json"),
        ("the other half", r#"{"\udc00":1}"#.to_owned(), "payload-not-json"),
    ]
}

fn registry() -> Registry {
    Registry::builder()
        .orchestration(MAIN, async |ctx: Context, input: Payload| {
            let echoed = ctx.activity(ECHO, input).await?;
            ctx.signal(GO).await?;
            Ok(echoed)
        })
        .orchestration(DEEPENS, async |ctx: Context, levels: usize| {
            let value = nested(levels);
            let refused = |what: &str, failure: Option<Failure>| {
                let failure = failure.ok_or_else(|| Failure::application(format!("{what} was taken")))?;
                let is_clear =
                    failure.category == Category::Configuration && failure.has_code("payload-too-deep");
                if is_clear { Ok(()) } else { Err(failure) }
            };
            let typed: Activity<Value, Value> = Activity::new("echo");
            refused("an activity's input", ctx.activity(typed, value.clone()).await.err())?;
            let child: Orchestration<Value, Value> = Orchestration::new("main");
            refused("a child's input", ctx.child(child.clone(), value.clone()).await.err())?;
            refused("a detached input", ctx.start_detached(child, value.clone()).await.err())?;
            refused("a status", ctx.set_status(&value).err())?;
            refused("a result of an activity", ctx.activity(NESTS, levels).await.err())?;
            let step = ctx.run("nests", move || async move { Ok(nested(levels)) }).await;
            refused("a result of a step", step.err())?;
            let next: Result<Value, Failure> = ctx.continue_as_new(value.clone()).await;
            refused("the input of the next execution", next.err())?;
            Ok(value)
        })
        .activity(ECHO, async |_, input| Ok(input))
        .activity(NESTS, async |_, levels| Ok(nested(levels)))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn clients_refuse_what_not_every_reader_could_show() {
    let world = World::resident();
    let _node = world.node(&registry()).await;
    world.client.start(MAIN, Payload::null()).id("a").await.unwrap();
    world.settle().await;
    let before = world.history("a").await;
    let letters: Mailbox<Payload> = Mailbox::new("letters");
    for (what, text, code) in hostile() {
        assert_eq!(Payload::from_json(&text).unwrap_err().code().as_str(), code, "{what}");
        assert_eq!(unruled(&text).check().unwrap_err().code().as_str(), code, "{what}");
        let bad = unruled(&text);
        let refused = [
            world.client.start(MAIN, bad.clone()).id("b").await.map(|_| ()),
            world.client.signal("a", GO, bad.clone()).await,
            world.client.enqueue("a", letters.clone(), bad.clone()).await,
        ];
        for (door, refused) in refused.into_iter().enumerate() {
            assert_eq!(refused.unwrap_err().code().as_str(), code, "{what} {door}");
        }
    }
    world.settle().await;
    assert_eq!(world.history("a").await, before, "nothing has changed");
}

#[tokio::test(start_paused = true)]
async fn code_that_nests_too_deep_is_told_so_on_every_replay() {
    in_both_modes(|world| async move {
        let _node = world.node(&registry()).await;
        world.client.start(DEEPENS, 101).id("a").await.unwrap();
        let failure = world.failure("a").await;
        assert!(failure.has_code("payload-too-deep"), "its own result too: {failure}");
        assert!(failure.message.contains("deeper than 100 levels"), "{failure}");
        world.client.start(MAIN, Payload::encode(&nested(100)).unwrap()).id("b").await.unwrap();
        world.client.signal("b", GO, Payload::null()).await.unwrap();
        assert_eq!(world.output::<Value>("b").await, nested(100));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn histories_from_before_the_rule_replay() {
    let world = World::resident();
    let node = world.node(&registry()).await;
    world.client.start(MAIN, Payload::null()).id("a").await.unwrap();
    world.settle().await;
    drop(node);
    let recorded = world.history("a").await;
    assert_eq!(recorded.len(), 4, "{recorded:?}");
    for (what, text, _) in hostile() {
        let old = with_payload(&recorded, &unruled(&text));
        let replayed = registry().replay("a", 1, &old);
        assert!(replayed.is_ok(), "{what}: {replayed:?}");
        // And events keep what they hold, whichever way they go.
        for event in &old {
            assert_eq!(Event::from_stored(&event.to_stored()).unwrap(), *event, "{what}");
        }
    }
}

/// The same history with another input and result.
fn with_payload(events: &[Event], payload: &Payload) -> Vec<Event> {
    let changed = events.iter().cloned().map(|mut event| {
        match &mut event.kind {
            EventKind::OrchestrationStarted(started) => {
                *started = Arc::new(Started { input: payload.clone(), ..Started::clone(started) });
            }
            EventKind::ActivityScheduled { input, .. } => *input = payload.clone(),
            EventKind::ActivityCompleted { result, .. } => *result = payload.clone(),
            _ => {}
        }
        event
    });
    changed.collect()
}
