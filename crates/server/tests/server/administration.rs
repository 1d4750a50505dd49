//! Nodes, settings and the store's figures, for those who look after a server.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno::store::{Expect, RecordBatch, RecordWrite};
use segno_api::key::Role;
use segno_api::problems::ProblemKind;
use segno_api::system::NodeState;
use segno_server::settings::Authentication;
use segno_testkit::clock::VirtualClock;
use serde_json::json;

use crate::stand::{Ground, PATIENCE, Stand, settings};

/// The nodes with their states, once there are so many.
async fn nodes(stand: &Stand, count: usize) -> Vec<(String, NodeState)> {
    let listed = async {
        loop {
            // Connections do not outlive hours that pass at once.
            let nodes = stand.client().nodes().await.unwrap().nodes;
            if nodes.len() >= count {
                return nodes.into_iter().map(|node| (node.node, node.state)).collect();
            }
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, listed).await.expect("no node writes itself down")
}

#[tokio::test]
async fn a_node_that_vanished_is_a_problem_and_one_that_stopped_is_none() {
    let clock = VirtualClock::new();
    let ground = Ground::on_clock(clock.clone());
    let named = |name: &str| {
        let mut settings = settings(Authentication::None);
        settings.server.node = Some(name.to_owned());
        settings
    };
    let by = |name: &str| {
        let builder = segno_server::Server::builder(Arc::clone(&ground.store), named(name));
        builder.clock(clock.clone() as Arc<dyn Clock>)
    };
    let stand = Stand::begun(by("one"), &ground).await;
    assert_eq!(nodes(&stand, 1).await, [("one".to_owned(), NodeState::Up)]);
    // As two other nodes of a shared store leave their records: one stopped, one was killed.
    let now_ms = clock.now_ms();
    let left = |name: &str, stopped: Option<u64>| {
        let body = json!({
            "node": name, "version": "0.1.0", "roles": ["worker"], "started_at_ms": now_ms, "seen_at_ms": now_ms,
            "stopped_at_ms": stopped, "orchestrations": 1, "functions": 1, "tags": [],
        });
        RecordWrite::Put {
            kind: "segno.node".to_owned(),
            id: format!("named/{name}"),
            expect: Expect::Absent,
            due_at_ms: None,
            time_to_live: Some(Duration::from_secs(3_600)),
            body: body.to_string().into(),
        }
    };
    let writes = vec![left("killed", None), left("stopped", Some(now_ms))];
    ground.store.commit_records(RecordBatch { writes, ..RecordBatch::default() }).await.unwrap();
    let of = |killed: NodeState| {
        [("killed", killed), ("one", NodeState::Up), ("stopped", NodeState::Stopped)]
            .map(|(name, state)| (name.to_owned(), state))
    };
    assert_eq!(nodes(&stand, 3).await, of(NodeState::Up));
    let lost = async {
        clock.advance(Duration::from_secs(40));
        loop {
            // This node has to notice that time has passed.
            let found = nodes(&stand, 3).await;
            if found == of(NodeState::Lost) {
                return;
            }
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, lost).await.expect("the killed node is lost");
    let report = stand.client().problems().await.unwrap();
    let problem = report.problems.iter().find(|problem| problem.kind == ProblemKind::Nodes).unwrap();
    assert_eq!((problem.count, problem.items[0].name.as_str()), (1, "killed"));
    clock.advance(Duration::from_secs(3_600));
    let gone = async {
        loop {
            let report = stand.client().problems().await.unwrap();
            let is_lost = report.problems.iter().any(|found| found.kind == ProblemKind::Nodes);
            if report.checked.contains(&ProblemKind::Nodes) && !is_lost {
                return;
            }
            clock.advance(Duration::from_secs(2));
            crate::stand::look_again().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, gone).await.expect("after an hour it is forgotten");
    stand.shutdown().await;
}

#[tokio::test]
async fn settings_have_their_origin_and_no_secret_and_only_administrators_see_them() {
    let mut with_secrets = settings(Authentication::Keys);
    with_secrets.telemetry.otlp_endpoint = Some("http://ada:hush@localhost:4318".to_owned());
    let stand = Stand::with(with_secrets).await;
    let client = stand.client();
    let found = client.settings().await.unwrap();
    let line = |name: &str| {
        let line = found.settings.iter().find(|line| line.setting == name).unwrap();
        (line.value.clone(), line.origin.clone())
    };
    assert_eq!(line("server.drain_seconds"), ("20".to_owned(), "default".to_owned()));
    assert_eq!(line("store.url"), ("\"memory:\"".to_owned(), "program".to_owned()));
    assert_eq!(line("telemetry.otlp_endpoint").0, "\"http://***@localhost:4318\"");
    assert!(found.settings.iter().all(|line| !line.value.contains("hush")));
    let everywhere = ("*", "*");
    for (role, (namespace, tenant), [settings, nodes, store]) in [
        (Role::Operator, everywhere, [403, 200, 200]),
        (Role::Viewer, everywhere, [403, 200, 200]),
        (Role::Worker, everywhere, [403, 403, 403]),
        (Role::Admin, ("shop", "eu"), [403, 403, 403]),
    ] {
        let key = stand.key(role, namespace, tenant).await;
        let status = async |path: &str| {
            let call = crate::stand::http().get(stand.url(path)).bearer_auth(&key);
            call.send().await.unwrap().status().as_u16()
        };
        let found = [status("/v1/settings").await, status("/v1/nodes").await, status("/v1/store").await];
        assert_eq!(found, [settings, nodes, store], "{role:?} of {namespace}/{tenant}");
    }
    stand.shutdown().await;
}

#[tokio::test]
async fn the_store_has_figures_as_far_as_it_is_on_a_disk() {
    let stand = Stand::open().await;
    let figures = stand.client().store_figures().await.unwrap();
    match figures.store.as_str() {
        "memory" => assert_eq!((figures.bytes, figures.disk_bytes), (None, None)),
        "postgres" => assert!(figures.bytes.is_some_and(|bytes| bytes > 0), "{figures:?}"),
        // Its settings say that the store is in memory, whatever the test has opened.
        other => assert_eq!(other, "embedded"),
    }
    stand.shutdown().await;
}
