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
    /// Lists whose length is known to be too much before their items are read.
    pub lists: &'static [ListLimit],
}

/// How long the list at a path may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListLimit {
    /// The keys to it; `*` stands for any key and for any item.
    pub path: &'static [&'static str],
    /// Most items.
    pub max_items: usize,
}

impl Budget {
    pub(super) fn too_many_nodes(&self) -> String {
        format!("it has more than {} values, aliases expanded", self.max_nodes)
    }

    pub(super) fn too_many_bytes(&self) -> String {
        format!("its values have more than {} bytes, aliases expanded", self.max_scalar_bytes)
    }
}
