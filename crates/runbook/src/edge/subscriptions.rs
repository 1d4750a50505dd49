//! Subscriptions that the built-in bus needs: those of the orchestrator, and one for each pool.

use segno_actions::pools::Pools;

use crate::bus::{
    BusError, Filter, JOBS, ORCHESTRATOR, ORCHESTRATOR_EVENTS, RESULTS, RecordBus, SubscriptionName,
    SubscriptionSettings,
};
use crate::drive::{SEGNO, SENDER, WORKER_ID};

/// Creates the subscriptions that do not exist. A pool's subscription has its name, and gets the
/// jobs whose property `WorkerId` is the pool.
///
/// # Errors
/// Those of the store; `invalid-bus-name` when a pool's name cannot be that of a subscription.
pub async fn prepare(bus: &RecordBus, pools: &Pools) -> Result<(), BusError> {
    let events = SubscriptionSettings {
        except: Some(Filter::property(SENDER, SEGNO)),
        ..SubscriptionSettings::default()
    };
    bus.ensure(&SubscriptionName::new(ORCHESTRATOR_EVENTS, ORCHESTRATOR)?, &events).await?;
    let results = SubscriptionName::new(RESULTS, ORCHESTRATOR)?;
    bus.ensure(&results, &SubscriptionSettings::default()).await?;
    for pool in pools.over_bus() {
        let filter = Filter::property(WORKER_ID, pool.as_str());
        let settings = SubscriptionSettings { filter, ..SubscriptionSettings::default() };
        bus.ensure(&SubscriptionName::new(JOBS, pool.as_str())?, &settings).await?;
    }
    Ok(())
}
