//! Housekeeping: removes records whose life has ended, and writers that are gone, a bounded number at a time.

use std::sync::Arc;
use std::time::Duration;

use segno::clock::{duration_ms, sleep};
use tokio_postgres::types::Type;

use crate::core::Core;
use crate::number::time;

/// How often a node sweeps.
const INTERVAL: Duration = Duration::from_secs(30);

/// A writer that has been silent for this long is gone.
const SILENCE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Sweeps until it is stopped.
pub(crate) async fn run(core: Arc<Core>) {
    let sql = format!("SELECT {}.sweep($1)", core.schema());
    let silence_ms = time(duration_ms(SILENCE));
    loop {
        sleep(core.clock(), INTERVAL).await;
        if let Err(error) = core.rows("sweep", &sql, &[(&silence_ms, Type::INT8)]).await {
            tracing::debug!(%error, "a sweep did not work out; the next one will");
        }
    }
}
