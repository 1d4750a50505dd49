//! Documents that are made to hurt: each is refused with a clear problem, quickly and in little
//! memory.

use expect_test::{Expect, expect};
use fastrand::Rng;
use segno_actions::schedule::Zones;
use segno_runbook::limits::{MAX_RUNBOOK_BYTES, MAX_YAML_DEPTH, MAX_YAML_SCALAR_BYTES};
use segno_runbook::yaml::parse;

use crate::{EVERYTHING, SMALLEST, WAVE_MAILBOX_MOVE, problems, step_with};

fn check(yaml: impl AsRef<[u8]>, expected: Expect) {
    expected.assert_eq(&problems(yaml));
}

#[test]
fn a_bomb_of_anchors_is_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    check(
        bomb,
        expect![[r#"
        error: line 5, column 45: it has more than 100000 values, aliases expanded
    "#]],
    );
}

#[test]
fn a_large_text_cannot_be_multiplied_by_aliases() {
    let text = "x".repeat(400_000);
    let aliases = vec!["*t"; 900].join(", ");
    check(
        format!("t: &t {text}\nall: [{aliases}]\n"),
        expect![[r#"
        error: line 2, column 43: its values have more than 4194304 bytes, aliases expanded
    "#]],
    );
    let block = format!("t: &t |\n  {text}\nall: [{aliases}]\n");
    check(
        block,
        expect![[r#"
        error: line 3, column 43: its values have more than 4194304 bytes, aliases expanded
    "#]],
    );
}

#[test]
fn aliases_of_texts_have_a_limit_in_bytes() {
    let with_aliases = |count: usize| {
        let aliases = vec!["*t"; count].join(", ");
        problems(format!("t: &t {}\nall: [{aliases}]\n", "x".repeat(MAX_YAML_SCALAR_BYTES / 64)))
    };
    assert!(!with_aliases(60).contains("bytes"), "within the limit");
    assert!(with_aliases(65).contains("more than 4194304 bytes, aliases expanded"));
}

#[test]
fn a_bomb_of_merge_keys_is_refused() {
    let keys: String = (0..500).map(|key| format!("k{key}: 1, ")).collect();
    let merges: String = (0..900).map(|index| format!("m{index}: {{<<: *base}}\n")).collect();
    check(
        format!("base: &base {{{keys}}}\n{merges}"),
        expect![[r#"
        error: line 100, column 11: it has more than 100000 values, aliases expanded
    "#]],
    );
}

#[test]
fn an_alias_of_itself_is_refused() {
    check(
        "name: &a [*a]\n",
        expect![[r#"
        error: line 1, column 11: an alias stands for a value that contains the alias
    "#]],
    );
    check(
        "name: *nowhere\n",
        expect![[r#"
            error: line 1, column 7: the YAML cannot be read: alias references unknown anchor
        "#]],
    );
}

#[test]
fn deep_nesting_is_refused() {
    let depth = 100_000;
    check(
        "[".repeat(depth),
        expect![[r#"
            error: line 1, column 256: it is nested deeper than 32 levels, aliases and merge keys expanded
        "#]],
    );
    check(
        format!("{}1", "- ".repeat(depth)),
        expect![[r#"
        error: line 1, column 65: it is nested deeper than 32 levels, aliases and merge keys expanded
    "#]],
    );
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    // A step's params are at depth 6.
    assert_eq!(problems(step_with(&format!("params: {{a: {}}}", nested(MAX_YAML_DEPTH - 6)))), "");
    check(
        step_with(&format!("params: {{a: {}}}", nested(MAX_YAML_DEPTH - 5))),
        expect![[r#"
        error: line 7, column 95: it is nested deeper than 32 levels, aliases and merge keys expanded
    "#]],
    );
}

#[test]
fn merge_keys_that_follow_each_other_are_refused_as_such() {
    let mut chain = "a0: &a0 {x: 1}\n".to_owned();
    (1..60).for_each(|level| chain.push_str(&format!("a{level}: &a{level} {{<<: *a{}}}\n", level - 1)));
    check(
        chain,
        expect![[r#"
        error: line 1, column 9: it is nested deeper than 32 levels, aliases and merge keys expanded
    "#]],
    );
}

#[test]
fn too_many_values_are_refused() {
    check(
        format!("[{}]", "1,".repeat(200_000)),
        expect![[r#"
        error: line 1, column 200000: it has more than 100000 values, aliases expanded
    "#]],
    );
    let anchors: String = (0..2_000).map(|index| format!("- &a{index} x\n")).collect();
    check(
        anchors,
        expect![[r#"
        error: line 1001, column 10: it has more than 1000 anchors
    "#]],
    );
}

#[test]
fn a_document_that_is_too_large_is_refused() {
    check(
        "x".repeat(MAX_RUNBOOK_BYTES + 1),
        expect![[r#"
        error: line 1, column 1: the runbook has more than the limit of 1 MiB; split it into several runbooks
    "#]],
    );
}

#[test]
fn tabs_as_indentation_are_refused() {
    check(
        "name: x\ndata_source:\n\ttype: manual\n",
        expect![[r#"
            error: line 3, column 2: the YAML cannot be read: tabs disallowed within this context (block indentation)
        "#]],
    );
}

#[test]
fn a_byte_order_mark_is_taken() {
    assert_eq!(problems(format!("\u{feff}{SMALLEST}")), "");
    check(
        format!("\u{feff}namee: x\n{SMALLEST}"),
        expect![[r#"
        warning: line 1, column 1: namee: the key "namee" is not known and has no effect; did you mean "name"?
    "#]],
    );
}

#[test]
fn windows_line_ends_are_taken() {
    assert_eq!(problems(WAVE_MAILBOX_MOVE.replace('\n', "\r\n")), "");
}

#[test]
fn other_encodings_are_refused_at_their_place() {
    check(
        b"name: x\ndescription: M\xfcller\n",
        expect![[r#"
        error: line 2, column 15: the file is not UTF-8; save it as UTF-8
    "#]],
    );
    let utf16: Vec<u8> = "\u{feff}name: x\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(
        utf16,
        expect![[r#"
        error: line 1, column 1: the file is UTF-16; save it as UTF-8
    "#]],
    );
    check(
        b"name: \0\n",
        expect![[r#"
            error: line 1, column 7: the YAML cannot be read: unexpected character: `\u{0}'
        "#]],
    );
}

#[test]
fn several_documents_are_refused() {
    check(
        format!("{SMALLEST}---\n{SMALLEST}"),
        expect![[r#"
        error: line 9, column 1: there is more than one YAML document; write one runbook in each file, without a second ---
    "#]],
    );
    assert_eq!(problems(format!("---\n{SMALLEST}...\n")), "");
}

#[test]
fn odd_keys_are_refused() {
    check(
        "? [a, b]\n: c\n",
        expect![[r#"
            error: line 1, column 3: a key is not a text; write it in quotes
        "#]],
    );
    check(
        "~: c\n",
        expect![[r#"
            error: line 1, column 1: a key is not a text; write it in quotes
        "#]],
    );
    check(
        format!("{SMALLEST}{}: 1\n", "k".repeat(2_000)),
        expect![[r#"
            error: line 8, column 1: the YAML cannot be read: simple key expected ':'
        "#]],
    );
}

#[test]
fn tags_that_are_not_known_are_refused() {
    check(
        "name: !!python/object:os.system x\n",
        expect![[r#"
            error: line 1, column 33: the YAML cannot be read: unsupported tag `!!python/object:os.system`
        "#]],
    );
    check(
        "name: !include /etc/passwd\n",
        expect![[r#"
            error: line 1, column 16: the YAML cannot be read: unsupported tag `!include`
        "#]],
    );
}

#[test]
fn numbers_that_json_does_not_have_are_refused() {
    check(
        step_with("params: {a: .nan}"),
        expect![[r#"
            error: line 7, column 69: the number .nan has no JSON form; write it in quotes
        "#]],
    );
    check(
        step_with("params: {a: 1e999}"),
        expect![[r#"
            error: line 7, column 69: the number 1e999 has no JSON form; write it in quotes
        "#]],
    );
}

#[test]
fn no_text_makes_the_parser_panic() {
    let zones = Zones::bundled();
    let signs = b"{}[]:,-&*!|>'\"%@`#~<\n\t \\0aT";
    for seed in 0..1_500 {
        let mut random = Rng::with_seed(seed);
        let mut text = [EVERYTHING, WAVE_MAILBOX_MOVE, SMALLEST][random.usize(..3)].as_bytes().to_vec();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..text.len());
            match random.u8(..4) {
                0 => text[at] = signs[random.usize(..signs.len())],
                1 => text.insert(at, signs[random.usize(..signs.len())]),
                2 => {
                    let end = (at + random.usize(..40)).min(text.len());
                    text.drain(at..end);
                }
                _ => {
                    let end = (at + random.usize(..40)).min(text.len());
                    let part = text[at..end].to_vec();
                    let to = random.usize(..text.len());
                    text.splice(to..to, part);
                }
            }
            if text.is_empty() {
                break;
            }
        }
        if let Err(error) = parse(&text, &zones) {
            assert!(error.problems.has_errors(), "seed {seed}");
            let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64 + 2;
            assert!(error.problems.iter().all(|problem| problem.line <= lines), "seed {seed}: {error}");
        }
    }
}

#[test]
fn control_characters_in_data_sources_are_refused() {
    let source = |keys: &str| {
        format!(
            "name: x\ndata_source: {{{keys}, primary_key: Id, batch_time: immediate}}\nphases: [{{name: a, offset: T-0, \
             steps: [{{name: b, worker_id: w, function: f}}]}}]\n"
        )
    };
    for keys in [
        r#"type: csv, location: "/srv/a\u001b[2J.csv""#,
        r#"type: csv, location: "/srv/a\nb.csv""#,
        r#"type: sql, connection: DB, query: "SELECT 1\u0007""#,
        r#"type: sql, connection: {file: "/srv/a\u0007"}, query: SELECT"#,
        r#"type: http, url: "https://example.org/\u009b""#,
        r#"type: http, url: "https://example.org/", headers: {x: "a\u0001"}"#,
    ] {
        let found = problems(source(keys));
        assert!(found.contains("has the control character"), "{keys}: {found}");
    }
    assert_eq!(problems(source(r#"type: sql, connection: DB, query: "SELECT 1,\n\t2""#)), "");
}
