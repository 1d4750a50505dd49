//! `segno health`: whether a server can work, as a container or a load balancer checks it.

use super::arguments::Nothing;
use crate::arguments::Format;
use crate::exit::Failure;
use crate::output::{Table, print};

/// Checks that the server is ready.
pub async fn run(arguments: Nothing, format: Format) -> Result<(), Failure> {
    let health = arguments.connection.client()?.ready().await?;
    print(format, &health, Table::default().line("status", &health.status))
}
