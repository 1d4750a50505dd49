#![doc = "Segno engine (crate docs follow)."]
pub mod clock;
pub mod limits;
pub mod store;
