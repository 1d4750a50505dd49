//! Arguments of `segno dag`.

use clap::{Args, Subcommand};

use super::published::PublishedVerb;
use crate::remote::connection::Connection;

/// What to do with DAGs.
#[derive(Debug, Args)]
pub struct DagArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: DagVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with DAGs.
#[derive(Debug, Subcommand)]
pub enum DagVerb {
    /// On a server.
    #[command(flatten)]
    Published(PublishedVerb),
}
