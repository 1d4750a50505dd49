//! Documents that are made to hurt: each is refused with a clear problem, quickly and in little memory.

use std::fmt::Write as _;

use fastrand::Rng;
use segno_actions::schedule::Zones;
use segno_ledger::plan::limits::{MAX_DAG_BYTES, MAX_EDGES, MAX_TASKS};
use segno_ledger::plan::parse;

use crate::{DAILY_SALES, EVERYTHING, SMALLEST, parsed, problems, with};

/// A DAG with so many tasks, each after these of the tasks before it.
fn many(count: usize, before: impl Fn(usize) -> Vec<usize>) -> String {
    let mut text = "name: many\ntasks:\n".to_owned();
    for task in 0..count {
        let before: Vec<String> = before(task).iter().map(|before| format!("t{before}")).collect();
        writeln!(text, "- {{key: t{task}, function: f, depends_on: [{}]}}", before.join(",")).unwrap();
    }
    text
}

#[test]
fn the_largest_dag_is_read_and_one_task_more_is_not() {
    let chain = |task: usize| task.checked_sub(1).into_iter().collect();
    let largest = parsed(&many(MAX_TASKS, chain));
    assert_eq!(largest.graph.critical_path_length(), MAX_TASKS);
    let problem = problems(many(MAX_TASKS + 1, chain));
    assert!(problem.contains("tasks: the list has 10001 items, the limit is 10000"), "{problem}");
}

#[test]
fn too_many_edges_are_refused() {
    let all_of_a_layer = |task: usize| if task < 400 { Vec::new() } else { (0..400).collect() };
    let problem = problems(many(400 + MAX_EDGES / 400 + 1, all_of_a_layer));
    assert!(problem.contains("dependencies, the limit is 100000"), "{problem}");
}

#[test]
fn thousands_of_problems_are_counted_and_the_first_are_shown() {
    let unknown = |task: usize| vec![task + 100_000];
    let error = parse(many(MAX_TASKS, unknown).as_bytes(), &Zones::bundled()).unwrap_err();
    assert_eq!((error.problems.errors(), error.problems.iter().count()), (MAX_TASKS, 100));
}

#[test]
fn a_long_cycle_is_shown_by_its_ends() {
    let problem = problems(many(MAX_TASKS, |task| vec![(task + 1) % MAX_TASKS]));
    assert!(problem.starts_with("error: line 3"), "{problem}");
    assert!(
        problem.contains("wait for each other: t0 → t1 → ") && problem.contains(" → … → t0;"),
        "{problem}"
    );
    assert!(problem.len() < 400, "{problem}");
}

#[test]
fn far_references_in_the_largest_dag_are_checked_in_time() {
    let mut text = "name: many\ntasks:\n".to_owned();
    for task in 0..MAX_TASKS {
        let before = task.saturating_sub(1);
        let depends_on = if task == 0 { "[]".to_owned() } else { format!("[t{before}]") };
        let input = if task == 0 { "null".to_owned() } else { "'{{ tasks.t0.output }}'".to_owned() };
        writeln!(text, "- {{key: t{task}, function: f, depends_on: {depends_on}, input: {input}}}").unwrap();
    }
    parsed(&text);
}

#[test]
fn sizes_and_depths_are_bounded() {
    let huge = "x".repeat(MAX_DAG_BYTES + 1);
    assert_eq!(
        problems(huge),
        "error: line 1, column 1: the DAG has more than the limit of 4 MiB; split it into several DAGs\n"
    );
    let deep = format!("{}1{}", "[".repeat(40), "]".repeat(40));
    for (text, says) in [
        (with(&format!("params: {{a: {deep}}}")), "nested deeper than 32 levels"),
        (
            with(&format!("params: {{a: \"{}\"}}", "x".repeat(70_000))),
            "params.a: the value has 70002 bytes of JSON text, the limit is 65536",
        ),
        (
            SMALLEST.replace(
                "function: work",
                &format!("function: work, input: \"{}{{{{ run.id }}}}\"", "x".repeat(16 * 1024)),
            ),
            "bytes, the limit is 16384",
        ),
        (
            SMALLEST.replace(
                "function: work",
                &format!("function: work, input: \"{}\"", "{{ run.id }}".repeat(257)),
            ),
            "at most 256 placeholders",
        ),
        (SMALLEST.replace("only", &"x".repeat(200)), "the name has 200 bytes, the limit is 128"),
        (with("a: &a [*a]"), "an alias stands for a value that contains the alias"),
        (format!("{SMALLEST}---\nname: second\n"), "write one DAG in each file"),
        (String::new(), "the document is empty"),
        ("[]".to_owned(), "expected a map, found a list"),
    ] {
        let problem = problems(&text);
        assert!(problem.contains(says), "{says}: {problem}");
    }
}

#[test]
fn no_text_makes_the_parser_panic() {
    let mut random = Rng::with_seed(5);
    for _ in 0..700 {
        let source = *random.choice(&[DAILY_SALES, EVERYTHING]).unwrap();
        let mut text = source.as_bytes().to_vec();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..text.len());
            match random.u8(..4) {
                0 => text[at] = random.u8(..),
                1 => drop(text.drain(at..(at + random.usize(1..40)).min(text.len()))),
                2 => text.insert(at, *random.choice(b"{}[]:,-'\"&*|>% \n\t").unwrap()),
                _ => {
                    let from = random.usize(..text.len());
                    let part = text[from..(from + 30).min(text.len())].to_vec();
                    text.splice(at..at, part);
                }
            }
        }
        let _ = parse(&text, &Zones::bundled());
    }
}
