//! The tables that the fold produces: one file for each, plus what they have in common.

mod column;
mod row;

pub use column::{Cell, Column, Kind, UnexpectedCell};
pub use row::Row;
