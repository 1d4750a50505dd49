//! Many activities at once: asks all carriers for a price, lives with one that does not answer, and takes the cheapest.
//!
//! Run it: `cargo run -p segno-examples --bin fan_out`

use std::time::Duration;

use segno::store::memory::MemoryStore;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, Runtime, join_all};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Parcel {
    to: String,
    grams: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Quote {
    carrier: String,
    cents: u32,
}

const CARRIERS: [&str; 5] = ["albatross", "courier", "hedgehog", "kingfisher", "swift"];
const ASK_CARRIER: Activity<(String, Parcel), Quote> = Activity::new("ask-carrier");
const CHEAPEST: Orchestration<Parcel, Quote> = Orchestration::new("cheapest-carrier");

async fn ask_carrier(_ctx: ActivityContext, (carrier, parcel): (String, Parcel)) -> Result<Quote, Failure> {
    let cents_per_kilogram = match carrier.as_str() {
        "albatross" => 940,
        "courier" => 720,
        "kingfisher" => 655,
        "swift" => 810,
        _ => return Err(Failure::application(format!("{carrier} does not answer")).non_retryable()),
    };
    Ok(Quote { carrier, cents: cents_per_kilogram * parcel.grams / 1_000 })
}

async fn cheapest(ctx: Context, parcel: Parcel) -> Result<Quote, Failure> {
    let questions = CARRIERS.map(|carrier| {
        ctx.activity(ASK_CARRIER, (carrier.to_owned(), parcel.clone()))
            .attempts(3)
            .timeout(Duration::from_secs(5))
    });
    // All five run at the same time. `try_join_all` would give up at the first that fails and cancel the others.
    let answers = join_all(questions).await;
    let quotes = answers.into_iter().filter_map(Result::ok);
    quotes.min_by_key(|quote| quote.cents).ok_or_else(|| Failure::application("no carrier answered"))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let registry =
        Registry::builder().orchestration(CHEAPEST, cheapest).activity(ASK_CARRIER, ask_carrier).build()?;
    let runtime = Runtime::builder(MemoryStore::new()).registry(registry).start().await?;

    let parcel = Parcel { to: "Lisbon".to_owned(), grams: 2_400 };
    println!("asking {} carriers for a parcel to {}", CARRIERS.len(), parcel.to);
    let quote = runtime.client().start(CHEAPEST, parcel).result().await?;
    println!("cheapest: {} for {}.{:02} EUR", quote.carrier, quote.cents / 100, quote.cents % 100);

    runtime.shutdown(Duration::from_secs(1)).await;
    Ok(())
}
