//! `segno config …`: the settings of a server.

use segno_server::check_paths;
use segno_server::settings::{Authentication, Effective, Layers, Origin, Settings, SettingsError};
use serde::Serialize;

use crate::arguments::{ConfigArguments, ConfigVerb, SettingsArguments};
use crate::exit::Failure;
use crate::output::{Output, Page, Table};
use crate::traces;

/// Does what was asked.
pub fn run(arguments: ConfigArguments, layers: Layers, output: &Output) -> Result<(), Failure> {
    match arguments.verb {
        ConfigVerb::Check(arguments) => {
            let settings = effective(layers, &arguments)?.settings;
            for warning in check(&settings)? {
                output.warn(&warning);
            }
            if settings.auth.mode == Authentication::None && !settings.server.listen.ip().is_loopback() {
                output.warn(
                    "auth.mode is none and server.listen is reached from other machines: a server with these settings \
                     starts only with --insecure",
                );
            }
            output.print(&serde_json::json!({ "ok": true }), Table::default().line("settings", "can be used"))
        }
        ConfigVerb::Print(arguments) => show(&effective(layers, &arguments)?, output),
    }
}

/// What a server checks before it opens its store. Returns what it starts without, and what then
/// fails.
///
/// # Errors
/// When a server would not start.
pub fn check(settings: &Settings) -> Result<Vec<String>, Failure> {
    traces::check(&settings.telemetry)?;
    check_paths(settings).map_err(|error| Failure::Serving(error.to_string()))
}

#[derive(Serialize)]
struct Line {
    setting: String,
    value: String,
    origin: String,
}

fn show(effective: &Effective, output: &Output) -> Result<(), Failure> {
    let lines: Vec<Line> = effective
        .lines()
        .into_iter()
        .map(|(setting, value, origin)| Line { setting, value, origin: origin.to_string() })
        .collect();
    let mut table = Table::default();
    for line in &lines {
        table = table.line(&line.setting, format!("{}  ({})", line.value, line.origin));
    }
    output.list_as(&Page::whole(lines), &table.to_text(output.colours))
}

/// The settings in force: those of the program, and what the arguments add.
///
/// # Errors
/// When they cannot be used.
pub fn effective(layers: Layers, arguments: &SettingsArguments) -> Result<Effective, Failure> {
    let add = |mut layers: Layers| -> Result<Layers, SettingsError> {
        if let Some(file) = &arguments.config {
            layers.file(file)?;
        }
        layers.environment(std::env::vars())?;
        if let Some(listen) = &arguments.listen {
            layers.set("server.listen", listen, Origin::Flag("--listen".to_owned()))?;
        }
        if let Some(store) = &arguments.store {
            layers.set("store.url", store, Origin::Flag("--store".to_owned()))?;
        }
        Ok(layers)
    };
    let mut layers = add(layers).map_err(refused)?;
    set(&mut layers, &arguments.set)?;
    layers.finish().map_err(refused)
}

/// Adds what `--set` says.
///
/// # Errors
/// When it is no setting.
pub fn set(layers: &mut Layers, assignments: &[String]) -> Result<(), Failure> {
    for assignment in assignments {
        let Some((path, value)) = assignment.split_once('=') else {
            return Err(Failure::Refused(format!("--set {assignment}: write SETTING=VALUE")));
        };
        layers.set(path, value, Origin::Flag("--set".to_owned())).map_err(refused)?;
    }
    Ok(())
}

/// Settings that cannot be used are a mistake in what was asked.
pub fn refused(error: SettingsError) -> Failure {
    if let SettingsError::Unreadable { path, error } = error {
        return Failure::File { place: format!("--config {}", path.display()), error };
    }
    // An error of TOML ends with an empty line.
    Failure::Refused(error.to_string().trim_end().to_owned())
}
