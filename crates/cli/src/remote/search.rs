//! `segno search`: what begins with a text, of all kinds.

use clap::Args;
use segno_api::search::SearchQuery;

use super::connection::Connection;
use super::problems::words;
use crate::exit::Failure;
use crate::output::{Output, Rows};

/// What is searched for.
#[derive(Debug, Args)]
pub struct SearchArguments {
    /// How an id or name begins.
    pub text: String,
    /// At most this many of each kind.
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    pub limit: usize,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Searches.
pub async fn run(arguments: SearchArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let found = client.search(&SearchQuery { q: arguments.text, limit: Some(arguments.limit) }).await?;
    let mut rows = Rows::new(["kind", "id", "name", "status"]);
    for hit in &found.hits {
        let (name, status) = (hit.name.clone().unwrap_or_default(), hit.status.clone().unwrap_or_default());
        rows.add([words(&hit.kind), hit.id.clone(), name, status]);
    }
    output.text(&found, &rows.to_text(output.colours))?;
    if !found.truncated.is_empty() {
        let kinds: Vec<String> = found.truncated.iter().map(words).collect();
        output.warn(&format!("there may be more of: {}", kinds.join(", ")));
    }
    Ok(())
}
