//! The living demo of `segno dev`: orders that come in by a schedule, and an instance that waits for a signal.
//!
//! It is a tenant of its own, so that the default one is empty for what its user makes. It is made once, over the API like
//! anything else, and lives in the store from then on: a server that is killed and started again continues it.

use std::error::Error;
use std::time::Duration;

use segno_api::Client;
use segno_api::instance::ListInstances;
use segno_server::Server;
use serde_json::{Value, json};

/// Tenant of the demo.
pub const TENANT: &str = "demo";

/// What comes in by itself.
fn schedules() -> [Value; 2] {
    [
        json!({
            "name": "orders", "every": "15s", "orchestration": "order", "input": { "item": "tea" },
            "description": "An order every 15 seconds. Some banks fail, some cards are declined."
        }),
        json!({
            "name": "night-report", "cron_expr": "0 3 * * *", "timezone": "Europe/Berlin", "function": "echo",
            "input": { "report": "orders of the day" }, "description": "A report at night"
        }),
    ]
}

/// What is there from the start: an instance that waits, and orders of which one fails.
fn instances() -> Vec<Value> {
    let waiting = json!({
        "orchestration": "greet", "id": "approval-1", "input": { "name": "Grace", "wait": true },
        "labels": { "team": "front-desk" }
    });
    let order = |number: usize| {
        json!({
            "orchestration": "order", "id": format!("order-{number}"), "input": { "item": "tea" },
            "labels": { "team": "shop" }
        })
    };
    std::iter::once(waiting).chain((1..=4).map(order)).collect()
}

/// Makes the demo in the background; the server answers meanwhile. A demo that is there is left as it is.
pub fn begin(server: &Server) {
    let url = format!("http://{}", server.address());
    tokio::spawn(async move {
        if let Err(error) = make(&url).await {
            tracing::warn!(%error, "the demo cannot be made; `segno dev --without-demo` leaves it out");
        }
    });
}

async fn make(url: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let client = Client::new(url)?.scope("default", TENANT);
    let one = ListInstances { limit: Some(1), ..ListInstances::default() };
    let is_empty = client.recurring_list(None, None).await?.recurring_actions.is_empty()
        && client.instances(&one).await?.instances.is_empty();
    if !is_empty {
        return Ok(());
    }
    for instance in instances() {
        client.start(&serde_json::from_value(instance)?, None, Duration::ZERO).await?;
    }
    for schedule in schedules() {
        client.create_recurring(&serde_json::from_value(schedule)?).await?;
    }
    Ok(())
}
