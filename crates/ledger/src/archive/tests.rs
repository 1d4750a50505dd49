//! Rows in and back, files that repeat rows, erasure, merges, and object stores that fail in the middle.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use segno::client::Instance;
use segno::event::{Event, EventKind, Output};
use segno::runtime::{Archive, ArchiveBatch, ArchivedHistory};
use segno::store::memory::MemoryStore;
use segno::store::{ExecutionStatus, InstanceVersion};
use segno::{Failure, Payload};
use segno_actions::functions::Scope;
use segno_testkit::clock::VirtualClock;

use super::{ArchiveStore, EVENTS, EventsQuery, Group, INSTANCES, KINDS, Kind, Upkeep, UpkeepOptions};
use crate::objects::faulty::{Faults, Faulty};
use crate::tables::{Cell, Kind as CellKind};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// 2023-11-14.
const BEGIN_MS: u64 = 1_699_920_000_000;

struct World {
    objects: Arc<InMemory>,
    faulty: Arc<Faulty>,
    clock: Arc<VirtualClock>,
    store: Arc<MemoryStore>,
    archive: ArchiveStore,
    scope: Scope,
}

impl World {
    fn new() -> Self {
        World::with(Faults::NONE, 1)
    }

    fn with(faults: Faults, seed: u64) -> Self {
        let objects = Arc::new(InMemory::new());
        let clock = VirtualClock::auto();
        let store = MemoryStore::with_clock(clock.clone());
        let faulty = Faulty::new(objects.clone(), faults, seed);
        let archive = ArchiveStore::new(faulty.clone(), store.clone(), clock.clone());
        let scope = Scope::new("prod", "acme").unwrap();
        World { objects, faulty, clock, store, archive, scope }
    }

    /// Another process on the same objects, without faults.
    fn reopened(&self) -> ArchiveStore {
        ArchiveStore::new(self.objects.clone(), self.store.clone(), self.clock.clone())
    }

    fn upkeep(&self, archive: ArchiveStore, keep: Option<Duration>) -> Upkeep {
        let options = UpkeepOptions { keep, ..UpkeepOptions::default() };
        Upkeep::new(archive, self.clock.clone(), options)
    }

    async fn files(&self, kind: &Kind) -> usize {
        self.reopened().files(&self.scope, kind).await.unwrap().len()
    }
}

fn instance(id: &str, created_at_ms: u64, result: &str) -> Instance {
    Instance {
        id: format!("prod/acme/{id}"),
        orchestration: Some("greet".to_owned()),
        version: Some("1.2.0".to_owned()),
        execution_id: 1,
        status: ExecutionStatus::Completed,
        output: Some(Output::Completed(Payload::from_json(result).unwrap())),
        custom_status: Some(Payload::from_json("{\"at\": 1.50}").unwrap()),
        custom_status_version: 3,
        labels: BTreeMap::from([
            ("team".to_owned(), "eu".to_owned()),
            ("segno.function".to_owned(), "prod/acme/charge".to_owned()),
        ]),
        parent: Some("prod/acme/parent".to_owned()),
        created_at_ms,
        start_at_ms: None,
        updated_at_ms: created_at_ms + 2_000,
        completed_at_ms: Some(created_at_ms + 1_000),
        revision: 4,
        unreadable: None,
    }
}

fn history(of: &Instance, execution_id: u64, events: std::ops::RangeInclusive<u64>) -> ArchivedHistory {
    let event = |event_id| Event {
        event_id,
        at_ms: of.created_at_ms + event_id,
        kind: match event_id {
            1 => EventKind::TimerFired { source: 7 },
            _ => EventKind::OrchestrationCompleted { output: Payload::from_json("[1.0e2,  null]").unwrap() },
        },
    };
    ArchivedHistory {
        instance: of.id.clone(),
        created_at_ms: of.created_at_ms,
        execution_id,
        ended_at_ms: of.completed_at_ms.unwrap(),
        events: events.map(event).collect(),
    }
}

fn batch(instances: &[Instance]) -> ArchiveBatch {
    let histories = instances.iter().map(|one| history(one, 1, 1..=3)).collect();
    ArchiveBatch { histories, instances: instances.to_vec() }
}

/// As it comes back: with the ids of its scope.
fn shown(of: &Instance) -> Instance {
    let short = |id: &str| id.strip_prefix("prod/acme/").unwrap_or(id).to_owned();
    Instance { id: short(&of.id), parent: of.parent.as_deref().map(short), ..of.clone() }
}

async fn ids(archive: &ArchiveStore, scope: &Scope, kind: &'static Kind) -> Vec<String> {
    let mut ids = Vec::new();
    for file in archive.files(scope, kind).await.unwrap() {
        for row in archive.rows(kind, &file, &["id"], &[]).await.unwrap().unwrap() {
            let Cell::Text(id) = &row[0] else { panic!("an id is a text") };
            ids.push(id.as_ref().to_owned());
        }
    }
    ids.sort();
    ids
}

fn events_of<'a>(id: &'a str, of: &Instance) -> EventsQuery<'a> {
    EventsQuery { id, created_at_ms: of.created_at_ms, execution: 1, after: 0, limit: 100 }
}

#[test]
fn the_columns_of_all_kinds_are_those_of_existing_files() {
    let mut described = String::new();
    for kind in KINDS {
        writeln!(described, "{} ({})", kind.name, kind.key.join(", ")).unwrap();
        for column in kind.columns {
            let name = match column.kind {
                CellKind::Text => "text",
                CellKind::Integer => "integer",
                CellKind::Count => "count",
                CellKind::Flag => "flag",
            };
            let nullable = if column.nullable { "?" } else { "" };
            writeln!(described, "  {}: {name}{nullable}", column.name).unwrap();
        }
        assert_eq!(kind.columns[2].name, "id");
        assert_eq!(kind.columns[3].name, "incarnation");
        assert_eq!(kind.columns[4].name, "revision");
        assert_eq!(kind.columns[5].name, "ended_at");
    }
    expect_test::expect_file!["../../tests/golden/archive.txt"].assert_eq(&described);
}

#[tokio::test(start_paused = true)]
async fn instances_and_events_come_back_as_they_were() {
    let world = World::new();
    let completed = instance("a/b c", BEGIN_MS, "{\"n\": 1.0,  \"deep\": [1e5]}");
    let failure = Failure::application("no").code("declined").details(BTreeMap::from([("k", 1)]));
    let failed = Instance {
        status: ExecutionStatus::Failed,
        output: Some(Output::Failed(failure)),
        custom_status: None,
        parent: None,
        labels: BTreeMap::new(),
        ..instance("failed", BEGIN_MS + DAY_MS, "null")
    };
    let cancelled = Instance {
        status: ExecutionStatus::Cancelled,
        output: Some(Output::Failed(Failure::cancelled("by hand"))),
        orchestration: None,
        version: None,
        ..instance("cancelled", BEGIN_MS, "null")
    };
    let all = [completed, failed, cancelled];
    world.archive.store(batch(&all)).await.unwrap();
    for one in &all {
        let expected = shown(one);
        let found = world.archive.instance(&world.scope, &expected.id).await.unwrap();
        assert_eq!(found.as_ref(), Some(&expected));
        let (events, is_more) =
            world.archive.events(&world.scope, events_of(&expected.id, one)).await.unwrap();
        assert_eq!((events, is_more), (history(one, 1, 1..=3).events, false));
        let executions =
            world.archive.executions(&world.scope, &expected.id, one.created_at_ms).await.unwrap();
        assert_eq!((executions.len(), executions[0].execution, executions[0].events), (1, 1, 3));
    }
    assert_eq!(world.archive.instance(&world.scope, "none").await.unwrap(), None);
    let elsewhere = Scope::new("prod", "other").unwrap();
    assert_eq!(world.archive.instance(&elsewhere, "failed").await.unwrap(), None);
    assert!(world.archive.has_place_for("prod/acme/x") && !world.archive.has_place_for("x"));
}

#[tokio::test(start_paused = true)]
async fn events_are_read_a_page_at_a_time_also_when_they_are_in_several_files() {
    let world = World::new();
    let one = instance("long", BEGIN_MS, "1");
    // The parts of a history come in batches of their own, the later ones twice.
    for events in [1..=40, 41..=80, 41..=80, 81..=100] {
        let histories = vec![history(&one, 1, events), history(&one, 2, 1..=5)];
        world.archive.store(ArchiveBatch { histories, instances: Vec::new() }).await.unwrap();
    }
    let mut query = EventsQuery { limit: 30, ..events_of("long", &one) };
    let mut found = Vec::new();
    loop {
        let (events, is_more) = world.archive.events(&world.scope, query.clone()).await.unwrap();
        query.after = events.last().unwrap().event_id;
        found.extend(events.into_iter().map(|event| event.event_id));
        if !is_more {
            break;
        }
    }
    assert_eq!(found, (1..=100).collect::<Vec<u64>>());
    let executions = world.archive.executions(&world.scope, "long", BEGIN_MS).await.unwrap();
    let counts: Vec<(u64, u64)> = executions.iter().map(|one| (one.execution, one.events)).collect();
    assert_eq!(counts, [(1, 100), (2, 5)]);
}

#[tokio::test(start_paused = true)]
async fn the_same_batch_is_the_same_file_and_of_repeated_rows_the_latest_counts() {
    let world = World::new();
    let first = instance("a", BEGIN_MS, "1");
    for _ in 0..3 {
        world.archive.store(batch(&[first.clone(), instance("b", BEGIN_MS, "2")])).await.unwrap();
    }
    assert_eq!((world.files(&INSTANCES).await, world.files(&EVENTS).await), (1, 1));
    // It began again, ended on another day, and was archived again.
    let again = Instance {
        revision: 9,
        completed_at_ms: Some(BEGIN_MS + 3 * DAY_MS),
        ..instance("a", BEGIN_MS, "3")
    };
    world.archive.store(batch(std::slice::from_ref(&again))).await.unwrap();
    assert_eq!(world.archive.instance(&world.scope, "a").await.unwrap(), Some(shown(&again)));
    // Another one of the same id, which was created later and has a smaller revision.
    let other = instance("a", BEGIN_MS + DAY_MS, "4");
    world.archive.store(batch(std::slice::from_ref(&other))).await.unwrap();
    assert_eq!(world.archive.instance(&world.scope, "a").await.unwrap(), Some(shown(&other)));
}

#[tokio::test(start_paused = true)]
async fn files_that_cannot_have_a_row_are_not_opened() {
    let world = World::new();
    for day in 0..20 {
        world
            .archive
            .store(batch(&[instance(&format!("i{day}"), BEGIN_MS + day * DAY_MS, "1")]))
            .await
            .unwrap();
    }
    let one = instance("i7", BEGIN_MS + 7 * DAY_MS, "1");
    let before = world.faulty.reads();
    world.archive.events(&world.scope, events_of("i7", &one)).await.unwrap();
    assert_eq!(world.faulty.reads() - before, 2, "a listing, and the one file of that time");
    // A file whose statistics leave the value out is opened, and none of its rows is read.
    let files = world.archive.files(&world.scope, &INSTANCES).await.unwrap();
    let rows = world.archive.rows(&INSTANCES, &files[0], &["id"], &[("status", "failed")]).await.unwrap();
    assert_eq!(rows, Some(Vec::new()));
    let error = world.archive.rows(&INSTANCES, &files[0], &["nothing"], &[]).await.unwrap_err();
    assert!(error.to_string().contains("no column nothing"), "{error}");
}

/// The instances `a` and `b` of a day, in a file that has others on both sides of them, as ids of a day do.
async fn day_of_instances(world: &World, day: u64) {
    let at = BEGIN_MS + day * DAY_MS;
    let ids = [format!("a{day}"), "every-day".to_owned(), format!("z{day}")];
    let all: Vec<Instance> = ids.iter().map(|id| instance(id, at, "1")).collect();
    world.archive.store(batch(&all)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lookup_by_id_reads_as_many_objects_of_many_files_as_of_few() {
    let world = World::new();
    let mut reads = Vec::new();
    for day in 0..64 {
        day_of_instances(&world, day).await;
        if day % 16 == 15 {
            world.upkeep(world.archive.clone(), None).sweep().await.unwrap();
            let before = world.faulty.reads();
            let found = world.archive.instance(&world.scope, &format!("a{}", day / 2)).await.unwrap();
            assert!(found.is_some());
            assert_eq!(world.archive.instance(&world.scope, "aa").await.unwrap(), None);
            reads.push(world.faulty.reads() - before);
            assert_eq!(world.files(&INSTANCES).await as u64, day + 1, "a file for each day");
        }
    }
    // Two listings, an index for each, and the file of the one that is there. An index of the last days may be beside.
    assert!(reads.iter().all(|reads| *reads <= 9), "{reads:?}");
    // Files that came since are opened.
    day_of_instances(&world, 64).await;
    assert!(world.archive.instance(&world.scope, "a64").await.unwrap().is_some());
    let every_day = world.archive.instance(&world.scope, "every-day").await.unwrap().unwrap();
    assert_eq!(every_day.created_at_ms, BEGIN_MS + 64 * DAY_MS);
    // What ends after an erasure is not erased.
    world.clock.advance(Duration::from_millis(65 * DAY_MS));
    assert_eq!(world.archive.erase(&world.scope, Group::Instances, "every-day").await.unwrap().files, 2 * 65);
    assert_eq!(world.archive.instance(&world.scope, "every-day").await.unwrap(), None);
    assert!(world.archive.instance(&world.scope, "z3").await.unwrap().is_some());
    // The files that were rewritten are indexed again, and indexes of files that are gone go.
    world.upkeep(world.archive.clone(), None).sweep().await.unwrap();
    let listed = world.archive.listed(&world.scope, &INSTANCES).await.unwrap();
    assert!(listed.indexes.len() <= 2, "{:?}", listed.indexes);
    let before = world.faulty.reads();
    assert!(world.archive.instance(&world.scope, "z3").await.unwrap().is_some());
    assert!(world.faulty.reads() - before <= 4);
}

#[tokio::test(start_paused = true)]
async fn a_damaged_index_hides_nothing_and_is_replaced() {
    let world = World::new();
    for day in 0..3 {
        day_of_instances(&world, day).await;
    }
    world.upkeep(world.archive.clone(), None).sweep().await.unwrap();
    let listed = async || world.archive.listed(&world.scope, &INSTANCES).await.unwrap().indexes;
    let path = listed().await[0].path.clone();
    let intact = world.objects.get(&path).await.unwrap().bytes().await.unwrap();
    let mut flipped = intact.to_vec();
    flipped[30] ^= 1;
    for broken in [flipped, b"short".to_vec()] {
        world.objects.put(&path, broken.into()).await.unwrap();
        assert!(world.archive.instance(&world.scope, "a1").await.unwrap().is_some());
        world.upkeep(world.archive.clone(), None).sweep().await.unwrap();
        assert_eq!(world.objects.get(&path).await.unwrap().bytes().await.unwrap(), intact);
    }
}

#[tokio::test(start_paused = true)]
async fn an_erased_id_is_gone_and_others_stay() {
    let world = World::new();
    let all: Vec<Instance> = (0..10).map(|number| instance(&format!("i{number}"), BEGIN_MS, "1")).collect();
    world.archive.store(batch(&all)).await.unwrap();
    world.archive.store(batch(&all[3..4])).await.unwrap();
    let erased = world.archive.erase(&world.scope, Group::Instances, "i3").await.unwrap();
    assert_eq!((erased.rows, erased.files), (8, 4));
    assert_eq!(world.archive.instance(&world.scope, "i3").await.unwrap(), None);
    let (events, _) = world.archive.events(&world.scope, events_of("i3", &all[3])).await.unwrap();
    assert!(events.is_empty());
    assert_eq!(ids(&world.archive, &world.scope, &INSTANCES).await.len(), 9);
    assert_eq!(ids(&world.archive, &world.scope, &EVENTS).await.len(), 27);
    assert_eq!(world.archive.erase(&world.scope, Group::Instances, "i3").await.unwrap().rows, 0);
    // A node that had read it before writes it after the erasure.
    world.archive.store(batch(&all[2..4])).await.unwrap();
    assert_eq!(world.archive.instance(&world.scope, "i3").await.unwrap(), None);
    // What ends later has nothing to do with it.
    let now_ms = segno::clock::Clock::now_ms(&*world.clock);
    let later = Instance { completed_at_ms: Some(now_ms + 1), ..instance("i3", now_ms, "2") };
    world.archive.store(batch(std::slice::from_ref(&later))).await.unwrap();
    assert_eq!(world.archive.instance(&world.scope, "i3").await.unwrap(), Some(shown(&later)));
}

/// All of them rewrite the same file: none may bring back what another has removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn erasures_at_the_same_time_all_hold() {
    for round in 0..20 {
        let world = World::new();
        let names: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
        let instances: Vec<Instance> = names.iter().map(|id| instance(id, BEGIN_MS, "1")).collect();
        world.archive.store(batch(&instances)).await.unwrap();
        let mut erasures = tokio::task::JoinSet::new();
        for id in names.into_iter().skip(1) {
            let (archive, scope) = (world.reopened(), world.scope.clone());
            erasures.spawn(async move { archive.erase(&scope, Group::Instances, &id).await.unwrap() });
        }
        erasures.join_all().await;
        for kind in [&INSTANCES, &EVENTS] {
            let mut left = ids(&world.reopened(), &world.scope, kind).await;
            left.dedup();
            assert_eq!(left, ["p0"], "round {round}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_archive_of_a_tenant_is_erased_and_that_of_others_stays() {
    let world = World::new();
    let ours = instance("a", BEGIN_MS, "1");
    let theirs = Instance { id: "prod/other/a".to_owned(), ..instance("a", BEGIN_MS, "2") };
    world.archive.store(batch(&[ours.clone(), theirs])).await.unwrap();
    let erased = world.archive.erase_all(&world.scope, &Group::ALL).await.unwrap();
    assert_eq!(erased.files, 2);
    world.archive.store(batch(&[ours])).await.unwrap();
    assert_eq!((world.files(&INSTANCES).await, world.files(&EVENTS).await), (0, 0));
    let other = Scope::new("prod", "other").unwrap();
    assert!(world.archive.instance(&other, "a").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn small_files_of_a_day_become_one_and_old_days_go() {
    let world = World::new();
    let now_ms = segno::clock::Clock::now_ms(&*world.clock);
    for number in 0..30_u64 {
        let created_at_ms = now_ms - (number % 3) * DAY_MS - 10_000;
        // Every instance is written twice, in different company.
        let mut written = vec![instance(&format!("i{number:02}"), created_at_ms, "1")];
        let earlier = number.checked_sub(3).map(|number| format!("i{number:02}"));
        written.extend(earlier.map(|id| instance(&id, created_at_ms, "1")));
        world.archive.store(batch(&written)).await.unwrap();
    }
    let before = ids(&world.archive, &world.scope, &INSTANCES).await;
    let mut expected = before.clone();
    expected.dedup();
    assert!(before.len() > expected.len());
    world.upkeep(world.archive.clone(), None).sweep().await.unwrap();
    assert!(world.files(&INSTANCES).await <= 4, "one for each day");
    assert_eq!(ids(&world.archive, &world.scope, &INSTANCES).await, expected);
    let files = world.archive.files(&world.scope, &EVENTS).await.unwrap();
    // There is nothing left to do.
    world.upkeep(world.archive.clone(), None).sweep().await.unwrap();
    assert_eq!(world.archive.files(&world.scope, &EVENTS).await.unwrap(), files);
    let keep = Some(Duration::from_millis(DAY_MS));
    world.upkeep(world.archive.clone(), keep).sweep().await.unwrap();
    let kept = ids(&world.archive, &world.scope, &INSTANCES).await;
    assert!(kept.contains(&"i00".to_owned()) && !kept.contains(&"i02".to_owned()), "{kept:?}");
    assert_eq!(world.archive.trouble(), None);
}

/// After a crash at every write, what was acknowledged is there, and what is there is whole.
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_merge_or_an_erasure_loses_nothing_else() {
    for writes in 0..40 {
        let world = World::new();
        let all: Vec<Instance> =
            (0..6).map(|number| instance(&format!("i{number}"), BEGIN_MS + number, "1")).collect();
        for one in &all {
            world.archive.store(batch(std::slice::from_ref(one))).await.unwrap();
        }
        world.faulty.crash_after(writes);
        let merged = world.upkeep(world.archive.clone(), None).sweep().await;
        let erased = world.archive.erase(&world.scope, Group::Instances, "i5").await;
        let is_done = merged.is_ok() && erased.is_ok();
        let reopened = world.reopened();
        for one in &all[..5] {
            let expected = shown(one);
            assert_eq!(reopened.instance(&world.scope, &expected.id).await.unwrap(), Some(expected));
        }
        // Whoever repeats it ends where an undisturbed process does.
        reopened.erase(&world.scope, Group::Instances, "i5").await.unwrap();
        world.upkeep(reopened.clone(), None).sweep().await.unwrap();
        assert_eq!(ids(&reopened, &world.scope, &INSTANCES).await, ["i0", "i1", "i2", "i3", "i4"]);
        assert_eq!((world.files(&INSTANCES).await, world.files(&EVENTS).await), (1, 1), "{writes}");
        if is_done {
            assert!(writes > 8, "the crash is in the middle of the work in most rounds");
            return;
        }
    }
    panic!("the work takes more writes than were tried");
}

#[tokio::test(start_paused = true)]
async fn an_object_store_that_fails_now_and_then_changes_nothing() {
    for seed in 0..20 {
        let faults = Faults { delayed_list: 0, ..Faults::ALL };
        let world = World::with(faults, seed);
        let all: Vec<Instance> =
            (0..8).map(|number| instance(&format!("i{number}"), BEGIN_MS + number, "1")).collect();
        for one in &all {
            while world.archive.store(batch(std::slice::from_ref(one))).await.is_err() {}
        }
        while world.upkeep(world.archive.clone(), None).sweep().await.is_err() {}
        let found = ids(&world.reopened(), &world.scope, &INSTANCES).await;
        assert_eq!(found, all.iter().map(|one| shown(one).id).collect::<Vec<_>>(), "{seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn trouble_is_told_until_a_write_is_done() {
    let world = World::new();
    world.faulty.crash_after(0);
    world.archive.store(batch(&[instance("a", BEGIN_MS, "1")])).await.unwrap_err();
    let trouble = world.archive.trouble().unwrap();
    assert!(trouble.contains("writes fail since"), "{trouble}");
    world.faulty.crash_after(u64::MAX);
    world.archive.store(batch(&[instance("a", BEGIN_MS, "1")])).await.unwrap();
    assert_eq!(world.archive.trouble(), None);
}

#[tokio::test(start_paused = true)]
async fn instances_are_in_doubt_until_they_are_settled() {
    let world = World::new();
    let all = [instance("a", BEGIN_MS, "1"), instance("b", BEGIN_MS, "2")];
    let generation = world.archive.generation(&world.scope).await.unwrap();
    world.archive.store(batch(&all)).await.unwrap();
    assert_ne!(world.archive.generation(&world.scope).await.unwrap(), generation);
    assert_eq!(world.archive.doubts(&world.scope).await.unwrap().len(), 2);
    let kept =
        InstanceVersion { instance_id: "prod/acme/b".to_owned(), created_at_ms: BEGIN_MS, revision: 4 };
    world.archive.settle(vec![kept]).await.unwrap();
    let doubts = world.archive.doubts(&world.scope).await.unwrap();
    assert_eq!(doubts.into_iter().collect::<Vec<_>>(), [("b".to_owned(), BEGIN_MS)]);
    // The store does not have it any more.
    world.upkeep(world.archive.clone(), None).sweep().await.unwrap();
    assert!(world.archive.doubts(&world.scope).await.unwrap().is_empty());
}
