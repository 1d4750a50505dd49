//! Finding instances by status, name, label and id, and acting on many at once.
//!
//! Run it: `cargo run -p segno-examples --bin search`

use std::time::Duration;

use segno::client::InstanceList;
use segno::store::memory::MemoryStore;
use segno::store::{ExecutionStatus, InstanceQuery};
use segno::{Context, Failure, Orchestration, Registry, Runtime, Signal};

const PAID: Signal<()> = Signal::new("paid");
const ORDER: Orchestration<u32, String> = Orchestration::new("order");

async fn order(ctx: Context, euros: u32) -> Result<String, Failure> {
    ctx.set_label("size", if euros >= 1_000 { "large" } else { "small" })?;
    ctx.signal(PAID).await?;
    Ok("paid".to_owned())
}

fn ids(list: InstanceList) -> String {
    let mut ids: Vec<String> = list.instances.into_iter().map(|instance| instance.id).collect();
    ids.sort();
    ids.join(", ")
}

fn with_label(key: &str, value: &str) -> InstanceQuery {
    InstanceQuery { labels: [(key.to_owned(), value.to_owned())].into(), ..InstanceQuery::default() }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::builder().orchestration(ORDER, order).build()?;
    let runtime = Runtime::builder(MemoryStore::new()).registry(registry).start().await?;
    let client = runtime.client();

    let orders =
        [("Ada", 1_500), ("Ada", 20), ("Bob", 70), ("Bob", 2_200), ("Cyd", 15), ("Cyd", 40), ("Cyd", 9_000)];
    for (number, (customer, euros)) in (1..).zip(orders) {
        let id = format!("order-{number}");
        client.start(ORDER, euros).id(&id).label("customer", customer).await?;
        // Its first commit is when the labels can be found.
        client.wait_for_revision(&id, 0, Duration::from_secs(10)).await?;
    }
    for order in ["order-1", "order-3"] {
        client.signal(order, PAID, ()).await?;
        client.result(ORDER, order).await?;
    }

    println!("orders of Cyd: {}", ids(client.list(with_label("customer", "Cyd")).await?));
    println!("large orders: {}", ids(client.list(with_label("size", "large")).await?));

    let paid = InstanceQuery { statuses: [ExecutionStatus::Completed].into(), ..InstanceQuery::default() };
    println!("paid: {}", ids(client.list(paid).await?));
    let waiting_large =
        InstanceQuery { statuses: [ExecutionStatus::Running].into(), ..with_label("size", "large") };
    println!("large and not paid: {}", ids(client.list(waiting_large).await?));

    let of_cyd =
        InstanceQuery { statuses: [ExecutionStatus::Running].into(), ..with_label("customer", "Cyd") };
    let cancelled = client.bulk(of_cyd).limit(100).cancel("Cyd has moved away").await?;
    println!("cancelled at once: {}", cancelled.done);
    for order in ["order-5", "order-6", "order-7"] {
        client.wait_until_ended(order, Duration::from_secs(10)).await?;
    }

    let counts = client.system_metrics().await?;
    println!(
        "in all: {} completed, {} cancelled, {} running",
        counts.completed_instances, counts.cancelled_instances, counts.running_instances
    );
    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
