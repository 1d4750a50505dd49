//! The JSON Schema for editors has every key of the format, and takes what the parser takes.

use std::collections::BTreeSet;
use std::path::Path;

use boon::{Compiler, Schemas};
use segno_ledger::plan::yaml::OBJECTS;
use serde_json::Value;

use crate::{DAILY_SALES, EVERYTHING, SMALLEST, parsed, problems, tasks, with};

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/dag.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Whether the schema takes a document, and else why not.
fn validated(yaml: &str) -> Result<(), String> {
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    compiler.add_resource("dag.json", schema()).unwrap();
    let index = compiler.compile("dag.json", &mut schemas).unwrap();
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
        with("schedule: {every: 1h, anchor: 2026-01-01T00:00:00Z}"),
        with("schedule: {at: 2026-01-01T00:00:00Z}"),
        with("notify: {function: f}"),
        with("params: {a: {}, b: , c: [1], d: true}"),
        tasks(&[
            "key: a, function: f, for_each: '{{ params.day }}'",
            "key: b, orchestration: F, depends_on: a",
        ]),
        parsed(EVERYTHING).dag.to_json(),
        parsed(DAILY_SALES).dag.to_json(),
    ];
    for yaml in [DAILY_SALES, EVERYTHING, SMALLEST].into_iter().chain(smaller.iter().map(String::as_str)) {
        parsed(yaml);
        assert_eq!(validated(yaml), Ok(()), "{yaml}");
    }
}

#[test]
fn what_the_schema_refuses_the_parser_reports() {
    for yaml in [
        with("unknown: 1"),
        with("max_concurrent_runs: 0"),
        with("pools: {a: 0}"),
        with("pools: [a]"),
        with("partitions: {a: {window: yearly, first: 2026-01}}"),
        with("partitions: {a: {window: daily}}"),
        with("partitions: {a: {values: []}}"),
        with("partitions: {a: {dimensions: [a]}}"),
        with("assets: {a: {upstream: [{mapping: all}]}}"),
        with("schedule: {daylight: {gap: leap}}"),
        with("sensors: [{name: a}]"),
        with("notify: {on: [run_failed]}"),
        with("defaults: {retry: {attempts: 0}}"),
        with("params: {'a b': 1}"),
        tasks(&["function: f"]),
        tasks(&["key: a"]),
        tasks(&["key: a, function: f, orchestration: F"]),
        tasks(&["key: a, function: F"]),
        tasks(&["key: a, function: f, timeout: 5"]),
        tasks(&["key: a, function: f, trigger_rule: some_done"]),
        tasks(&["key: a, function: f, for_each: {max_items: 5}"]),
        tasks(&["key: a, function: f, depends_on: {a: b}"]),
        "name: a\n".to_owned(),
    ] {
        assert!(validated(&yaml).is_err(), "the schema takes {yaml}");
        assert_ne!(problems(&yaml), "", "the parser takes {yaml}");
    }
}
