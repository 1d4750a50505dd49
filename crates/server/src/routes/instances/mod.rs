//! Instances, one file per group of routes.

pub mod awaited_end;
pub mod bulk;
mod call;
pub mod counts;
pub mod explain;
pub mod list;
pub mod logs;
pub mod read;
mod selection;
pub mod start;
pub mod steer;
pub mod stream;
pub mod timers;
pub mod view;
