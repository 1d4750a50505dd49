//! A store to read from: one that this process has open, or one that another process has.

use std::path::PathBuf;
use std::sync::Arc;

use segno::store::{ErrorKind, Export, ProviderError, Store, Transfer};
use segno_embedded::{Control, EmbeddedStore, Info};
use serde::Serialize;

use crate::error::Error;

/// A store to read from.
pub enum Source {
    /// A store that is open here.
    Open(Arc<dyn Store>),
    /// An embedded store that is open here.
    Embedded(Arc<EmbeddedStore>),
    /// An embedded store in a directory that another process has open.
    InUse(PathBuf),
}

/// What there is to know of a store.
#[derive(Debug, Clone, Serialize)]
pub struct StoreInfo {
    /// Where it is.
    pub store: String,
    /// Whether another process has it open.
    pub in_use: bool,
    /// What it says of itself.
    #[serde(flatten)]
    pub info: Info,
}

fn away(error: std::io::Error) -> Error {
    let text = format!("the process that has the store open does not answer ({error}); try again");
    Error::Store(ProviderError::unavailable("control", text))
}

impl Source {
    /// Everything that the store holds at this moment.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn export(&self) -> Result<Box<dyn Export + '_>, Error> {
        match self {
            Source::Open(store) => Ok(store.export().await?),
            Source::Embedded(store) => Ok(store.export().await?),
            Source::InUse(directory) => Ok(Box::new(Control::connect(directory).map_err(away)?.export()?)),
        }
    }

    /// How many instances there are, for showing how far something is.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn instance_count(&self) -> Result<u64, Error> {
        match self {
            Source::Open(store) => Ok(store.get_system_metrics().await?.total_instances),
            Source::Embedded(_) | Source::InUse(_) => {
                Ok(self.info(String::new()).await?.info.instances.total)
            }
        }
    }

    /// What there is to know of the store.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn info(&self, store: String) -> Result<StoreInfo, Error> {
        let (in_use, info) = match self {
            Source::Embedded(embedded) => (false, embedded.info().await?),
            Source::InUse(directory) => (true, Control::connect(directory).map_err(away)?.info()?),
            Source::Open(_) => {
                let text = "there is nothing to know of a store in memory from outside";
                return Err(ProviderError::new(ErrorKind::Invalid, "info", text).into());
            }
        };
        Ok(StoreInfo { store, in_use, info })
    }
}
