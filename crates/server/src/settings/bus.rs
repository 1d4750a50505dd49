//! The message bus over which runbooks reach workers.

use std::collections::BTreeMap;

use segno_actions::functions::{Scope, SettingValue};
use segno_actions::pools::Transport;
use segno_runbook::bus::{JOBS, ORCHESTRATOR, ORCHESTRATOR_EVENTS, RESULTS, SubscriptionName, TopicName};
use segno_runbook::drive::Announcements;
use serde::{Deserialize, Serialize};

use super::{Settings, SettingsError};

/// Value of `bus.url` that chooses the bus in the store.
pub const BUILT_IN: &str = "built-in";

/// The message bus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BusSettings {
    /// `built-in`, or the URL of a broker that speaks AMQP 1.0; no bus without it.
    pub url: Option<SettingValue>,
    /// Namespace of the batches that it serves.
    pub namespace: String,
    /// Tenant of the batches that it serves.
    pub tenant: String,
    /// Whether messages about batches are sent to `events_topic`.
    pub send_events: bool,
    /// Topic of messages about batches.
    pub events_topic: String,
    /// Topic of jobs.
    pub jobs_topic: String,
    /// Topic of results.
    pub results_topic: String,
    /// Subscription of this program to messages and results.
    pub subscription: String,
}

impl Default for BusSettings {
    fn default() -> Self {
        let scope = Scope::default();
        BusSettings {
            url: None,
            namespace: scope.namespace.to_string(),
            tenant: scope.tenant.to_string(),
            send_events: true,
            events_topic: ORCHESTRATOR_EVENTS.to_owned(),
            jobs_topic: JOBS.to_owned(),
            results_topic: RESULTS.to_owned(),
            subscription: ORCHESTRATOR.to_owned(),
        }
    }
}

impl BusSettings {
    /// Whether the bus is the one in the store.
    pub fn is_built_in(&self) -> bool {
        self.url == Some(SettingValue::Text(BUILT_IN.to_owned()))
    }

    /// Whose batches it serves.
    ///
    /// # Errors
    /// When a name cannot be that of a namespace or tenant.
    pub fn scope(&self) -> Result<Scope, SettingsError> {
        Scope::new(self.namespace.as_str(), self.tenant.as_str())
            .map_err(|error| SettingsError::value("bus.namespace, bus.tenant", error.to_string()))
    }

    /// Whether messages about batches are sent.
    pub fn announcements(&self) -> Announcements {
        if self.send_events { Announcements::Sent } else { Announcements::Unsent }
    }

    fn check(&self) -> Result<(), SettingsError> {
        self.scope()?;
        for (name, value) in [
            ("bus.events_topic", &self.events_topic),
            ("bus.jobs_topic", &self.jobs_topic),
            ("bus.results_topic", &self.results_topic),
        ] {
            TopicName::new(value).map_err(|error| SettingsError::value(name, error.to_string()))?;
        }
        SubscriptionName::new(RESULTS, &self.subscription)
            .map_err(|error| SettingsError::value("bus.subscription", error.to_string()))?;
        match &self.url {
            None => Ok(()),
            Some(SettingValue::Secret(reference)) => {
                reference.check("bus.url").map_err(|error| SettingsError::value("bus.url", error.to_string()))
            }
            Some(SettingValue::Text(url)) => check_url(url),
        }
    }
}

/// What can be written out: the built-in bus, or a URL without credentials.
fn check_url(url: &str) -> Result<(), SettingsError> {
    let refuse = |reason: &str| Err(SettingsError::value("bus.url", reason));
    let address = url.strip_prefix("amqps://").or_else(|| url.strip_prefix("amqp://"));
    match address {
        _ if url == BUILT_IN => Ok(()),
        None => {
            refuse("is no bus; write \"built-in\", amqps://HOST, { env = \"NAME\" } or { file = \"/path\" }")
        }
        Some(address) if address.contains('@') => refuse(
            "has credentials in it; put the URL into an environment variable or a file, and write { env = \"NAME\" } or { file = \"/path\" }",
        ),
        Some(_) => Ok(()),
    }
}

impl Settings {
    /// Checks the bus, and the pools that are reached over it.
    pub(super) fn check_bus(&self) -> Result<(), SettingsError> {
        self.bus.check()?;
        let mut names: BTreeMap<String, &str> = BTreeMap::new();
        for (name, _) in self.pools.iter().filter(|(_, pool)| pool.transport == Transport::Bus) {
            if self.bus.url.is_none() {
                let reason =
                    "is \"bus\", and no bus is configured; set bus.url, or write \"queue\" or \"local\"";
                return Err(SettingsError::value(&format!("pools.{name}.transport"), reason));
            }
            // Names of subscriptions are the same whatever their letter case.
            if let Some(other) = names.insert(name.as_str().to_lowercase(), name.as_str()) {
                let reason = format!(
                    "differs from pools.{other} by letter case only, and subscriptions of a bus do not; rename one"
                );
                return Err(SettingsError::value(&format!("pools.{name}"), reason));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Layers;

    fn read(text: &str) -> Result<super::BusSettings, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("segno.toml");
        std::fs::write(&file, text).unwrap();
        let mut layers = Layers::default();
        layers.file(&file).map_err(|error| error.to_string())?;
        Ok(layers.finish().map_err(|error| error.to_string())?.settings.bus)
    }

    #[test]
    fn a_bus_is_built_in_or_elsewhere() {
        assert!(!read("").unwrap().is_built_in());
        let pool = "[pools.cloud-01]\ntransport = \"bus\"\nfunctions = [\"*\"]\n";
        assert!(read(&format!("[bus]\nurl = \"built-in\"\n{pool}")).unwrap().is_built_in());
        for url in
            ["\"amqps://contoso.servicebus.windows.net\"", "{ env = \"BUS_URL\" }", "{ file = \"/run/bus\" }"]
        {
            assert!(read(&format!("[bus]\nurl = {url}\n")).unwrap().url.is_some());
        }
    }

    #[test]
    fn mistakes_name_the_setting_and_what_to_write() {
        let pool = |name: &str| format!("[pools.{name}]\ntransport = \"bus\"\nfunctions = [\"*\"]\n");
        for (text, told) in [
            (pool("cloud"), "set bus.url"),
            (format!("[bus]\nurl = \"built-in\"\n{}{}", pool("A"), pool("a")), "letter case"),
            ("[bus]\nurl = \"kafka://x\"\n".to_owned(), "write \"built-in\""),
            ("[bus]\nurl = \"amqps://me:secret@host\"\n".to_owned(), "{ env = \"NAME\" }"),
            ("[bus]\nurl = { file = \"bus\" }\n".to_owned(), "absolute"),
            ("[bus]\ntenant = \"a/b\"\n".to_owned(), "bus.tenant"),
            ("[bus]\njobs_topic = \"a b\"\n".to_owned(), "bus.jobs_topic"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(told), "{text:?}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
