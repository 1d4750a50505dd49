//! Tags route activities to the workers that can do them. Three nodes share one store: one decides, one has a graphics
//! card, one does the rest.
//!
//! Run it: `cargo run -p segno-examples --bin tags`

use std::sync::Arc;
use std::time::Duration;

use segno::store::TagFilter;
use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, RuntimeOptions};

const CLEAN_DATA: Activity<String, String> = Activity::new("clean-data");
const TRAIN_MODEL: Activity<String, String> = Activity::new("train-model");
const WRITE_REPORT: Activity<String, String> = Activity::new("write-report");
const TRAINING: Orchestration<String, Vec<String>> = Orchestration::new("training");

/// Every activity of this example only says where it ran.
async fn say_where(ctx: ActivityContext, data: String) -> Result<String, Failure> {
    Ok(format!("{} of {data} ran on {}", ctx.activity_name(), ctx.worker_id()))
}

async fn training(ctx: Context, data: String) -> Result<Vec<String>, Failure> {
    Ok(vec![
        ctx.activity(CLEAN_DATA, data.clone()).await?,
        ctx.activity(TRAIN_MODEL, data.clone()).tag("gpu").await?,
        ctx.activity(WRITE_REPORT, data).await?,
    ])
}

async fn start_node(store: &Arc<MemoryStore>, options: RuntimeOptions) -> anyhow::Result<Runtime> {
    let registry = Registry::builder()
        .orchestration(TRAINING, training)
        .activity(CLEAN_DATA, say_where)
        .activity(TRAIN_MODEL, say_where)
        .activity(WRITE_REPORT, say_where)
        .build()?;
    Ok(Runtime::builder(store.clone()).registry(registry).options(options).start().await?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let store = MemoryStore::new();
    let named = |name: &str| RuntimeOptions { node_id: Some(name.to_owned()), ..RuntimeOptions::default() };
    let nodes = [
        start_node(&store, RuntimeOptions { worker_concurrency: 0, ..named("control") }).await?,
        start_node(&store, RuntimeOptions { tag_filter: TagFilter::DefaultOnly, ..named("office-1") })
            .await?,
        start_node(&store, RuntimeOptions { tag_filter: TagFilter::tags(["gpu"]), ..named("gpu-1") }).await?,
    ];

    for line in nodes[0].client().start(TRAINING, "bird songs".to_owned()).result().await? {
        println!("{line}");
    }
    for node in nodes {
        node.shutdown(Duration::from_secs(1)).await;
    }
    Ok(())
}
