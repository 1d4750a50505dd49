//! DAGs as YAML or JSON: from a text to a [`Dag`], with all problems at once. [`segno_actions::document`] reads the
//! document; here is what its keys mean.
//!
//! | file | what |
//! |---|---|
//! | `keys.rs` | every key of the format; the JSON Schema (`docs/schemas/`) and the guide are tested against it |
//! | `reader.rs` | what the parts need of each other |
//! | `dag.rs`, `parameters.rs`, `partitions.rs`, `assets.rs`, `triggers.rs`, `task.rs` | the parts of a DAG |
//! | `edges.rs` | tasks as a graph: unknown upstream tasks, cycles, trigger rules that never hold |
//! | `doubts.rs` | warnings of what is valid and would surprise |
//! | `references.rs` | templates that name what is not there |
//! | `error.rs` | why a DAG is refused |

mod assets;
mod dag;
mod doubts;
mod edges;
mod error;
mod keys;
mod parameters;
mod partitions;
mod reader;
mod references;
mod task;
mod triggers;

pub use error::{INVALID_DAG, InvalidDag};
pub use keys::OBJECTS;
pub(super) use parameters::mismatch;

use std::collections::BTreeMap;

use segno_actions::document::{self, Field, PartReader, Problems};
use segno_actions::schedule::Zones;

use super::definition::Dag;
use super::graph::Graph;
use super::limits::DAG_BUDGET;
use super::partition::PartitionSet;
use reader::Reader;

/// A DAG that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The DAG.
    pub dag: Dag,
    /// Its tasks as a graph, by their index in the DAG.
    pub graph: Graph,
    /// Its partition definitions, checked.
    pub partitions: BTreeMap<String, PartitionSet>,
    /// What its author probably did not intend; there are no errors among them.
    pub warnings: Problems,
}

impl Parsed {
    /// The partitions of its runs, if they have any.
    pub fn run_partitions(&self) -> Option<&PartitionSet> {
        self.partitions.get(self.dag.partitioned_by.as_ref()?)
    }
}

/// Reads a DAG from YAML or JSON. The same text gives the same DAG, as long as the time zones that it names exist.
///
/// # Errors
/// `invalid-dag` with all problems.
pub fn parse(bytes: &[u8], zones: &Zones) -> Result<Parsed, InvalidDag> {
    let mut reader = Reader::new(zones);
    let found = match document::read(bytes, &DAG_BUDGET) {
        Ok(document) => {
            document.duplicate.into_iter().for_each(|problem| reader.push(problem));
            reader.dag(Field::root(&document.root))
        }
        Err(problem) => {
            reader.push(problem);
            None
        }
    };
    let Reader { mut problems, partitions, .. } = reader;
    problems.sort();
    match found {
        Some((dag, graph)) if !problems.has_errors() => {
            Ok(Parsed { dag, graph, partitions, warnings: problems })
        }
        _ => {
            debug_assert!(problems.has_errors(), "a part without a problem was left out");
            Err(InvalidDag { problems })
        }
    }
}
