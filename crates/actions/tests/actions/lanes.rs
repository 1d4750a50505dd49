//! Lanes of other rooms in the scheduler of a node.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use segno::store::{ErrorKind, Expect, Record, RecordBatch, RecordWrite, Store};
use segno_actions::action::{ACTION_KIND, ActionStatus};
use segno_actions::functions::{FunctionError, Functions};
use segno_actions::scheduler::{DueHandler, Handled, Lane, LaneError, Scheduler};
use serde_json::json;

use crate::support::{START_MS, World};

/// Kind of the records of this room.
const ROOM_KIND: &str = "room.thing";

/// Deletes what is due, and notes when. A body says what else happens.
#[derive(Clone)]
struct Room {
    store: Arc<dyn Store>,
    /// Seconds at which each record was handed out.
    seen: Arc<Mutex<BTreeMap<String, Vec<u64>>>>,
}

#[async_trait]
impl DueHandler for Room {
    async fn handle(&self, record: Record, now_ms: u64) -> Result<Handled, LaneError> {
        let times = {
            let mut seen = self.seen.lock().unwrap();
            let times = seen.entry(record.id.clone()).or_default();
            times.push((now_ms - START_MS) / 1_000);
            times.len()
        };
        match &*record.body {
            b"hangs" => std::future::pending::<()>().await,
            b"unreadable" => return Err(LaneError::unreadable("it is no JSON")),
            b"corrupt" => return Err(LaneError::new(ErrorKind::Corrupt, "its function is no JSON")),
            b"busy once" if times == 1 => return Err(FunctionError::Busy.into()),
            b"away once" if times == 1 => return Err(LaneError::new(ErrorKind::Unavailable, "away")),
            _ => {}
        }
        let delete =
            RecordWrite::Delete { kind: record.kind, id: record.id, expect: Expect::Version(record.version) };
        let batch = RecordBatch { writes: vec![delete], ..RecordBatch::default() };
        match self.store.commit_records(batch).await {
            Ok(_) => Ok(Handled::Done),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(Handled::Lost),
            Err(error) => Err(error.into()),
        }
    }
}

impl Room {
    fn of(world: &World) -> Room {
        Room { store: world.store.clone(), seen: Arc::default() }
    }

    fn lane(&self) -> Lane {
        Lane::new(ROOM_KIND, "room", self.clone())
    }

    async fn put(&self, id: &str, body: &'static str, due: u64) {
        let put = RecordWrite::Put {
            kind: ROOM_KIND.to_owned(),
            id: id.to_owned(),
            expect: Expect::Anything,
            due_at_ms: Some(START_MS + due * 1_000),
            time_to_live: None,
            body: body.into(),
        };
        let batch = RecordBatch { writes: vec![put], ..RecordBatch::default() };
        self.store.commit_records(batch).await.unwrap();
    }

    fn seen(&self, id: &str) -> Vec<u64> {
        self.seen.lock().unwrap().get(id).cloned().unwrap_or_default()
    }
}

#[test]
fn a_rooms_records_are_handed_out_at_their_time_once() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let room = Room::of(&world);
        room.put("later", "", 100).await;
        world.lanes.push(room.lane());
        world.schedule();
        world.schedule();
        room.put("a", "", 10).await;
        world.pass(5).await;
        assert!(room.seen("a").is_empty());
        // The commit wakes the lane although it waits for what is due much later.
        room.put("now", "", 5).await;
        world.pass(200).await;
        assert_eq!((room.seen("now")[0], room.seen("a")[0], room.seen("later")[0]), (5, 10, 100));
        assert!(room.store.next_due_ms(ROOM_KIND).await.unwrap().is_none(), "both nodes are done with it");
    });
}

#[test]
fn what_cannot_be_handled_is_tried_again_and_what_cannot_be_read_is_put_aside() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let room = Room::of(&world);
        world.lanes.push(room.lane());
        world.schedule();
        room.put("away", "away once", 1).await;
        room.put("unreadable", "unreadable", 1).await;
        room.put("corrupt", "corrupt", 1).await;
        world.pass(60).await;
        assert_eq!(room.seen("away").len(), 2);
        assert_eq!((room.seen("unreadable"), room.seen("corrupt")), (vec![1], vec![1]));
        world.pass(3_600).await;
        assert_eq!(room.seen("unreadable"), [1, 3_601]);
        assert_eq!(room.seen("corrupt")[..3], [1, 61, 121], "what it needs may be mended");
    });
}

#[test]
fn records_of_a_tenant_with_too_much_to_check_are_postponed_without_a_try() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let room = Room::of(&world);
        world.lanes.push(room.lane().concurrency(1));
        for id in ["n/a/1", "n/a/2", "n/b/1"] {
            room.put(id, if id == "n/b/1" { "" } else { "busy once" }, 1).await;
        }
        world.schedule();
        world.pass(60).await;
        assert_eq!(room.seen("n/b/1"), [1], "of another tenant");
        let tries: usize =
            ["n/a/1", "n/a/2"].map(|id| room.seen(id).iter().filter(|at| **at == 1).count()).iter().sum();
        assert_eq!(tries, 1, "the first refusal counts for the tenant");
        assert!(room.store.next_due_ms(ROOM_KIND).await.unwrap().is_none(), "all were done in the end");
    });
}

#[test]
fn a_lane_that_is_stuck_delays_no_other() {
    segno_testkit::run(async {
        let mut world = World::idle().await;
        let (stuck, other) = (Room::of(&world), Room::of(&world));
        world.lanes.push(stuck.lane().page(10).concurrency(2));
        world.lanes.push(Lane::new("room.other", "other", other.clone()));
        world.schedule();
        for id in ["a", "b", "c"] {
            stuck.put(id, "hangs", 1).await;
        }
        world.add(1, "note", json!(1), 2).await;
        world.pass(60).await;
        let handed: Vec<&str> = ["a", "b", "c"].into_iter().filter(|id| !stuck.seen(id).is_empty()).collect();
        assert_eq!(handed.len(), 2, "as many at once as the lane says");
        assert!(matches!(world.status(1).await, ActionStatus::Completed { .. }));
    });
}

#[test]
fn two_lanes_of_one_kind_or_name_are_refused() {
    segno_testkit::run(async {
        let world = World::idle().await;
        let room = Room::of(&world);
        for (kind, name) in [(ROOM_KIND, "other"), ("other", "room"), (ACTION_KIND, "other"), ("x", "check")]
        {
            let functions: Functions = world.functions.clone();
            let builder = Scheduler::builder(world.store.clone(), functions).lane(room.lane());
            let error = builder.lane(Lane::new(kind, name, room.clone())).build().err().unwrap();
            assert!(error.to_string().contains("is registered twice"), "{error}");
        }
    });
}
