//! Orchestrations made of orchestrations: an order ships each of its parcels as a child, and starts a survey that goes its
//! own way.
//!
//! Run it: `cargo run -p segno-examples --bin children`

use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, try_join_all};

const PRINT_LABEL: Activity<String, String> = Activity::new("print-label");
const SHIP_PARCEL: Orchestration<String, String> = Orchestration::new("ship-parcel");
const SURVEY: Orchestration<String, String> = Orchestration::new("survey");
const FULFIL_ORDER: Orchestration<Vec<String>, Vec<String>> = Orchestration::new("fulfil-order");

async fn print_label(_ctx: ActivityContext, parcel: String) -> Result<String, Failure> {
    Ok(format!("label for {parcel}"))
}

async fn ship_parcel(ctx: Context, parcel: String) -> Result<String, Failure> {
    ctx.activity(PRINT_LABEL, parcel).attempts(3).await
}

async fn survey(_ctx: Context, order: String) -> Result<String, Failure> {
    Ok(format!("how did you like {order}?"))
}

async fn fulfil_order(ctx: Context, parcels: Vec<String>) -> Result<Vec<String>, Failure> {
    let order = ctx.instance_id().to_owned();
    // If one child fails, the others are cancelled; if the order is cancelled, all of them are.
    let children = parcels
        .into_iter()
        .enumerate()
        .map(|(number, parcel)| ctx.child(SHIP_PARCEL, parcel).id(format!("{order}.parcel-{}", number + 1)));
    let labels = try_join_all(children).await?;
    // A detached instance is nobody's child: awaiting the start does not wait for its end.
    ctx.start_detached(SURVEY, order.clone()).id(format!("survey-of-{order}")).await?;
    Ok(labels)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry = Registry::builder()
        .orchestration(FULFIL_ORDER, fulfil_order)
        .orchestration(SHIP_PARCEL, ship_parcel)
        .orchestration(SURVEY, survey)
        .activity(PRINT_LABEL, print_label)
        .build()?;
    let runtime = Runtime::builder(MemoryStore::new()).registry(registry).start().await?;
    let client = runtime.client();

    let parcels = ["a lamp", "two books", "a kettle"].map(str::to_owned).to_vec();
    for label in client.start(FULFIL_ORDER, parcels).id("order-7").result().await? {
        println!("{label}");
    }

    let mut tree = client.tree("order-7").await?.all_ids;
    tree.sort();
    println!("the tree of order-7: {}", tree.join(", "));
    println!("the survey: {}", client.result(SURVEY, "survey-of-order-7").await?);

    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
