//! How large a document may be.

/// What the parser may use for one document, and what errors call the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The kind of document, in the singular, as in `runbook`.
    pub noun: &'static str,
    /// Most bytes of the text.
    pub max_bytes: usize,
    /// Deepest nesting, aliases and merge keys expanded.
    pub max_depth: usize,
    /// Most scalars, lists and maps, aliases expanded.
    pub max_nodes: usize,
    /// Most aliases (`*name`), and most merge keys.
    pub max_aliases: usize,
    /// Most anchors (`&name`).
    pub max_anchors: usize,
    /// Most bytes of all scalars, aliases expanded.
    pub max_scalar_bytes: usize,
}
