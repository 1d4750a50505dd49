//! Functions of the configuration, and what stored ones may do.

use std::path::PathBuf;

use segno_actions::functions::{FunctionError, FunctionsBuilder, StoredPolicy};
use serde::{Deserialize, Serialize};

use super::{Settings, SettingsError};

/// What functions may do that came in through the API, besides being remote and calling public addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoredFunctionSettings {
    /// Whether they may be tools: whoever may store one can then run any program as the node's user.
    pub processes: bool,
    /// Whether they may allow themselves private addresses.
    pub private_addresses: bool,
    /// They may read secrets in files below `<this>/<namespace>/<tenant>/`.
    pub secret_directory: Option<PathBuf>,
    /// They may read environment variables that begin with this, whatever their tenant.
    pub secret_variables: Option<String>,
}

impl StoredFunctionSettings {
    fn policy(&self) -> StoredPolicy {
        StoredPolicy {
            processes: self.processes,
            private_addresses: self.private_addresses,
            secret_directory: self.secret_directory.clone(),
            secret_variables: self.secret_variables.clone(),
        }
    }
}

impl Settings {
    /// Adds the functions of the settings to a catalogue, with the policy for stored ones.
    pub fn declare_functions(&self, builder: FunctionsBuilder) -> FunctionsBuilder {
        let builder = builder.stored_policy(self.stored_functions.policy());
        self.functions
            .iter()
            .fold(builder, |builder, (name, function)| builder.declare(name.clone(), function.clone()))
    }

    /// Checks every function by itself.
    pub(super) fn check_functions(&self) -> Result<(), SettingsError> {
        for (name, function) in &self.functions {
            function.check().map_err(|error| match error {
                FunctionError::InvalidFunction { field, problem } => {
                    SettingsError::value(&format!("functions.{name}.{field}"), problem)
                }
                other => SettingsError::value(&format!("functions.{name}"), other.to_string()),
            })?;
        }
        let empty = self.stored_functions.secret_variables.as_ref().is_some_and(String::is_empty);
        if empty {
            let reason =
                "is empty, so every variable of the node would be open; name a prefix, or leave it out";
            return Err(SettingsError::value("stored_functions.secret_variables", reason));
        }
        match &self.stored_functions.secret_directory {
            Some(directory) if !directory.is_absolute() => {
                Err(SettingsError::value("stored_functions.secret_directory", "must be an absolute path"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layers, Origin};

    fn read(text: &str) -> Result<Vec<(String, String, Origin)>, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("segno.toml");
        std::fs::write(&file, text).unwrap();
        let mut layers = Layers::default();
        layers.file(&file).map_err(|error| error.to_string())?;
        Ok(layers.finish().map_err(|error| error.to_string())?.lines())
    }

    #[test]
    fn functions_are_read_and_printed_with_references_for_secrets() {
        let lines = read(
            "[functions.notify]\nexecutor = \"http\"\nurl = \"https://example.org/hook\"\ntimeout = \"10s\"\n\
             signing_secret = { env = \"HOOK_SECRET\" }\nretry = { attempts = 3 }\n\
             [stored_functions]\nprocesses = true\n",
        )
        .unwrap();
        let value =
            |path: &str| lines.iter().find(|(found, ..)| found == path).map(|(_, value, _)| value.as_str());
        assert_eq!(value("functions.notify.url"), Some("\"https://example.org/hook\""));
        assert_eq!(value("functions.notify.signing_secret.env"), Some("\"HOOK_SECRET\""));
        assert_eq!(value("functions.notify.retry.attempts"), Some("3"));
        assert_eq!(value("stored_functions.processes"), Some("true"));
        assert_eq!(value("stored_functions.private_addresses"), Some("false"));
    }

    #[test]
    fn mistakes_name_the_function_and_the_setting() {
        for (text, told) in [
            ("[functions.Notify]\nexecutor = \"remote\"\n", "cannot be a function name"),
            ("[functions.notify]\nexecutor = \"http\"\nurl = \"ftp://x\"\n", "functions.notify.url"),
            ("[functions.notify]\nexecutor = \"http\"\nurl = \"http://127.0.0.1\"\n", "functions.notify.url"),
            ("[functions.notify]\nexecutor = \"remote\"\ntimout = \"1s\"\n", "timout"),
            ("[stored_functions]\nsecret_variables = \"\"\n", "secret_variables"),
            ("[stored_functions]\nsecret_directory = \"secrets\"\n", "secret_directory"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told), "{text:?}: {error}");
        }
    }
}
