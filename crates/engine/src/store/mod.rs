//! The store contract: three facets that one backend object implements.
//!
//! * [`Provider`]: two queues with peek-lock, histories, the atomic turn commit.
//! * [`ProviderAdmin`]: listing, reading, counting, deleting, pruning.
//! * [`Records`]: versioned documents with due times.
//!
//! **Invariants.** Stores hold no orchestration semantics and never look into a payload. Only the store's clock
//! decides visibility and expiry. A commit checks its lock token inside the commit: a stale holder changes nothing.
//! Anyone can write a store; `segno-testkit` runs the whole contract against it with one macro line.

mod admin;
mod error;
mod filter;
pub mod memory;
mod message;
mod provider;
mod records;

pub use admin::{
    DeleteInstanceResult, ExecutionInfo, InstanceCursor, InstanceFilter, InstanceInfo, InstancePage,
    InstanceQuery, InstanceTree, ProviderAdmin, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};
pub use error::{ErrorKind, ProviderError};
pub use filter::{
    DispatcherCapabilityFilter, SemverRange, SessionClaims, SessionFetchConfig, TagFilter, engine_version,
};
pub use message::{
    LockToken, OrchestratorMessage, QueuedMessage, ScheduledActivityIdentifier, StartGuard, StoredEvent,
    TimerIdentifier, WorkerMessage,
};
pub use provider::{
    AckOrchestrationItem, AckWorkItem, AfterAck, CustomStatusChange, ExecutionMetadata, ExecutionPosition,
    ExecutionStatus, FetchOrchestrationItems, FetchWorkItems, FetchedHistory, LockedWorkItem,
    OrchestrationItem, Provider, ResidentExecutions, WatchUntil,
};
pub use records::{DueRecords, Expect, ListRecords, Record, RecordBatch, RecordWrite, Records};

/// A whole store: all three facets. Used as `Arc<dyn Store>`.
pub trait Store: Provider + ProviderAdmin + Records {}

impl<T: Provider + ProviderAdmin + Records> Store for T {}
