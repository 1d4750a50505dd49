//! What schemas accept and refuse, what is refused before the validator sees it, and that what is just below the limits
//! ends in time on the stated stack.

use std::cell::Cell;

use super::*;
use crate::functions::limits::{
    MAX_SCHEMA_BYTES, MAX_SCHEMA_CHAIN, MAX_SCHEMA_EVALUATIONS, MAX_SCHEMA_LEVELS, MAX_SCHEMA_RECURSION,
    MAX_SCHEMA_SUBSCHEMAS,
};

fn check(schema: &Value, input: &Value) -> Result<Vec<Violation>, Unchecked> {
    threads::run_blocking(|| InputSchema::compile_here(schema).unwrap().violations(input)).unwrap()
}

fn violations(schema: &Value, input: &Value) -> Vec<Violation> {
    check(schema, input).unwrap()
}

fn refusal(schema: &Value) -> String {
    let error = InputSchema::compile(schema).unwrap_err();
    assert_eq!(error.code(), "invalid-function");
    error.to_string()
}

/// `{"child": {"child": … {}}}`.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({}), |inner, _| json!({ "child": inner }))
}

/// Definitions `d0` to `dn`, each of which refers to the next one in some way; the last is something else.
fn defs(count: usize, refer: impl Fn(String) -> Value, last: Value) -> Value {
    let mut defs: serde_json::Map<String, Value> =
        (0..count).map(|n| (format!("d{n}"), refer(format!("#/$defs/d{}", n + 1)))).collect();
    defs.insert(format!("d{count}"), last);
    json!({ "$ref": "#/$defs/d0", "$defs": defs })
}

#[test]
fn an_input_is_checked_place_by_place() {
    let schema = json!({
        "type": "object",
        "required": ["to", "count"],
        "properties": {
            "to": { "type": "string", "pattern": "^[a-z]+@" },
            "count": { "$ref": "#/$defs/positive" },
            "list": { "items": { "type": "integer" } }
        },
        "additionalProperties": false,
        "$defs": { "positive": { "type": "integer", "minimum": 1 } }
    });
    assert_eq!(violations(&schema, &json!({ "to": "a@b", "count": 1 })), []);
    let found = violations(&schema, &json!({ "to": "A", "count": 0, "list": [1, "x"] }));
    let paths: Vec<&str> = found.iter().map(|violation| violation.path.as_str()).collect();
    for path in ["/to", "/count", "/list/1"] {
        assert!(paths.contains(&path), "{found:?}");
    }
    let found = violations(&schema, &json!({ "surprise": 1 }));
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(text.iter().any(|line| line.contains("to") && line.contains("count")), "{text:?}");
    assert!(text.iter().any(|line| line.contains("surprise")), "{text:?}");
}

#[test]
fn violations_are_bounded() {
    let schema = json!({ "items": { "type": "string" } });
    let input: Vec<u32> = (0..1_000).collect();
    assert_eq!(violations(&schema, &json!(input)).len(), MAX_VIOLATIONS);
    let input: Vec<u32> = (0..200_000).collect();
    let found = violations(&schema, &json!(input));
    assert!(found.len() == 1 && found[0].reason.contains("too large for a list"), "{found:?}");
    let long = violations(&json!({ "pattern": "^b" }), &json!("a".repeat(100_000)));
    assert_eq!(long[0].reason.chars().count(), MAX_REASON_CHARS);
}

#[test]
fn bad_schemas_are_refused_when_declared() {
    let patterns: Vec<Value> = (0..40).map(|n| json!({ "pattern": format!("a{n}") })).collect();
    for (schema, says) in [
        (json!({ "type": "strnig" }), "not a usable JSON Schema"),
        (json!(7), "not a usable JSON Schema"),
        (json!({ "pattern": "(" }), "not a usable JSON Schema"),
        (json!({ "$ref": "file:///etc/passwd" }), "another document"),
        (json!({ "$ref": "http://127.0.0.1/x" }), "another document"),
        (json!({ "$ref": "other.json" }), "another document"),
        (json!({ "$ref": "https://json-schema.org/draft/2020-12/schema" }), "another document"),
        (json!({ "$schema": "http://example.org/mine" }), "not a usable JSON Schema"),
        (json!({ "$ref": "#/$defs/missing" }), "not a usable JSON Schema"),
        (json!({ "$ref": "#missing" }), "not a usable JSON Schema"),
        (json!({ "description": "x".repeat(MAX_SCHEMA_BYTES) }), "bytes"),
        (json!({ "anyOf": patterns }), "40 regular expressions"),
        (json!({ "pattern": "((a{100}){100}){100}" }), "states"),
        (json!({ "pattern": r"\cA".repeat(1_000) }), "3000 bytes"),
        (json!({ "pattern": r"\s".repeat(1_000) }), "bytes of parsing"),
        (json!({ "x": { "$id": "y" }, "$ref": "#/x" }), "not a place for subschemas"),
        (
            json!({ "$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveRef": "#" }),
            "$recursiveRef",
        ),
    ] {
        let error = refusal(&schema);
        assert!(error.contains(says), "{schema}: {error}");
    }
}

#[test]
fn schemas_over_a_limit_are_refused_when_declared() {
    let wide: Vec<Value> = (0..=MAX_SCHEMA_SUBSCHEMAS).map(|_| json!({})).collect();
    let deep = (0..MAX_SCHEMA_LEVELS).fold(json!({}), |inner, _| json!({ "not": inner }));
    let one = |to: String| json!({ "$ref": to });
    let two = |to: String| json!({ "allOf": [{ "$ref": to }, { "$ref": to }] });
    for (schema, says) in [
        (defs(1_100, one, json!({})), "1101 references"),
        (defs(MAX_SCHEMA_CHAIN, one, json!({})), "in a row"),
        (defs(40, two, json!({})), "in a row"),
        (defs(20, two, json!({})), "evaluations"),
        (json!({ "anyOf": wide }), "subschemas"),
        (deep, "levels"),
        (json!({ "$ref": "#" }), "refers to itself"),
        (json!({ "anyOf": [{ "type": "string" }, { "$ref": "#" }] }), "refers to itself"),
        (json!({ "if": true, "then": { "not": { "$ref": "#" } } }), "refers to itself"),
        (json!({ "dependentSchemas": { "a": { "$ref": "#" } } }), "refers to itself"),
        (json!({ "$dynamicAnchor": "a", "oneOf": [{ "$dynamicRef": "#a" }] }), "refers to itself"),
        (
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "dependencies": { "a": { "$ref": "#" } } }),
            "refers to itself",
        ),
    ] {
        let error = refusal(&schema);
        assert!(error.contains(says), "{says}: {error}");
    }
}

#[test]
fn an_evaluation_over_the_budget_is_refused_before_it_is_made() {
    let tree = json!({ "properties": { "child": { "$ref": "#" } } });
    // Each level of input is evaluated by both branches, and each branch makes errors of its own.
    let branches = |keyword: &str| {
        let branch =
            |n: u32| json!({ "properties": { "child": { "$ref": "#" } }, "required": [format!("k{n}")] });
        json!({ keyword: [branch(1), branch(2)] })
    };
    let wide: serde_json::Map<String, Value> = (0..1_500).map(|n| (format!("k{n}"), json!(n))).collect();
    let keys: Vec<String> = (0..1_500).map(|n| format!("k{n}")).collect();
    let required: Vec<Value> = (0..400).map(|_| json!({ "$ref": "#/$defs/all" })).collect();
    let nests: Vec<Value> =
        (0..4_000).map(|n| (0..n % 100).fold(json!([]), |inner, _| json!([inner]))).collect();
    for (schema, input) in [
        (tree.clone(), nested(120)),
        (tree, nested(1_000)),
        (branches("allOf"), nested(40)),
        (branches("anyOf"), nested(40)),
        (branches("oneOf"), nested(40)),
        (
            json!({ "allOf": required, "$defs": { "all": { "items": { "required": keys } } } }),
            json!(vec![wide; 10]),
        ),
        (json!({ "uniqueItems": true }), json!(nests)),
        (json!({ "pattern": "[ab]*a[ab]{2000}$" }), json!("ab".repeat(300_000))),
        (json!({ "patternProperties": { "[ab]*a[ab]{2000}$": true } }), json!({ ("ab".repeat(300_000)): 1 })),
        (
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "format": "regex" }),
            json!(r"\cA".repeat(100_000)),
        ),
        (
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "format": "regex" }),
            json!(r"\s".repeat(1_000)),
        ),
    ] {
        let refused = check(&schema, &input).unwrap_err().cost.to_string();
        assert!(refused.contains("evaluations") || refused.contains("levels"), "{schema}: {refused}");
    }
}

#[test]
fn what_is_just_below_the_limits_ends_on_the_stated_stack() {
    // The deepest recursion of the validator: one level of input is two levels of it.
    let tree = json!({ "properties": { "child": { "$ref": "#" } }, "required": ["child"] });
    assert_eq!(violations(&tree, &nested(MAX_SCHEMA_RECURSION / 2)).len(), 1);
    assert!(check(&tree, &nested(MAX_SCHEMA_RECURSION / 2 + 1)).is_err());
    // The frames with the most state: objects, branches and references in turn.
    let mixed = json!({
        "properties": { "child": { "if": true, "then": { "oneOf": [{ "$ref": "#" }] } } },
        "unevaluatedProperties": false
    });
    assert_eq!(violations(&mixed, &nested(MAX_SCHEMA_RECURSION / 4)), []);
    // The longest chain on one value, and the deepest text.
    let chain = defs(MAX_SCHEMA_CHAIN - 2, |to| json!({ "$ref": to }), json!({ "type": "string" }));
    assert_eq!(violations(&chain, &json!(1)).len(), 1);
    let deep = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({ "not": inner }));
    assert_eq!(violations(&deep(MAX_SCHEMA_CHAIN), &json!(1)).len(), 1);
    let deep =
        (1..MAX_SCHEMA_LEVELS / 2).fold(json!({}), |inner, _| json!({ "properties": { "child": inner } }));
    assert_eq!(violations(&deep, &nested(MAX_SCHEMA_LEVELS / 2)), []);
    // Nearly a million evaluations on one value, and over many.
    let two = |to: String| json!({ "allOf": [{ "$ref": to }, { "$ref": to }] });
    let exponential = defs(17, two, json!({ "type": "string" }));
    let found = violations(&exponential, &json!(1));
    assert!(found[0].reason.contains("too large for a list"), "{found:?}");
    let items = usize::try_from(MAX_SCHEMA_EVALUATIONS).unwrap() / 2 - 10;
    let strings = json!({ "items": { "allOf": [{ "type": "integer" }] } });
    assert_eq!(violations(&strings, &json!(vec![1; items])), []);
}

#[test]
fn wide_inputs_and_schemas_of_everyday_use_are_checked() {
    let names: serde_json::Map<String, Value> =
        (0..500).map(|n| (format!("k{n}"), json!({ "type": "string", "maxLength": 100 }))).collect();
    let row: serde_json::Map<String, Value> = (0..500).map(|n| (format!("k{n}"), json!("text"))).collect();
    let schema = json!({ "items": { "properties": names, "unevaluatedProperties": false } });
    assert_eq!(violations(&schema, &json!(vec![row; 100])), []);
    let rows: Vec<Value> =
        (0..2_000).map(|n| json!({ "id": n, "tags": ["a", "b"], "at": [n, n + 1] })).collect();
    assert_eq!(violations(&json!({ "uniqueItems": true, "items": { "type": "object" } }), &json!(rows)), []);
    let text = json!({ "pattern": "^[\\s\\S]{1,4000}$" });
    assert_eq!(violations(&text, &json!("word ".repeat(700))), []);
    let people: Vec<String> = (0..1_000).map(|n| format!("Zoë Ünlü {n}")).collect();
    assert_eq!(violations(&json!({ "items": { "pattern": "^[\\p{L}0-9 ]{1,100}$" } }), &json!(people)), []);
}

#[test]
fn references_lead_where_the_validator_leads_them() {
    let tree = json!({
        "$id": "https://example.org/tree", "$dynamicAnchor": "node",
        "properties": { "name": { "type": "string" }, "children": { "items": { "$dynamicRef": "#node" } } }
    });
    let strict = json!({
        "$id": "https://example.org/strict", "$dynamicAnchor": "node",
        "$ref": "tree", "unevaluatedProperties": false, "$defs": { "tree": tree }
    });
    assert_eq!(violations(&strict, &json!({ "children": [{ "name": "a" }] })), []);
    assert_ne!(violations(&strict, &json!({ "children": [{ "nmae": "a" }] })), []);
    for (schema, fits, breaks) in [
        (
            json!({ "properties": { "child": { "$ref": "#" } }, "required": ["name"] }),
            json!({ "name": 1, "child": { "name": 2 } }),
            json!({ "name": 1, "child": {} }),
        ),
        (
            json!({ "$ref": "#whole", "$defs": { "n": { "$anchor": "whole", "type": "integer" } } }),
            json!(1),
            json!("1"),
        ),
        (
            json!({ "$ref": "n#/$defs/m", "$defs": { "n": { "$id": "n", "$defs": { "m": { "minimum": 3 } } } } }),
            json!(3),
            json!(2),
        ),
        (
            json!({ "$ref": "#/$defs/a~1b%25", "$defs": { "a/b%": { "type": "null" } } }),
            json!(null),
            json!(0),
        ),
        (
            json!({ "$ref": "#/components/x", "components": { "x": { "items": { "$ref": "#/components/y" } }, "y": { "const": 1 } } }),
            json!([1, 1]),
            json!([1, 2]),
        ),
        (
            json!({ "$schema": "http://json-schema.org/draft-07/schema#", "items": [{ "type": "string" }], "additionalItems": { "$ref": "#/definitions/n" },
            "definitions": { "n": { "type": "number" } } }),
            json!(["a", 1]),
            json!(["a", "b"]),
        ),
        (
            json!({ "$schema": "http://json-schema.org/draft-04/schema#", "id": "root.json", "properties": { "a": { "$ref": "#n" } },
            "definitions": { "n": { "id": "#n", "maximum": 3, "exclusiveMaximum": true } } }),
            json!({ "a": 2 }),
            json!({ "a": 3 }),
        ),
        (
            json!({ "patternProperties": { "^a": { "type": "string" }, "z$": { "minLength": 2 } }, "additionalProperties": false }),
            json!({ "az": "xx" }),
            json!({ "az": "x" }),
        ),
        (json!({ "propertyNames": { "maxLength": 2 } }), json!({ "ab": 1 }), json!({ "abc": 1 })),
        (
            json!({ "dependentSchemas": { "a": { "required": ["b"] } } }),
            json!({ "a": 1, "b": 2 }),
            json!({ "a": 1 }),
        ),
        (json!({ "contains": { "type": "string" }, "maxContains": 1 }), json!([1, "a"]), json!(["a", "b"])),
        (
            json!({ "prefixItems": [{ "type": "string" }], "items": { "$ref": "#/prefixItems/0" } }),
            json!(["a", "b"]),
            json!(["a", 1]),
        ),
        (
            json!({ "if": { "type": "object" }, "then": { "required": ["a"] }, "else": false }),
            json!({ "a": 1 }),
            json!({}),
        ),
        (json!({ "oneOf": [{ "multipleOf": 2 }, { "multipleOf": 3 }] }), json!(4), json!(6)),
        (json!(true), json!(1), Value::Null),
    ] {
        assert_eq!(violations(&schema, &fits), [], "{schema}");
        if schema != json!(true) {
            assert_ne!(violations(&schema, &breaks), [], "{schema}");
        }
    }
}

thread_local! {
    static EVALUATED: Cell<u64> = const { Cell::new(0) };
}

/// A schema of random keywords; every subschema has a format that counts how often it is evaluated.
fn random_schema(random: &mut fastrand::Rng, depth: u32) -> Value {
    if depth == 0 || random.u8(..8) == 0 {
        let leaves =
            [json!({ "type": "object" }), json!({ "const": 1 }), json!({ "minProperties": 2 }), json!({})];
        let mut leaf = leaves[random.usize(..leaves.len())].clone();
        leaf["format"] = json!("counted");
        return leaf;
    }
    let mut schema = json!({ "format": "counted" });
    for _ in 0..random.u8(1..4) {
        let inner = |random: &mut fastrand::Rng| {
            if random.u8(..3) == 0 {
                json!({ "$ref": format!("#/$defs/d{}", random.u8(..4)), "format": "counted" })
            } else {
                random_schema(random, depth - 1)
            }
        };
        let one = inner(random);
        match random.u8(..14) {
            0 => schema["allOf"] = json!([one, random_schema(random, depth - 1)]),
            1 => schema["anyOf"] = json!([one, random_schema(random, depth - 1)]),
            2 => schema["oneOf"] = json!([one, random_schema(random, depth - 1)]),
            3 => schema["not"] = one,
            4 => {
                (schema["if"], schema["then"], schema["else"]) = (one.clone(), one, random_schema(random, 1))
            }
            5 => schema["properties"] = json!({ "a": one, "b": random_schema(random, depth - 1) }),
            6 => schema["patternProperties"] = json!({ "a|c": one }),
            7 => schema["additionalProperties"] = one,
            8 => schema["propertyNames"] = one,
            9 => schema["dependentSchemas"] = json!({ "a": one }),
            10 => schema["unevaluatedProperties"] = one,
            11 => schema["items"] = one,
            12 => schema["contains"] = one,
            _ => {
                (schema["prefixItems"], schema["unevaluatedItems"]) =
                    (json!([one]), random_schema(random, depth - 1))
            }
        }
    }
    schema
}

fn random_input(random: &mut fastrand::Rng, depth: u32) -> Value {
    match random.u8(..6) {
        0 | 1 if depth > 0 => (0..random.u8(..4)).map(|_| random_input(random, depth - 1)).collect(),
        2..=4 if depth > 0 => {
            let names = ["a", "b", "c", "ab"].into_iter().filter(|_| random.bool()).collect::<Vec<_>>();
            names.into_iter().map(|name| (name.to_owned(), random_input(random, depth - 1))).collect()
        }
        _ => [json!(1), json!("a"), json!(null)][random.usize(..3)].clone(),
    }
}

#[test]
fn the_count_is_never_below_what_the_validator_evaluates_and_the_answer_is_its_own() {
    let mut checked = 0;
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut schema = random_schema(&mut random, 3);
        for n in 0..4 {
            schema["$defs"][format!("d{n}")] = random_schema(&mut random, 2);
        }
        let inputs: Vec<Value> = (0..8).map(|_| random_input(&mut random, 4)).collect();
        let seen = threads::run_blocking(|| {
            // Schemas that refer to themselves for the same value are refused, and so are some others.
            let Ok(ours) = InputSchema::compile_here(&schema) else { return 0 };
            let mut theirs = Compiling::new();
            theirs.compiler.enable_format_assertions();
            theirs.compiler.register_format(boon::Format {
                name: "counted",
                func: |_| {
                    EVALUATED.set(EVALUATED.get() + 1);
                    Ok(())
                },
            });
            let index = theirs.compile(SCHEMA_URL, schema.clone()).unwrap();
            for input in &inputs {
                EVALUATED.set(0);
                let fits = theirs.schemas.validate(input, index).is_ok();
                let matches = |pattern: usize, name: &str| {
                    // Now and then as if it were too large to be compiled for counting.
                    let known = (seed % 2 == 0).then_some(ours.patterns[pattern]).flatten()?;
                    Some(ours.schemas.validate(&json!(name), known).is_ok())
                };
                let counted =
                    cost::count(&ours.graph, &matches, input).map_or(u64::MAX, |cost| cost.evaluations);
                assert!(
                    counted >= EVALUATED.get(),
                    "seed {seed}: {schema} {input}: {counted} < {}",
                    EVALUATED.get()
                );
                if let Ok(found) = ours.violations(input) {
                    assert_eq!(found.is_empty(), fits, "seed {seed}: {schema} {input}");
                }
            }
            1
        });
        checked += seen.unwrap();
    }
    assert!(checked > 100, "only {checked} schemas could be followed");
}

#[test]
fn a_format_that_is_a_remark_is_not_counted_as_an_expression() {
    let text = json!(r"\s".repeat(1_000));
    assert_eq!(violations(&json!({ "format": "regex" }), &text), []);
    let seven = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "format": "regex" });
    assert_eq!(violations(&seven, &json!(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}$")), []);
    assert_eq!(violations(&seven, &json!("(")).len(), 1);
}
