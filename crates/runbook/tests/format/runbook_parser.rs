//! Suite `RunbookParserTests`: what is a runbook and what is not, and why.

use expect_test::{Expect, expect};
use segno_runbook::definition::{
    Approval, BatchTime, MemberLimit, Members, MultiValuedFormat, OnPhaseFailure, Poll, Retry, SourceKind,
    Wave,
};
use serde_json::json;

use crate::{
    EVERYTHING, SMALLEST, WAVE_MAILBOX_MOVE, definition, listed, parsed, phase_with, problems, step_with,
    with,
};

fn check(yaml: impl AsRef<[u8]>, expected: Expect) {
    expected.assert_eq(&problems(yaml));
}

#[test]
fn a_complete_runbook_is_read() {
    let runbook = definition(WAVE_MAILBOX_MOVE);
    assert_eq!(runbook.name, "wave-mailbox-move");
    assert_eq!(runbook.description.as_deref(), Some("Move mailboxes by wave"));
    let source = &runbook.data_source;
    assert!(matches!(&source.kind, SourceKind::Sql { query, .. } if query.starts_with("SELECT SourceId")));
    assert_eq!(source.primary_key, "SourceId");
    assert_eq!(source.batch_time, BatchTime::Column("WaveTime".to_owned()));
    assert_eq!(source.multi_valued("Aliases"), Some(MultiValuedFormat::SemicolonDelimited));
    assert_eq!(runbook.init[0].poll, Some(Poll { interval_sec: 300, timeout_sec: 3_600 }));
    let names: Vec<&str> = runbook.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["prepare", "cutover"]);
    let create = &runbook.phases[0].steps[0];
    assert_eq!((create.worker_id.as_str(), create.function.as_str()), ("cloud-01", "New-EntraUser"));
    assert_eq!(create.params["UserPrincipalName"], json!("{{TargetUpn}}"));
    assert_eq!(create.output_params["TargetId"], "Id");
    assert_eq!(create.on_failure.as_deref(), Some("undo-user"));
    assert_eq!(runbook.on_member_removed[0].function, "Remove-Forwarding");
    assert_eq!(runbook.rollbacks["undo-user"][0].function, "Remove-EntraUser");
    assert_eq!(listed(&parsed(WAVE_MAILBOX_MOVE).warnings), "");
}

#[test]
fn the_smallest_runbook_has_defaults() {
    let runbook = definition(SMALLEST);
    assert_eq!((runbook.members, runbook.on_phase_failure), (Members::Barrier, OnPhaseFailure::Continue));
    assert_eq!((runbook.data_source.interval_sec, runbook.data_source.max_removed_percent), (300, 20));
    assert_eq!(runbook.data_source.batch_time, BatchTime::Manual);
    let phase = &runbook.phases[0];
    assert_eq!((phase.success_threshold, phase.max_parallel, phase.error_budget), (100, None, None));
    assert!(phase.waves.is_empty() && phase.approval.is_none());
    assert_eq!(phase.steps[0].retry, Retry { max_retries: 0, interval_sec: 0 });
    assert!(phase.steps[0].params.is_empty() && phase.steps[0].poll.is_none());
    assert!(runbook.blackout.is_empty() && runbook.init.is_empty() && runbook.rollbacks.is_empty());
}

#[test]
fn everything_beyond_the_original_format_is_read() {
    let runbook = definition(EVERYTHING);
    assert_eq!(listed(&parsed(EVERYTHING).warnings), "");
    assert_eq!((runbook.members, runbook.on_phase_failure), (Members::Independent, OnPhaseFailure::Pause));
    let names: Vec<(&str, u64)> =
        runbook.phases.iter().map(|phase| (phase.name.as_str(), phase.offset_minutes)).collect();
    assert_eq!(names, [("prepare", 2_160), ("cutover", 0)], "phases are in due order");
    let cutover = &runbook.phases[1];
    let waves = [(5, 0), (25, 3_600), (100, 0)].map(|(percent, pause_sec)| Wave { percent, pause_sec });
    assert_eq!(cutover.waves, waves);
    assert_eq!(cutover.error_budget, Some(MemberLimit::Percent(5)));
    assert_eq!(runbook.phases[0].error_budget, Some(MemberLimit::Members(10)));
    assert_eq!((cutover.success_threshold, cutover.max_parallel), (95, Some(MemberLimit::Members(50))));
    let approval = Approval { message: Some("Everyone told?".to_owned()), timeout_sec: Some(172_800) };
    assert_eq!(cutover.approval, Some(approval));
    assert_eq!(runbook.phases[0].approval, Some(Approval { message: None, timeout_sec: None }));
    let params = &cutover.steps[0].params;
    assert_eq!((&params["Retries"], &params["Force"]), (&json!(5), &json!(true)));
    assert_eq!(params["Options"]["Tags"][0], json!("wave"));
    assert_eq!(runbook.blackout.len(), 3);
    assert_eq!((runbook.blackout[1].from_sec, runbook.blackout[1].to_sec), (79_200, 21_600));
}

#[test]
fn a_step_has_its_own_retries_or_those_of_the_runbook() {
    let runbook = definition(EVERYTHING);
    let retry = |max_retries, interval_sec| Retry { max_retries, interval_sec };
    assert_eq!(runbook.phases[0].steps[0].retry, retry(3, 120));
    assert_eq!(runbook.phases[1].steps[0].retry, retry(0, 0));
    assert_eq!(runbook.rollbacks["undo"][0].retry, retry(10, 30));
    assert_eq!(runbook.init[0].retry, retry(3, 120));
    assert_eq!(definition(&step_with("retry: {max_retries: 1}")).phases[0].steps[0].retry, retry(1, 60));
}

#[test]
fn text_that_is_not_yaml_is_refused_at_its_place() {
    check(
        "name: [a\nphases: b",
        expect![[r#"
            error: line 2, column 7: the YAML cannot be read: illegal placement of ':' indicator
        "#]],
    );
    check(
        "name: \"a",
        expect![[r#"
            error: line 1, column 7: the YAML cannot be read: unclosed quote
        "#]],
    );
    check(
        "- a\nb: c",
        expect![[r#"
            error: line 2, column 1: the YAML cannot be read: while parsing a block collection, did not find expected '-' indicator
        "#]],
    );
}

#[test]
fn an_empty_document_is_refused() {
    check(
        "",
        expect![[r#"
        error: line 1, column 1: the document is empty; begin with name, data_source and phases
    "#]],
    );
    check(
        "# only a comment\n",
        expect![[r#"
        error: line 2, column 1: the document is empty; begin with name, data_source and phases
    "#]],
    );
    check(
        "just a text",
        expect![[r#"
        error: line 1, column 1: expected a map, found a text
    "#]],
    );
    check(
        "[1, 2]",
        expect![[r#"
        error: line 1, column 1: expected a map, found a list
    "#]],
    );
}

#[test]
fn what_is_missing_is_named() {
    check(
        "description: nothing else",
        expect![[r#"
            error: line 1, column 1: the key "name" is missing; add name: wave-mailbox-move
            error: line 1, column 1: the key "data_source" is missing; add data_source: {type: sql, …}
            error: line 1, column 1: the key "phases" is missing; add phases: [{name: prepare, …}]
        "#]],
    );
    check(
        "name: x\ndata_source: {}\nphases: [{}]",
        expect![[r#"
            error: line 2, column 14: data_source: the key "type" is missing; add type: sql
            error: line 2, column 14: data_source: the key "primary_key" is missing; add primary_key: SourceId
            error: line 2, column 14: data_source: nothing says when the batch of a row starts; add batch_time_column: COLUMN or batch_time: immediate
            error: line 3, column 10: phases[0]: the key "name" is missing; add name: prepare
            error: line 3, column 10: phases[0]: the key "offset" is missing; add offset: T-5d
            error: line 3, column 10: phases[0]: the key "steps" is missing; add steps: [{name: create-user, …}]
        "#]],
    );
    check(
        with("steps:\n      - {name: first, worker_id: pool, function: Do-It}", "steps: [{}]"),
        expect![[r#"
            error: line 6, column 13: phases[0].steps[0]: the key "name" is missing; add name: create-user
            error: line 6, column 13: phases[0].steps[0]: the key "worker_id" is missing; add worker_id: cloud-01
            error: line 6, column 13: phases[0].steps[0]: the key "function" is missing; add function: New-EntraUser
        "#]],
    );
}

#[test]
fn a_runbook_has_a_phase_and_a_phase_a_step() {
    check(
        "name: x\ndata_source: {type: manual, primary_key: Id}\nphases: []",
        expect![[r#"
        error: line 3, column 9: phases: there is no phase; add at least one
    "#]],
    );
    check(
        with("steps:\n      - {name: first, worker_id: pool, function: Do-It}", "steps: []"),
        expect![[r#"
            error: line 6, column 12: phases[0].steps: there is no step; add at least one
        "#]],
    );
}

#[test]
fn names_of_phases_are_unique_whatever_their_case() {
    let yaml = format!(
        "{SMALLEST}  - {{name: ONLY, offset: T-1d, steps: [{{name: a, worker_id: p, function: F}}]}}\n"
    );
    check(
        yaml,
        expect![[r#"
        error: line 8, column 12: phases[1].name: the name "only" is used twice; letter case does not matter; rename one of them
    "#]],
    );
}

#[test]
fn names_of_steps_are_unique_within_their_list() {
    let yaml = format!("{SMALLEST}      - {{name: First, worker_id: pool, function: Do-It}}\n");
    check(
        yaml,
        expect![[r#"
        error: line 8, column 16: phases[0].steps[1].name: the name "first" is used twice; letter case does not matter; rename one of them
    "#]],
    );
    let other_phase = format!(
        "{SMALLEST}  - {{name: other, offset: T-1d, steps: [{{name: first, worker_id: p, function: F}}]}}\n"
    );
    check(other_phase, expect![[r#""#]]);
}

#[test]
fn a_rollback_must_exist() {
    let yaml = format!(
        "{}rollbacks:\n  undo-user:\n    - {{name: delete, worker_id: pool, function: Remove-User}}\n",
        step_with("on_failure: undo-usr")
    );
    check(
        yaml,
        expect![[r#"
        error: line 7, column 69: phases[0].steps[0].on_failure: there is no rollback "undo-usr"; did you mean "undo-user"?
        warning: line 10, column 5: rollbacks.undo-user: no step uses the rollback "undo-user"; add on_failure: undo-user to a step
    "#]],
    );
    check(
        step_with("on_failure: undo"),
        expect![[r#"
        error: line 7, column 69: phases[0].steps[0].on_failure: there is no rollback "undo"; add it under rollbacks
    "#]],
    );
}

#[test]
fn rollback_steps_are_validated_too() {
    let yaml = format!(
        "{}rollbacks:\n  undo:\n    - {{name: delete, worker_id: bad pool, function: F, poll: {{interval: 1m}}, on_failure: undo}}\n  empty: []\n  none:\n  bad name: 7\n",
        step_with("on_failure: undo")
    );
    check(
        yaml,
        expect![[r#"
        error: line 10, column 33: rollbacks.undo[0].worker_id: "bad pool" is not allowed; use letters, digits, '.', '_' and '-', beginning with a letter or digit
        error: line 10, column 62: rollbacks.undo[0].poll: the key "timeout" is missing; add timeout: 24h
        warning: line 10, column 90: rollbacks.undo[0].on_failure: on_failure of a step of a rollback has no effect; remove it; use retry to try the step again
        warning: line 11, column 10: rollbacks.empty: no step uses the rollback "empty"; add on_failure: empty to a step
        error: line 11, column 10: rollbacks.empty: there is no step; add at least one
        warning: line 12, column 7: rollbacks.none: no step uses the rollback "none"; add on_failure: none to a step
        error: line 12, column 7: rollbacks.none: there is no step; add at least one
        error: line 13, column 13: rollbacks.bad name: "bad name" is not allowed; use letters, digits, '.', '_' and '-', beginning with a letter or digit
        warning: line 13, column 13: rollbacks.bad name: no step uses the rollback "bad name"; add on_failure: bad name to a step
        error: line 13, column 13: rollbacks.bad name: expected a list, found a number; begin each item with "- ", or write [a, b]
    "#]],
    );
}

#[test]
fn a_poll_needs_interval_and_timeout() {
    check(
        step_with("poll: {interval: 5m}"),
        expect![[r#"
        error: line 7, column 63: phases[0].steps[0].poll: the key "timeout" is missing; add timeout: 24h
    "#]],
    );
    check(
        step_with("poll: {timeout: 5m}"),
        expect![[r#"
        error: line 7, column 63: phases[0].steps[0].poll: the key "interval" is missing; add interval: 15m
    "#]],
    );
    check(
        step_with("poll: 5m"),
        expect![[r#"
        error: line 7, column 63: phases[0].steps[0].poll: expected a map, found a text
    "#]],
    );
    check(
        step_with("poll: {interval: 1h, timeout: 5m}"),
        expect![[r#"
        warning: line 7, column 63: phases[0].steps[0].poll: the timeout is shorter than the interval, so the step is never polled; raise the timeout or lower the interval
    "#]],
    );
    check(
        step_with("poll: {interval: 0s, timeout: 1500ms}"),
        expect![[r#"
        error: line 7, column 74: phases[0].steps[0].poll.interval: "0s" is too short; the minimum is 1s
        error: line 7, column 87: phases[0].steps[0].poll.timeout: "1500ms" is not a whole number of seconds
    "#]],
    );
}

#[test]
fn retries_are_validated() {
    check(
        step_with("retry: {max_retries: -1, interval: 5}"),
        expect![[r#"
        error: line 7, column 78: phases[0].steps[0].retry.max_retries: expected a whole number from 0 to 1000, found "-1"
        error: line 7, column 92: phases[0].steps[0].retry.interval: the duration 5 has no unit; write 5s, 5m, 5h or 5d
    "#]],
    );
    check(
        step_with("retry: {interval: 5m}"),
        expect![[r#"
        error: line 7, column 64: phases[0].steps[0].retry: the key "max_retries" is missing; add max_retries: 2
    "#]],
    );
    check(
        step_with("retry: {max_retries: 1001, interval: soon}"),
        expect![[r#"
        error: line 7, column 78: phases[0].steps[0].retry.max_retries: expected a whole number from 0 to 1000, found "1001"
        error: line 7, column 94: phases[0].steps[0].retry.interval: "soon" is not a duration; write a number and a unit (ms, s, m, h, d), such as "30s" or "1h30m"
    "#]],
    );
    check(
        step_with("retry: 3"),
        expect![[r#"
        error: line 7, column 64: phases[0].steps[0].retry: expected a map, found a number
    "#]],
    );
}

#[test]
fn output_params_are_not_empty_and_have_names() {
    check(
        step_with("output_params: {}"),
        expect![[r#"
        error: line 7, column 72: phases[0].steps[0].output_params: expected 1 to 256 entries, found 0; write output_params: {Variable: ResultField}
    "#]],
    );
    check(
        step_with("output_params: {_batch_id: Id, a-b: Id, c: [1]}"),
        expect![[r#"
        error: line 7, column 84: phases[0].steps[0].output_params._batch_id: "_batch_id" is a variable of the system; use another name
        error: line 7, column 93: phases[0].steps[0].output_params.a-b: "a-b" is not allowed; use letters, digits and '_'
        error: line 7, column 100: phases[0].steps[0].output_params.c: expected a text, found a list
    "#]],
    );
    check(step_with("output_params: {Größe: Size, '2nd': Id}"), expect![[r#""#]]);
}

#[test]
fn templates_are_balanced_and_well_formed() {
    check(
        step_with("params: {a: '{{Upn', b: '{{}}', c: {d: ['{{ a b }}']}}"),
        expect![[r#"
        error: line 7, column 69: phases[0].steps[0].params.a: the template "{{Upn" is wrong at character 6: expected | and a filter, or }}, found the end; a placeholder is written {{name}}
        error: line 7, column 81: phases[0].steps[0].params.b: the template "{{}}" is wrong at character 3: expected a name, found '}'; a placeholder is written {{name}}
        error: line 7, column 97: phases[0].steps[0].params.c.d[0]: the template "{{ a b }}" is wrong at character 6: expected | and a filter, or }}, found "b"; a placeholder is written {{name}}
    "#]],
    );
    check(
        step_with("params: {a: '{Upn}}'}"),
        expect![[r#"
        warning: line 7, column 69: phases[0].steps[0].params.a: "{Upn}}" has }} without {{ before it; a placeholder is written {{name}}
    "#]],
    );
    check(
        step_with("params: {'{{a}}': 1}"),
        expect![[r#"
        error: line 7, column 75: phases[0].steps[0].params.{{a}}: the key "{{a}}" has a placeholder; placeholders stand in values, not in keys
    "#]],
    );
    check(
        with("function: Do-It", "function: 'Do-{{a'"),
        expect![[r#"
        error: line 7, column 50: phases[0].steps[0].function: the template "Do-{{a" is wrong at character 7: expected | and a filter, or }}, found the end; a placeholder is written {{name}}
    "#]],
    );
}

#[test]
fn init_steps_have_the_variables_of_the_batch_only() {
    let yaml = format!(
        "{SMALLEST}init:\n  - {{name: a, worker_id: p, function: F, params: {{a: '{{{{Upn}}}}', b: '{{{{Upn | default(1)}}}} {{{{batch_id}}}}'}}, output_params: {{X: Y}}}}\n"
    );
    check(
        yaml,
        expect![[r#"
            error: line 9, column 54: init[0].params.a: init steps have no variable "Upn"; there is no member yet; use _batch_id, _batch_start_time or an output of an earlier init step
        "#]],
    );
}

#[test]
fn the_rollback_of_an_init_step_has_no_member() {
    let yaml = format!(
        "{SMALLEST}init:\n  - {{name: a, worker_id: p, function: F, on_failure: undo}}\nrollbacks:\n  undo:\n    - {{name: b, worker_id: p, function: F, params: {{a: '{{{{Upn}}}} {{{{_batch_id}}}}'}}}}\n"
    );
    check(
        yaml,
        expect![[r#"
            warning: line 12, column 56: rollbacks.undo[0].params.a: the rollback of an init step has no variable "Upn"; there is no member yet; use _batch_id, _batch_start_time or an output of an init step
        "#]],
    );
}

#[test]
fn parts_of_a_variable_need_a_multi_valued_column() {
    check(
        step_with("params: {a: '{{Upn.name}}', b: '{{Aliases[0]}}'}"),
        expect![[r#"
        error: line 7, column 69: phases[0].steps[0].params.a: "Upn" is a text, which has no parts; list the column under multi_valued_columns if it holds several values
        error: line 7, column 88: phases[0].steps[0].params.b: "Aliases" is a text, which has no parts; list the column under multi_valued_columns if it holds several values
    "#]],
    );
}

#[test]
fn offsets_that_are_none_are_refused_with_the_form() {
    for offset in ["T+1d", "5d", "T-5", "T-", "-5d", "T-5w"] {
        let found = problems(with("offset: T-0", &format!("offset: {offset}")));
        assert!(
            found.contains("error: line 5, column 13: phases[0].offset: ")
                && found.contains("T-0, or T- and a duration"),
            "{offset}: {found}"
        );
    }
}

#[test]
fn unknown_keys_are_warnings_with_a_suggestion() {
    let yaml = format!(
        "{}phase: []\nzzz: 1\n",
        step_with("onfailure: x, workerId: y").replace("primary_key: Id", "primary_key: Id, warehouse_id: W")
    );
    check(
        yaml,
        expect![[r#"
        warning: line 2, column 46: data_source.warehouse_id: the key "warehouse_id" is not known and has no effect
        warning: line 7, column 57: phases[0].steps[0].onfailure: the key "onfailure" is not known and has no effect; did you mean "on_failure"?
        warning: line 7, column 71: phases[0].steps[0].workerId: the key "workerId" is not known and has no effect; did you mean "worker_id"?
        warning: line 8, column 1: phase: the key "phase" is not known and has no effect; did you mean "phases"?
        warning: line 9, column 1: zzz: the key "zzz" is not known and has no effect
    "#]],
    );
}

#[test]
fn duplicate_keys_are_an_error_and_the_rest_is_checked_too() {
    check(
        format!("name: first\n{SMALLEST}members: nobody\n"),
        expect![[r#"
            error: line 2, column 1: the key "name" is given twice in one map; remove one of them
            error: line 9, column 10: members: "nobody" is not known here; write barrier or independent
        "#]],
    );
    check(
        step_with("params: {a: 1, b: 2, a: 3}"),
        expect![[r#"
        error: line 7, column 78: the key "a" is given twice in one map; remove one of them
    "#]],
    );
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_text() {
    let yaml = "\
name: a runbook
retry: {max_retries: many, interval: 1w}
data_source:
  type: dataverse
  primary_key: _batch_id
  batch_time: later
  multi_valued_columns:
    - {name: A, format: pipes}
    - {name: a, format: json_array}
  interval: 1s
  max_removed_percent: 101%
members: together
on_phase_failure: panic
blackout:
  - {days: [FUNDAY], from: 25:00, to: noon, timezone: Europe/Berln}
  - {from: \"24:00\"}
init: {name: x}
phases:
  - name: \" padded\"
    offset: T+1h
    success_threshold: 0.5
    max_parallel: 0
    waves: [50, 25]
    error_budget: 101%
    approval: maybe
    steps:
      - name: a
        worker_id: cloud 01
        function: New EntraUser
        params: [1]
        on_failure: undo
  - 7
rollbacks: []
";
    check(
        yaml,
        expect![[r#"
            error: line 1, column 7: name: "a runbook" is not allowed; use letters, digits, '.', '_' and '-', beginning with a letter or digit
            error: line 2, column 22: retry.max_retries: expected a whole number from 0 to 1000, found "many"
            error: line 2, column 38: retry.interval: "1w" is not a duration; write a number and a unit (ms, s, m, h, d), such as "30s" or "1h30m"
            error: line 4, column 9: data_source.type: data sources of type "dataverse" are not supported; use type: function with a function that runs the query and returns the rows
            error: line 5, column 16: data_source.primary_key: "_batch_id" is a variable of the system; use another name
            error: line 6, column 15: data_source.batch_time: "later" is not known here; write immediate
            error: line 8, column 25: data_source.multi_valued_columns[0].format: "pipes" is not known here; write semicolon_delimited or comma_delimited or json_array
            error: line 9, column 14: data_source.multi_valued_columns[1].name: the name "a" is used twice; letter case does not matter; rename one of them
            error: line 10, column 13: data_source.interval: "1s" is too short; the minimum is 10s
            error: line 11, column 24: data_source.max_removed_percent: expected a whole percentage from 0 to 100, found "101%"; write it as 25 or 25%
            error: line 12, column 10: members: "together" is not known here; write barrier or independent
            error: line 13, column 19: on_phase_failure: "panic" is not known here; write continue or pause or stop
            error: line 15, column 13: blackout[0].days[0]: "FUNDAY" is no day; write a date (2026-12-25), a date of every year (12-25), a weekday (SAT), or two of a kind with .. between them (2026-12-24..2027-01-01)
            error: line 15, column 28: blackout[0].from: "25:00" is not a time of day; write it as "22:00" or "22:00:30", up to "24:00"
            error: line 15, column 39: blackout[0].to: "noon" is not a time of day; write it as "22:00" or "22:00:30", up to "24:00"
            error: line 15, column 55: blackout[0].timezone: there is no time zone "Europe/Berln" in the database 2026e (bundled); did you mean "Europe/Berlin"?
            error: line 16, column 5: blackout[1]: a window cannot begin at 24:00; write from: "00:00" and the next day
            error: line 17, column 7: init: expected a list, found a map; begin each item with "- ", or write [a, b]
            error: line 19, column 11: phases[0].name: " padded" is not allowed; use printable characters, without white space at the ends
            error: line 20, column 13: phases[0].offset: "T+1h" lies after the start of the batch; phases are due before it or at it; write T-0, or T- and a duration, as in T-5d, T-3h or T-30m
            error: line 21, column 24: phases[0].success_threshold: expected a whole percentage from 0 to 100, found "0.5"; write it as 25 or 25%
            error: line 22, column 19: phases[0].max_parallel: expected a whole number from 1 to 1000000, found "0"
            error: line 23, column 12: phases[0].waves: the last wave ends at 25% of the members; end the list with 100
            error: line 23, column 17: phases[0].waves[1]: 25% does not come after 50%; percentages are cumulative, as in [5, 25, 100]
            error: line 24, column 19: phases[0].error_budget: "101%" is not a percentage from 1% to 100%; write a number of members, or as in 5%
            error: line 25, column 15: phases[0].approval: expected true, false or a map, found a text; write approval: {message: "…", timeout: 2d}
            error: line 28, column 20: phases[0].steps[0].worker_id: "cloud 01" is not allowed; use letters, digits, '.', '_' and '-', beginning with a letter or digit
            error: line 29, column 19: phases[0].steps[0].function: "New EntraUser" is not allowed; use letters, digits, '.', '_' and '-', beginning with a letter or digit
            error: line 30, column 17: phases[0].steps[0].params: expected a map, found a list
            error: line 31, column 21: phases[0].steps[0].on_failure: there is no rollback "undo"; add it under rollbacks
            error: line 32, column 5: phases[1]: expected a map, found a number
            error: line 33, column 12: rollbacks: expected a map, found a list
        "#]],
    );
}

#[test]
fn names_keep_their_case_and_have_a_length() {
    let runbook = definition(&with("function: Do-It", "function: New-EntraUser"));
    assert_eq!(runbook.phases[0].steps[0].function, "New-EntraUser");
    let long = "x".repeat(128);
    assert_eq!(
        definition(&with("worker_id: pool", &format!("worker_id: {long}"))).phases[0].steps[0].worker_id,
        long
    );
    check(
        with("worker_id: pool", &format!("worker_id: x{long}")),
        expect![[r#"
            error: line 7, column 34: phases[0].steps[0].worker_id: the name has 129 bytes, the limit is 128
        "#]],
    );
    check(
        with("worker_id: pool", "worker_id: '{{pool}}'"),
        expect![[r#"
        error: line 7, column 34: phases[0].steps[0].worker_id: "{{pool}}" is not allowed; use letters, digits, '.', '_' and '-', beginning with a letter or digit
    "#]],
    );
}

#[test]
fn plain_numbers_are_their_digits_where_a_text_is_expected() {
    let yaml =
        with("name: smallest", "name: 007").replace("name: first", "name: 1.50").replace("pool", "0x10");
    let runbook = definition(&yaml);
    assert_eq!(runbook.name, "007");
    assert_eq!(runbook.phases[0].steps[0].name, "1.50");
    assert_eq!(runbook.phases[0].steps[0].worker_id, "0x10");
    check(
        with("name: smallest", "name: true"),
        expect![[r#"
        error: line 1, column 7: name: expected a text, found true or false; write it in quotes
    "#]],
    );
}

#[test]
fn words_of_yaml_1_1_are_texts() {
    let runbook = definition(&step_with("params: {a: no, b: on, c: True, d: ~, e: 2026-01-01, f: 22:00}"));
    let params = serde_json::to_value(&runbook.phases[0].steps[0].params).unwrap();
    assert_eq!(
        params,
        json!({ "a": "no", "b": "on", "c": true, "d": null, "e": "2026-01-01", "f": "22:00" })
    );
}

#[test]
fn anchors_and_merge_keys_are_expanded() {
    let yaml = "\
name: merged
data_source: {type: manual, primary_key: Id}
phases:
  - name: only
    offset: T-0
    steps:
      - &defaults {name: first, worker_id: pool, function: Do-It, retry: {max_retries: 4, interval: 1m}}
      - {<<: *defaults, name: second}
";
    let runbook = definition(yaml);
    assert_eq!(runbook.phases[0].steps[1].name, "second");
    assert_eq!(runbook.phases[0].steps[1].retry.max_retries, 4);
}

#[test]
fn each_type_of_data_source_has_its_keys() {
    let source =
        |keys: &str| with("{type: manual, primary_key: Id}", &format!("{{{keys}, primary_key: Id}}"));
    check(
        source("type: sql, batch_time: immediate"),
        expect![[r#"
        error: line 2, column 14: data_source: the key "connection" is missing; add connection: MIGRATION_DB
        error: line 2, column 14: data_source: the key "query" is missing; add query: SELECT …
    "#]],
    );
    check(
        source("type: sql, connection: 'postgres://u:secret@h/db', query: SELECT 1, batch_time: immediate"),
        expect![[r#"
            error: line 2, column 38: data_source.connection: this is not a reference to a secret; write the name of an environment variable, {env: NAME} or {file: /path}
        "#]],
    );
    check(
        source("type: sql, connection: {env: A, file: /b}, query: '', batch_time: immediate"),
        expect![[r#"
            error: line 2, column 38: data_source.connection: expected exactly one of env and file; write the name of an environment variable, {env: NAME} or {file: /path}
            error: line 2, column 65: data_source.query: the text is empty
        "#]],
    );
    check(
        source("type: csv, location: members.csv, batch_time_column: T, query: SELECT 1"),
        expect![[r#"
            error: line 2, column 36: data_source.location: "members.csv" is neither an absolute path nor a URL; write a path that begins with /, or a URL that begins with https://
            warning: line 2, column 78: data_source.query: query has no effect in a data source of type csv; remove it, or change the type
        "#]],
    );
    check(
        source(
            "type: http, url: ftp://x, rows: data.items, headers: {'a b': {file: x}, C: 1}, batch_time: immediate",
        ),
        expect![[r#"
            error: line 2, column 32: data_source.url: "ftp://x" is not a URL; write one that begins with https:// or http://
            error: line 2, column 47: data_source.rows: "data.items" is not a JSON pointer; write it as /data/items
            error: line 2, column 76: data_source.headers.a b: "a b" is not a name of a header
            error: line 2, column 76: data_source.headers.a b: this is not a reference to a secret; write the name of an environment variable, {env: NAME} or {file: /path}
        "#]],
    );
    check(
        source(
            "type: function, function: list members, input: {a: 1}, batch_time: immediate, batch_time_column: T",
        ),
        expect![[r#"
            error: line 2, column 41: data_source.function: "list members" is not allowed; use letters, digits, '.', '_' and '-', beginning with a letter or digit
            error: line 2, column 82: data_source.batch_time: batch_time and batch_time_column exclude each other; remove one of them
        "#]],
    );
    check(
        source("type: function, function: list-members"),
        expect![[r#"
        error: line 2, column 14: data_source: nothing says when the batch of a row starts; add batch_time_column: COLUMN or batch_time: immediate
    "#]],
    );
    check(
        source("type: databricks, warehouse_id: W"),
        expect![[r#"
        error: line 2, column 14: data_source: nothing says when the batch of a row starts; add batch_time_column: COLUMN or batch_time: immediate
        error: line 2, column 21: data_source.type: data sources of type "databricks" are not supported; use type: function with a function that runs the query and returns the rows
        warning: line 2, column 33: data_source.warehouse_id: the key "warehouse_id" is not known and has no effect
    "#]],
    );
    check(
        source("type: manual, interval: 5m, connection: X"),
        expect![[r#"
        warning: line 2, column 39: data_source.interval: interval has no effect in a data source of type manual; remove it, or change the type
        warning: line 2, column 55: data_source.connection: connection has no effect in a data source of type manual; remove it, or change the type
    "#]],
    );
}

#[test]
fn waves_are_cumulative_and_end_with_everyone() {
    check(
        phase_with("waves: [5, 25]"),
        expect![[r#"
        error: line 6, column 12: phases[0].waves: the last wave ends at 25% of the members; end the list with 100
    "#]],
    );
    check(
        phase_with("waves: []"),
        expect![[r#"
        error: line 6, column 12: phases[0].waves: there is no wave; end the list with 100
    "#]],
    );
    check(
        phase_with("waves: [10%, 10, {percent: 100, pause: 1h}]"),
        expect![[r#"
        error: line 6, column 18: phases[0].waves[1]: 10% does not come after 10%; percentages are cumulative, as in [5, 25, 100]
    "#]],
    );
    check(
        phase_with("waves: [0, 100]"),
        expect![[r#"
        error: line 6, column 13: phases[0].waves[0]: expected a whole percentage from 1 to 100, found "0"; write it as 25 or 25%
    "#]],
    );
    check(
        phase_with("waves: 100"),
        expect![[r#"
            error: line 6, column 12: phases[0].waves: expected a list, found a number; begin each item with "- ", or write [a, b]
        "#]],
    );
}

#[test]
fn blackouts_must_leave_some_time() {
    check(
        format!("{SMALLEST}blackout: [{{}}]\n"),
        expect![[r#"
        error: line 8, column 11: blackout: the windows leave no time in which a step could be dispatched; shorten one of them
    "#]],
    );
    check(
        format!("{SMALLEST}blackout: [{{from: '06:00', to: '06:00'}}]\n"),
        expect![[r#"
        error: line 8, column 11: blackout: the windows leave no time in which a step could be dispatched; shorten one of them
    "#]],
    );
    check(format!("{SMALLEST}blackout: [{{days: MON..SAT}}]\n"), expect![[r#""#]]);
}

#[test]
fn numbers_of_things_have_limits() {
    let steps: String =
        (0..101).map(|index| format!("      - {{name: s{index}, worker_id: p, function: F}}\n")).collect();
    check(
        with("      - {name: first, worker_id: pool, function: Do-It}\n", &steps),
        expect![[r#"
        error: line 7, column 7: phases[0].steps: the list has 101 items, the limit is 100
    "#]],
    );
    let params: String = (0..257).map(|index| format!("p{index}: 1, ")).collect();
    check(
        step_with(&format!("params: {{{params}}}")),
        expect![[r#"
        error: line 7, column 65: phases[0].steps[0].params: there are 257 parameters, the limit is 256
    "#]],
    );
    check(
        step_with(&format!("params: {{a: {}}}", "x".repeat(70_000))),
        expect![[r#"
            error: line 7, column 69: phases[0].steps[0].params.a: the text has 70000 bytes, the limit is 16384
        "#]],
    );
    let long = "x".repeat(5_000);
    check(
        format!("{SMALLEST}description: {long}\n"),
        expect![[r#"
        error: line 8, column 14: description: the text has 5000 bytes, the limit is 4096
    "#]],
    );
}

#[test]
fn reserved_names_of_json_are_refused_in_params() {
    let found = problems(step_with("params: {a: {'$serde_json::private::RawValue': '[1]'}}"));
    assert!(found.contains("phases[0].steps[0].params: ") && found.contains("is reserved"), "{found}");
}

#[test]
fn variables_that_nothing_provides_are_warnings_when_columns_are_known() {
    let parsed = parsed(WAVE_MAILBOX_MOVE);
    let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let known = columns(&["SourceId", "Upn", "TargetUpn", "Aliases", "WaveTime"]);
    expect![[r#"
        warning: line 42, column 93: rollbacks.undo-user[0].params.UserId: only the output of "create-user" sets "TargetId"; that step has not succeeded when the rollback runs; write {{TargetId | default("")}}
    "#]].assert_eq(&listed(&parsed.check_variables(Some(&known))));
    let wrong = columns(&["sourceid", "UPN", "_TargetUpn", "Alias"]);
    expect![[r#"
        warning: line 8, column 16: data_source.primary_key: there is no column "SourceId"; did you mean "sourceid"?
        warning: line 9, column 22: data_source.batch_time_column: there is no column "WaveTime"
        warning: line 11, column 5: data_source.multi_valued_columns[0].name: there is no column "Aliases"; did you mean "Alias"?
        warning: line 31, column 58: phases[0].steps[1].params.ExpectedValues: nothing provides the variable "Aliases"; did you mean "Alias"?
        warning: line 37, column 92: phases[1].steps[0].params.Identity: nothing provides the variable "Upn"; did you mean "UPN"?
        warning: line 39, column 89: on_member_removed[0].params.Identity: nothing provides the variable "Upn"; did you mean "UPN"?
        warning: line 42, column 93: rollbacks.undo-user[0].params.UserId: only the output of "create-user" sets "TargetId"; that step has not succeeded when the rollback runs; write {{TargetId | default("")}}
    "#]].assert_eq(&listed(&parsed.check_variables(Some(&wrong))));
    expect![[r#"
        warning: line 42, column 93: rollbacks.undo-user[0].params.UserId: only the output of "create-user" sets "TargetId"; that step has not succeeded when the rollback runs; write {{TargetId | default("")}}
    "#]].assert_eq(&listed(&parsed.check_variables(None)));
}
