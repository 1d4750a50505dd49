//! The fold by example: the authors' named tests, and a test for each of the pitfalls that they
//! found.

mod corrections;
mod dispatch;
mod order;
mod run_slots;
mod runs;
mod shared;
mod world;
