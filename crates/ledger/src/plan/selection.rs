//! Which tasks of a DAG a run has: all, some by name with what comes before or after them, or those that an earlier run
//! did not get done.

use segno_actions::document::{did_you_mean, shown};

use super::definition::Dag;
use super::graph::Graph;
use crate::tables::TaskState;

/// What stands before a key for all tasks that come before it, and behind it for all that come after it.
const REACH: char = '+';

/// Tasks of a DAG by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    selected: Vec<bool>,
}

impl Selection {
    /// All tasks.
    pub fn all(dag: &Dag) -> Self {
        Selection { selected: vec![true; dag.tasks.len()] }
    }

    /// Tasks by key: `load` is one task, `+load` it and all that come before it, `load+` it and all that come after it,
    /// `+load+` both.
    ///
    /// # Errors
    /// When there is no such task.
    pub fn named<'t>(
        dag: &Dag,
        graph: &Graph,
        terms: impl IntoIterator<Item = &'t str>,
    ) -> Result<Self, String> {
        let mut selected = vec![false; dag.tasks.len()];
        for term in terms {
            let (with_upstream, key) = strip(term.trim(), |term| term.strip_prefix(REACH));
            let (with_downstream, key) = strip(key, |term| term.strip_suffix(REACH));
            let Some(task) = dag.tasks.iter().position(|task| task.key == key) else {
                let advice = did_you_mean(key, dag.tasks.iter().map(|task| task.key.as_str()));
                let advice = advice
                    .unwrap_or_else(|| "write the key of a task, as in load, +load or load+".to_owned());
                return Err(format!("there is no task {:?}; {advice}", shown(key)));
            };
            selected[task] = true;
            let reached = [
                with_upstream.then(|| graph.with_upstream([task])),
                with_downstream.then(|| graph.with_downstream([task])),
            ];
            for reached in reached.into_iter().flatten() {
                selected.iter_mut().zip(reached).for_each(|(selected, reached)| *selected |= reached);
            }
        }
        Ok(Selection { selected })
    }

    /// The tasks that did not succeed in an earlier run, and all that come after them. A task that the earlier run did not
    /// have, or that was skipped by itself after its upstream tasks had succeeded, is not one of them unless it comes after
    /// one.
    pub fn from_failure(dag: &Dag, graph: &Graph, state: impl Fn(&str) -> Option<TaskState>) -> Self {
        let is_failure = |state: TaskState| matches!(state, TaskState::Failed | TaskState::Cancelled);
        let failed = dag.tasks.iter().enumerate();
        let failed = failed.filter(|(_, task)| state(&task.key).is_some_and(is_failure));
        Selection { selected: graph.with_downstream(failed.map(|(task, _)| task)) }
    }

    /// Whether a task is selected.
    pub fn contains(&self, task: usize) -> bool {
        self.selected.get(task).copied().unwrap_or(false)
    }

    /// How many tasks are selected.
    pub fn count(&self) -> usize {
        self.selected.iter().filter(|selected| **selected).count()
    }
}

fn strip<'t>(term: &'t str, stripped: impl Fn(&'t str) -> Option<&'t str>) -> (bool, &'t str) {
    stripped(term).map_or((false, term), |rest| (true, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Function, Parsed, TaskBuilder};

    /// extract → clean → load → report, and check after extract.
    fn parsed() -> Parsed {
        let task = |key: &str, depends_on: &[&str]| {
            TaskBuilder::new(key, Function::new("work")).depends_on(depends_on.iter().copied())
        };
        Dag::builder("daily")
            .task(task("extract", &[]))
            .task(task("clean", &["extract"]))
            .task(task("check", &["extract"]))
            .task(task("load", &["clean"]))
            .task(task("report", &["load"]))
            .build()
            .unwrap()
    }

    fn keys(parsed: &Parsed, selection: &Selection) -> Vec<String> {
        let tasks = parsed.dag.tasks.iter().enumerate();
        tasks.filter(|(task, _)| selection.contains(*task)).map(|(_, task)| task.key.clone()).collect()
    }

    #[test]
    fn tasks_are_selected_with_what_comes_before_and_after() {
        let parsed = parsed();
        for (terms, expected) in [
            (&["load"][..], &["load"][..]),
            (&["+load"], &["extract", "clean", "load"]),
            (&["clean+"], &["clean", "load", "report"]),
            (&["+clean+"], &["extract", "clean", "load", "report"]),
            (&["check", "report"], &["check", "report"]),
            (&[], &[]),
        ] {
            let selection = Selection::named(&parsed.dag, &parsed.graph, terms.iter().copied()).unwrap();
            assert_eq!(keys(&parsed, &selection), expected, "{terms:?}");
            assert_eq!(selection.count(), expected.len());
        }
        let error = Selection::named(&parsed.dag, &parsed.graph, ["+laod"]).unwrap_err();
        assert_eq!(error, "there is no task \"laod\"; did you mean \"load\"?");
    }

    #[test]
    fn from_failure_takes_what_failed_and_what_comes_after_it() {
        let parsed = parsed();
        let select = |states: &[(&str, TaskState)]| {
            let state = |key: &str| states.iter().find(|(known, _)| *known == key).map(|(_, state)| *state);
            keys(&parsed, &Selection::from_failure(&parsed.dag, &parsed.graph, state))
        };
        use TaskState::{Cancelled, Failed, Skipped, Succeeded};
        let states = [
            ("extract", Succeeded),
            ("clean", Failed),
            ("check", Succeeded),
            ("load", Skipped),
            ("report", Skipped),
        ];
        assert_eq!(select(&states), ["clean", "load", "report"]);
        assert_eq!(select(&[("check", Cancelled), ("clean", Succeeded)]), ["check"]);
        assert_eq!(select(&[("extract", Succeeded)]), [""; 0]);
    }
}
