//! `segno ledger check`: whether the object stores of the settings can be used.

use clap::{Args, Subcommand};
use segno::clock::SystemClock;
use segno::ids::SystemIds;
use segno_server::probe_objects;
use segno_server::settings::Layers;
use serde::Serialize;

use crate::arguments::SettingsArguments;
use crate::config::{effective, refused};
use crate::exit::Failure;
use crate::output::{Output, Rows};

/// What to do with the ledger of settings.
#[derive(Debug, Args)]
pub struct LedgerArguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: LedgerVerb,
}

/// What to do with the ledger of settings.
#[derive(Debug, Subcommand)]
pub enum LedgerVerb {
    /// Probe the object stores of the ledger and the archive as a server with these settings would: list, put if absent,
    /// read, delete. Directories are created.
    #[command(after_help = "Example:\n  segno ledger check --config segno.toml")]
    Check(SettingsArguments),
}

#[derive(Serialize)]
struct Checked {
    ok: bool,
    places: Vec<CheckedPlace>,
}

#[derive(Serialize)]
struct CheckedPlace {
    setting: &'static str,
    url: String,
    usage: String,
}

/// Does what was asked.
pub async fn run(arguments: LedgerArguments, layers: Layers, output: &Output) -> Result<(), Failure> {
    let LedgerVerb::Check(arguments) = arguments.verb;
    let settings = effective(layers, &arguments)?.settings;
    let probed = probe_objects(&settings, &SystemClock, &*SystemIds::shared()).await;
    let places: Vec<CheckedPlace> = probed
        .map_err(refused)?
        .into_iter()
        .map(|place| CheckedPlace { setting: place.setting, url: place.url, usage: place.usage.to_string() })
        .collect();
    if places.is_empty() {
        let problem = "there is no ledger; set ledger.url, which a store on PostgreSQL needs";
        return Err(Failure::Refused(problem.to_owned()));
    }
    let mut rows = Rows::new(["setting", "place", "can be used for"]);
    for place in &places {
        rows.add([place.setting.to_owned(), place.url.clone(), place.usage.clone()]);
    }
    output.text(&Checked { ok: true, places }, &rows.to_text(output.colours))
}
