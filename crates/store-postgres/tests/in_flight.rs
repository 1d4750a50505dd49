//! Several exchanges in flight: what must keep its order keeps it, and nothing is lost or done twice.

#![expect(clippy::unwrap_used, reason = "tests and their helpers")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use segno::store::{FetchOrchestrationItems, OrchestratorMessage, Provider};
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, try_join_all};
use segno_postgres::PostgresStore;
use support::Schema;

const LOCK: Duration = Duration::from_secs(60);

const SUM: Orchestration<u32, u32> = Orchestration::new("sum");
const HALF: Activity<u32, u32> = Activity::new("half");

async fn open(schema: &Schema, exchanges: usize) -> Arc<PostgresStore> {
    schema.open(schema.options().exchanges_in_flight(exchanges).unwrap()).await
}

async fn post(store: &PostgresStore, instance: &str, number: u32) {
    let message = OrchestratorMessage::new(instance, number.to_string());
    store.enqueue_for_orchestrator(message, None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_for_one_instance_keep_the_order_of_their_calls() {
    let schema = Schema::take().await;
    let store = open(&schema, 4).await;
    for round in 0..5 {
        let hot = format!("hot {round}");
        // Every second call is for another instance, so that exchanges go out while messages of the first wait.
        let calls = (0..200).flat_map(|number| {
            let (store, hot) = (&store, hot.as_str());
            let other = format!("other {round} {number}");
            [(hot.to_owned(), number), (other, number)].map(|(to, number)| async move {
                post(store, &to, number).await;
            })
        });
        join_all(calls).await;
        let request = FetchOrchestrationItems { max_items: 1_000, ..FetchOrchestrationItems::one(LOCK) };
        let mut items = store.fetch_orchestration_items(request).await.unwrap();
        while !items.iter().any(|item| *item.instance == *hot) {
            items = store.fetch_orchestration_items(request).await.unwrap();
        }
        let item = items.into_iter().find(|item| *item.instance == *hot).unwrap();
        let bodies: Vec<Bytes> = item.messages.into_iter().map(|message| message.body).collect();
        let sent: Vec<Bytes> = (0..200_u32).map(|number| Bytes::from(number.to_string())).collect();
        assert_eq!(bodies, sent);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_end_once_each_with_their_own_result() {
    let schema = Schema::take().await;
    let sum = async |ctx: Context, number: u32| -> Result<u32, Failure> {
        let both = try_join_all([number, number + 1].map(|number| ctx.activity(HALF, number))).await?;
        Ok(both.into_iter().sum::<u32>() + ctx.activity(HALF, number).await?)
    };
    let half = async |_: ActivityContext, number: u32| -> Result<u32, Failure> { Ok(number / 2) };
    let registry = Registry::builder().orchestration(SUM, sum).activity(HALF, half).build().unwrap();
    let runtime = Runtime::builder(open(&schema, 3).await).registry(registry).start().await.unwrap();
    let client = runtime.client();
    let runs = (0..300_u32).map(|number| async move {
        let result = client.start(SUM, number).result().await.unwrap();
        assert_eq!(result, number / 2 + number.div_ceil(2) + number / 2);
    });
    join_all(runs).await;
    runtime.shutdown(LOCK).await;
    let left = "SELECT (SELECT count(*) FROM {}.turn WHERE head >= 0) + (SELECT count(*) FROM {}.activity WHERE id > 0) \
                + (SELECT count(*) FROM {}.message WHERE id > 0)";
    let row = support::connect(&support::url()).await.query_one(&left.replace("{}", &schema.name), &[]).await;
    assert_eq!(row.unwrap().get::<_, i64>(0), 0, "the queues are empty");
}
