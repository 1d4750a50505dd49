//! What `segno dev` has to play with: one orchestration that greets, waits for an approval, and says goodbye.

use std::time::Duration;

use segno::context::Either;
use segno::{Activity, ActivityContext, Context, Failure, Orchestration, Registry, RegistryBuilder, Signal};
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

/// Adds the samples.
pub fn register(registry: RegistryBuilder) -> RegistryBuilder {
    registry.activity(HELLO, hello).orchestration(GREET, greet)
}

/// The samples alone.
///
/// # Errors
/// Never: their names differ.
pub fn registry() -> Result<Registry, segno::Error> {
    register(Registry::builder()).build()
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
