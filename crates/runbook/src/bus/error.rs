//! How calls of a bus fail.

use segno::store::{ErrorKind, ProviderError};

/// How a call of a bus fails.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BusError {
    /// A name is not allowed.
    #[error(
        "{name:?} cannot be the name of a {what}: use at most 128 letters, digits, '.', '_' and '-', beginning with a letter or digit \
         [invalid-bus-name]"
    )]
    InvalidName {
        /// Topic or subscription.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A message cannot be sent.
    #[error("the message {message_id:?} cannot be sent: {problem} [invalid-bus-message]")]
    InvalidMessage {
        /// Its id.
        message_id: String,
        /// What is wrong.
        problem: String,
    },
    /// There is no such subscription.
    #[error("there is no subscription {0} [unknown-subscription]")]
    UnknownSubscription(String),
    /// Messages to the topic would reach no receiver.
    #[error(
        "the topic {0} has no subscription in this namespace and tenant, so its messages would be lost; check the topic, the namespace and the \
         tenant, and that the bus serves them [unknown-subscription]"
    )]
    NoSubscription(String),
    /// The lock has expired, or the message was settled.
    #[error("the lock {0:?} has expired, or its message was settled; receive the message again [lock-lost]")]
    LockLost(String),
    /// The store could not do it.
    #[error("{0}")]
    Store(#[from] ProviderError),
    /// The bus could not be reached.
    #[error("the bus could not be reached: {0} [bus-unavailable]")]
    Unavailable(String),
}

impl BusError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            BusError::InvalidName { .. } => "invalid-bus-name",
            BusError::InvalidMessage { .. } => "invalid-bus-message",
            BusError::UnknownSubscription(_) | BusError::NoSubscription(_) => "unknown-subscription",
            BusError::LockLost(_) => "lock-lost",
            BusError::Store(_) => "store",
            BusError::Unavailable(_) => "bus-unavailable",
        }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            BusError::InvalidName { .. } | BusError::InvalidMessage { .. } => ErrorKind::Invalid,
            BusError::UnknownSubscription(_) | BusError::NoSubscription(_) => ErrorKind::NotFound,
            BusError::LockLost(_) => ErrorKind::Conflict,
            BusError::Store(error) => error.kind(),
            BusError::Unavailable(_) => ErrorKind::Unavailable,
        }
    }
}
