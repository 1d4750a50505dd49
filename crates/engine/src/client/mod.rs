//! The client: starting instances, talking to them, waiting for them, finding and removing them.
//!
//! A client needs a store and nothing else: no runtime has to run in the same process.

mod bulk;
mod dead_letters;
mod handle;
mod instance;
mod manage;
mod open;
mod restart;
mod retry;
mod send;
mod start;
mod tree;
mod wait;

use std::sync::Arc;

use crate::ids::{IdSource, SystemIds};
use crate::store::Store;

pub use bulk::{Bulk, BulkLeft, BulkObstacle, BulkPreview, BulkResult, MAX_BULK_SAMPLE};
pub use dead_letters::{DeadLetterQuery, DeadLetters, ResubmitCall, ResubmittedLetter, UnreadableLetter};
pub use handle::InstanceHandle;
pub use instance::{EventList, ExecutionList, Instance, InstanceList};
pub use open::{HistoryBudget, OpenKind, OpenOperation, OpenOperations};
pub use restart::{RestartCall, RestartedInstance};
pub use send::SendCall;
pub use start::{OnConflict, StartCall};
pub use tree::{MAX_TREE_DEPTH, TreeNode, TreePage, TreeQuery, UnreadableNode};
pub use wait::{ResultCall, StatusCall, StatusChange};

/// Talks to instances through a store. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn Store>,
    ids: Arc<dyn IdSource>,
}

impl Client {
    /// A client on a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::builder(store).build()
    }

    /// Prepares a client with other parts, for tests.
    pub fn builder(store: Arc<dyn Store>) -> ClientBuilder {
        ClientBuilder { store, ids: SystemIds::shared() }
    }

    /// The store that this client works on.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }
}

/// Parts of a client.
pub struct ClientBuilder {
    store: Arc<dyn Store>,
    ids: Arc<dyn IdSource>,
}

impl ClientBuilder {
    /// Another source of ids.
    #[must_use]
    pub fn ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Finishes the client.
    pub fn build(self) -> Client {
        Client { store: self.store, ids: self.ids }
    }
}
