//! Random programs on random nodes with random faults, checked against a pure oracle.
//!
//! One seed makes one world: a program ([`program`]), the faults of its nodes ([`nodes`]) and what the outside does
//! to it ([`driver`]). The program is data that one orchestration interprets ([`interpreter`]), and from which the expected
//! end follows without running anything. The same seed gives the same world, so a failure can be repeated.

pub mod driver;
pub mod interpreter;
pub mod nodes;
pub mod program;
mod world;

pub use world::{Report, simulate};
