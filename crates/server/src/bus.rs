//! The message bus of a node, by its settings: what batches write to, and the edge that receives and
//! sends.

use std::sync::Arc;

use segno::clock::Clock;
use segno::ids::IdSource;
use segno::store::Store;
use segno_actions::pools::Pools;
use segno_runbook::bus::{BrokerNames, Brokers, Bus, RecordBus};
use segno_runbook::drive::Outbox;
use segno_runbook::edge::{self, BusEdge};

use crate::server::ServerError;
use crate::settings::BusSettings;

/// The bus of one namespace and tenant.
pub struct NodeBus {
    /// The bus, as batches know it.
    pub outbox: Outbox,
    /// The bus.
    bus: Arc<dyn Bus>,
}

impl NodeBus {
    /// Opens the bus of the settings; none if they have none.
    ///
    /// # Errors
    /// When the settings cannot be used by this build, or the store cannot be written.
    pub async fn open(
        settings: &BusSettings,
        store: Arc<dyn Store>,
        (clock, ids): (Arc<dyn Clock>, Arc<dyn IdSource>),
        pools: &Pools,
        brokers: Option<&dyn Brokers>,
    ) -> Result<Option<Self>, ServerError> {
        if settings.url.is_none() {
            return Ok(None);
        }
        let scope = settings.scope()?;
        let outbox = Outbox { scope: scope.clone(), announcements: settings.announcements() };
        let bus: Arc<dyn Bus> = if settings.is_built_in() {
            let bus = RecordBus::new(store, clock, ids, scope);
            edge::prepare(&bus, pools).await.map_err(|error| ServerError::Bus(error.to_string()))?;
            Arc::new(bus)
        } else {
            broker(settings, clock, brokers).await?
        };
        Ok(Some(NodeBus { outbox, bus }))
    }

    /// What receives and sends on this node.
    pub fn edge(&self, store: Arc<dyn Store>, clock: Arc<dyn Clock>, pools: Pools) -> BusEdge {
        BusEdge { store, clock, bus: self.bus.clone(), pools, scope: self.outbox.scope.clone() }
    }
}

/// A broker elsewhere. It is connected when it is used.
async fn broker(
    settings: &BusSettings,
    clock: Arc<dyn Clock>,
    brokers: Option<&dyn Brokers>,
) -> Result<Arc<dyn Bus>, ServerError> {
    let refused = |problem: &str| ServerError::Bus(problem.to_owned());
    let brokers = brokers.ok_or_else(|| {
        refused("this build has no AMQP; build segno with `--features amqp`, or set bus.url to \"built-in\"")
    })?;
    let url = settings.url.as_ref().ok_or_else(|| refused("is missing"))?;
    let url = url.read().await.map_err(|failure| ServerError::Bus(failure.message))?;
    let names = BrokerNames {
        events: settings.events_topic.clone(),
        jobs: settings.jobs_topic.clone(),
        results: settings.results_topic.clone(),
        subscription: settings.subscription.clone(),
    };
    brokers.open(url.expose(), names, clock).map_err(ServerError::Bus)
}
