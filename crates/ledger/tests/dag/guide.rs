//! The page of the guide names every key, and its examples are those in `examples/`.

use std::collections::BTreeSet;

use segno_ledger::plan::rehearsal::{STUB_OBJECTS, parse_stubs};
use segno_ledger::plan::yaml::OBJECTS;
use segno_ledger::tables::TriggerRule;

use crate::{DAILY_SALES, parsed};

const PAGE: &str = include_str!("../../../../docs/guide/dags.md");
const STUBS: &str = include_str!("../../../../examples/dags/stubs.yaml");

#[test]
fn every_key_is_on_the_page() {
    let prose: String = PAGE.split("```").step_by(2).collect();
    let code = prose.split('`').skip(1).step_by(2);
    let words: BTreeSet<&str> =
        code.flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect();
    for object in OBJECTS.iter().chain(STUB_OBJECTS) {
        for key in object.keys {
            assert!(words.contains(key), "docs/guide/dags.md does not describe {key} of {}", object.object);
        }
    }
    for rule in TriggerRule::ALL {
        assert!(words.contains(rule.text()), "docs/guide/dags.md does not describe {}", rule.text());
    }
}

#[test]
fn the_examples_of_the_page_are_those_that_are_run() {
    for example in [DAILY_SALES, STUBS] {
        assert!(
            PAGE.contains(&format!("```yaml\n{example}```")),
            "docs/guide/dags.md shows something else than\n{example}"
        );
    }
    let (_, warnings) = parse_stubs(STUBS.as_bytes(), &parsed(DAILY_SALES).dag).unwrap();
    assert_eq!(warnings.warnings(), 0, "{:?}", warnings.iter().collect::<Vec<_>>());
}
