//! Variables that nothing provides.

use segno_actions::document::{below, did_you_mean};

use super::Parsed;
use crate::definition::{BatchTime, Definition};
use crate::names::{BATCH_ID, BATCH_START_TIME};
use crate::problem::{Position, Problem, Problems};
use crate::template::{Provider, StepAt, VariableUse, uses};
use crate::yaml::Places;

/// Reports variables of `init` that do not exist, and parts of variables that have none.
pub(super) fn check(definition: &Definition, places: &Places, problems: &mut Problems) {
    for usage in uses(definition) {
        let (at, path) = place(&usage, places);
        if usage.provider == Provider::Nothing && usage.is_required {
            let problem = format!("init steps have no variable {:?}", usage.name);
            let advice = "there is no member yet; use _batch_id, _batch_start_time or an output of an earlier init step";
            problems.push(Problem::error(at, path, problem).advice(advice));
            continue;
        }
        let has_member = match usage.step {
            StepAt::Rollback(rollback, _) => {
                !definition.init.iter().any(|step| step.on_failure.as_deref() == Some(rollback))
            }
            _ => true,
        };
        let is_set_by_init = definition.init.iter().any(|step| step.output_params.contains_key(&usage.name));
        if !has_member && usage.is_required && !is_of_batch(&usage.name) && !is_set_by_init {
            let problem = format!("the rollback of an init step has no variable {:?}", usage.name);
            let advice =
                "there is no member yet; use _batch_id, _batch_start_time or an output of an init step";
            problems.push(Problem::warning(at, path.clone(), problem).advice(advice));
        }
        let may_be_list = definition.data_source.multi_valued(&usage.name).is_some()
            || matches!(usage.provider, Provider::Outputs(_) | Provider::LaterOutputs(_));
        if usage.has_parts && !may_be_list {
            let problem = format!("{:?} is a text, which has no parts", usage.name);
            let advice = "list the column under multi_valued_columns if it holds several values";
            problems.push(Problem::error(at, path, problem).advice(advice));
        }
    }
}

impl Parsed {
    /// Warns of variables that nothing provides. Columns are those of the data source, if they are
    /// known.
    pub fn check_variables(&self, columns: Option<&[String]>) -> Problems {
        let mut problems = Problems::default();
        let is_column = |name: &str| columns.is_some_and(|columns| has_column(columns, name));
        for usage in uses(&self.definition).into_iter().filter(|usage| usage.is_required) {
            let (at, path) = place(&usage, &self.places);
            let name = usage.name.as_str();
            match &usage.provider {
                Provider::LaterOutputs(steps) if !is_column(name) => {
                    let advice = match usage.step {
                        StepAt::Rollback(..) => format!(
                            "that step has not succeeded when the rollback runs; write {{{{{name} | default(\"\")}}}}"
                        ),
                        _ => "that step has not run yet; change the order of the steps".to_owned(),
                    };
                    let problem = format!("only the output of {:?} sets {name:?}", steps.join(", "));
                    problems.push(Problem::warning(at, path, problem).advice(advice));
                }
                Provider::Column if columns.is_some() && !is_column(name) => {
                    let problem = format!("nothing provides the variable {name:?}");
                    let outputs = self.definition.phases.iter().flat_map(|phase| &phase.steps);
                    let outputs = outputs.flat_map(|step| step.output_params.keys());
                    let known = columns.unwrap_or_default().iter().chain(outputs).map(String::as_str);
                    let advice = did_you_mean(name, known);
                    let advice = advice.unwrap_or_else(|| "add the column to the data source".to_owned());
                    problems.push(Problem::warning(at, path, problem).advice(advice));
                }
                _ => {}
            }
        }
        if let Some(columns) = columns {
            self.check_source_columns(columns, &mut problems);
        }
        problems.sort();
        problems
    }

    /// Warns of columns that the data source names and does not have.
    fn check_source_columns(&self, columns: &[String], problems: &mut Problems) {
        let source = &self.definition.data_source;
        let mut named = vec![("primary_key".to_owned(), &source.primary_key)];
        if let BatchTime::Column(column) = &source.batch_time {
            named.push(("batch_time_column".to_owned(), column));
        }
        for (index, column) in source.multi_valued_columns.iter().enumerate() {
            named.push((format!("multi_valued_columns[{index}].name"), &column.name));
        }
        for (key, column) in named.into_iter().filter(|(_, column)| !columns.contains(column)) {
            let path = below("data_source", &key);
            let problem = format!("there is no column {column:?}");
            let problem = Problem::warning(self.places.position(&path), path, problem);
            problems.push(problem.maybe_advice(did_you_mean(column, columns.iter().map(String::as_str))));
        }
    }
}

/// Whether a variable is a column, or a column with an underscore before it.
fn has_column(columns: &[String], name: &str) -> bool {
    columns.iter().any(|column| column == name || column.strip_prefix('_') == Some(name))
}

/// Whether a variable is one of the batch, which needs no member.
fn is_of_batch(name: &str) -> bool {
    [BATCH_ID, BATCH_START_TIME].iter().any(|known| *known == name || known.strip_prefix('_') == Some(name))
}

/// Where in the document a variable is used.
fn place(usage: &VariableUse<'_>, places: &Places) -> (Position, String) {
    let step = match usage.step {
        StepAt::Phase(phase, step) => StepAt::Phase(places.phase_index(phase), step),
        other => other,
    };
    let path = format!("{step}.{}", usage.field);
    (places.position(&path), path)
}
