//! The archive hook: what retention removes is copied first, and what changed since stays.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use segno::client::{Client, OnConflict};
use segno::event::EventKind;
use segno::runtime::{Archive, ArchiveBatch, ArchiveError};
use segno::store::InstanceVersion;
use segno::{Context, Failure, Orchestration, Registry, Retention, RuntimeOptions, Signal};

use crate::support::{World, days, secs};

const PLAIN: Orchestration<u32, u32> = Orchestration::new("plain");
const PARENT: Orchestration<u32, u32> = Orchestration::new("parent");
const LOOP: Orchestration<u32, u32> = Orchestration::new("loop");
const GO: Signal<u32> = Signal::new("go");

async fn plain(_: Context, number: u32) -> Result<u32, Failure> {
    Ok(number)
}

async fn parent(ctx: Context, number: u32) -> Result<u32, Failure> {
    ctx.child(PLAIN, number).id(format!("child-{number}")).await
}

async fn repeat(ctx: Context, left: u32) -> Result<u32, Failure> {
    if left == 0 {
        return ctx.signal(GO).await;
    }
    ctx.sleep(secs(1)).await?;
    ctx.continue_as_new(left - 1).await
}

fn registry() -> Registry {
    let builder = Registry::builder().orchestration(PLAIN, plain).orchestration(PARENT, parent);
    builder.orchestration(LOOP, repeat).build().unwrap()
}

fn keeping(world: &World, retention: Retention) -> RuntimeOptions {
    RuntimeOptions { retention, ..world.options() }
}

/// What an archive does with a batch besides keeping it.
enum Mood {
    Takes,
    IsAway,
    /// It is slow: meanwhile this instance begins again.
    WhileRestarting(Client, &'static str),
}

struct Kept {
    mood: Mutex<Mood>,
    batches: Mutex<Vec<ArchiveBatch>>,
    /// Ids that were still there after a removal.
    survivors: Mutex<Vec<String>>,
}

impl Kept {
    fn new(mood: Mood) -> Arc<Self> {
        Arc::new(Kept { mood: Mutex::new(mood), batches: Mutex::default(), survivors: Mutex::default() })
    }

    /// Instances with the events of each of their executions.
    fn events(&self) -> BTreeMap<String, BTreeMap<u64, Vec<u64>>> {
        let mut found: BTreeMap<String, BTreeMap<u64, Vec<u64>>> = BTreeMap::new();
        for history in self.batches.lock().unwrap().iter().flat_map(|batch| &batch.histories) {
            let events = found.entry(history.instance.clone()).or_default();
            let events = events.entry(history.execution_id).or_default();
            events.extend(history.events.iter().map(|event| event.event_id));
        }
        found
    }

    fn instances(&self) -> Vec<String> {
        let batches = self.batches.lock().unwrap();
        batches.iter().flat_map(|batch| &batch.instances).map(|one| one.id.clone()).collect()
    }
}

#[async_trait]
impl Archive for Kept {
    fn has_place_for(&self, instance: &str) -> bool {
        !instance.starts_with("elsewhere")
    }

    async fn store(&self, batch: ArchiveBatch) -> Result<(), ArchiveError> {
        let mood = std::mem::replace(&mut *self.mood.lock().unwrap(), Mood::Takes);
        let restarted = match mood {
            Mood::Takes => None,
            Mood::IsAway => {
                *self.mood.lock().unwrap() = Mood::IsAway;
                return Err(ArchiveError("the object store is away".to_owned()));
            }
            Mood::WhileRestarting(client, id) => Some((client, id)),
        };
        if let Some((client, id)) = restarted {
            client.start(PLAIN, 77).id(id).on_conflict(OnConflict::Replace).result().await.unwrap();
        }
        self.batches.lock().unwrap().push(batch);
        Ok(())
    }

    async fn settle(&self, kept: Vec<InstanceVersion>) -> Result<(), ArchiveError> {
        self.survivors.lock().unwrap().extend(kept.into_iter().map(|one| one.instance_id));
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn whole_trees_are_archived_with_their_histories_before_they_are_deleted() {
    let world = World::resident();
    let kept = Kept::new(Mood::Takes);
    let retention = Retention { finished_age: Some(days(7)), ..Retention::default() };
    let _node = world.archiving_node(&registry(), keeping(&world, retention), kept.clone()).await;
    world.client.start(PARENT, 1).id("root").result().await.unwrap();
    world.client.start(LOOP, 2).id("loop").await.unwrap();
    world.pass(secs(60)).await;
    world.client.signal("loop", GO, 5).await.unwrap();
    world.client.start(PLAIN, 3).id("elsewhere").result().await.unwrap();
    let histories: [usize; 2] = [world.history("root").await.len(), world.history("child-1").await.len()];
    world.pass(days(8)).await;
    let mut instances = kept.instances();
    instances.sort();
    assert_eq!(instances, ["child-1", "loop", "root"]);
    assert_eq!(world.client.instance("elsewhere").await.unwrap().id, "elsewhere");
    for gone in ["root", "child-1", "loop"] {
        world.client.instance(gone).await.unwrap_err();
    }
    let events = kept.events();
    assert_eq!([events["root"][&1].len(), events["child-1"][&1].len()], histories[..]);
    assert_eq!(events["loop"].keys().collect::<Vec<_>>(), [&1, &2, &3]);
    let batches = kept.batches.lock().unwrap();
    let mut of_loop = batches.iter().flat_map(|batch| &batch.histories).filter(|one| one.instance == "loop");
    let last = of_loop.next_back().unwrap();
    assert!(matches!(last.events.last().unwrap().kind, EventKind::OrchestrationCompleted { .. }));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_deleted_while_the_archive_is_away() {
    let world = World::resident();
    let kept = Kept::new(Mood::IsAway);
    let retention =
        Retention { finished_age: Some(days(1)), finished_count: Some(0), ..Retention::default() };
    let _node = world.archiving_node(&registry(), keeping(&world, retention), kept.clone()).await;
    world.client.start(PARENT, 1).id("root").result().await.unwrap();
    world.pass(days(30)).await;
    assert!(world.client.instance("root").await.unwrap().has_ended());
    *kept.mood.lock().unwrap() = Mood::Takes;
    world.pass(secs(120)).await;
    world.client.instance("root").await.unwrap_err();
    assert_eq!(kept.instances().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_begins_again_while_it_is_archived_stays() {
    let world = World::resident();
    let kept = Kept::new(Mood::WhileRestarting(world.client.clone(), "again"));
    let retention = Retention { finished_age: Some(days(1)), ..Retention::default() };
    let _node = world.archiving_node(&registry(), keeping(&world, retention), kept.clone()).await;
    for id in ["again", "other"] {
        world.client.start(PLAIN, 1).id(id).result().await.unwrap();
    }
    world.pass(days(1) + secs(120)).await;
    world.client.instance("other").await.unwrap_err();
    let again = world.client.instance("again").await.unwrap();
    assert_eq!(again.result().unwrap().as_str(), "77");
    assert_eq!(*kept.survivors.lock().unwrap(), ["again"]);
    // It goes when its second execution is old, and the archive has both.
    world.pass(days(2)).await;
    world.client.instance("again").await.unwrap_err();
    assert_eq!(kept.events()["again"].keys().collect::<Vec<_>>(), [&1, &2]);
}

#[tokio::test(start_paused = true)]
async fn with_too_many_instances_those_that_ended_first_are_archived() {
    let world = World::resident();
    let kept = Kept::new(Mood::Takes);
    let retention = Retention { finished_count: Some(5), ..Retention::default() };
    let _node = world.archiving_node(&registry(), keeping(&world, retention), kept.clone()).await;
    world.client.start(PLAIN, 0).id("elsewhere").result().await.unwrap();
    for number in 0..20 {
        world.client.start(PLAIN, number).id(format!("plain-{number:02}")).result().await.unwrap();
        world.pass(secs(1)).await;
    }
    world.pass(secs(120)).await;
    // The one that cannot be archived counts, and is in nobody's way.
    let expected: Vec<String> = (0..16).map(|number| format!("plain-{number:02}")).collect();
    assert_eq!(kept.instances(), expected);
}

#[tokio::test(start_paused = true)]
async fn old_executions_are_archived_before_they_are_pruned() {
    let world = World::resident();
    let kept = Kept::new(Mood::Takes);
    let retention = Retention { executions: Some(3), ..Retention::default() };
    let _node = world.archiving_node(&registry(), keeping(&world, retention), kept.clone()).await;
    world.client.start(LOOP, 20).id("loop").await.unwrap();
    world.pass(secs(60)).await;
    let left = world.client.executions("loop").await.unwrap();
    assert!(left.len() <= 4 && left.ends_with(&[19, 20, 21]), "{left:?}");
    let archived = kept.events();
    for execution in 1..left[0] {
        assert!(archived["loop"].contains_key(&execution), "{execution}: {archived:?}");
    }
    assert!(kept.instances().is_empty());
}
