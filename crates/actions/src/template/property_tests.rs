//! Random templates, conditions and values: nothing panics, everything ends, every result is within its limit.

use super::limits::{MAX_DEPTH, MAX_OUTPUT_BYTES};
use super::{Condition, JsonTemplate, Template};
use fastrand::Rng;
use serde_json::{Value, json};

/// Rounds of the normal run; `SEGNO_TEMPLATE_ROUNDS` says otherwise.
const ROUNDS: u64 = 20_000;

/// Pieces that templates and conditions are made of, so that random ones are often right and always nearly so.
const PIECES: [&str; 52] = [
    "{{",
    "}}",
    "{",
    "}",
    " ",
    "payload",
    "headers",
    "a",
    "b-c",
    "0",
    "1",
    ".",
    "[",
    "]",
    "(",
    ")",
    "|",
    "json",
    "string",
    "base64",
    "lower",
    "upper",
    "trim",
    "default",
    "\"",
    "'",
    "\\",
    "x",
    "ä",
    "\u{1F3BC}",
    "\0",
    "\n",
    ",",
    "-",
    "1e9",
    "-1.5",
    "true",
    "null",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    "and",
    "or",
    "not",
    "in",
    "contains",
    "exists",
    "{{payload.a}}",
    "{{ payload | json }}",
    "{{ a.b-c | default('x') }}",
];

fn rounds() -> u64 {
    std::env::var("SEGNO_TEMPLATE_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap())
}

fn text(random: &mut Rng) -> String {
    (0..random.usize(..24)).map(|_| *random.choice(&PIECES).unwrap()).collect()
}

fn value(random: &mut Rng, depth: usize) -> Value {
    match random.u8(..if depth < 6 { 8 } else { 5 }) {
        0 => Value::Null,
        1 => json!(random.bool()),
        2 => json!(random.i64(..)),
        3 => json!(random.f64()),
        4 => json!(text(random)),
        5 => (0..random.usize(..4)).map(|_| value(random, depth + 1)).collect(),
        _ => {
            let names = ["payload", "headers", "a", "b-c", "0", "1"];
            let fields = (0..random.usize(..4))
                .map(|_| ((*random.choice(&names).unwrap()).to_owned(), value(random, depth + 1)));
            Value::Object(fields.collect())
        }
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn random_templates_render_or_fail_within_their_limits() {
    let mut rendered = 0;
    for seed in 0..rounds() {
        let mut random = Rng::with_seed(seed);
        let names = json!({ "payload": value(&mut random, 0), "headers": value(&mut random, 0), "a": value(&mut random, 0) });
        let source = text(&mut random);
        if let Ok(result) = Template::parse(&source).and_then(|template| template.render(&names)) {
            assert!(result.len() <= MAX_OUTPUT_BYTES, "seed {seed}");
            rendered += u64::from(source.contains("{{"));
        }
        let source = value(&mut random, 0);
        if let Ok(template) = JsonTemplate::parse(&source) {
            let stored = serde_json::to_value(&template).unwrap();
            assert_eq!(stored, source, "seed {seed}");
            if let Ok(result) = template.render(&names) {
                assert!(depth(&result) <= MAX_DEPTH, "seed {seed}");
                assert!(result.to_string().len() <= 2 * MAX_OUTPUT_BYTES, "seed {seed}");
            }
        }
    }
    assert!(rendered > rounds() / 100, "only {rendered} templates with placeholders were right");
}

#[test]
fn random_conditions_have_an_answer_and_its_opposite() {
    let mut read = 0;
    for seed in 0..rounds() {
        let mut random = Rng::with_seed(seed);
        let source = text(&mut random).replace("{{", "a ").replace("}}", " b");
        let Ok(condition) = Condition::parse(&source) else { continue };
        let names = json!({ "payload": value(&mut random, 0), "headers": value(&mut random, 0), "a": value(&mut random, 0) });
        let opposite = Condition::parse(&format!("not ({source})")).unwrap();
        assert_ne!(condition.holds(&names), opposite.holds(&names), "seed {seed}: {source}");
        read += 1;
    }
    assert!(read > rounds() / 200, "only {read} conditions were right");
}

#[test]
fn a_text_without_braces_is_itself() {
    for seed in 0..rounds() / 10 {
        let source = text(&mut Rng::with_seed(seed)).replace("{{", "");
        if source.contains("{{") {
            continue;
        }
        assert_eq!(Template::parse(&source).unwrap().render(&Value::Null).unwrap(), source, "seed {seed}");
    }
}
