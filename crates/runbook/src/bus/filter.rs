//! Correlation filters: which messages of its topic a subscription receives.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::message::Message;

/// Properties that a message must have, with their values. An empty filter matches every message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Filter {
    /// Values by name.
    pub properties: BTreeMap<String, String>,
}

impl Filter {
    /// Matches messages whose property has a value.
    pub fn property(name: impl Into<String>, value: impl Into<String>) -> Self {
        Filter { properties: BTreeMap::from([(name.into(), value.into())]) }
    }

    /// Whether a message is delivered to the subscription.
    pub fn matches(&self, message: &Message) -> bool {
        self.properties.iter().all(|(name, value)| message.properties.get(name) == Some(value))
    }
}
