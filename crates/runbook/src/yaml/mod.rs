//! Runbooks as YAML: from a text to a [`Definition`], with all problems at once. [`segno_actions::document`] reads the
//! document; here is what its keys mean.
//!
//! | file | what |
//! |---|---|
//! | `keys.rs` | every key of the format |
//! | `reader.rs` | what the parts need of each other |
//! | `runbook.rs`, `source.rs`, `phase.rs`, `step.rs`, `blackout.rs`, `notify.rs` | the parts of a runbook |
//! | `variables.rs` | variables that nothing provides |
//! | `places.rs` | where the parts of a definition stand in the document |
//! | `error.rs` | why a runbook is refused |
//!
//! A key that is not known is a warning, because other systems with this format ignore such keys. A
//! key that stands twice in one map is an error.

mod blackout;
mod error;
mod keys;
mod notify;
mod phase;
mod places;
mod reader;
mod runbook;
mod source;
mod step;
mod variables;

pub use error::{INVALID_RUNBOOK, InvalidRunbook};
pub use keys::OBJECTS;
pub use places::Places;

use segno_actions::document::{self, Field, Origin, PartReader};
use segno_actions::schedule::Zones;

use crate::definition::Definition;
use crate::limits::YAML_BUDGET;
use crate::problem::Problems;
use reader::Reader;

/// A runbook that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The runbook.
    pub definition: Definition,
    /// What its author probably did not intend; there are no errors among them.
    pub warnings: Problems,
    /// Where its parts stand in the document.
    pub places: Places,
}

/// Reads a runbook. The same text gives the same definition, as long as the time zones that it
/// names exist.
///
/// # Errors
/// `invalid-runbook` with all problems.
pub fn parse(bytes: &[u8], zones: &Zones) -> Result<Parsed, InvalidRunbook> {
    read(bytes, Reader::new(zones, Origin::New))
}

/// Reads a runbook that was published, perhaps before control characters in its texts were refused.
///
/// # Errors
/// `invalid-runbook` with all problems.
pub(crate) fn parse_published(bytes: &[u8], zones: &Zones) -> Result<Parsed, InvalidRunbook> {
    read(bytes, Reader::new(zones, Origin::Published))
}

fn read(bytes: &[u8], mut reader: Reader<'_>) -> Result<Parsed, InvalidRunbook> {
    let definition = match document::read(bytes, &YAML_BUDGET) {
        Ok(document) => {
            document.duplicate.into_iter().for_each(|problem| reader.push(problem));
            reader.runbook(Field::root(&document.root))
        }
        Err(problem) => {
            reader.push(problem);
            None
        }
    };
    let Reader { mut problems, places, data_source, .. } = reader;
    if let Some(definition) = &definition {
        variables::check(definition, &places, &mut problems);
    }
    problems.sort();
    match definition {
        Some(definition) if !problems.has_errors() => Ok(Parsed { definition, warnings: problems, places }),
        _ => {
            debug_assert!(problems.has_errors(), "a part without a problem was left out");
            Err(InvalidRunbook { problems, data_source: data_source.map(Box::new) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
name: move
description: "several\n\tlines DESCRIPTION"
data_source: {type: manual, primary_key: Id}
phases:
  - name: prepare
    offset: T-1d
    approval: {message: "ready? MESSAGE"}
    steps: [{name: first, worker_id: cloud, function: Set-User, params: {}}]
"#;

    #[test]
    fn control_characters_in_texts_for_people_are_refused_unless_they_are_published() {
        let zones = Zones::bundled();
        parse(TEXT.as_bytes(), &zones).unwrap();
        for (word, path) in [("DESCRIPTION", "description"), ("MESSAGE", "phases[0].approval.message")] {
            let text = TEXT.replace(word, r"\e[31m");
            let refused = parse(text.as_bytes(), &zones).unwrap_err().to_string();
            assert!(refused.contains(path) && refused.contains(r"control character '\u{1b}'"), "{refused}");
            parse_published(text.as_bytes(), &zones).unwrap();
        }
    }
}
