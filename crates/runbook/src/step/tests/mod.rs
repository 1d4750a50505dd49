//! Tests of `step` as a whole: named defects, the progress of members and phases, and random sequences.

mod defects;
mod explained;
mod progress;
mod property;
mod random;
mod refusals;
mod scenario;
mod versions;
