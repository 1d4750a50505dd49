//! Every block of a small store, overwritten in turn: the store opens and serves what is on the
//! others, or reports the file that it cannot be opened by. Whatever it returns is what was stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use segno::clock::Clock;
use segno::store::*;
use segno_embedded::{EmbeddedStore, OpenError, OpenOptions};
use segno_testkit::clock::VirtualClock;

use crate::block_on;
use crate::disk::{Contents, Disk};

const BLOCK: usize = 4_096;

/// Of each table; each row takes a good part of a block, so that every table has blocks of its own.
const ROWS: u64 = 24;

const KIND: &str = "kind";
const LONG: Duration = Duration::from_secs(3_600);

fn name(number: u64) -> String {
    format!("i{number:03}")
}

fn body(what: &str, number: u64) -> Bytes {
    Bytes::from(format!("{what} {number:03} ").repeat(150))
}

fn record(number: u64) -> RecordWrite {
    RecordWrite::Put {
        kind: KIND.to_owned(),
        id: name(number),
        expect: Expect::Absent,
        due_at_ms: Some(1_000 + number),
        time_to_live: Some(LONG * 1_000),
        body: body("record", number),
    }
}

/// Where ids of records are long and differ in their last digits only.
const FOLDER: &str = "namespace/tenant/00000000000000000001/";

fn numbered(number: u64) -> RecordWrite {
    RecordWrite::Put {
        kind: "numbered".to_owned(),
        id: format!("{FOLDER}{number:020}"),
        expect: Expect::Absent,
        due_at_ms: None,
        time_to_live: None,
        // Smaller, so that the rows of all tables still have one root.
        body: body("numbered", number).slice(..600),
    }
}

fn activity(number: u64) -> WorkerMessage {
    let activity =
        ScheduledActivityIdentifier { instance: name(number), execution_id: 1, activity_id: number };
    let body = body("activity", number);
    WorkerMessage { activity, session_id: None, tag: None, visible_at_ms: None, body }
}

fn work(life: LockLife, max_items: usize) -> FetchWorkItems<'static> {
    let (lock_timeout, tag_filter) = (LONG, &TagFilter::Any);
    FetchWorkItems { max_items, lock_timeout, poll_timeout: Duration::ZERO, session: None, tag_filter, life }
}

fn options(disk: &Arc<Disk>, clock: &Arc<VirtualClock>) -> OpenOptions {
    OpenOptions::default().files(disk.mount()).clock(Arc::clone(clock) as Arc<dyn Clock>)
}

/// A store that was closed, with rows in every table.
async fn stored() -> Contents {
    let (disk, clock) = (Disk::empty(), VirtualClock::new());
    let store = EmbeddedStore::open_with("", options(&disk, &clock)).unwrap();
    for number in 0..ROWS {
        let events = vec![StoredEvent { event_id: 1, data: body("event", number) }];
        store.append_with_execution(&name(number), 1, events).await.unwrap();
        let message = OrchestratorMessage::new(name(number), body("message", number));
        store.enqueue_for_orchestrator(message, None).await.unwrap();
        store.enqueue_for_worker(activity(number)).await.unwrap();
        clock.advance_to_ms(clock.now_ms() + 10);
    }
    let writes = (0..ROWS).map(record).chain((0..ROWS).map(numbered)).collect();
    store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
    // Some have a standing: a lease that outlives the process, or a turn that was given back.
    assert_eq!(store.fetch_work_items(work(LockLife::Durable, 6)).await.unwrap().len(), 6);
    let turns = FetchOrchestrationItems { max_items: 6, ..FetchOrchestrationItems::one(LONG) };
    for turn in store.fetch_orchestration_items(turns).await.unwrap() {
        store.abandon_orchestration_item(turn.lock_token, None, false).await.unwrap();
    }
    store.close();
    disk.contents()
}

/// What a store has, by table and number.
#[derive(Debug, Default, PartialEq, Eq)]
struct Served(BTreeMap<&'static str, BTreeSet<u64>>);

impl Served {
    fn add(&mut self, table: &'static str, number: u64) {
        self.0.entry(table).or_default().insert(number);
    }

    fn count(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }
}

/// Numbers of the instances that a store lists, page by page and newest first, whether they can be
/// read or not.
async fn listed(store: &EmbeddedStore) -> BTreeSet<u64> {
    let (mut found, mut query) = (Vec::new(), InstanceQuery { limit: 5, ..InstanceQuery::default() });
    loop {
        let page = store.query_instances(query.clone()).await.unwrap();
        let readable = page.instances.iter().map(|info| (info.created_at_ms, info.instance_id.clone()));
        let unreadable = page.unreadable.iter().map(|row| (row.created_at_ms, row.instance_id.clone()));
        let mut rows: Vec<_> = readable.chain(unreadable).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.0));
        assert!(rows.len() <= 5, "{} rows", rows.len());
        found.extend(rows);
        query.cursor = page.next;
        if query.cursor.is_none() {
            assert!(found.is_sorted_by(|one, other| one.0 > other.0), "{found:?}");
            return found.into_iter().map(|(_, id)| id[1..].parse().unwrap()).collect();
        }
    }
}

fn corrupt(error: &ProviderError) {
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("state.redb"), "{error}");
}

/// What a store serves, each value compared with what was stored. What it does not serve is
/// reported as damage.
async fn served(store: &EmbeddedStore) -> Served {
    let mut served = Served::default();
    for number in 0..ROWS {
        match store.read_history_with_execution_id(&name(number), 1).await {
            Ok(events) => {
                let [event] = &events[..] else { unreachable!("{} events", events.len()) };
                assert_eq!(event.data, body("event", number));
                served.add("events", number);
            }
            Err(error) => corrupt(&error),
        }
        match store.get_record(KIND, &name(number)).await {
            Ok(record) => {
                assert_eq!(record.unwrap().body, body("record", number));
                served.add("records", number);
            }
            Err(error) => corrupt(&error),
        }
    }
    for found in listed(store).await {
        served.add("instances", found);
    }
    let list = ListRecords { kind: KIND, limit: 1_000, ..ListRecords::default() };
    for found in store.list_records_around_damage(list).await.unwrap().records {
        let number = found.id[1..].parse().unwrap();
        assert_eq!(found.body, body("record", number));
        served.add("listed records", number);
    }
    for number in 0..ROWS {
        match store.get_record("numbered", &format!("{FOLDER}{number:020}")).await {
            Ok(record) => {
                assert_eq!(record.unwrap().body, body("numbered", number).slice(..600));
                served.add("numbered", number);
            }
            Err(error) => corrupt(&error),
        }
    }
    // Page by page, from their folder on.
    let mut after: Option<String> = None;
    loop {
        let (id_prefix, after_id) = (FOLDER, after.as_deref());
        let list = ListRecords { kind: "numbered", id_prefix, after_id, limit: 5 };
        let page = store.list_records_around_damage(list).await.unwrap();
        for found in &page.records {
            served.add("listed numbered", found.id[FOLDER.len()..].parse().unwrap());
        }
        let Some(last) = page.records.last().filter(|_| page.records.len() == 5) else { break };
        after = Some(last.id.clone());
    }
    let due = DueRecords { kind: KIND, now_ms: Some(1_000 + ROWS), limit: 1_000, ..DueRecords::default() };
    for found in store.due_records(due).await.unwrap() {
        let number = found.due_at_ms.unwrap() - 1_000;
        assert_eq!((found.id, found.body), (name(number), body("record", number)));
        served.add("due", number);
    }
    let turns = FetchOrchestrationItems { max_items: 1_000, ..FetchOrchestrationItems::one(LONG) };
    for turn in store.fetch_orchestration_items(turns).await.unwrap() {
        let number = turn.instance[1..].parse().unwrap();
        assert!(turn.messages.iter().all(|message| message.body == body("message", number)));
        served.add("messages", number);
    }
    for number in 0..ROWS {
        for queued in store.queued_activities(&name(number)).await.unwrap() {
            assert_eq!(queued.activity_id, number);
            served.add("activities", number);
        }
    }
    served
}

#[test]
fn a_store_opens_around_any_damaged_block_but_those_that_it_is_opened_by() {
    let contents = block_on(stored());
    let len = contents.files().find(|(name, _)| *name == "state.redb").unwrap().1;
    let open = |contents: Contents| {
        let clock = VirtualClock::new();
        clock.advance_to_ms(clock.now_ms() + 10_000);
        EmbeddedStore::open_with("", options(&Disk::with(contents), &clock))
    };
    let whole = block_on(served(&open(contents.clone()).unwrap()));
    assert_eq!(whole.count() as u64, 9 * ROWS, "{whole:?}");
    let (mut refused, mut lost): (Vec<usize>, BTreeMap<&str, u64>) = (Vec::new(), BTreeMap::new());
    for block in 0..len.div_ceil(BLOCK) {
        let mut damaged = contents.clone();
        damaged.overwrite("state.redb", block * BLOCK..(block + 1) * BLOCK);
        let store = match open(damaged) {
            Ok(store) => store,
            Err(error) => {
                assert!(matches!(error, OpenError::Corrupt(_)), "block {block}: {error:?}");
                assert!(error.to_string().contains("state.redb"), "block {block}: {error}");
                refused.push(block);
                continue;
            }
        };
        let served = block_on(served(&store));
        for (table, numbers) in &whole.0 {
            let missing = numbers.difference(served.0.get(table).unwrap_or(&BTreeSet::new())).count();
            *lost.entry(table).or_default() += missing as u64;
            if missing > 0 {
                let known = block_on(store.known_damage()).unwrap().expect("what is missing is reported");
                assert!(known.contains("of state.redb fails its checksum"), "{known}");
                // One block has few rows; a history needs the row of its instance too, and those
                // are small.
                assert!(
                    missing as u64 <= ROWS / 2 || *table == "events",
                    "block {block}: {missing} of {table} are not served"
                );
            }
        }
        // What is new is kept, or refused because of the damage.
        match block_on(store.enqueue_for_orchestrator(OrchestratorMessage::new("new", "body"), None)) {
            Ok(()) => {}
            Err(error) => corrupt(&error),
        }
    }
    println!("{refused:?} of {} blocks refused, lost {lost:?}", len.div_ceil(BLOCK));
    // The block of checksums, redb's header and its own tables, the root, and the block of the
    // store's facts.
    assert!(refused.len() <= 10, "{refused:?}");
    for table in ["events", "records", "messages", "activities"] {
        assert!(lost.get(table).is_some_and(|lost| *lost > 0), "no block of {table} was damaged: {lost:?}");
    }
    // An instance whose row cannot be read is listed by its id, and an index that cannot be read is
    // not needed.
    assert_eq!(lost["instances"], 0, "{lost:?}");
    assert_eq!(lost["listed records"], lost["records"], "{lost:?}");
    assert_eq!(lost["listed numbered"], lost["numbered"], "{lost:?}");
    // The due index is derived from the records, so a due record is lost only with its own block.
    assert!(lost["due"] <= lost["records"], "{lost:?}");
}
