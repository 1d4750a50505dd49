//! `segno nodes`: which nodes there are.

use segno_api::system::NodeState;

use super::arguments::Nothing;
use crate::exit::Failure;
use crate::output::{Output, Page, Rows, count};

/// Lists the nodes that were heard of in the last hour.
pub async fn run(arguments: Nothing, output: &Output) -> Result<(), Failure> {
    let page = Page::whole(arguments.connection.client(output)?.nodes().await?.nodes);
    let mut rows =
        Rows::new(["node", "state", "version", "roles", "turns", "functions", "started", "last seen"]);
    for node in &page.items {
        let state = match node.state {
            NodeState::Up => "up",
            NodeState::Stopped => "stopped",
            NodeState::Lost => "lost",
        };
        rows.add([
            node.node.clone(),
            state.to_owned(),
            node.version.clone(),
            node.roles.join(" "),
            count(node.orchestrations as u64),
            count(node.functions as u64),
            output.time(node.started_at),
            output.time(node.last_seen_at),
        ]);
    }
    output.list(&page, &rows)
}
