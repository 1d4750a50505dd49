//! Records that change together with the end of an instance.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::failure::Failure;
use crate::payload::Payload;
use crate::store::{ProviderError, RecordWrite};

/// What goes into the commit that ends an instance: see [`Context::at_end`](crate::Context::at_end).
#[derive(Default)]
pub struct Epilogue {
    /// The records to change, with what they are expected to be.
    pub writes: Vec<RecordWrite>,
    /// Called once the commit is known to have been made: for counting and logging, never for anything that must happen.
    pub committed: Option<Box<dyn FnOnce() + Send>>,
}

impl fmt::Debug for Epilogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epilogue").field("writes", &self.writes).finish_non_exhaustive()
    }
}

/// The end of an instance that was started with [`StartCall::settle`](crate::client::StartCall::settle).
#[derive(Debug, Clone)]
pub struct InstanceEnd {
    /// The instance.
    pub instance: Arc<str>,
    /// The data of the start.
    pub settle: Payload,
    /// How it ended.
    pub outcome: Result<Payload, Failure>,
}

/// Makes the epilogue of an instance by the data of its start.
pub(crate) type Settler = Arc<dyn Fn(InstanceEnd) -> EpilogueFuture + Send + Sync>;

/// One that makes both.
pub(crate) fn both(one: MakeEpilogue, other: MakeEpilogue) -> MakeEpilogue {
    Arc::new(move |outcome| {
        let (one, other) = (one(outcome.clone()), other(outcome));
        Box::pin(async move {
            let (mut made, more) = (one.await?, other.await?);
            made.writes.extend(more.writes);
            let committed = [made.committed.take(), more.committed];
            made.committed = Some(Box::new(move || committed.into_iter().flatten().for_each(|told| told())));
            Ok(made)
        })
    })
}

/// Makes the epilogue of an execution that ends so.
pub(crate) type MakeEpilogue = Arc<dyn Fn(Result<Payload, Failure>) -> EpilogueFuture + Send + Sync>;

pub(crate) type EpilogueFuture = Pin<Box<dyn Future<Output = Result<Epilogue, ProviderError>> + Send>>;
