//! `segno hook …`: webhooks, one file per group of verbs.

pub mod arguments;
mod payloads;
mod routes;
mod test;

use arguments::{Hook, HookVerb};

use crate::exit::Failure;
use crate::output::Output;

/// Does what was asked.
pub async fn run(arguments: Hook, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    match arguments.verb {
        HookVerb::Create { name, settings } => routes::create(&client, &name, &settings, output).await,
        HookVerb::List { paging } => routes::list(&client, &paging, output).await,
        HookVerb::Show { name } => routes::show(&client, &name, output).await,
        HookVerb::Update { name, settings } => routes::update(&client, &name, &settings, output).await,
        HookVerb::Delete { name } => routes::delete(&client, &name, output).await,
        HookVerb::Payloads(which) => payloads::list(&client, which, output).await,
        HookVerb::Inspect { name, id } => payloads::inspect(&client, &name, &id, output).await,
        HookVerb::Replay { name, id } => payloads::replay(&client, &name, &id, output).await,
        HookVerb::Events { name, paging } => {
            payloads::events(&client, name.as_deref(), &paging, output).await
        }
        HookVerb::Test(sample) => test::run(&client, sample, output).await,
    }
}
