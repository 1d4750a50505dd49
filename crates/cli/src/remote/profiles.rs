//! Profiles: servers by name, in `$XDG_CONFIG_HOME/segno/profiles.toml` (else `~/.config/segno/profiles.toml`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::exit::Failure;
use crate::output::Output;

/// One server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// Its address.
    pub server: Option<String>,
    /// API key.
    pub key: Option<String>,
    /// Namespace.
    pub namespace: Option<String>,
    /// Tenant.
    pub tenant: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Profiles {
    /// The profile that is used when none is named.
    default: Option<String>,
    profiles: BTreeMap<String, Profile>,
}

/// The profile of this name, else the default one, else an empty one.
///
/// # Errors
/// When there is none of the name, or the file cannot be read.
pub fn load(name: Option<&str>, output: &Output) -> Result<Profile, Failure> {
    let Some(path) = path() else { return pick(Profiles::default(), name, "the profiles") };
    let shown = path.display().to_string();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::of_file(&path)(error)),
    };
    if text.contains("key") && is_exposed(&path) {
        output
            .warn(&format!("other users may read the keys in {shown}; `chmod go= {shown}` takes that away"));
    }
    let profiles =
        toml::from_str(&text).map_err(|error| Failure::Refused(format!("{shown} is wrong: {error}")))?;
    pick(profiles, name, &shown)
}

/// Whether other users may read or change a file.
fn is_exposed(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

fn path() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = directory("XDG_CONFIG_HOME").or_else(|| Some(directory("HOME")?.join(".config")))?;
    Some(config.join("segno").join("profiles.toml"))
}

fn pick(mut profiles: Profiles, name: Option<&str>, place: &str) -> Result<Profile, Failure> {
    let Some(name) = name.map(str::to_owned).or(profiles.default) else { return Ok(Profile::default()) };
    profiles.profiles.remove(&name).ok_or_else(|| {
        let known: Vec<_> = profiles.profiles.keys().cloned().collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::Refused(format!("there is no profile {name:?} in {place}; there are: {known}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_picked_by_name_or_by_default() {
        let text = "default = \"test\"\n[profiles.test]\nserver = \"http://test\"\n[profiles.live]\nserver = \"http://live\"\n";
        let profiles = || toml::from_str::<Profiles>(text).unwrap();
        assert_eq!(pick(profiles(), None, "x").unwrap().server.as_deref(), Some("http://test"));
        assert_eq!(pick(profiles(), Some("live"), "x").unwrap().server.as_deref(), Some("http://live"));
        let refused = pick(profiles(), Some("other"), "x").unwrap_err().to_string();
        assert!(refused.contains("live, test"), "{refused}");
        assert!(pick(Profiles::default(), None, "x").unwrap().server.is_none());
    }
}
