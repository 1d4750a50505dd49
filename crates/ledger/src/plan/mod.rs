//! DAGs as users write them, and the plans of their runs. Everything here is pure: texts, times and outputs come in;
//! definitions, keys and planned tasks go out.
//!
//! | module | what it has |
//! |---|---|
//! | [`definition`] | a published DAG |
//! | [`partition`] | keys of partitions, ranges and mappings |
//! | [`limits`] | every limit |

pub mod definition;
pub mod limits;
pub mod partition;
