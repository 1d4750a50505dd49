//! What can be said on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use segno_stores::StoreUrl;

use crate::action::arguments::ActionArguments;
use crate::asset::arguments::AssetArguments;
use crate::backfill::arguments::BackfillArguments;
use crate::dag::arguments::DagArguments;
use crate::ledger::LedgerArguments;
use crate::moment::{self, Moment, future_help};
use crate::output::{Clocks, ColorChoice, Colours, CommandLine, Format, Output, Paging};
use crate::recurring::arguments::RecurringArguments;
use crate::remote::arguments::RemoteCommand;
use crate::remote::connection::Connection;
use crate::run::arguments::{RunArguments, TaskArguments};
use crate::runbook::arguments::RunbookArguments;

/// Durable workflows: serves and operates Segno.
#[derive(Debug, Parser)]
#[command(name = "segno", version, arg_required_else_help = true)]
pub struct Arguments {
    /// How to print.
    #[command(flatten)]
    pub printing: PrintingArguments,

    /// Which server. Every verb that talks to one has these flags too; the others refuse them.
    #[command(flatten)]
    pub connection: Connection,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a server without configuration: embedded store, this machine only, with samples.
    #[command(after_help = "Example:\n  segno dev --listen 127.0.0.1:7070 --data ./.segno")]
    Dev(DevArguments),
    /// Run a server.
    #[command(after_help = "Example:\n  segno serve --config segno.toml")]
    Serve(ServeArguments),
    /// Check and print the settings of a server.
    Config(ConfigArguments),
    /// Create, list and revoke API keys, on a server or directly on a store.
    #[command(visible_alias = "key")]
    Keys(KeysArguments),
    /// Call a function, or start an orchestration, at a given time.
    Action(ActionArguments),
    /// Call a function, or start an orchestration, on a schedule; preview schedules.
    Recurring(RecurringArguments),
    /// Check, publish and show runbooks.
    Runbook(RunbookArguments),
    /// Check, plan, publish and show DAGs: tasks that depend on each other.
    Dag(DagArguments),
    /// Start, follow, cancel and repeat runs of DAGs.
    Run(RunArguments),
    /// Show, clear and mark the tasks of runs; print their outputs and logs.
    Task(TaskArguments),
    /// List assets of DAGs, and show what is made of what.
    Asset(AssetArguments),
    /// Run a DAG over a range of partitions, chunk by chunk.
    Backfill(BackfillArguments),
    #[command(flatten)]
    Remote(RemoteCommand),
    /// Check the object stores of the ledger and the archive.
    Ledger(LedgerArguments),
    /// Maintain a store: statistics, backups, copies.
    Store(StoreArguments),
    /// Test whether this machine and disk keep acknowledged writes: write, kill the process, verify.
    #[command(after_help = "Example:\n  segno selftest --directory /var/lib/segno --rounds 100")]
    Selftest(SelftestArguments),
    /// Measure Segno on this machine: workloads on a store, the disk alone, or a server over HTTP.
    #[command(after_help = "Examples:\n  segno bench run hello --store segno:./bench --concurrency 256\n  \
                            segno bench floor --store segno:./bench --concurrency 256\n  segno bench http start")]
    Bench(BenchArguments),
    /// Print the version, what it was built with, and the formats of stores that it reads and writes.
    #[command(after_help = "Example:\n  segno version -o json")]
    Version,
    /// Print completions for a shell.
    #[command(after_help = "Example:\n  segno completions bash > /etc/bash_completion.d/segno")]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// What to measure.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// What to measure.
    #[command(subcommand)]
    pub command: segno_bench::Command,
}

/// What to do with a store.
#[derive(Debug, Args)]
pub struct StoreArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// How to print.
#[derive(Debug, Args)]
pub struct PrintingArguments {
    /// What to print: `table`, `json`, `jsonl` (one item per line) or `yaml`.
    #[arg(
        short = 'o',
        long,
        global = true,
        value_enum,
        hide_possible_values = true,
        value_name = "FORMAT",
        default_value_t = Format::Table,
        help_heading = "Output"
    )]
    pub output: Format,
    /// Show times in UTC, and take times without a zone as UTC; else those of this machine (`TZ`).
    #[arg(
        long,
        global = true,
        env = "SEGNO_UTC",
        value_parser = clap::builder::FalseyValueParser::new(),
        action = clap::ArgAction::SetTrue,
        help_heading = "Output"
    )]
    pub utc: bool,
    /// When to use colours: `auto` (on a terminal, unless `NO_COLOR` is set), `always` or `never`.
    #[arg(
        long,
        global = true,
        value_enum,
        hide_possible_values = true,
        value_name = "WHEN",
        default_value_t = ColorChoice::Auto,
        help_heading = "Output"
    )]
    pub color: ColorChoice,
}

impl PrintingArguments {
    /// How this command prints.
    pub fn output(&self, command: CommandLine) -> Output {
        let clocks = if self.utc { Clocks::Utc } else { Clocks::Local };
        Output { format: self.output, zone: clocks.zone(), colours: Colours::of_stdout(self.color), command }
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show the contents and disk usage of a store, also while it is in use.
    #[command(after_help = "Example:\n  segno store info segno:/var/lib/segno")]
    Info {
        /// The store: `segno:DIR` or a directory.
        store: StoreUrl,
    },
    /// Write a snapshot of a store to a file, also while it is in use, and verify it.
    #[command(after_help = "Example:\n  segno store backup segno:/var/lib/segno /backup/segno-monday.segno")]
    Backup {
        /// The store: `segno:DIR` or a directory.
        store: StoreUrl,
        /// The file to write.
        file: PathBuf,
        /// Replace an existing file.
        #[arg(long)]
        overwrite: bool,
    },
    /// Fill an empty store from a backup, and verify it.
    #[command(after_help = "Example:\n  segno store restore /backup/segno-monday.segno segno:/var/lib/segno")]
    Restore {
        /// The backup.
        file: PathBuf,
        /// The store to fill: `segno:DIR` or a directory. It is created if it does not exist, and must be empty.
        store: StoreUrl,
        /// An empty place for the ledger, `file:DIR` or the URL of a bucket; by default inside the directory of the store.
        #[arg(long, value_name = "URL")]
        ledger: Option<String>,
    },
    /// Fill an empty store from another store, also while that one is in use, and verify it.
    #[command(after_help = "Example:\n  segno store copy segno:/var/lib/segno segno:/mnt/new/segno")]
    Copy {
        /// The store to copy.
        from: StoreUrl,
        /// The store to fill. It is created if it does not exist, and must be empty.
        to: StoreUrl,
        /// An empty place for the ledger, `file:DIR` or the URL of a bucket; by default inside the directory of the store.
        #[arg(long, value_name = "URL")]
        ledger: Option<String>,
    },
    /// Read a backup to its end and check every checksum in it.
    #[command(after_help = "Example:\n  segno store verify /backup/segno-monday.segno")]
    Verify {
        /// The backup.
        file: PathBuf,
    },
    /// Read and compare all data of a store that no process has open. Changes nothing.
    #[command(after_help = "Example:\n  segno store check segno:/var/lib/segno")]
    Check {
        /// The store: `segno:DIR` or a directory.
        store: StoreUrl,
    },
    /// Copy the intact data of a damaged store into a new one. The damaged one is not changed.
    #[command(after_help = "Example:\n  segno store salvage segno:/var/lib/segno segno:/var/lib/segno-saved")]
    Salvage {
        /// The damaged store.
        from: StoreUrl,
        /// The store to create.
        to: StoreUrl,
    },
    /// Free unused disk space.
    #[command(after_help = "Example:\n  segno store compact segno:/var/lib/segno")]
    Compact {
        /// The store: `segno:DIR` or a directory.
        store: StoreUrl,
    },
}

/// A server to play with.
#[derive(Debug, Args)]
pub struct DevArguments {
    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Directory of the store.
    #[arg(long, value_name = "DIR", default_value = "./.segno")]
    pub data: PathBuf,
    /// Make no demo in the tenant `demo`.
    #[arg(long)]
    pub without_demo: bool,
    /// Set anything else, as in `--set runtime.functions=4`.
    #[arg(long, value_name = "SETTING=VALUE")]
    pub set: Vec<String>,
}

/// A server.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Where the settings come from.
    #[command(flatten)]
    pub settings: SettingsArguments,
    /// Listen beyond this machine even though `auth.mode` is `none`.
    #[arg(long)]
    pub insecure: bool,
    /// Where the first administrator's key of a new store is written, readable by its owner only.
    /// Without it the key is shown on a terminal, else written into a file in the directory of the
    /// store or in the current directory.
    #[arg(long, value_name = "FILE")]
    pub first_key_file: Option<PathBuf>,
}

/// Where settings come from. Later ones win: file, environment (`SEGNO_STORE__URL` is `store.url`), flags.
#[derive(Debug, Args)]
pub struct SettingsArguments {
    /// File with the settings.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on (`server.listen`).
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// The store (`store.url`).
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Set anything else, as in `--set runtime.functions=4`.
    #[arg(long, value_name = "SETTING=VALUE")]
    pub set: Vec<String>,
}

/// What to do with settings.
#[derive(Debug, Args)]
pub struct ConfigArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: ConfigVerb,
}

/// What to do with settings.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Validate the settings.
    #[command(after_help = "Example:\n  segno config check --config segno.toml")]
    Check(SettingsArguments),
    /// Show every setting and its source.
    #[command(
        after_help = "Example:\n  SEGNO_SERVER__DRAIN_SECONDS=5 segno config print --config segno.toml"
    )]
    Print(SettingsArguments),
}

/// What to do with keys.
#[derive(Debug, Args)]
pub struct KeysArguments {
    /// Which server.
    #[command(flatten)]
    pub connection: Connection,
    /// Work on this store instead of a server. An embedded store must not be in use.
    #[arg(long, global = true, value_name = "URL")]
    pub store: Option<StoreUrl>,
    /// What to do.
    #[command(subcommand)]
    pub verb: KeysVerb,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub enum KeysVerb {
    /// Create a key and show its secret, this once.
    #[command(after_help = "Example:\n  segno keys create --name ci --role operator --grant shop/eu")]
    Create {
        /// What the key is for.
        #[arg(long)]
        name: String,
        /// What the holder of the key may do.
        #[arg(long, value_enum)]
        role: KeyRole,
        /// Where the key is valid: `NAMESPACE/TENANT`, with `*` for all.
        #[arg(long = "grant", value_name = "NAMESPACE/TENANT", default_value = "*/*")]
        grants: Vec<String>,
        #[arg(long, value_name = "TIME", value_parser = moment::future, help = future_help!("When the key expires"))]
        expires_at: Option<Moment>,
    },
    /// List keys, without their secrets.
    #[command(after_help = "Example:\n  segno keys list")]
    List {
        /// How many.
        #[command(flatten)]
        paging: Paging,
    },
    /// Revoke a key.
    #[command(after_help = "Example:\n  segno keys revoke 0123456789abcdef")]
    Revoke {
        /// Id of the key.
        id: String,
    },
}

/// What the holder of a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KeyRole {
    /// Everything.
    Admin,
    /// Reading, and all work with instances and functions.
    Operator,
    /// Reading.
    Viewer,
    /// Fetching and answering work.
    Worker,
}

/// How to test this machine.
#[derive(Debug, Args)]
pub struct SelftestArguments {
    /// A directory on the disk in question; a subdirectory is made in it and removed again.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// How often to kill.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub rounds: u32,
    /// Be the process that writes and is killed.
    #[arg(long, hide = true, value_name = "STORE")]
    pub write_to: Option<PathBuf>,
}
