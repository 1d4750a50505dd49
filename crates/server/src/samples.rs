//! What `segno dev` has to play with: one orchestration that greets, waits for an approval, and says goodbye, and three
//! functions: `echo`, `greet`, and `slow`, which takes its time.

use std::time::Duration;

use segno::clock::{self, SystemClock};
use segno::context::Either;
use segno::{
    Activity, ActivityContext, Context, Failure, Orchestration, Payload, Registry, RegistryBuilder, Signal,
};
use segno_actions::functions::FunctionsBuilder;
use serde::{Deserialize, Serialize};

/// Greets somebody, waits up to a day for the signal `wave`, and says goodbye.
pub const GREET: Orchestration<Greeting, String> = Orchestration::new("greet");

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
    Registry::builder().activity(HELLO, hello).orchestration(GREET, greet)
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
        match segno::race(ctx.event(WAVE), ctx.sleep(PATIENCE)).await {
            Either::Left(waved) => drop(waved?),
            Either::Right(tired) => tired?,
        }
        return Ok(format!("{text} Goodbye, {}.", greeting.name));
    }
    Ok(text)
}
