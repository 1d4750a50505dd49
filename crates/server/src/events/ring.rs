//! The last changes, each with its place.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

/// A place in a ring: that of a change, or of the one before the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// The ring's name. Another one means that changes are missing in between.
    epoch: String,
    /// Number of the change, from 1.
    number: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.number)
    }
}

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (epoch, number) = text.split_once('-').ok_or(())?;
        if epoch.is_empty() {
            return Err(());
        }
        Ok(Position { epoch: epoch.to_owned(), number: number.parse().map_err(|_| ())? })
    }
}

/// The last changes, up to a number of them.
#[derive(Debug)]
pub struct Ring<T> {
    epoch: String,
    /// Number of the newest change.
    newest: u64,
    changes: VecDeque<T>,
    capacity: usize,
}

impl<T: Clone> Ring<T> {
    /// An empty one.
    pub fn new(epoch: String, capacity: usize) -> Self {
        Ring { epoch, newest: 0, changes: VecDeque::new(), capacity }
    }

    /// Begins anew: nothing follows on what was before.
    pub fn restart(&mut self, epoch: String) {
        *self = Ring::new(epoch, self.capacity);
    }

    /// Adds a change; the oldest goes when there is no room.
    pub fn push(&mut self, change: T) {
        if self.changes.len() == self.capacity {
            self.changes.pop_front();
        }
        self.changes.push_back(change);
        self.newest += 1;
    }

    /// The place of the newest change.
    pub fn end(&self) -> Position {
        Position { epoch: self.epoch.clone(), number: self.newest }
    }

    /// Up to so many changes behind a place; `None` when some of them are gone.
    pub fn after(&self, place: &Position, limit: usize) -> Option<Vec<(Position, T)>> {
        let oldest = self.newest - self.changes.len() as u64;
        if place.epoch != self.epoch || place.number < oldest || place.number > self.newest {
            return None;
        }
        let seen = usize::try_from(place.number - oldest).unwrap_or(usize::MAX);
        let behind = self.changes.iter().skip(seen).take(limit).zip(place.number + 1..);
        let placed =
            |(change, number): (&T, u64)| (Position { epoch: self.epoch.clone(), number }, change.clone());
        Some(behind.map(placed).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Position {
        text.parse().unwrap()
    }

    fn numbers(ring: &Ring<u32>, after: &str) -> Option<Vec<u32>> {
        Some(ring.after(&at(after), 10)?.into_iter().map(|(_, change)| change).collect())
    }

    #[test]
    fn places_are_text_and_back() {
        assert_eq!(at("a1-17").to_string(), "a1-17");
        for wrong in ["", "a", "-1", "a-", "a-x", "a--1"] {
            assert!(wrong.parse::<Position>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_follows_a_place_is_given_or_its_absence_told() {
        let mut ring = Ring::new("e".to_owned(), 3);
        assert_eq!(numbers(&ring, "e-0"), Some(vec![]));
        for change in 1..=5 {
            ring.push(change);
        }
        assert_eq!(numbers(&ring, "e-2"), Some(vec![3, 4, 5]));
        assert_eq!(numbers(&ring, "e-4"), Some(vec![5]));
        assert_eq!(numbers(&ring, "e-5"), Some(vec![]));
        for gone in ["e-0", "e-1", "e-6", "f-5"] {
            assert_eq!(numbers(&ring, gone), None, "{gone}");
        }
        let placed = ring.after(&at("e-2"), 2).unwrap();
        assert_eq!(placed, [(at("e-3"), 3), (at("e-4"), 4)]);
        ring.restart("g".to_owned());
        assert_eq!((numbers(&ring, "e-5"), ring.end()), (None, at("g-0")));
    }
}
