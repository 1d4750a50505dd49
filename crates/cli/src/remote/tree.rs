//! `segno tree`: an instance and its descendants.

use clap::Args;
use segno_api::instance::TreeNode;

use super::connection::Connection;
use super::list::status;
use crate::exit::Failure;
use crate::output::{Output, Page, Paging, Rows};

/// A tree.
#[derive(Debug, Args)]
pub struct TreeArguments {
    /// Id of the root.
    pub id: String,
    /// How many nodes.
    #[command(flatten)]
    pub paging: Paging,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// Does it.
pub async fn run(arguments: TreeArguments, output: &Output) -> Result<(), Failure> {
    let client = arguments.connection.client(output)?;
    let (client, id) = (&client, &arguments.id);
    let page = arguments.paging.gather(|request| async move {
        let page = client.tree(id, request).await?;
        Ok(Page::of(page.nodes, page.unreadable, page.next_cursor))
    });
    let page = page.await?;
    let mut rows = Rows::new(["id", "name", "status", "created", "ended"]);
    for node in &page.items {
        let name = node.function.as_ref().or(node.orchestration.as_ref());
        rows.add([
            drawn(node),
            name.cloned().unwrap_or_default(),
            status(node.status),
            output.time(node.created_at),
            output.time_or_none(node.completed_at),
        ]);
    }
    output.list(&page, &rows)
}

/// A node, as far to the right as it is deep.
fn drawn(node: &TreeNode) -> String {
    match node.depth {
        0 => node.id.clone(),
        depth => format!("{}└ {}", "  ".repeat(depth - 1), node.id),
    }
}
