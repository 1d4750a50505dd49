//! What registered code needs to be registered as well, so that a missing registration is found before
//! a node starts and not when the first instance calls it.

use std::fmt;

use crate::handles::{Activity, Orchestration};

/// An activity or orchestration that other code calls; see
/// [`RegistryBuilder::requires`](crate::RegistryBuilder::requires).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement(pub(crate) Required);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Required {
    Activity(String),
    Orchestration { name: String, version: Option<String> },
}

impl<I, O> From<Activity<I, O>> for Requirement {
    fn from(activity: Activity<I, O>) -> Self {
        Requirement(Required::Activity(activity.name().to_owned()))
    }
}

impl<I, O> From<Orchestration<I, O>> for Requirement {
    fn from(orchestration: Orchestration<I, O>) -> Self {
        Requirement(Required::Orchestration {
            name: orchestration.name().to_owned(),
            version: orchestration.version().map(str::to_owned),
        })
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Required::Activity(name) => write!(f, "activity {name:?}"),
            Required::Orchestration { name, version: None } => write!(f, "orchestration {name:?}"),
            Required::Orchestration { name, version: Some(version) } => {
                write!(f, "orchestration {name:?} {version}")
            }
        }
    }
}
