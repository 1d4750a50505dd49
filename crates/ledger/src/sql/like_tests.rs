use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Statement;

use super::*;

/// SQLite with its own functions, and with ours.
fn databases() -> [Connection; 2] {
    let [theirs, ours] = [(); 2].map(|()| Connection::open_in_memory().unwrap());
    theirs.execute_batch("PRAGMA case_sensitive_like = ON").unwrap();
    let never: IsOver = Arc::new(|| false);
    register(&ours, &never).unwrap();
    [theirs, ours]
}

/// A condition, evaluated by both.
struct Compared<'d> {
    condition: &'d str,
    statements: [Statement<'d>; 2],
}

impl<'d> Compared<'d> {
    fn new(databases: &'d [Connection; 2], condition: &'d str) -> Self {
        let prepare = |database: &'d Connection| database.prepare(&format!("SELECT {condition}")).unwrap();
        Compared { condition, statements: databases.each_ref().map(prepare) }
    }

    /// Our result, which is that of SQLite.
    fn value(&mut self, arguments: &[&str]) -> Result<Option<bool>, String> {
        let [theirs, ours] = self.statements.each_mut().map(|statement| {
            let arguments = rusqlite::params_from_iter(arguments);
            statement.query_row(arguments, |row| row.get(0)).map_err(|error: Error| error.to_string())
        });
        assert_eq!(ours, theirs, "{}: {arguments:?}", self.condition);
        ours
    }
}

#[test]
fn all_short_patterns_have_the_results_of_sqlite() {
    let databases = databases();
    let words = |letters: &[&str], most: usize| {
        let mut words = vec![String::new()];
        let mut last = words.clone();
        for _ in 0..most {
            last = last.iter().flat_map(|word| letters.iter().map(move |c| format!("{word}{c}"))).collect();
            words.extend(last.iter().cloned());
        }
        words
    };
    let mut compared = 0;
    for (condition, letters, texts) in [
        ("?2 LIKE ?1", &["%", "_", "a", "é"][..], &["a", "b", "é"][..]),
        ("?2 LIKE ?1 ESCAPE 'a'", &["%", "_", "a", "b"], &["a", "%", "b"]),
        ("?2 LIKE ?1 ESCAPE '%'", &["%", "_", "a"], &["a", "%", "_"]),
        ("?2 LIKE ?1 ESCAPE '_'", &["%", "_", "a"], &["a", "%", "_"]),
        ("?2 GLOB ?1", &["*", "?", "a", "é"], &["a", "b", "é"]),
        ("?2 GLOB ?1", &["[", "]", "^", "-", "a"], &["a", "]", "-"]),
    ] {
        let mut both = Compared::new(&databases, condition);
        for pattern in words(letters, 4) {
            for text in words(texts, 3) {
                both.value(&[&pattern, &text]).unwrap();
                compared += 1;
            }
        }
    }
    assert!(compared > 50_000, "{compared}");
}

#[test]
fn random_patterns_have_the_results_of_sqlite() {
    let databases = databases();
    let conditions = ["?2 LIKE ?1", "?2 LIKE ?1 ESCAPE '\\'", "?2 GLOB ?1", "like(?1, ?2)", "glob(?1, ?2)"];
    let mut conditions = conditions.map(|condition| Compared::new(&databases, condition));
    let mut random = fastrand::Rng::with_seed(7);
    let signs: Vec<char> = "%_*?[]^-aAbz09é漢😀\\".chars().collect();
    let letters: Vec<char> = "aAbz09é漢😀]-%_".chars().collect();
    let mut matched = 0;
    for _ in 0..10_000 {
        let mut word = |of: &[char], most: usize| -> String {
            (0..random.usize(..most)).map(|_| of[random.usize(..of.len())]).collect()
        };
        let (pattern, text) = (word(&signs, 12), word(&letters, 8));
        for both in &mut conditions {
            matched += u32::from(both.value(&[&pattern, &text]) == Ok(Some(true)));
        }
    }
    assert!(matched > 500, "{matched}");
}

#[test]
fn odd_arguments_have_the_results_of_sqlite() {
    let databases = databases();
    for condition in [
        "NULL LIKE 'a'",
        "'a' LIKE NULL",
        "'a' LIKE 'a' ESCAPE NULL",
        "'a' NOT LIKE 'b'",
        "NOT 'a' GLOB 'a'",
        "12 LIKE '1_'",
        "1.5 LIKE '1%'",
        "x'6162' LIKE 'a%'",
        "'A' LIKE 'a'",
        "'A' GLOB 'a'",
        "('a' || char(0) || 'b') LIKE 'a'",
        "'ab' LIKE ('a' || char(0) || 'x')",
        "'a' LIKE 'a' ESCAPE 'xy'",
        "'a' LIKE 'a' ESCAPE ''",
        "'m' GLOB '[a-y]*' AND 'z' GLOB '[^a-y]' AND 'é' GLOB '[à-ü]'",
    ] {
        let _ = Compared::new(&databases, condition).value(&[]);
    }
    let [_, ours] = databases;
    let refused = ours.query_row("SELECT 'a' GLOB ?1", ["a".repeat(257)], |row| row.get::<_, bool>(0));
    let refused = refused.unwrap_err().to_string();
    assert_eq!(refused, "the pattern of GLOB has 257 bytes, the limit is 256");
}

#[test]
fn a_match_ends_when_the_query_does() {
    let asked = Arc::new(AtomicU32::new(0));
    let text = "a".repeat(1_000_000);
    let hostile = format!("%{}b", "a".repeat(200));
    for (pattern, asks) in [(Pattern::like(&hostile, None), 3), (Pattern::glob(&"*a".repeat(100)), 1)] {
        asked.store(0, Ordering::Relaxed);
        let is_over = || asked.fetch_add(1, Ordering::Relaxed) + 1 == asks;
        assert_eq!(pattern.matches(&text, &is_over), Err(Interrupted));
        assert_eq!(asked.load(Ordering::Relaxed), asks);
    }
}

#[test]
fn wildcards_between_letters_take_time_in_the_length_of_the_text() {
    let text = "a".repeat(100_000);
    let steps = Arc::new(AtomicU32::new(0));
    let is_over = || {
        steps.fetch_add(STEPS_PER_CHECK, Ordering::Relaxed);
        false
    };
    for pattern in
        [format!("{}b", "%a".repeat(100)), format!("{}b%", "%a".repeat(100)), "%a_".repeat(80) + "b"]
    {
        steps.store(0, Ordering::Relaxed);
        assert_eq!(Pattern::like(&pattern, None).matches(&text, &is_over), Ok(false), "{pattern}");
        let steps = steps.load(Ordering::Relaxed) as usize;
        assert!(steps <= 4 * text.len(), "{pattern}: {steps} steps");
    }
}
