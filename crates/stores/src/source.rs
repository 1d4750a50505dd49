//! A store to read from: one that this process has open, one that another process has, or one that none has.

use std::path::PathBuf;
use std::sync::Arc;

use segno::store::{Export, Store};
use segno_embedded::{ClosedStore, Control, Info, InstanceCounts, Queues};
use serde::Serialize;

use crate::error::Error;

/// A store to read from.
pub enum Source {
    /// A store that is open here.
    Open(Arc<dyn Store>),
    /// An embedded store that no process has open.
    Closed(ClosedStore),
    /// An embedded store in a directory that another process has open.
    InUse(PathBuf),
}

/// What there is to know of a store.
#[derive(Debug, Clone)]
pub struct StoreInfo {
    /// Where it is.
    pub store: String,
    /// Whether another process has it open.
    pub in_use: bool,
    /// What it says of itself.
    pub known: Known,
}

/// What a store says of itself.
#[derive(Debug, Clone)]
pub enum Known {
    /// An embedded store knows its files too.
    Embedded(Box<Info>),
    /// What every store can count.
    Counts(Counts),
}

/// What every store can count.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Counts {
    /// Instances by state.
    pub instances: InstanceCounts,
    /// Executions of all instances.
    pub executions: u64,
    /// Events of all executions.
    pub events: u64,
    /// What is queued.
    pub queues: Queues,
}

impl Known {
    /// What every store can count.
    pub fn counts(&self) -> Counts {
        match self {
            Known::Counts(counts) => *counts,
            Known::Embedded(info) => Counts {
                instances: info.instances,
                executions: info.executions,
                events: info.events,
                queues: info.queues,
            },
        }
    }
}

impl Source {
    /// Everything that the store holds at this moment.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn export(&self) -> Result<Box<dyn Export + '_>, Error> {
        match self {
            Source::Open(store) => Ok(store.export().await?),
            Source::Closed(store) => Ok(Box::new(store.export()?)),
            Source::InUse(directory) => Ok(Box::new(Control::connect(directory)?.export()?)),
        }
    }

    /// How many instances there are, for showing how far something is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn instance_count(&self) -> Result<u64, Error> {
        match self {
            Source::Open(store) => Ok(store.get_system_metrics().await?.total_instances),
            Source::Closed(_) | Source::InUse(_) => {
                Ok(self.info(String::new()).await?.known.counts().instances.total)
            }
        }
    }

    /// What there is to know of the store.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn info(&self, store: String) -> Result<StoreInfo, Error> {
        let (in_use, known) = match self {
            Source::Closed(closed) => (false, Known::Embedded(Box::new(closed.info()?))),
            Source::InUse(directory) => {
                let info = Control::connect(directory)?.info()?;
                (true, Known::Embedded(Box::new(info)))
            }
            Source::Open(store) => {
                let metrics = store.get_system_metrics().await?;
                let counts = Counts {
                    instances: metrics.into(),
                    executions: metrics.total_executions,
                    events: metrics.total_events,
                    queues: store.get_queue_depths().await?.into(),
                };
                (false, Known::Counts(counts))
            }
        };
        Ok(StoreInfo { store, in_use, known })
    }
}
