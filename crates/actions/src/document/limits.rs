//! Limits that all formats share. Sizes of a document are those of its [`Budget`](super::Budget).

/// Most errors, and most warnings, that are reported for one text; more are counted.
pub const MAX_PROBLEMS: usize = 100;
