//! `segno hook …`: webhooks, one file per group of verbs.

pub mod arguments;
mod payloads;
mod routes;
mod test;

use arguments::{Hook, HookVerb};

use crate::arguments::Format;
use crate::exit::Failure;

/// Does what was asked.
pub async fn run(arguments: Hook, format: Format) -> Result<(), Failure> {
    let client = arguments.connection.client()?;
    match arguments.verb {
        HookVerb::Create { name, settings } => routes::create(&client, &name, &settings, format).await,
        HookVerb::List => routes::list(&client, format).await,
        HookVerb::Show { name } => routes::show(&client, &name, format).await,
        HookVerb::Update { name, settings } => routes::update(&client, &name, &settings, format).await,
        HookVerb::Delete { name } => routes::delete(&client, &name, format).await,
        HookVerb::Payloads(which) => payloads::list(&client, which, format).await,
        HookVerb::Inspect { name, id } => payloads::inspect(&client, &name, &id, format).await,
        HookVerb::Replay { name, id } => payloads::replay(&client, &name, &id, format).await,
        HookVerb::Events { name, limit } => payloads::events(&client, name.as_deref(), limit, format).await,
        HookVerb::Test(sample) => test::run(&client, sample, format).await,
    }
}
