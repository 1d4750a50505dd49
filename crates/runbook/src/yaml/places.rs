//! Where in the document the parts of a definition stand, for problems that are found later.

use std::collections::BTreeMap;

use crate::problem::Position;

/// Positions by path. Paths are those of the document, whose phases may be in another order than
/// those of the definition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    positions: BTreeMap<String, Position>,
    /// For each phase of the definition, its index in the document.
    phases: Vec<usize>,
}

impl Places {
    pub(super) fn insert(&mut self, path: &str, at: Position) {
        self.positions.insert(path.to_owned(), at);
    }

    pub(super) fn set_phases(&mut self, indexes: Vec<usize>) {
        self.phases = indexes;
    }

    /// The index in the document of a phase of the definition.
    pub fn phase_index(&self, phase: usize) -> usize {
        self.phases.get(phase).copied().unwrap_or(phase)
    }

    /// The position of a path, or of the nearest known path above it.
    pub fn position(&self, path: &str) -> Position {
        let mut path = path;
        loop {
            if let Some(at) = self.positions.get(path) {
                return *at;
            }
            match path.rfind(['.', '[']) {
                Some(end) => path = &path[..end],
                None => return Position::START,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_known_has_the_position_of_what_it_is_in() {
        let mut places = Places::default();
        let at = Position { line: 3, column: 5 };
        places.insert("phases[1].steps[0]", at);
        places.set_phases(vec![1, 0]);
        assert_eq!(places.position("phases[1].steps[0].params.a[2].b"), at);
        assert_eq!(places.position("phases[1].steps[0]"), at);
        assert_eq!(places.position("phases[0]"), Position::START);
        assert_eq!([0, 1, 2].map(|phase| places.phase_index(phase)), [1, 0, 2]);
    }
}
