//! The page of the guide on the format names every key, and its example is the one in `examples/`.

use std::collections::BTreeSet;

use segno_runbook::yaml::OBJECTS;

use crate::{WAVE_MAILBOX_MOVE, definition};

const PAGE: &str = include_str!("../../../../docs/guide/runbooks.md");

/// Blocks of code in a language.
fn blocks(language: &str) -> Vec<String> {
    let begin = format!("```{language}\n");
    PAGE.split(&begin).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0.to_owned())).collect()
}

#[test]
fn every_key_is_on_the_page() {
    let prose: String = PAGE.split("```").step_by(2).collect();
    let code = prose.split('`').skip(1).step_by(2);
    let words: BTreeSet<&str> =
        code.flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect();
    for object in OBJECTS {
        for key in object.keys {
            assert!(
                words.contains(key),
                "docs/guide/runbooks.md does not describe {key} of {}",
                object.object
            );
        }
    }
}

#[test]
fn the_example_of_the_page_is_the_one_that_is_run() {
    let example = blocks("yaml").into_iter().find(|block| block.starts_with("name:")).unwrap();
    assert_eq!(definition(&example), definition(WAVE_MAILBOX_MOVE));
}
