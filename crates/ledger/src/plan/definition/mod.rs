//! A DAG as it is published. Its JSON form is a document of the format, so a definition that was built in Rust can be
//! written down and read again.

mod asset;
mod dag;
mod notify;
mod parameter;
mod partitions;
mod sensor;
mod task;

pub(crate) use asset::UNPARTITIONED;
pub use asset::{Asset, PartitionMapping, UpstreamAsset};
pub use dag::{Dag, DagSchedule};
pub use notify::{Notify, NotifyEvent};
pub use parameter::Parameter;
pub use partitions::{Partitions, WindowSize};
pub use sensor::Sensor;
pub use task::{ForEach, Items, Retry, Task};
