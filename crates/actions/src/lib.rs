#![doc = include_str!("lib.md")]

pub mod action;
pub mod functions;
mod moment;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/functions.md")]
struct FunctionsGuide;
