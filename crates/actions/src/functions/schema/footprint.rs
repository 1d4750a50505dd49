//! What a compiled schema takes in memory at worst. A regular expression builds its automaton while it runs: up to a
//! limit of the library, and once for each thread. Whether an automaton stays below that is found out by building it.

use regex_automata::dfa::{StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};

use super::pattern::{MAX_COUNTED_STATES, PatternSize, translated};
use crate::functions::limits::SCHEMA_THREADS;

/// Bytes that a byte of a schema's text becomes: values of `const` and `enum`, names, places.
const BYTES_PER_TEXT_BYTE: usize = 16;
/// Bytes that a subschema takes: a node here and one of the validator.
const BYTES_PER_SUBSCHEMA: usize = 4 * 1024;
/// Bytes that a state takes, estimated as in [`PatternSize`]: two automata, one for each direction.
const BYTES_PER_STATE: usize = 64;
/// Bytes that a state takes on each thread that runs the expression.
const THREAD_BYTES_PER_STATE: usize = 32;
/// Bytes that an expression takes beside its automata.
const BYTES_PER_PATTERN: usize = 16 * 1024;
/// Largest automaton that an expression builds while it runs, in bytes: what the library allows.
const MAX_AUTOMATON_BYTES: usize = 2 * 1024 * 1024;
/// Sizes within which an automaton is tried to be built, in bytes; one that is larger counts as one of the largest.
const TRIED_BYTES: [usize; 3] = [8 * 1024, 32 * 1024, 128 * 1024];

/// Bytes of a compiled schema at worst.
pub(super) fn of_schema<'s>(
    text_bytes: usize,
    subschemas: usize,
    patterns: impl Iterator<Item = (&'s str, PatternSize)>,
) -> usize {
    let patterns = patterns.map(|(pattern, size)| of_pattern(pattern, size));
    let rest =
        text_bytes.saturating_mul(BYTES_PER_TEXT_BYTE) + subschemas.saturating_mul(BYTES_PER_SUBSCHEMA);
    patterns.fold(rest, usize::saturating_add)
}

fn of_pattern(pattern: &str, size: PatternSize) -> usize {
    let states = usize::try_from(size.states).unwrap_or(usize::MAX);
    let automaton = if size.states <= MAX_COUNTED_STATES { automaton_bytes(pattern) } else { None };
    let on_thread = automaton
        .unwrap_or(MAX_AUTOMATON_BYTES)
        .saturating_add(states.saturating_mul(THREAD_BYTES_PER_STATE));
    BYTES_PER_PATTERN
        .saturating_add(states.saturating_mul(BYTES_PER_STATE))
        .saturating_add(on_thread.saturating_mul(SCHEMA_THREADS))
}

/// What the whole automaton of an expression takes; `None` when that is too much. One that is built while it runs has
/// no other states, and keeps for each what the building of the whole one takes.
fn automaton_bytes(pattern: &str) -> Option<usize> {
    let config = thompson::Config::new().which_captures(WhichCaptures::None);
    let states = thompson::Compiler::new().configure(config).build(&translated(pattern)).ok()?;
    TRIED_BYTES.into_iter().find_map(|limit| {
        let config = dense::Config::new()
            .start_kind(StartKind::Both)
            .accelerate(false)
            .unicode_word_boundary(true)
            .dfa_size_limit(Some(limit))
            .determinize_size_limit(Some(limit));
        let built = dense::Builder::new().configure(config).build_from_nfa(&states).ok()?;
        Some(built.memory_usage() + limit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(pattern: &str) -> usize {
        of_pattern(pattern, PatternSize::of(pattern).unwrap())
    }

    #[test]
    fn everyday_expressions_are_small_and_those_that_explode_are_not() {
        for pattern in [
            "^[a-z]+$",
            r"^\d{4}-\d{2}-\d{2}$",
            r"^[\w.+-]+@[\w-]+\.[\w.-]+$",
            "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
            r"^(GET|PUT|POST|DELETE) /[^\s]*$",
        ] {
            assert!(bytes(pattern) < 1024 * 1024, "{pattern}: {}", bytes(pattern));
        }
        for pattern in
            ["[ab]*a[ab]{30}$", "(a|b)*a(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)"]
        {
            assert!(bytes(pattern) > SCHEMA_THREADS * MAX_AUTOMATON_BYTES, "{pattern}: {}", bytes(pattern));
        }
    }
}
