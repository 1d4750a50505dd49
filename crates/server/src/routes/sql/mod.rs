//! Read-only SQL over what the API lists. Tables are made of the same calls as the listings, so that a query shows what
//! its caller may list and nothing else.
//!
//! | file | what |
//! |---|---|
//! | `run` | the route that runs a query |
//! | `catalogue` | the route that describes tables, functions and shipped queries |
//! | `shipped` | queries by name |
//! | `csv` | answers as comma-separated values |
//! | `tables` | the tables, one file per resource |

pub mod catalogue;
mod csv;
pub mod run;
mod shipped;
mod tables;
