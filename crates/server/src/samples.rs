//! What `segno dev` has to play with: an orchestration that greets, waits for an approval, and says goodbye; one that takes an
//! order through its steps, of which some fail, as in life; and three functions: `echo`, `greet`, and `slow`, which takes its
//! time.

use std::time::Duration;

use segno::clock::{self, SystemClock};
use segno::{
    Activity, ActivityContext, Context, Failure, Orchestration, OrchestrationSchemas, Payload, Registry,
    RegistryBuilder, Retry, Signal,
};
use segno_actions::functions::FunctionsBuilder;
use serde::{Deserialize, Serialize};

/// Greets somebody, waits up to a day for the signal `wave`, and says goodbye.
pub const GREET: Orchestration<Greeting, String> = Orchestration::new("greet");

/// Reserves what was ordered, charges it, waits for the courier, and ships it.
pub const ORDER: Orchestration<Order, String> = Orchestration::new("order");

/// The steps of an order.
const RESERVE: Activity<String, String> = Activity::new("reserve");
const CHARGE: Activity<String, String> = Activity::new("charge");
const SHIP: Activity<String, String> = Activity::new("ship");

/// Every so many orders, the first answer of the bank is a failure, and the card is declined.
const BANK_FAILS_EVERY: u64 = 3;
const DECLINED_EVERY: u64 = 7;

/// The courier comes after this time.
const COURIER: Duration = Duration::from_secs(8);

/// Writes a greeting.
const HELLO: Activity<String, String> = Activity::new("hello");

/// Raised to end [`GREET`].
const WAVE: Signal<serde_json::Value> = Signal::new("wave");

/// Longest wait for the signal.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Whom to greet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Greeting {
    /// The name.
    pub name: String,
    /// Whether to wait for the signal `wave`.
    #[serde(default)]
    pub wait: bool,
}

/// What was ordered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The goods.
    pub item: String,
}

/// How long `slow` takes, from 0 to 3,600 seconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Slowness {
    /// In seconds.
    pub seconds: u32,
}

/// Longest time of `slow`, in seconds.
const SLOWEST: u32 = 3_600;

/// The orchestrations and activities.
pub fn registry() -> RegistryBuilder {
    Registry::builder()
        .activity(HELLO, hello)
        .orchestration(GREET, greet)
        .activity(RESERVE, reserve)
        .activity(CHARGE, charge)
        .activity(SHIP, ship)
        .orchestration(ORDER, order)
        .schemas(ORDER, schemas_of_order())
}

/// What an order has to have, for the form that starts one.
fn schemas_of_order() -> OrchestrationSchemas {
    let input = serde_json::json!({
        "type": "object",
        "required": ["item"],
        "properties": { "item": { "type": "string", "minLength": 1, "examples": ["tea"] } },
    });
    OrchestrationSchemas::new().input(&input).expect("the schema is small")
}

/// Adds the functions.
pub fn functions(functions: FunctionsBuilder) -> FunctionsBuilder {
    functions.rust("echo", echo).rust("greet", greet_by_name).rust("slow", slow)
}

async fn echo(_ctx: ActivityContext, input: Payload) -> Result<Payload, Failure> {
    Ok(input)
}

/// Greets whoever the input names: as a text, or as `name`, or as `name` in the payload of a recurring action.
async fn greet_by_name(_ctx: ActivityContext, input: serde_json::Value) -> Result<String, Failure> {
    let names = [&input, &input["name"], &input["payload"]["name"]];
    let name = names.into_iter().find_map(serde_json::Value::as_str).unwrap_or("world");
    Ok(format!("Hello, {name}!"))
}

async fn slow(ctx: ActivityContext, input: Slowness) -> Result<String, Failure> {
    if input.seconds > SLOWEST {
        let message = format!("{} seconds are too many; the limit is {SLOWEST}", input.seconds);
        return Err(Failure::application(message).non_retryable());
    }
    let nap = Duration::from_secs(input.seconds.into());
    let clock = SystemClock::shared();
    tokio::select! {
        reason = ctx.cancelled() => Err(Failure::cancelled(reason)),
        () = clock::sleep(&*clock, nap) => Ok(format!("took {} s", input.seconds)),
    }
}

async fn hello(_ctx: ActivityContext, name: String) -> Result<String, Failure> {
    Ok(format!("Hello, {name}!"))
}

async fn greet(ctx: Context, greeting: Greeting) -> Result<String, Failure> {
    let text = ctx.activity(HELLO, greeting.name.clone()).await?;
    if greeting.wait {
        ctx.set_status(&"waiting for the signal \"wave\"")?;
        ctx.timeout(PATIENCE, ctx.signal(WAVE)).await?;
        return Ok(format!("{text} Goodbye, {}.", greeting.name));
    }
    Ok(text)
}

async fn order(ctx: Context, order: Order) -> Result<String, Failure> {
    ctx.set_status(&"reserving")?;
    ctx.activity(RESERVE, order.item.clone()).await?;
    ctx.set_status(&"charging")?;
    let receipt =
        ctx.activity(CHARGE, order.item.clone()).retry(Retry::fixed(3, Duration::from_secs(2))).await?;
    ctx.set_status(&"waiting for the courier")?;
    ctx.sleep(COURIER).await?;
    ctx.set_status(&"shipping")?;
    let parcel = ctx.activity(SHIP, order.item).await?;
    Ok(format!("{parcel}, {receipt}"))
}

async fn reserve(_ctx: ActivityContext, item: String) -> Result<String, Failure> {
    nap(1_000).await;
    Ok(format!("{item} reserved"))
}

async fn charge(ctx: ActivityContext, _item: String) -> Result<String, Failure> {
    nap(1_500).await;
    let number = number_of(ctx.instance_id());
    if number.is_multiple_of(DECLINED_EVERY) {
        return Err(Failure::application("the card is declined").code("card-declined").non_retryable());
    }
    if number.is_multiple_of(BANK_FAILS_EVERY) && ctx.attempt() == 1 {
        return Err(Failure::application("the bank did not answer").code("bank-timeout"));
    }
    Ok(format!("receipt R-{number}"))
}

async fn ship(_ctx: ActivityContext, item: String) -> Result<String, Failure> {
    nap(3_000).await;
    Ok(format!("{item} shipped"))
}

/// A number from the text of an id, the same for every attempt.
fn number_of(id: &str) -> u64 {
    id.bytes().fold(0, |number, byte| (number * 31 + u64::from(byte)) % 100_000)
}

async fn nap(ms: u64) {
    let clock = SystemClock::shared();
    clock::sleep(&*clock, Duration::from_millis(ms)).await;
}
