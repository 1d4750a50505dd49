#![doc = include_str!("lib.md")]

pub mod action;
pub mod functions;
pub mod hooks;
mod moment;
mod signature;
pub mod template;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/functions.md")]
struct FunctionsGuide;
