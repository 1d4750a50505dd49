//! Which processes are alive. A lease names the process that holds it, so that a restart takes up the scopes of a process
//! that is known to be gone without waiting for its leases to expire.

use async_trait::async_trait;
use segno::store::ProviderError;

/// Processes that drive scopes of a store.
#[async_trait]
pub trait Processes: Send + Sync {
    /// Id of this process, fresh at every start.
    fn id(&self) -> &str;

    /// Whether a process may be alive.
    ///
    /// # Errors
    /// When the store cannot be read.
    async fn is_alive(&self, id: &str) -> Result<bool, ProviderError>;
}
