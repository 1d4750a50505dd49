//! The files of the verbs, read and checked.

use std::collections::BTreeSet;
use std::path::Path;

use segno_runbook::definition::DataSource;
use segno_runbook::limits::{MAX_CSV_BYTES, MAX_RUNBOOK_BYTES};
use segno_runbook::members::{CsvLimits, Examined, examine_csv};
use segno_runbook::template::columns_needed;
use segno_runbook::yaml::{INVALID_RUNBOOK, InvalidRunbook, Parsed, parse};
use segno_server::schedule::Zones;

use crate::documents::{Found, read};
use crate::exit::Failure;

/// A runbook and its members, as far as they can be used, with the problems of both.
pub struct Input<'f> {
    /// The runbook, if it has no errors.
    pub runbook: Option<Parsed>,
    /// The members, if a file has them and the data source is known.
    pub members: Option<Examined>,
    /// What is wrong, and what is odd.
    pub found: Found<'f>,
}

impl<'f> Input<'f> {
    /// Reads a runbook and the file of its members. Errors of the one do not hide those of the other.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn read(file: &'f Path, data: Option<&'f Path>, zones: &Zones) -> Result<Self, Failure> {
        let parsed = parse(&read(file, MAX_RUNBOOK_BYTES)?, zones);
        let bytes = data.map(|data| read(data, MAX_CSV_BYTES)).transpose()?;
        let mut found = Found::default();
        let (runbook, source, needed) = match parsed {
            Ok(parsed) => {
                found.add(file, INVALID_RUNBOOK, parsed.warnings.clone());
                let (source, needed) =
                    (parsed.definition.data_source.clone(), columns_needed(&parsed.definition));
                (Some(parsed), Some(source), needed)
            }
            Err(InvalidRunbook { problems, data_source }) => {
                found.add(file, INVALID_RUNBOOK, problems);
                (None, data_source.map(|source| *source), BTreeSet::new())
            }
        };
        let examine =
            |bytes: Vec<u8>, source: DataSource| examine_csv(&bytes, &source, &needed, CsvLimits::MANUAL);
        let members = bytes.zip(source).map(|(bytes, source)| examine(bytes, source));
        Ok(Input { runbook, members, found })
    }
}
