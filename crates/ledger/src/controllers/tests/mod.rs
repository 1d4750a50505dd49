//! Controllers by example, and runs of random plans driven by them to their end.

mod decisions;
mod properties;
mod retries;
mod simulation;
