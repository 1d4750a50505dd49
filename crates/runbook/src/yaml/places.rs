//! Where in the document the parts of a definition stand, for problems that are found later.

use segno_actions::document::{Position, Positions};

/// Positions by path. Paths are those of the document, whose phases may be in another order than
/// those of the definition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    positions: Positions,
    /// For each phase of the definition, its index in the document.
    phases: Vec<usize>,
}

impl Places {
    pub(super) fn insert(&mut self, path: &str, at: Position) {
        self.positions.insert(path, at);
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
        self.positions.position(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_have_the_index_that_they_have_in_the_document() {
        let mut places = Places::default();
        let at = Position { line: 3, column: 5 };
        places.insert("phases[1].steps[0]", at);
        places.set_phases(vec![1, 0]);
        assert_eq!(places.position("phases[1].steps[0].name"), at);
        assert_eq!([0, 1, 2].map(|phase| places.phase_index(phase)), [1, 0, 2]);
    }
}
