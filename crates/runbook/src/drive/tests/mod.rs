//! Tests of the driver: real functions in process, virtual time, dying nodes, racing nodes.

mod bus;
mod calls;
mod cost;
mod crash;
mod facade;
mod fencing;
mod metrics;
mod notices;
mod published;
mod query;
mod query_limits;
mod release;
mod restart;
mod scenario;
mod stores;
mod upkeep;
mod world;
