//! Pools of workers of the configuration.

use segno_actions::functions::FunctionError;

use super::{Settings, SettingsError};

impl Settings {
    /// Checks every pool by itself; `check_bus` checks those that are reached over the bus.
    pub(super) fn check_pools(&self) -> Result<(), SettingsError> {
        for (name, pool) in &self.pools {
            pool.check().map_err(|error| match error {
                FunctionError::InvalidPool { field, problem } => {
                    SettingsError::value(&format!("pools.{name}.{field}"), problem)
                }
                other => SettingsError::value(&format!("pools.{name}"), other.to_string()),
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Layers;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("segno.toml");
        std::fs::write(&file, text).unwrap();
        let mut layers = Layers::default();
        layers.file(&file).map_err(|error| error.to_string())?;
        let settings = layers.finish().map_err(|error| error.to_string())?.settings;
        Ok(settings.pools.iter().map(|(name, pool)| format!("{name} {}", pool.transport.as_str())).collect())
    }

    #[test]
    fn pools_keep_their_case() {
        let pools = read(
            "[pools.Cloud-01]\nfunctions = [\"New-EntraUser\", \"Set-*\"]\ncalls_per_second = 5\n\
             [pools.on-prem]\ntransport = \"local\"\nfunctions = [\"*\"]\n",
        );
        assert_eq!(pools.unwrap(), ["Cloud-01 queue", "on-prem local"]);
    }

    #[test]
    fn mistakes_name_the_pool_and_the_setting() {
        for (text, told) in [
            ("[pools.cloud]\nfunctions = []\n", "pools.cloud.functions"),
            ("[pools.cloud]\n", "functions"),
            ("[pools.cloud]\nfunctions = [\"a b\"]\n", "name of a function in a pool"),
            ("[pools.cloud]\nfunctions = [\"*\"]\ncalls_per_second = -1\n", "pools.cloud.calls_per_second"),
            ("[pools.cloud]\nfunctions = [\"*\"]\ntransport = \"bus\"\n", "no bus is configured"),
            ("[pools.\"a b\"]\nfunctions = [\"*\"]\n", "cannot be a pool name"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told), "{text:?}: {error}");
        }
    }
}
