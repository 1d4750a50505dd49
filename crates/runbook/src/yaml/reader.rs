//! The reader of runbooks: what the parts of a document need of each other.

use segno_actions::document::{Field, Origin, PartReader, Problems};
use segno_actions::schedule::Zones;

use super::places::Places;
use crate::definition::{DataSource, Retry};
use crate::limits::MAX_DESCRIPTION_BYTES;
use crate::names::NameKind;

/// Reads the parts of one runbook.
pub(super) struct Reader<'z> {
    pub problems: Problems,
    pub places: Places,
    pub zones: &'z Zones,
    pub origin: Origin,
    /// `retry` of the runbook, for steps without their own.
    pub retry: Retry,
    /// The data source, once it is read without errors.
    pub data_source: Option<DataSource>,
    /// Names of all rollbacks, for `on_failure`.
    pub rollbacks: Vec<String>,
    /// Names that an `on_failure` has used.
    pub used_rollbacks: Vec<String>,
}

impl PartReader for Reader<'_> {
    fn problems(&mut self) -> &mut Problems {
        &mut self.problems
    }

    fn origin(&self) -> Origin {
        self.origin
    }
}

impl Reader<'_> {
    /// A text for people.
    pub fn free_text(&mut self, field: &Field<'_>) -> Option<String> {
        self.lines(field, MAX_DESCRIPTION_BYTES)
    }

    /// A name of a kind.
    pub fn name(&mut self, field: &Field<'_>, kind: NameKind) -> Option<String> {
        self.checked(field, |text| kind.check(text))
    }
}
