//! What can be said on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use segno_stores::StoreUrl;

/// Durable workflows: operates Segno.
#[derive(Debug, Parser)]
#[command(name = "segno", version, arg_required_else_help = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Look after a store: figures, backups, copies.
    Store(StoreArguments),
    /// Print completions for a shell.
    #[command(after_help = "Example:\n  segno completions bash > /etc/bash_completion.d/segno")]
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// What to do with a store.
#[derive(Debug, Args)]
pub struct StoreArguments {
    /// What to print.
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub output: Format,

    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for people.
    Text,
    /// One JSON object for programs.
    Json,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show what a store holds and what it takes on the disk, also while it is in use.
    #[command(after_help = "Example:\n  segno store info segno:/var/lib/segno")]
    Info {
        /// The store: `segno:DIR` or a directory.
        store: StoreUrl,
    },
    /// Write everything that a store holds at this moment to a file, also while it is in use, and read it again.
    #[command(after_help = "Example:\n  segno store backup segno:/var/lib/segno /backup/segno-monday.segno")]
    Backup {
        /// The store: `segno:DIR` or a directory.
        store: StoreUrl,
        /// The file to write.
        file: PathBuf,
        /// Replace the file if it is there.
        #[arg(long)]
        overwrite: bool,
    },
    /// Fill an empty store from a backup, and compare.
    #[command(after_help = "Example:\n  segno store restore /backup/segno-monday.segno segno:/var/lib/segno")]
    Restore {
        /// The backup.
        file: PathBuf,
        /// The store to fill: `segno:DIR` or a directory. It is made if it is not there, and must be empty.
        store: StoreUrl,
    },
    /// Fill an empty store from another store, also while that one is in use, and compare.
    #[command(after_help = "Example:\n  segno store copy segno:/var/lib/segno segno:/mnt/new/segno")]
    Copy {
        /// The store to copy.
        from: StoreUrl,
        /// The store to fill. It is made if it is not there, and must be empty.
        to: StoreUrl,
    },
    /// Read a backup to its end and check every checksum in it.
    #[command(after_help = "Example:\n  segno store verify /backup/segno-monday.segno")]
    Verify {
        /// The backup.
        file: PathBuf,
    },
    /// Read everything of a store that nobody has open, and compare it. Changes nothing.
    #[command(after_help = "Example:\n  segno store check segno:/var/lib/segno")]
    Check {
        /// The store: `segno:DIR` or a directory.
        store: StoreUrl,
    },
    /// Save what can be saved of a damaged store into a new one. The damaged one is not changed.
    #[command(after_help = "Example:\n  segno store salvage segno:/var/lib/segno segno:/var/lib/segno-saved")]
    Salvage {
        /// The damaged store.
        from: StoreUrl,
        /// The store to make.
        to: StoreUrl,
    },
    /// Give unused disk space back.
    #[command(after_help = "Example:\n  segno store compact segno:/var/lib/segno")]
    Compact {
        /// The store: `segno:DIR` or a directory.
        store: StoreUrl,
    },
}
