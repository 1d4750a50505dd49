//! Plans: who gets what and when.

use std::fmt::Write as _;

use expect_test::expect;
use segno_actions::schedule::Zones;
use segno_runbook::blackout::Blackouts;
use segno_runbook::definition::Definition;
use segno_runbook::members::{CsvLimits, read_csv};
use segno_runbook::plan::{PlannedCall, plan};
use segno_runbook::template::columns_needed;

use crate::{EVERYTHING, WAVE_MAILBOX_MOVE, definition, listed};

/// A plan as text.
fn planned(definition: &Definition, csv: &str, now: &str) -> String {
    planned_from(definition, csv, now, None)
}

/// The same for one batch with a start.
fn planned_from(definition: &Definition, csv: &str, now: &str, start: Option<&str>) -> String {
    let rows =
        read_csv(csv.as_bytes(), &definition.data_source, &columns_needed(definition), CsvLimits::MANUAL);
    let blackouts = Blackouts::compile(&definition.blackout, &Zones::bundled()).unwrap();
    let start = start.map(|start| start.parse().unwrap());
    let plan = plan(definition, rows.unwrap().rows, now.parse().unwrap(), start, &blackouts).unwrap();
    let mut text = String::new();
    let call = |text: &mut String, call: PlannedCall<'_>| match call.call {
        Ok(resolved) => {
            writeln!(text, "    {} {} {}", call.step.name, resolved.function, resolved.params).unwrap()
        }
        Err(error) => writeln!(text, "    {} {error}", call.step.name).unwrap(),
    };
    for batch in &plan.batches {
        writeln!(
            text,
            "batch {} of {}",
            batch.start.map_or("by hand".to_owned(), |start| start.to_string()),
            batch.members.len()
        )
        .unwrap();
        plan.init_calls(batch).into_iter().for_each(|init| call(&mut text, init));
        for phase in &batch.phases {
            let times = [phase.due, phase.begins]
                .map(|time| time.map_or("by hand".to_owned(), |time| time.to_string()));
            let overdue = if phase.is_overdue { ", overdue" } else { "" };
            writeln!(text, "  {}: due {}, begins {}{overdue}", phase.name, times[0], times[1]).unwrap();
        }
        for member in &batch.members {
            writeln!(text, "  {}", member.key).unwrap();
            plan.member_calls(batch, member).into_iter().flatten().for_each(|step| call(&mut text, step));
        }
    }
    text + &listed(&plan.problems)
}

#[test]
fn rows_are_grouped_by_their_batch_time() {
    let csv = "SourceId,Upn,TargetUpn,Aliases,WaveTime\n\
               1,a@old,a@new,x;y,2026-03-20\n\
               2,b@old,b@new,,2026-03-15T06:00:00Z\n\
               3,c@old,c@new,z,2026-03-20T00:00:00Z\n\
               4,d@old,d@new,z,soon\n";
    expect![[r#"
        batch 2026-03-15T06:00:00Z of 1
            open-batch New-MigrationBatch {"Name":"batch-{{_batch_id}}","Start":"2026-03-15T06:00:00Z"}
          prepare: due 2026-03-10T06:00:00Z, begins 2026-03-12T00:00:00Z, overdue
          cutover: due 2026-03-15T06:00:00Z, begins 2026-03-15T06:00:00Z
          2
            create-user New-EntraUser {"UserPrincipalName":"b@new"}
            wait-sync Test-EntraAttributeMatch {"ExpectedValues":[],"UserId":"{{TargetId}}"}
            switch Set-PrimaryEmail {"Identity":"b@old"}
        batch 2026-03-20T00:00:00Z of 2
            open-batch New-MigrationBatch {"Name":"batch-{{_batch_id}}","Start":"2026-03-20T00:00:00Z"}
          prepare: due 2026-03-15T00:00:00Z, begins 2026-03-15T00:00:00Z
          cutover: due 2026-03-20T00:00:00Z, begins 2026-03-20T00:00:00Z
          1
            create-user New-EntraUser {"UserPrincipalName":"a@new"}
            wait-sync Test-EntraAttributeMatch {"ExpectedValues":["x","y"],"UserId":"{{TargetId}}"}
            switch Set-PrimaryEmail {"Identity":"a@old"}
          3
            create-user New-EntraUser {"UserPrincipalName":"c@new"}
            wait-sync Test-EntraAttributeMatch {"ExpectedValues":["z"],"UserId":"{{TargetId}}"}
            switch Set-PrimaryEmail {"Identity":"c@old"}
        error: line 5: member 4: the batch time "soon" is not a time; write 2026-03-15T06:00:00Z, 2026-03-15 06:00 or 2026-03-15
    "#]].assert_eq(&planned(&definition(WAVE_MAILBOX_MOVE), csv, "2026-03-12T00:00:00Z"));
}

#[test]
fn blackouts_delay_and_values_that_cannot_be_used_are_problems() {
    let csv = "Id,Verb,Aliases\n1,Set,a;b\n2,S e t,\n";
    // A Saturday in Berlin.
    expect![[r#"
        batch 2026-03-14T10:00:00Z of 2
            open batch New-MigrationBatch {"Name":"batch-{{_batch_id}}","Start":"2026-03-14T10:00:00Z"}
          prepare: due 2026-03-12T22:00:00Z, begins 2026-03-16T05:00:00Z, overdue
          cutover: due 2026-03-14T10:00:00Z, begins 2026-03-16T05:00:00Z, overdue
          1
            create New-EntraUser {"UserPrincipalName":"1"}
            switch Set-PrimaryEmail {"Force":true,"Identity":"1","Options":{"Aliases":["a","b"],"First":"a","Tags":["wave","EU"]},"Retries":5}
          2
            create New-EntraUser {"UserPrincipalName":"2"}
            switch /Options/First, column 3: Aliases.0 cannot be resolved: Aliases has 0 items, and no item "0"; write | default(…) if it may be missing [template-failed]
        error: line 3: member 2, phase cutover, step switch: /Options/First, column 3: Aliases.0 cannot be resolved: Aliases has 0 items, and no item "0"; write | default(…) if it may be missing [template-failed]
    "#]].assert_eq(&planned(&definition(EVERYTHING), csv, "2026-03-14T10:02:00Z"));
}

#[test]
fn a_manual_batch_is_advanced_by_hand() {
    let csv = "Id\n1\n";
    expect![[r#"
        batch by hand of 1
          only: due by hand, begins by hand
          1
            first Do-It {}
    "#]]
    .assert_eq(&planned(&definition(crate::SMALLEST), csv, "2026-03-14T10:02:00Z"));
}

#[test]
fn a_start_makes_one_batch_of_all_rows() {
    let csv = "Id\n1\n";
    let manual = definition(crate::SMALLEST);
    let start = Some("2026-03-14T11:00:00Z");
    expect![[r#"
        batch 2026-03-14T11:00:00Z of 1
          only: due 2026-03-14T11:00:00Z, begins 2026-03-14T11:00:00Z
          1
            first Do-It {}
    "#]]
    .assert_eq(&planned_from(&manual, csv, "2026-03-14T10:02:00Z", start));
    let csv = "SourceId,Upn,TargetUpn,Aliases,WaveTime\n\
               1,a@old,a@new,,2026-03-20\n\
               2,b@old,b@new,,soon\n";
    let text = planned_from(&definition(WAVE_MAILBOX_MOVE), csv, "2026-03-14T10:02:00Z", start);
    assert!(text.starts_with("batch 2026-03-14T11:00:00Z of 2\n"), "{text}");
}

#[test]
fn a_function_whose_name_is_not_known_yet_is_shown_as_written() {
    let yaml = crate::with(
        "      - {name: first, worker_id: pool, function: Do-It}\n",
        "      - {name: first, worker_id: pool, function: Find, output_params: {Verb: Verb}}\n      - {name: second, worker_id: pool, function: '{{Verb}}-{{_batch_id}}', params: {a: '{{Verb}}'}}\n",
    );
    expect![[r#"
        batch by hand of 1
          only: due by hand, begins by hand
          1
            first Find {}
            second {{Verb}}-{{_batch_id}} {"a":"{{Verb}}"}
    "#]]
    .assert_eq(&planned(&definition(&yaml), "Id\n1\n", "2026-03-14T10:02:00Z"));
}
