//! What a template refers to, path by path.

use super::path::Path;

/// A path of a template, as `tasks.extract.output` in `{{ tasks.extract.output | default(0) }}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference<'t> {
    path: &'t Path,
    has_default: bool,
}

impl<'t> Reference<'t> {
    pub(super) fn new(path: &'t Path, has_default: bool) -> Self {
        Reference { path, has_default }
    }

    /// Its parts, of which there is at least one.
    pub fn parts(&self) -> &'t [String] {
        self.path.parts()
    }

    /// Whether a value must be there, because no filter `default` replaces it.
    pub fn is_required(&self) -> bool {
        !self.has_default
    }
}
