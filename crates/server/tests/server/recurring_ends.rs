//! Many runs of one recurring action that end at once on two nodes. On PostgreSQL the commits of both
//! nodes meet.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use segno::clock::{SystemClock, timeout};
use segno::store::ListRecords;
use segno_actions::telemetry::RECURRING_ERRORS;
use segno_api::Json;
use segno_api::recurring::{BackfillRecurring, OverlapPolicy, RecurringFields};
use segno_server::settings::Authentication;
use segno_server::{Server, samples, telemetry};

use crate::stand::{Ground, PATIENCE, Stand, settings};

/// Runs that each node starts.
const RUNS: usize = 40;

async fn node(ground: &Ground, metrics: metrics_exporter_prometheus::PrometheusHandle) -> Stand {
    let builder = Server::builder(Arc::clone(&ground.store), settings(Authentication::None));
    let builder = builder.registry(samples::registry()).functions(samples::functions).metrics(metrics);
    Stand::begun(builder, ground).await
}

/// So many seconds of the past, beginning so many seconds ago.
fn past(from_seconds: usize) -> BackfillRecurring {
    let ago = |seconds: usize| {
        let now =
            Timestamp::from_millisecond(i64::try_from(segno::clock::Clock::now_ms(&SystemClock)).unwrap());
        now.unwrap() - SignedDuration::from_secs(i64::try_from(seconds).unwrap())
    };
    BackfillRecurring {
        namespace: None,
        tenant: None,
        start: ago(from_seconds),
        end: ago(from_seconds - RUNS),
        limit: Some(RUNS + 1),
        dry_run: false,
    }
}

// On one thread, because the recorder is that of a thread.
#[tokio::test]
async fn ends_of_many_runs_on_two_nodes_do_not_conflict_and_count_once() {
    let recorder = telemetry::recorder().unwrap();
    let _guard = metrics::set_default_local_recorder(&recorder);
    telemetry::all().for_each(segno::telemetry::Metric::announce);
    let ground = Ground::new().await;
    let one = node(&ground, recorder.handle()).await;
    let other = node(&ground.of_another_node().await, recorder.handle()).await;
    let fields = RecurringFields {
        every: Some("1s".to_owned()),
        function: Some("echo".to_owned()),
        input: Some(Json::from_text("1".to_owned()).unwrap()),
        overlap_policy: Some(OverlapPolicy::Allow),
        enabled: Some(false),
        ..RecurringFields::default()
    };
    let id = one.client().create_recurring(&fields).await.unwrap().recurring_id;
    let (first, second) = (past(RUNS), past(3 * RUNS));
    let (client, other_client) = (one.client(), other.client());
    let fired =
        segno::join(client.backfill_recurring(&id, &first), other_client.backfill_recurring(&id, &second));
    let fired = timeout(&SystemClock, PATIENCE, fired).await.expect("the backfill takes too long");
    let runs = fired.0.unwrap().dispatched + fired.1.unwrap().dispatched;
    let look = async {
        loop {
            let history = client.recurring_history(&id, 100, None).await.unwrap();
            let ended = history.entries.iter().filter(|entry| entry.outcome.is_some()).count();
            let request =
                ListRecords { kind: "segno.recurring-end", id_prefix: "", after_id: None, limit: 1 };
            let is_taken_in = ground.store.list_records(request).await.unwrap().is_empty();
            if ended == runs && is_taken_in {
                return;
            }
            crate::stand::look_again().await;
        }
    };
    timeout(&SystemClock, PATIENCE, look).await.expect("the runs do not end");
    let action = client.recurring(&id).await.unwrap();
    assert_eq!(action.execution_count, runs as u64);
    let scraped = recorder.handle().render();
    let value = |name: &str| {
        let line = scraped.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name} is not in {scraped}")).rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(value("segno_end_conflicts_total"), "0");
    assert_eq!(value(RECURRING_ERRORS), "0");
    one.shutdown().await;
    other.shutdown().await;
}
