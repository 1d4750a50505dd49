//! The compactor against random logs: on a store without faults, with faults, with crashes and with
//! a rival.

mod copies;
mod faults;
mod flat;
mod folding;
mod golden;
mod merging;
mod race;
mod retention;
mod world;
