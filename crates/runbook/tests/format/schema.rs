//! The JSON Schema for editors has every key of the format, and takes what the parser takes.

use std::collections::BTreeSet;
use std::path::Path;

use boon::{Compiler, Schemas};
use segno_runbook::yaml::OBJECTS;
use serde_json::Value;

use crate::{EVERYTHING, SMALLEST, WAVE_MAILBOX_MOVE, parsed, phase_with, problems, step_with, with};

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/runbook.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Whether the schema takes a document, and else why not.
fn validated(yaml: &str) -> Result<(), String> {
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    compiler.add_resource("runbook.json", schema()).unwrap();
    let index = compiler.compile("runbook.json", &mut schemas).unwrap();
    let document: Value = serde_saphyr::from_str(yaml).unwrap();
    schemas.validate(&document, index).map_err(|error| format!("{error:#}"))
}

#[test]
fn every_key_of_the_format_is_in_the_schema_and_no_other() {
    let schema = schema();
    for object in OBJECTS {
        let properties = &schema["$defs"][object.object]["properties"];
        let in_schema: BTreeSet<&str> = properties.as_object().unwrap().keys().map(String::as_str).collect();
        let in_format: BTreeSet<&str> = object.keys.iter().copied().collect();
        assert_eq!(in_schema, in_format, "{}", object.object);
    }
}

#[test]
fn what_the_parser_takes_the_schema_takes() {
    let smaller = [
        phase_with("waves: [5, '25%', {percent: 100, pause: 1h}]"),
        phase_with("approval: false"),
        phase_with("error_budget: 1"),
        phase_with("error_budget: 7%"),
        phase_with("max_parallel: 10%"),
        step_with("retry: {max_retries: 3}"),
        step_with("poll: {interval: 1m 30s, timeout: 2d}"),
        with("offset: T-0", "offset: T-1d12h"),
        with("function: Do-It", "function: '{{Verb}}-It'"),
        with("type: manual,", "type: csv, location: /srv/a.csv, batch_time_column: At,"),
        with("type: manual,", "type: function, function: list, input: [1], batch_time: immediate,"),
        with(
            "type: manual,",
            "type: sql, connection: {file: /run/db}, query: SELECT 1, batch_time: immediate,",
        ),
        format!("{SMALLEST}blackout: [{{days: SAT, from: '6:00', to: '24:00'}}, {{days: [12-25]}}]\n"),
    ];
    for yaml in
        [WAVE_MAILBOX_MOVE, EVERYTHING, SMALLEST].into_iter().chain(smaller.iter().map(String::as_str))
    {
        parsed(yaml);
        assert_eq!(validated(yaml), Ok(()), "{yaml}");
    }
}

#[test]
fn what_the_schema_refuses_the_parser_reports() {
    for yaml in [
        with("offset: T-0", "offset: T+1d"),
        with("name: only", "nam: only"),
        with("type: manual,", "type: sql,"),
        with("type: manual,", "type: dataverse,"),
        phase_with("success_threshold: 101"),
        phase_with("max_parallel: 0"),
        phase_with("unknown: 1"),
        step_with("retry: {max_retries: -1}"),
        step_with("poll: {interval: 1m}"),
        step_with("output_params: {}"),
        step_with("params: [1]"),
        format!("{SMALLEST}members: all\n"),
        format!("{SMALLEST}blackout: [{{from: noon}}]\n"),
    ] {
        assert!(validated(&yaml).is_err(), "the schema takes {yaml}");
        assert_ne!(problems(&yaml), "", "the parser takes {yaml}");
    }
}
