//! Runbooks: the members of a batch go through phases at times relative to the batch's start, with
//! polling, rollback, catch-up of late members and removal of those that have left.
//!
//! | module | what it has |
//! |---|---|
//! | [`definition`] | a published runbook: data source, init, phases, steps, rollbacks |
//! | [`yaml`] | runbooks as they are written: parsing and validation |
//! | [`template`] | the variables of a member, and steps resolved with them |
//! | [`members`] | rows of a data source, and the batches that they belong to |
//! | [`source`] | data sources: queries for members, and what they change in batches |
//! | [`plan`] | what would be called for whom and when |
//! | [`blackout`] | when steps may be dispatched |
//! | [`rows`] | the tables of a batch, and the rows that a part of work has in memory |
//! | [`message`] | messages of the bus, jobs and results of workers, requests |
//! | [`drive`] | running batches: leases, messages, commits; publishing runbooks and creating batches |
//! | [`step`](mod@step) | the one pure function that decides: rows and an input in, changed rows and effects out |
//! | [`tables`] | the seed's tables, described for whoever shows records as tables |
//! | [`report`] | members and steps of a batch as CSV |
//! | [`bus`] | the message bus: topics, subscriptions, peek-lock delivery, dead letters |
//! | [`edge`] | the way between the bus and batches: messages in, jobs and events out |
//! | [`telemetry`] | metrics |
//! | [`problem`] | problems of a text, each with its place; from the crate of actions |
//! | [`names`], [`limits`] | which names are allowed; every limit |

pub mod blackout;
pub mod bus;
pub mod definition;
pub mod drive;
pub mod edge;
pub mod limits;
pub mod members;
pub mod message;
#[cfg(test)]
mod model;
pub mod names;
pub mod plan;
pub mod report;
pub mod rows;
pub mod source;
pub mod step;
pub mod tables;
pub mod telemetry;
pub mod template;
pub mod yaml;

pub use segno_actions::document::problem;
