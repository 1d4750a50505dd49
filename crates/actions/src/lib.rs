#![doc = include_str!("lib.md")]

pub mod functions;
pub mod template;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/functions.md")]
struct FunctionsGuide;
