use segno_actions::schedule::Zones;
use serde_json::json;

use super::*;
use crate::plan::{OtherOutputs, Plan, RunRequest, Selection, parse};

/// The plan of a DAG with these tasks.
fn plan(tasks: &str) -> Plan {
    let text = format!("name: d\nparams: {{regions: [eu, us], odd: '{{{{ item }}}}'}}\ntasks:\n{tasks}");
    let parsed = parse(text.as_bytes(), &Zones::bundled()).unwrap_or_else(|error| panic!("{error}"));
    let selection = Selection::all(&parsed.dag);
    let request = RunRequest {
        params: &Map::new(),
        partition: None,
        selection: &selection,
        other_outputs: OtherOutputs::None,
    };
    parsed.plan(&request).unwrap()
}

/// The keys and inputs of the tasks that the last task of a plan adds.
fn expanded(plan: &Plan, output: &Value) -> Result<Vec<(String, Value)>, String> {
    let names = RunNames { run_id: "r1", params: &plan.params, partition: None };
    let added = expand(plan.tasks.last().unwrap(), &names, |key| (key == "list").then(|| output.clone()));
    let added = added.map_err(|error| error.to_string())?;
    let input = |task: &PlannedTask| resolve_input(task, &names, |_| None).unwrap();
    Ok(added.iter().map(|task| (task.key.to_string(), input(task))).collect())
}

#[test]
fn a_list_adds_a_task_for_each_item() {
    let plan = plan(
        r#"  - {key: list, function: list}
  - {key: load, function: load, depends_on: list, timeout: 30s, for_each: "{{ tasks.list.output.files }}",
     input: {file: "{{ item.path }}", n: "{{ index }}", of: "{{ tasks.list.output.files[0].path }}", run: "{{ run.id }}", odd: "{{ params.odd }}"}}"#,
    );
    let output = json!({ "files": [{ "path": "a" }, { "path": "{{ index }}" }] });
    let input =
        |file: &str, n: usize| json!({ "file": file, "n": n, "of": "a", "run": "r1", "odd": "{{ item }}" });
    let expected = [("load[0]".to_owned(), input("a", 0)), ("load[1]".to_owned(), input("{{ index }}", 1))];
    assert_eq!(expanded(&plan, &output).unwrap(), expected);
    assert_eq!(expanded(&plan, &json!({ "files": [] })).unwrap(), []);
    let names = RunNames { run_id: "r1", params: &plan.params, partition: None };
    let added = expand(&plan.tasks[1], &names, |_| Some(output.clone())).unwrap();
    assert_eq!((added[0].timeout_seconds, added[0].depends_on.len()), (Some(30), 0));
    assert_eq!(added[0].target, plan.tasks[1].target);
}

#[test]
fn lists_are_from_parameters_or_written_too() {
    let of = |for_each: &str| {
        let plan = plan(&format!(
            "  - {{key: load, function: load, for_each: {for_each}, input: '{{{{ item }}}}'}}"
        ));
        expanded(&plan, &Value::Null).unwrap().into_iter().map(|(_, input)| input).collect::<Vec<_>>()
    };
    assert_eq!(of("'{{ params.regions }}'"), [json!("eu"), json!("us")]);
    assert_eq!(of("[1, '{{ x }}']"), [json!(1), json!("{{ x }}")]);
    assert_eq!(of("{items: [3], max_items: 1}"), [json!(3)]);
}

#[test]
fn what_is_no_list_or_too_long_adds_nothing() {
    let plan = plan(
        r#"  - {key: list, function: list}
  - {key: load, function: load, depends_on: list, input: "{{ item.id }}",
     for_each: {items: "{{ tasks.list.output }}", max_items: 2}}"#,
    );
    for (output, says) in [
        (json!({ "files": [] }), "expected a list, found an object"),
        (json!([1, 2, 3]), "the list has 3 items, the limit is 2"),
        (json!([{ "id": 1 }, {}]), "load[1]: column 4: item.id cannot be resolved"),
        (json!([{ "id": "x".repeat(900_000) }]), ""),
    ] {
        match expanded(&plan, &output) {
            Ok(added) => assert_eq!((added.len(), says), (1, "")),
            Err(error) => assert!(!says.is_empty() && error.contains(says), "{error}"),
        }
    }
}

#[test]
fn an_output_that_is_missing_is_an_error_unless_it_has_a_default() {
    let plan = plan(
        r#"  - {key: a, function: a}
  - {key: b, function: b, depends_on: a, input: {x: "{{ tasks.a.output.x }}"}}
  - {key: c, function: b, depends_on: a, trigger_rule: all_done, input: {x: "{{ tasks.a.output.x | default('none') }}"}}"#,
    );
    let names = RunNames { run_id: "r1", params: &plan.params, partition: None };
    let error = resolve_input(&plan.tasks[1], &names, |_| None).unwrap_err().to_string();
    assert!(error.contains("tasks.a.output.x cannot be resolved: tasks has no field \"a\""), "{error}");
    assert_eq!(resolve_input(&plan.tasks[2], &names, |_| None).unwrap(), json!({ "x": "none" }));
    assert_eq!(resolve_input(&plan.tasks[0], &names, |_| None).unwrap(), Value::Null);
}

#[test]
fn the_advice_for_a_long_list_can_be_followed() {
    assert_eq!(too_long(100), "raise max_items or shorten the list");
    assert!(
        too_long(MAX_FOR_EACH_ITEMS as usize).starts_with("no list may have more"),
        "max_items is at its maximum"
    );
}
