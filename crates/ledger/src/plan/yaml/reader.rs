//! The reader of DAGs: what the parts of a document need of each other.

use std::collections::{BTreeMap, BTreeSet};

use segno_actions::OrchestrationName;
use segno_actions::document::{Field, Origin, PartReader, Position, Problems, did_you_mean};
use segno_actions::functions::{CallName, FunctionName, HumanDuration, PoolName, Tag};
use segno_actions::schedule::Zones;

use super::references::TemplateUse;
use crate::plan::definition::{Retry, Task};
use crate::plan::limits::{MAX_COMPARISONS, MAX_DESCRIPTION_BYTES};
use crate::plan::names::NameKind;
use crate::plan::partition::PartitionSet;

/// Reads the parts of one DAG.
pub(super) struct Reader<'z> {
    pub problems: Problems,
    pub zones: &'z Zones,
    /// Partition definitions that were read without errors.
    pub partitions: BTreeMap<String, PartitionSet>,
    /// How many more names are compared for suggestions.
    comparisons_left: usize,
    /// Names of all partition definitions.
    pub partition_names: BTreeSet<String>,
}

/// Defaults of tasks.
#[derive(Debug, Clone, Default)]
pub(super) struct TaskDefaults {
    pub retry: Option<Retry>,
    pub timeout: Option<HumanDuration>,
    pub heartbeat_timeout: Option<HumanDuration>,
    pub tag: Option<String>,
    pub pool: Option<String>,
    pub worker_pool: Option<String>,
}

/// A task that was read, with the places of what is checked once all tasks are known.
#[derive(Debug)]
pub(super) struct ReadTask {
    pub task: Task,
    pub path: String,
    pub at: Position,
    /// For each item of `depends_on` its place.
    pub depends_on: Vec<(String, Position)>,
    pub rule_at: Position,
    pub uses: Vec<TemplateUse>,
    pub asset_at: Position,
    pub pool_at: Position,
}

impl PartReader for Reader<'_> {
    fn problems(&mut self) -> &mut Problems {
        &mut self.problems
    }

    fn origin(&self) -> Origin {
        Origin::New
    }
}

impl<'z> Reader<'z> {
    /// A reader that has read nothing.
    pub fn new(zones: &'z Zones) -> Self {
        Reader {
            problems: Problems::default(),
            zones,
            partitions: BTreeMap::new(),
            comparisons_left: MAX_COMPARISONS,
            partition_names: BTreeSet::new(),
        }
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

    /// The name of a function of the catalogue.
    pub fn function(&mut self, field: &Field<'_>) -> Option<String> {
        self.checked(field, |text| {
            FunctionName::new(text).map(|_| ()).map_err(|error| without_code(&error.to_string()))
        })
    }

    /// The name of a function of a pool of workers, which may have capital letters.
    pub fn call(&mut self, field: &Field<'_>) -> Option<String> {
        self.checked(field, |text| {
            CallName::new(text).map(|_| ()).map_err(|error| without_code(&error.to_string()))
        })
    }

    /// The name of an orchestration that is not built in.
    pub fn orchestration(&mut self, field: &Field<'_>) -> Option<String> {
        self.checked(field, |text| {
            OrchestrationName::new(text).map(|_| ()).map_err(|problem| format!("the name {problem}"))
        })
    }

    /// The tag of workers.
    pub fn tag(&mut self, field: &Field<'_>) -> Option<String> {
        self.checked(field, |text| {
            Tag::new(text).map(|_| ()).map_err(|error| without_code(&error.to_string()))
        })
    }

    /// The name of a pool of workers.
    pub fn worker_pool(&mut self, field: &Field<'_>) -> Option<String> {
        self.checked(field, |text| {
            PoolName::new(text).map(|_| ()).map_err(|error| without_code(&error.to_string()))
        })
    }

    /// A duration of whole seconds, at least so many.
    pub fn duration(&mut self, field: &Field<'_>, min_sec: u64) -> Option<HumanDuration> {
        self.seconds(field, min_sec).map(HumanDuration::from_secs)
    }

    /// "Did you mean". Comparing takes time, of which a document has a budget.
    pub fn suggestion<'n>(&mut self, name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<String> {
        let known: Vec<&str> = known.into_iter().take(self.comparisons_left).collect();
        self.comparisons_left -= known.len();
        did_you_mean(name, known)
    }
}

/// The message of an error without the code at its end.
pub(super) fn without_code(message: &str) -> String {
    message.rsplit_once(" [").map_or(message, |(message, _)| message).to_owned()
}
