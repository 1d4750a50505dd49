//! The store contract: four facets that one backend object implements.
//!
//! * [`Provider`]: two queues with peek-lock, histories, the atomic turn commit.
//! * [`ProviderAdmin`]: listing, reading, counting, deleting, pruning.
//! * [`Records`]: versioned documents with due times.
//! * [`Transfer`]: export and import of the whole content of a store.
//!
//! **Invariants.** Stores contain no orchestration semantics and never decode a payload. Only the
//! store's clock decides visibility and expiry. A commit verifies its lock token inside the commit:
//! a stale holder changes nothing. Anyone can write a store; `segno-testkit` runs the whole contract
//! against it with one macro line.
//!
//! A method that a store may implement in its own way has no default body, so that a store that
//! wraps another one cannot forget to forward it. The few default bodies are made of other methods
//! and are the same for every store.

mod admin;
#[doc(hidden)]
pub mod core;
mod error;
mod execution_status;
mod filter;
pub mod memory;
mod message;
mod next_execution;
mod provider;
mod records;
mod transfer;
mod watch_until;

pub use admin::{
    DeleteInstanceResult, EndedCursor, EndedPage, EndedQuery, ExecutionInfo, HistoryPage, HistoryQuery,
    InstanceCursor, InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, InstanceTree, InstanceVersion,
    ProviderAdmin, PruneOptions, PruneResult, QueueDepths, QueuePlace, QueuedActivity, QueuedWork,
    ReadableHistoryPage, SystemMetrics, UnreadableEvents, UnreadableInstance,
};
pub use error::{ErrorKind, ProviderError, WriteOutcome};
pub use execution_status::ExecutionStatus;
pub(crate) use filter::ENGINE_VERSION;
pub use filter::{
    DispatcherCapabilityFilter, SemverRange, SessionClaims, SessionFetchConfig, TagFilter, TagPrefixes,
    engine_version,
};
pub use message::{
    LockToken, OrchestratorMessage, QueuedMessage, ScheduledActivityIdentifier, StartGuard, StoredEvent,
    TimerIdentifier, WorkerMessage,
};
pub use next_execution::{NextExecution, UnendedExecution};
pub use provider::{
    AckOrchestrationItem, AckWorkItem, AfterAck, CustomStatusChange, ExecutionMetadata, ExecutionPosition,
    FetchOrchestrationItems, FetchWorkItems, FetchedHistory, LockLife, LockedWorkItem, OrchestrationItem,
    Provider, ResidentExecutions, TurnLock, start_then_watch,
};
pub use records::{
    DueRecords, Expect, Guards, ListRecords, ReadableRecords, Record, RecordBatch, RecordWrite, Records,
    folder_of,
};
pub use transfer::{
    ContentHeader, ContentItem, ContentOrder, ExecutionContent, Export, Import, InstanceContent,
    MessageContent, Transfer, WorkItemContent, decode_item, encode_item,
};
pub use watch_until::WatchUntil;

/// A whole store: all four facets. Used as `Arc<dyn Store>`.
pub trait Store: Provider + ProviderAdmin + Records + Transfer {}

impl<T: Provider + ProviderAdmin + Records + Transfer> Store for T {}
