//! Where in a document the parts of a definition stand, for problems that are found later.

use std::collections::BTreeMap;

use super::problem::Position;

/// Positions by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Positions {
    by_path: BTreeMap<String, Position>,
}

impl Positions {
    /// Records the position of a path.
    pub fn insert(&mut self, path: &str, at: Position) {
        self.by_path.insert(path.to_owned(), at);
    }

    /// The position of a path, or of the nearest known path above it.
    pub fn position(&self, path: &str) -> Position {
        let mut path = path;
        loop {
            if let Some(at) = self.by_path.get(path) {
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
        let mut positions = Positions::default();
        let at = Position { line: 3, column: 5 };
        positions.insert("phases[1].steps[0]", at);
        assert_eq!(positions.position("phases[1].steps[0].params.a[2].b"), at);
        assert_eq!(positions.position("phases[1].steps[0]"), at);
        assert_eq!(positions.position("phases[0]"), Position::START);
    }
}
