use segno_actions::schedule::Zones;

use super::*;
use crate::plan::parse;

const DAG: &str = r#"
name: daily-sales
params:
  mode: full
  limit: {schema: {type: integer, minimum: 1}, default: 10}
  source: {description: required}
partitions:
  day: {window: daily, timezone: Europe/Berlin, first: 2026-01-01}
partitioned_by: day
assets:
  raw: {}
  totals: {partitions: none}
tasks:
  - {key: load, function: load, depends_on: [extract, check], asset: raw,
     input: {rows: "{{ tasks.extract.output.rows }}", day: "{{ partition.key }}", limit: "{{ params.limit }}"}}
  - {key: extract, function: extract, input: {from: "{{ partition.start }}", text: "{{ params.source }} of {{ run.id }}"},
     retry: {attempts: 5, initial_delay: 10s, factor: 3, max_delay: 2m}, timeout: 90s}
  - {key: check, orchestration: Check, depends_on: extract, trigger_rule: all_done, asset: totals}
"#;

fn plan(params: Value, partition: Option<&str>, terms: &[&str]) -> Result<Plan, String> {
    let parsed = parse(DAG.as_bytes(), &Zones::bundled()).unwrap();
    let selection = match terms {
        [] => Selection::all(&parsed.dag),
        terms => Selection::named(&parsed.dag, &parsed.graph, terms.iter().copied()).unwrap(),
    };
    let params = params.as_object().cloned().unwrap();
    let request =
        RunRequest { params: &params, partition, selection: &selection, other_outputs: OtherOutputs::None };
    parsed.plan(&request).map_err(|error| error.to_string())
}

#[test]
fn a_plan_has_what_is_known_before_the_first_task_has_run() {
    let plan = plan(json!({ "source": "crm" }), Some("2026-03-29"), &[]).unwrap();
    expect_test::expect_file!["../../tests/golden/plan.json"]
        .assert_eq(&format!("{}\n", serde_json::to_string_pretty(&plan.tasks).unwrap()));
    assert_eq!(plan.params, *json!({ "mode": "full", "limit": 10, "source": "crm" }).as_object().unwrap());
    assert_eq!(plan.needs_outputs_of, [""; 0]);
}

#[test]
fn the_id_of_a_plan_follows_from_its_content() {
    let id = |params: Value, partition: &str| plan(params, Some(partition), &[]).unwrap().plan_id;
    let first = id(json!({ "source": "crm" }), "2026-03-29");
    assert_eq!(first, id(json!({ "source": "crm", "mode": "full" }), "2026-03-29"));
    assert_ne!(first, id(json!({ "source": "crm" }), "2026-03-30"));
    // Only a template that is not resolved yet names it.
    assert_ne!(first, id(json!({ "source": "erp" }), "2026-03-29"));
    assert_eq!(first.len(), "plan_".len() + PLAN_ID_DIGITS);
}

#[test]
fn requests_that_do_not_fit_the_dag_are_refused_with_all_problems() {
    let day = Some("2026-03-29");
    for (params, partition, terms, says) in [
        (json!({}), None, &[][..], "the parameter \"source\" has no value; set it\nthe run has no partition"),
        (json!({ "sorce": 1, "source": 2 }), day, &[], "no parameter \"sorce\"; did you mean \"source\"?"),
        (json!({ "source": 1, "limit": 0 }), day, &[], "\"limit\" does not fit its schema"),
        (json!({ "source": 1 }), Some("2025-12-31"), &[], "before the first"),
        (json!({ "source": "x".repeat(MAX_PARAMS_BYTES) }), day, &[], "the parameters have"),
        (json!({ "source": 1 }), day, &["load"], "need outputs of \"extract\", which are not selected"),
    ] {
        let problem = plan(params.clone(), partition, terms).unwrap_err();
        assert!(problem.contains(says) && problem.ends_with("[invalid-run]"), "{params}: {problem}");
    }
}

#[test]
fn a_subset_waits_for_what_it_has_and_takes_other_outputs_from_an_earlier_run() {
    let parsed = parse(DAG.as_bytes(), &Zones::bundled()).unwrap();
    let selection = Selection::named(&parsed.dag, &parsed.graph, ["check+"]).unwrap();
    let params = json!({ "source": 1 }).as_object().cloned().unwrap();
    let request = RunRequest {
        params: &params,
        partition: Some("2026-01-02"),
        selection: &selection,
        other_outputs: OtherOutputs::EarlierRun,
    };
    let plan = parsed.plan(&request).unwrap();
    let edges: Vec<(&str, Vec<&str>)> = plan
        .tasks
        .iter()
        .map(|task| (&*task.key, task.depends_on.iter().map(|key| &**key).collect()))
        .collect();
    assert_eq!(edges, [("check", vec![]), ("load", vec!["check"])]);
    assert_eq!(plan.tasks[0].trigger_rule, TriggerRule::AllSuccess);
    assert_eq!(plan.needs_outputs_of, ["extract"]);
}

/// Random DAGs: a plan has every selected task once, after those that it depends on, and the same id each time.
#[test]
fn plans_of_random_dags_are_ordered_and_repeatable() {
    use crate::plan::{Dag, Function, TaskBuilder};
    let mut random = fastrand::Rng::with_seed(11);
    for _ in 0..100 {
        let count = random.usize(1..25);
        let mut keys: Vec<String> = (0..count).map(|task| format!("t{task}")).collect();
        random.shuffle(&mut keys);
        let mut tasks = Vec::new();
        for task in 0..count {
            let before: Vec<String> = keys[..task].iter().filter(|_| random.u8(..) < 50).cloned().collect();
            let inputs: Vec<Value> =
                before.iter().map(|key| format!("{{{{ tasks.{key}.output }}}}").into()).collect();
            let task = TaskBuilder::new(&keys[task], Function::new("f")).depends_on(before);
            tasks.push(task.input(inputs));
        }
        random.shuffle(&mut tasks);
        let dag = tasks.into_iter().fold(Dag::builder("random"), |dag, task| dag.task(task)).build().unwrap();
        let terms: Vec<String> =
            (0..random.usize(1..4)).map(|_| format!("+{}", random.choice(&keys).unwrap())).collect();
        let selection = Selection::named(&dag.dag, &dag.graph, terms.iter().map(String::as_str)).unwrap();
        let params = Map::new();
        let request = RunRequest {
            params: &params,
            partition: None,
            selection: &selection,
            other_outputs: OtherOutputs::None,
        };
        let plan = dag.plan(&request).unwrap();
        assert_eq!(plan, dag.plan(&request).unwrap());
        assert_eq!(plan.tasks.len(), selection.count());
        let mut seen = BTreeSet::new();
        for task in &plan.tasks {
            assert!(task.depends_on.iter().all(|before| seen.contains(before)), "{:?}", task.key);
            assert!(seen.insert(task.key.clone()));
        }
    }
}
