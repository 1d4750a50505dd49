//! What a template or condition asks for, known before it is rendered.

use std::collections::BTreeSet;

use super::path::Path;

/// The names and fields that a template or condition begins its paths with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted<'t> {
    paths: BTreeSet<(&'t str, Option<&'t str>)>,
}

impl<'t> Wanted<'t> {
    pub(super) fn new(paths: impl IntoIterator<Item = &'t Path>) -> Self {
        Wanted { paths: paths.into_iter().map(|path| (path.root(), path.field())).collect() }
    }

    /// The names, as `payload` in `payload.user.name`, each once.
    pub fn names(&self) -> impl Iterator<Item = &'t str> {
        let mut before = None;
        self.paths.iter().map(|(name, _)| *name).filter(move |name| before.replace(*name) != Some(*name))
    }

    /// The fields of a name, as `user` in `payload.user.name`.
    pub fn fields_of(&self, name: &str) -> impl Iterator<Item = &'t str> {
        self.paths.iter().filter(move |(found, _)| *found == name).filter_map(|(_, field)| *field)
    }

    /// With what another one asks for.
    #[must_use]
    pub fn and(mut self, other: Wanted<'t>) -> Self {
        self.paths.extend(other.paths);
        self
    }
}
