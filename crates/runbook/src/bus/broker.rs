//! What opens the bus at a broker elsewhere. The crate `segno-bus-amqp` implements it.

use std::sync::Arc;

use segno::clock::Clock;

use super::Bus;

/// Names that topics and the subscription of the orchestrator have at a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerNames {
    /// Topic of messages about batches.
    pub events: String,
    /// Topic of jobs.
    pub jobs: String,
    /// Topic of results.
    pub results: String,
    /// Subscription of the orchestrator.
    pub subscription: String,
}

/// Opens buses at brokers of one protocol.
pub trait Brokers: Send + Sync + 'static {
    /// The bus at a broker. It is connected when it is used.
    ///
    /// # Errors
    /// What is wrong with the URL. The text does not repeat the URL, which may have a password.
    fn open(&self, url: &str, names: BrokerNames, clock: Arc<dyn Clock>) -> Result<Arc<dyn Bus>, String>;
}
