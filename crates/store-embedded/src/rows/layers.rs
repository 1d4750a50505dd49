//! All rows as they are at this moment: the changes since the last checkpoint, those that a checkpoint is writing, and
//! what the last one wrote, in this order.

use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::RowError;
use crate::rows::codec::Undecodable;
use crate::rows::keys::Key;
use crate::rows::overlay::Overlay;
use crate::rows::stored::Snapshot;

/// Three layers of rows.
#[derive(Debug)]
pub(crate) struct Rows {
    active: Overlay,
    frozen: Option<Arc<Overlay>>,
    base: Arc<Snapshot>,
}

impl Rows {
    /// The rows of a checkpoint.
    pub(crate) fn new(base: impl Into<Arc<Snapshot>>) -> Self {
        Rows { active: Overlay::default(), frozen: None, base: base.into() }
    }

    /// What the last checkpoint wrote.
    pub(crate) fn base(&self) -> &Arc<Snapshot> {
        &self.base
    }

    /// One row.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, RowError> {
        self.decoded(key, |row| Ok(row.clone()))
    }

    /// One row, decoded where it lies.
    pub(crate) fn decoded<T>(
        &self,
        key: &[u8],
        decode: impl FnOnce(&Bytes) -> Result<T, Undecodable>,
    ) -> Result<Option<T>, RowError> {
        let frozen = || self.frozen.as_ref().and_then(|frozen| frozen.get(key));
        let decoded = match self.active.get(key).or_else(frozen) {
            Some(change) => change.value().map(decode),
            None => self.base.get(key)?.as_ref().map(decode),
        };
        Ok(decoded.transpose()?)
    }

    /// The changes since the last freeze, for making more.
    pub(crate) fn active_mut(&mut self) -> &mut Overlay {
        &mut self.active
    }

    /// The changes since the last freeze.
    pub(crate) fn active(&self) -> &Overlay {
        &self.active
    }

    /// Whether a checkpoint has changes in hand.
    pub(crate) fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Hands the changes so far to a checkpoint and starts new ones.
    pub(crate) fn freeze(&mut self) -> Arc<Overlay> {
        let frozen = Arc::new(std::mem::take(&mut self.active));
        self.frozen = Some(Arc::clone(&frozen));
        frozen
    }

    /// Takes over what a checkpoint wrote.
    pub(crate) fn thaw(&mut self, base: Snapshot) {
        self.frozen = None;
        self.base = Arc::new(base);
    }

    /// Reads from another file that has the same rows.
    pub(crate) fn rebase(&mut self, base: Snapshot) {
        self.base = Arc::new(base);
    }

    /// The last key that starts with `prefix` and does not lie behind `end`.
    pub(crate) fn last_up_to(&self, prefix: &[u8], end: &[u8]) -> Result<Option<Key>, RowError> {
        let mut end = Bound::Included(Key::from_slice(end));
        loop {
            let end_of_layers = end.as_ref().map(Key::as_slice);
            let changes = std::iter::once(&self.active).chain(self.frozen.as_deref());
            let changed = changes.filter_map(|layer| layer.last(prefix, end_of_layers)).max().cloned();
            let stored = self.base.last_key(prefix, end_of_layers)?;
            match changed.max(stored) {
                Some(key) if self.get(&key)?.is_none() => end = Bound::Excluded(key),
                found => return Ok(found),
            }
        }
    }

    /// Rows whose keys start with `prefix`, in key order.
    pub(crate) fn scan<'a>(&'a self, prefix: &'a [u8]) -> Result<Scan<'a>, RowError> {
        self.scan_from(prefix, Bound::Included(prefix))
    }

    /// Rows whose keys start with `prefix` and lie at or behind `start`, in key order.
    pub(crate) fn scan_from<'a>(
        &'a self,
        prefix: &'a [u8],
        start: Bound<&[u8]>,
    ) -> Result<Scan<'a>, RowError> {
        let changes = std::iter::once(&self.active).chain(self.frozen.as_deref());
        let changes = changes.map(|layer| changes_of(layer, prefix, start)).collect();
        Scan::of(changes, &self.base, prefix, start)
    }

    /// Rows whose keys start with `prefix`, in key order and past damage: each damaged range is one
    /// [`RowError::Corrupt`], and the rows behind it follow.
    pub(crate) fn scan_past_damage<'a>(&'a self, prefix: &'a [u8], start: Bound<&[u8]>) -> Scan<'a> {
        let changes = std::iter::once(&self.active).chain(self.frozen.as_deref());
        let changes = changes.map(|layer| changes_of(layer, prefix, start)).collect();
        Scan::over(changes, base_layer(self.base.scan_past_damage(start, prefix)))
    }

    /// Rows whose keys start with `prefix`, as they are now, for reading them when others change them already.
    pub(crate) fn later(&self, prefix: Key) -> Later {
        let active = self.active.from(Bound::Included(&prefix));
        let active = active.take_while(|(key, _)| key.starts_with(&prefix));
        Later {
            active: active.map(|(key, change)| (key.into_owned(), change.value().cloned())).collect(),
            frozen: self.frozen.clone(),
            base: Arc::clone(&self.base),
            prefix,
        }
    }
}

/// Rows that start with a prefix, as they were at a moment.
#[derive(Debug)]
pub(crate) struct Later {
    prefix: Key,
    active: Vec<(Key, Option<Bytes>)>,
    frozen: Option<Arc<Overlay>>,
    base: Arc<Snapshot>,
}

impl Later {
    /// The rows, in key order.
    pub(crate) fn scan(&self) -> Result<Scan<'_>, RowError> {
        let (prefix, start) = (self.prefix.as_slice(), Bound::Included(self.prefix.as_slice()));
        let active: Layer<'_> = Box::new(self.active.iter().cloned().map(Ok));
        let frozen = self.frozen.as_deref().map(|frozen| changes_of(frozen, prefix, start));
        Scan::of(std::iter::once(active).chain(frozen).collect(), &self.base, prefix, start)
    }
}

/// The changes of a layer for keys that start with `prefix` and lie at or behind `start`.
fn changes_of<'a>(overlay: &'a Overlay, prefix: &'a [u8], start: Bound<&[u8]>) -> Layer<'a> {
    let changes = overlay.from(start).take_while(move |(key, _)| key.starts_with(prefix));
    Box::new(changes.map(|(key, change)| Ok((key.into_owned(), change.value().cloned()))))
}

/// What the last checkpoint wrote, as the lowest layer.
fn base_layer<'a>(rows: impl Iterator<Item = Result<(Key, Bytes), RowError>> + 'a) -> Layer<'a> {
    Box::new(rows.map(|row| row.map(|(key, value)| (key, Some(value)))))
}

type Layered = Result<(Key, Option<Bytes>), RowError>;
type Layer<'a> = Box<dyn Iterator<Item = Layered> + 'a>;

/// Rows of all layers in key order; of a key that is in several, the newest.
pub(crate) struct Scan<'a> {
    layers: Vec<Peekable<Layer<'a>>>,
}

impl<'a> Scan<'a> {
    /// The rows that start with `prefix` and lie at or behind `start`, of layers of changes, newest first, and what is below.
    fn of(
        changes: Vec<Layer<'a>>,
        base: &Snapshot,
        prefix: &[u8],
        start: Bound<&[u8]>,
    ) -> Result<Self, RowError> {
        Ok(Self::over(changes, base_layer(base.between(start, prefix)?)))
    }

    fn over(changes: Vec<Layer<'a>>, base: Layer<'a>) -> Self {
        let mut layers: Vec<_> = changes.into_iter().map(Iterator::peekable).collect();
        // Most scans are of rows without recent changes.
        layers.retain_mut(|layer| layer.peek().is_some());
        layers.push(base.peekable());
        Scan { layers }
    }

    /// The first entry of all layers, taken out of each that has its key.
    fn next_entry(&mut self) -> Option<Layered> {
        if let [only] = &mut self.layers[..] {
            return only.next();
        }
        let mut first: Option<(usize, Key)> = None;
        for (place, layer) in self.layers.iter_mut().enumerate() {
            match layer.peek() {
                Some(Err(_)) => return layer.next(),
                Some(Ok((key, _))) if first.as_ref().is_none_or(|(_, least)| key < least) => {
                    first = Some((place, key.clone()));
                }
                _ => {}
            }
        }
        let (place, least) = first?;
        let entry = self.layers[place].next();
        for layer in &mut self.layers[place + 1..] {
            layer.next_if(|row| row.as_ref().is_ok_and(|(key, _)| *key == least));
        }
        entry
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<(Key, Bytes), RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next_entry()? {
                Err(error) => return Some(Err(error)),
                Ok((key, Some(value))) => return Some(Ok((key, value))),
                Ok((_, None)) => {}
            }
        }
    }
}
