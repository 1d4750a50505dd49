//! What a document may ask for and the driver does not do yet. Such a document is refused when it is
//! published: a schedule that never fires and a limit that does not hold are worse than an error.

use segno_actions::document::problem::{Position, Problem, Problems};
use segno_actions::schedule::ScheduleSpec;

use crate::plan::InvalidDag;
use crate::plan::definition::Dag;

/// Whether the driver does all that the document asks for.
///
/// # Errors
/// Every key that it would ignore.
pub(super) fn check(dag: &Dag) -> Result<(), InvalidDag> {
    let mut problems = Problems::default();
    let mut ignored = |path: &str, advice: &str| {
        let nowhere = Position { line: 0, column: 0 };
        let problem = format!("{path:?} is not supported by the server yet; {advice}");
        problems.push(Problem::error(nowhere, path, problem));
    };
    let spec = dag.schedule.as_ref().map(|schedule| &schedule.spec);
    if spec.is_some_and(|spec| !is_plain_cron(spec)) {
        ignored("schedule", "use \"cron_expr\" and \"timezone\" alone");
    }
    if !dag.sensors.is_empty() {
        ignored("sensors", "remove it, and start runs by a recurring action or a webhook");
    }
    if dag.notify.is_some() {
        ignored("notify", "remove it");
    }
    if dag.max_concurrent_runs.is_some() {
        ignored("max_concurrent_runs", "remove it, and limit tasks by \"pools\"");
    }
    if problems.errors() == 0 { Ok(()) } else { Err(InvalidDag { problems }) }
}

fn is_plain_cron(spec: &ScheduleSpec) -> bool {
    let Some(expression) = spec.cron_expr.as_deref() else { return false };
    *spec == ScheduleSpec::cron(expression).timezone(&*spec.timezone)
}

#[cfg(test)]
mod tests {
    use segno_actions::schedule::Zones;

    use super::*;
    use crate::plan::parse;

    #[test]
    fn what_would_be_ignored_is_refused_with_its_key() {
        for (more, refused) in [
            ("", None),
            ("schedule: {cron_expr: '0 6 * * *', timezone: Europe/Berlin}", None),
            ("schedule: {every: 1h}", Some("schedule")),
            ("schedule: {cron_expr: '0 6 * * *', exclude: [sat]}", Some("schedule")),
            ("notify: {function: tell}", Some("notify")),
            ("max_concurrent_runs: 3", Some("max_concurrent_runs")),
            ("sensors: [{name: s, function: look}]", Some("sensors")),
        ] {
            let text = format!("name: d\ntasks: [{{key: a, function: f}}]\n{more}\n");
            let parsed =
                parse(text.as_bytes(), &Zones::newest()).unwrap_or_else(|error| panic!("{more}: {error}"));
            let found = check(&parsed.dag).err().map(|error| error.to_string());
            assert_eq!(found.is_some(), refused.is_some(), "{more}: {found:?}");
            if let (Some(found), Some(key)) = (found, refused) {
                assert!(found.contains(&format!("{key:?} is not supported")), "{found}");
            }
        }
    }
}
