//! What can be said about webhooks.

use clap::{Args, Subcommand, ValueEnum};
use segno_server::HumanDuration;

use crate::moment::{self, Moment, past_help};
use crate::output::Paging;
use crate::remote::connection::Connection;

/// Webhooks.
#[derive(Debug, Args)]
pub struct Hook {
    /// What to do.
    #[command(subcommand)]
    pub verb: HookVerb,
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
}

/// What to do with webhooks.
#[derive(Debug, Subcommand)]
pub enum HookVerb {
    /// Declare a route.
    #[command(
        after_help = "Examples:\n  segno hook create demo --function echo --verify none\n  segno hook create github --function deploy --verify github --secret env:HOOK_GITHUB --dedup-header x-github-delivery"
    )]
    Create {
        /// Name of the route.
        name: String,
        /// What it does.
        #[command(flatten)]
        settings: Box<Settings>,
    },
    /// List routes.
    #[command(after_help = "Example:\n  segno hook list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Show a route.
    #[command(after_help = "Example:\n  segno hook show github")]
    Show {
        /// Name of the route.
        name: String,
    },
    /// Change a route: what is named, and nothing else.
    #[command(
        after_help = "Example:\n  segno hook update github --filter 'payload.ref == \"refs/heads/main\"'"
    )]
    Update {
        /// Name of the route.
        name: String,
        /// What to change.
        #[command(flatten)]
        settings: Box<Settings>,
    },
    /// Delete a route. Its payloads stay until their time is over.
    #[command(after_help = "Example:\n  segno hook delete github")]
    Delete {
        /// Name of the route.
        name: String,
    },
    /// List what came in, newest first.
    #[command(after_help = "Example:\n  segno hook payloads github --since 1h")]
    Payloads(Payloads),
    /// Show all of a payload and what became of it.
    #[command(after_help = "Example:\n  segno hook inspect github fe64c1d7-5bff-8fff-8a1b-0b1c2d3e4f50")]
    Inspect {
        /// Name of the route.
        name: String,
        /// Id of the payload.
        id: String,
    },
    /// Call the function of a payload again.
    #[command(after_help = "Example:\n  segno hook replay github fe64c1d7-5bff-8fff-8a1b-0b1c2d3e4f50")]
    Replay {
        /// Name of the route.
        name: String,
        /// Id of the payload.
        id: String,
    },
    /// Show what became of what came in, newest first.
    #[command(after_help = "Example:\n  segno hook events github")]
    Events {
        /// Only of this route.
        name: Option<String>,
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Send a sample to a route, signed as its sender would.
    #[command(
        after_help = "Example:\n  segno hook test github --data '{\"ref\":\"refs/heads/main\"}' --secret env:HOOK_GITHUB"
    )]
    Test(Sample),
}

/// How a route verifies its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scheme {
    /// Not at all: every request is taken.
    None,
    /// A header has the secret itself.
    SharedSecret,
    /// As GitHub signs.
    Github,
    /// As Stripe signs.
    Stripe,
    /// As the Standard Webhooks specification defines.
    StandardWebhooks,
}

/// Settings of a route. Those that have no flag are given as JSON.
#[derive(Debug, Args)]
pub struct Settings {
    /// Settings as JSON; `@FILE` reads a file and `-` standard input. Flags win.
    #[arg(long, value_name = "JSON")]
    pub declaration: Option<String>,
    /// Description of the route, for people.
    #[arg(long)]
    pub description: Option<String>,
    /// Function to call.
    #[arg(long)]
    pub function: Option<String>,
    /// Orchestration to start, in place of a function.
    #[arg(long, value_name = "NAME", conflicts_with = "function")]
    pub orchestration: Option<String>,
    /// Input of the function or orchestration, a JSON template; `@FILE` reads a file and `-` standard input.
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// How requests are verified.
    #[arg(long, value_enum)]
    pub verify: Option<Scheme>,
    /// Where a secret is on the server: `env:NAME` or `file:/PATH`. Several are taken at once.
    #[arg(long = "secret", value_name = "WHERE", requires = "verify")]
    pub secrets: Vec<String>,
    /// Header of a shared secret.
    #[arg(long, value_name = "NAME", requires = "verify")]
    pub secret_header: Option<String>,
    /// How far the time of a signature may be off, as in `5m`.
    #[arg(long, value_name = "DURATION", requires = "verify")]
    pub tolerance: Option<HumanDuration>,
    /// What must be true for the function to be called.
    #[arg(long, value_name = "CONDITION")]
    pub filter: Option<String>,
    /// Header that names a payload, so that one that comes twice is called once.
    #[arg(long, value_name = "NAME", conflicts_with = "dedup_key")]
    pub dedup_header: Option<String>,
    /// Template of the key that names a payload.
    #[arg(long, value_name = "TEMPLATE")]
    pub dedup_key: Option<String>,
    /// How long keys are remembered, as in `24h`.
    #[arg(long, value_name = "DURATION")]
    pub dedup_window: Option<HumanDuration>,
    /// A header to keep.
    #[arg(long = "keep-header", value_name = "NAME")]
    pub headers: Vec<String>,
    /// How long payloads are kept, as in `7d`.
    #[arg(long, value_name = "DURATION")]
    pub retention: Option<HumanDuration>,
    /// Keep payloads and call nothing.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub store_only: Option<bool>,
    /// Whether requests are taken.
    #[arg(long, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub enabled: Option<bool>,
}

/// Which payloads.
#[derive(Debug, Args)]
pub struct Payloads {
    /// Name of the route.
    pub name: String,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Not before this time"))]
    pub since: Option<Moment>,
    #[arg(long, value_name = "TIME", value_parser = moment::past, help = past_help!("Not after this time"))]
    pub until: Option<Moment>,
    /// How many.
    #[command(flatten)]
    pub paging: Paging,
}

/// A sample.
#[derive(Debug, Args)]
pub struct Sample {
    /// Name of the route.
    pub name: String,
    /// Body, any text; `@FILE` reads a file and `-` standard input.
    #[arg(long, default_value = "{}")]
    pub data: String,
    /// A header.
    #[arg(long = "header", value_name = "NAME=VALUE")]
    pub headers: Vec<String>,
    /// Place of the secret on this machine: `env:NAME` or `file:/PATH`; the place that the route names without it.
    #[arg(long, value_name = "WHERE")]
    pub secret: Option<String>,
}
