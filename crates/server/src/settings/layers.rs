//! Where settings come from: defaults, a file, the environment, flags; later ones win.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use segno_actions::objects::Objects;
use toml::{Table, Value};

use super::Settings;

/// What names of environment variables begin with. Two underscores stand for a dot: `SEGNO_STORE__URL` is `store.url`.
const ENVIRONMENT_PREFIX: &str = "SEGNO_";

/// What stands for the value of a setting that has none.
pub const UNSET: &str = "unset";

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Built in.
    Default,
    /// The program that embeds the server.
    Program,
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
    /// A flag of the command line.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Program => f.write_str("program"),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Environment(name) => write!(f, "${name}"),
            Origin::Flag(name) => f.write_str(name),
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("the settings in {} cannot be read: {error}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The file is wrong.
    #[error("the settings in {} are wrong: {}", path.display(), in_words(&error.to_string()))]
    File {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        error: Box<toml::de::Error>,
    },
    /// Something is wrong with what came from the environment or from flags.
    #[error("{origin}: {reason}")]
    Override {
        /// Where it came from.
        origin: Origin,
        /// What is wrong.
        reason: String,
    },
    /// A value is out of range.
    #[error("{setting}: {reason}")]
    Value {
        /// Which setting.
        setting: String,
        /// What is wrong.
        reason: String,
    },
}

impl SettingsError {
    /// A value is out of range.
    pub fn value(setting: &str, reason: impl Into<String>) -> Self {
        SettingsError::Value { setting: setting.to_owned(), reason: reason.into() }
    }
}

/// Settings in force, and where each came from.
#[derive(Debug)]
pub struct Effective {
    /// The settings.
    pub settings: Settings,
    origins: BTreeMap<String, Origin>,
}

impl Effective {
    /// Every setting as `section.name`, its value and where it came from, in order of names. One without a value has
    /// `unset` in its place.
    pub fn lines(&self) -> Vec<(String, String, Origin)> {
        let values = values_of(&self.settings);
        let origin = |path: &str| self.origins.get(path).cloned().unwrap_or(Origin::Default);
        values.into_iter().map(|(path, value)| (path.clone(), value, origin(&path))).collect()
    }
}

/// Every setting of a program that gives no origins: it has set what is not the default.
pub(crate) fn lines_of(settings: &Settings) -> Vec<(String, String, Origin)> {
    let defaults = values_of(&Settings::default());
    let line = |(path, value): (String, String)| {
        let is_default = defaults.get(&path) == Some(&value);
        (path, value, if is_default { Origin::Default } else { Origin::Program })
    };
    values_of(settings).into_iter().map(line).collect()
}

/// The value of every setting as TOML, by its path.
fn values_of(settings: &Settings) -> BTreeMap<String, String> {
    let table = Table::try_from(settings).unwrap_or_default();
    let mut values: BTreeMap<String, String> =
        leaves(&table).into_iter().map(|(path, value)| (path, value.to_string())).collect();
    // TOML has no null, so what has no value is not in the table.
    for path in unset("", &serde_json::to_value(settings).unwrap_or_default()) {
        values.insert(path, UNSET.to_owned());
    }
    values
}

/// Collects settings.
#[derive(Debug, Default)]
pub struct Layers {
    table: Table,
    origins: BTreeMap<String, Origin>,
}

impl Layers {
    /// Adds a file.
    ///
    /// # Errors
    /// When it cannot be read, or says something that is no setting; the error shows the place.
    pub fn file(&mut self, path: &Path) -> Result<&mut Self, SettingsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| SettingsError::Unreadable { path: path.to_owned(), error })?;
        let wrong = |error| SettingsError::File { path: path.to_owned(), error: Box::new(error) };
        // Read as settings first, because only that knows the line of a mistake.
        Settings::deserialize(Objects(toml::Deserializer::parse(&text).map_err(wrong)?)).map_err(wrong)?;
        let table: Table = toml::from_str(&text).map_err(wrong)?;
        self.add(table, &Origin::File(path.to_owned()));
        Ok(self)
    }

    /// Adds what the environment says: every `SEGNO_A__B` is the setting `a.b`.
    ///
    /// # Errors
    /// When one of them is no setting.
    pub fn environment(
        &mut self,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<&mut Self, SettingsError> {
        for (name, value) in variables {
            let Some(rest) = name.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
            if rest.contains("__") {
                let path = rest.to_lowercase().replace("__", ".");
                self.set(&path, &value, Origin::Environment(name))?;
            }
        }
        Ok(self)
    }

    /// Sets one value from text. A text that is not a TOML value is taken as a string.
    ///
    /// # Errors
    /// When there is no such setting, or the value does not fit.
    pub fn set(&mut self, path: &str, text: &str, origin: Origin) -> Result<&mut Self, SettingsError> {
        let parsed = toml::from_str::<Table>(&format!("value = {text}"))
            .ok()
            .and_then(|mut table| table.remove("value"));
        let plain = Value::String(text.to_owned());
        let candidates = [parsed.as_ref().unwrap_or(&plain), &plain];
        let mut reason = String::new();
        for value in candidates {
            let nested = nest(path, value.clone());
            match Settings::deserialize(Objects(nested.clone())) {
                Ok(_) => {
                    self.add(nested, &origin);
                    return Ok(self);
                }
                Err(error) if reason.is_empty() => reason = in_words(error.message()),
                Err(_) => {}
            }
        }
        // TOML has no such numbers, so that this one was taken for a text.
        if parsed.is_none() && is_whole_number(text) {
            reason = format!("{text} is too large; the largest whole number is {}", i64::MAX);
        }
        Err(SettingsError::Override { origin, reason: format!("{path}: {reason}") })
    }

    /// The settings in force.
    ///
    /// # Errors
    /// When a value is out of range.
    pub fn finish(&self) -> Result<Effective, SettingsError> {
        let settings = Settings::deserialize(Objects(self.table.clone())).map_err(|error| {
            SettingsError::Override { origin: Origin::Default, reason: error.to_string() }
        })?;
        settings.check()?;
        Ok(Effective { settings, origins: self.origins.clone() })
    }

    fn add(&mut self, table: Table, origin: &Origin) {
        for (path, _) in leaves(&table) {
            self.origins.insert(path, origin.clone());
        }
        merge(&mut self.table, table);
    }
}

use serde::Deserialize as _;

/// What serde expects, by its name in Rust and in words.
const EXPECTED: [(&str, &str); 10] = [
    ("expected usize", "expected a whole number that is not negative"),
    ("expected u64", "expected a whole number that is not negative"),
    ("expected u32", "expected a whole number from 0 to 4294967295"),
    ("expected u16", "expected a whole number from 0 to 65535"),
    ("expected u8", "expected a whole number from 0 to 255"),
    ("expected i64", "expected a whole number"),
    ("expected f64", "expected a number"),
    ("expected a boolean", "expected true or false"),
    ("expected a sequence", "expected a list as in [\"a\", \"b\"]"),
    ("expected a map", "expected a table as in { name = \"value\" }"),
];

/// An error of serde without the names that types have in Rust.
fn in_words(message: &str) -> String {
    EXPECTED.iter().fold(message.to_owned(), |message, (rust, words)| message.replace(rust, words))
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// A value at a path with dots.
fn nest(path: &str, value: Value) -> Table {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = match rest {
        Some(rest) => Value::Table(nest(rest, value)),
        None => value,
    };
    Table::from_iter([(first.to_owned(), value)])
}

/// The paths of settings without a value.
fn unset(path: &str, value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::Null => vec![path.to_owned()],
        serde_json::Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| match path {
                "" => unset(name, value),
                path => unset(&format!("{path}.{name}"), value),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Every value that is not a table, by its path.
fn leaves(table: &Table) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                found.extend(leaves(inner).into_iter().map(|(path, value)| (format!("{key}.{path}"), value)));
            }
            value => found.push((key.clone(), value)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_layers_win_and_origins_are_known() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("segno.toml");
        std::fs::write(&file, "[store]\nurl = \"memory:\"\n[server]\ndrain_seconds = 5\nmax_streams = 7\n")
            .unwrap();
        let mut layers = Layers::default();
        layers.file(&file).unwrap();
        let variables = [("SEGNO_SERVER__DRAIN_SECONDS", "6"), ("SEGNO_LOG", "debug"), ("PATH", "x")];
        layers.environment(variables.map(|(name, value)| (name.to_owned(), value.to_owned()))).unwrap();
        layers.set("server.listen", "127.0.0.1:0", Origin::Flag("--listen".to_owned())).unwrap();
        layers.set("server.node", "12", Origin::Flag("--node".to_owned())).unwrap();
        let effective = layers.finish().unwrap();
        assert_eq!(effective.settings.server.drain_seconds, 6);
        assert_eq!(effective.settings.server.node.as_deref(), Some("12"));
        let lines = effective.lines();
        let line = |path: &str| {
            let (_, value, origin) = lines.iter().find(|(found, ..)| found == path).unwrap();
            format!("{value} {origin}")
        };
        assert_eq!(line("store.url"), format!("\"memory:\" {}", file.display()));
        assert_eq!(line("server.max_streams"), format!("7 {}", file.display()));
        assert_eq!(line("server.drain_seconds"), "6 $SEGNO_SERVER__DRAIN_SECONDS");
        assert_eq!(line("server.listen"), "\"127.0.0.1:0\" --listen");
        assert_eq!(line("auth.mode"), "\"keys\" default");
        assert_eq!(line("server.tls_key"), "unset default");
        assert_eq!(line("retention.finished_hours"), "unset default");
    }

    /// A setting that leaves itself out when it has no value would not be shown.
    #[test]
    fn no_setting_hides_that_it_has_no_value() {
        let hides = ["skip_serializing", "_if = \"Option::is_none\""].concat();
        for (file, text) in [
            ("mod.rs", include_str!("mod.rs")),
            ("actions.rs", include_str!("actions.rs")),
            ("bus.rs", include_str!("bus.rs")),
            ("functions.rs", include_str!("functions.rs")),
            ("hooks.rs", include_str!("hooks.rs")),
            ("pools.rs", include_str!("pools.rs")),
        ] {
            assert!(!text.contains(&hides), "{file} has {hides}");
        }
    }

    #[test]
    fn mistakes_are_shown_with_their_place() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("segno.toml");
        for (text, told) in [
            ("[server]\nlissen = \"x\"\n", "lissen"),
            ("[server]\nlisten = \"nowhere\"\n", "line 2"),
            ("[server\n", "line 1"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = Layers::default().file(&file).unwrap_err().to_string();
            assert!(error.contains(told), "{text:?}: {error}");
        }
        for (path, value, told) in [
            ("server.lissen", "x", "lissen"),
            ("server.drain_seconds", "soon", "drain_seconds"),
            ("nothing", "x", "nothing"),
            ("server.drain_seconds", "soon", "expected a whole number that is not negative"),
            ("server.max_connections", "-1", "expected a whole number that is not negative"),
            ("server.max_connections", "99999999999999999999", "99999999999999999999 is too large"),
        ] {
            let error =
                Layers::default().set(path, value, Origin::Flag("--set".to_owned())).unwrap_err().to_string();
            assert!(error.contains(told), "{path}: {error}");
        }
        let refused = |path: &str, value: &str| {
            let mut layers = Layers::default();
            layers.set(path, value, Origin::Flag("--set".to_owned())).unwrap();
            layers.finish().unwrap_err().to_string()
        };
        assert!(refused("server.roles", "[]").contains("server.roles"));
        assert!(refused("store.url", "ftp://x").starts_with("store.url: there is no store"));
        assert!(refused("server.tls_key", "x.pem").contains("tls_certificates"));
        assert!(refused("telemetry.otlp_endpoint", "localhost:4317").contains("http://localhost:4318"));
    }
}
