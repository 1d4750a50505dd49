//! The fourth facet of a store: giving out everything that it holds, and taking it in again.
//!
//! Backups, restores and copies between stores of any kind are made of these two calls. What moves is a stream of
//! [`ContentItem`]s in one order, the same for every store, so that equal content gives equal streams:
//!
//! 1. the [`ContentHeader`];
//! 2. instances, ascending by the bytes of their ids; behind each its executions, ascending; behind each of those its events,
//!    ascending;
//! 3. messages of the orchestrator queue, ascending by id;
//! 4. work items, ascending by id;
//! 5. records, ascending by the bytes of kind, then id.
//!
//! Executions and events do not repeat what they belong to: it is what came before them, and a batch may end anywhere.
//! [`ContentOrder`] checks a stream, [`encode_item`] and [`decode_item`] are its bytes.
//!
//! Locks, leases and sessions do not move. What was locked is queued in the target, with its attempt count.

mod codec;
mod content;
mod order;

pub use codec::{decode_item, encode_item};
pub use content::{
    ContentHeader, ContentItem, ExecutionContent, InstanceContent, MessageContent, WorkItemContent,
};
pub use order::ContentOrder;

use async_trait::async_trait;

use super::error::ProviderError;

/// Giving out and taking in everything that a store holds.
#[async_trait]
pub trait Transfer: Send + Sync + 'static {
    /// The whole content of the store at one moment during this call. The store continues to work, and what it does
    /// later does not show. Memory that an export needs does not grow with what is stored.
    async fn export(&self) -> Result<Box<dyn Export + '_>, ProviderError>;

    /// Begins to fill the store, which must be empty.
    ///
    /// Until [`Import::finish`] nothing of it is there: nothing can be fetched, and other calls either see an empty store or
    /// fail with `Unavailable`. An import that is dropped, or whose process ends, stays unfinished. A store that
    /// keeps things beyond its process stores that, and refuses to work with an error that names it; the next import begins again
    /// from nothing.
    ///
    /// # Errors
    /// `Conflict` when the store holds an instance, a queued message or a record.
    async fn import(&self) -> Result<Box<dyn Import + '_>, ProviderError>;
}

/// An export under way.
#[async_trait]
pub trait Export: Send {
    /// The next items, a bounded number of them; empty at the end.
    ///
    /// # Errors
    /// `Corrupt` when something stored cannot be read, `Unavailable` when the store is away.
    async fn next_items(&mut self) -> Result<Vec<ContentItem>, ProviderError>;
}

/// An import under way.
#[async_trait]
pub trait Import: Send {
    /// Takes the next items, in the order that [`ContentOrder`] checks.
    ///
    /// # Errors
    /// `Invalid` when they are out of order or contradict each other. An import that failed cannot continue.
    async fn put(&mut self, items: Vec<ContentItem>) -> Result<(), ProviderError>;

    /// Everything that was put, read back from the store, with the header that was put: what [`ContentHeader`] calls the
    /// moment is still that of the source, so nothing has expired or become visible meanwhile. Comparing it with the
    /// source before finishing is how a copy is verified. Nothing can be put after it.
    ///
    /// # Errors
    /// `Invalid` when what was put has no end yet.
    async fn read_back(&mut self) -> Result<Box<dyn Export + '_>, ProviderError>;

    /// Makes the content that of the store, at once and durably. The store works from then on. Numbers that it gives
    /// from then on are higher than those of the header.
    ///
    /// # Errors
    /// `Invalid` when no header was put; `Conflict` when something else was stored meanwhile.
    async fn finish(self: Box<Self>) -> Result<(), ProviderError>;
}
