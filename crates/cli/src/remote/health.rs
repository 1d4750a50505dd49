//! `segno health`: whether a server can work, as a container or a load balancer checks it.

use super::arguments::Nothing;
use crate::exit::Failure;
use crate::output::{Output, Table};

/// Checks that the server is ready.
pub async fn run(arguments: Nothing, output: &Output) -> Result<(), Failure> {
    let health = arguments.connection.client(output)?.ready().await?;
    let table = Table::default().line("status", &health.status);
    let table = health.warnings.iter().fold(table, |table, warning| table.line("warning", warning));
    output.print(&health, table)
}
