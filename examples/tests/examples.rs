//! Runs every example as a process and compares what it prints with `expected/NAME.txt`; `UPDATE_EXPECT=1` writes those
//! files.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on panics")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use expect_test::expect_file;

/// The names in `src/bin`, so that no example can be forgotten.
fn names() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> =
        files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Starts an example in a folder, where those that store something do so.
fn start(name: &str, folder: &Path, arguments: &[&str]) -> Child {
    let program = Path::new(env!("CARGO_BIN_EXE_hello")).with_file_name(name);
    let mut command = Command::new(&program);
    command.current_dir(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()))
}

#[test]
fn every_example_prints_what_it_promises() {
    let folder = tempfile::tempdir().unwrap();
    let start = |name: String| (start(&name, folder.path(), &[]), name);
    let programs: Vec<(Child, String)> = names().into_iter().map(start).collect();
    assert!(programs.len() >= 17, "{} examples are fewer than there were", programs.len());
    for (program, name) in programs {
        let output = program.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} ended with {}:\n{errors}", output.status);
        assert_eq!(errors, "", "{name} wrote to stderr");
        let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("expected/{name}.txt"));
        expect_file![expected].assert_eq(&String::from_utf8(output.stdout).unwrap());
    }
}

#[test]
fn the_table_of_examples_is_complete() {
    let table = include_str!("../src/lib.rs");
    for name in names() {
        assert!(table.contains(&format!("| `{name}` |")), "{name} is not in the table of src/lib.rs");
    }
}

/// The walk of `docs/guide/kill.md`.
#[test]
fn an_order_that_is_killed_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["data", "60"];
    let mut first = start("order", folder.path(), &arguments);
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "order-1 begins; its data is in data");
    assert_eq!(lines.nth(2).unwrap(), "  3 of 7: invoice written");
    // The command of the page: the lock file of the store has the process id.
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -9 $(cat data/lock)"]).current_dir(folder.path());
    assert!(kill.status().unwrap().success());
    first.wait().unwrap();
    // What it printed before the signal came through.
    let printed = 3 + lines.count();

    let second = start("order", folder.path(), &arguments).wait_with_output().unwrap();
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stderr));
    let output = String::from_utf8(second.stdout).unwrap();
    let lines: Vec<&str> = output.lines().collect();
    let done: usize =
        lines[0].strip_prefix("order-1 goes on: ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((printed - 1..=printed).contains(&done), "{printed} steps were printed, {done} are done");
    assert_eq!(lines.len(), 1 + (7 - done) + 1, "no step that was done is done again:\n{output}");
    assert!(lines[1].starts_with(&format!("  {} of 7: ", done + 1)), "{output}");
    assert_eq!(*lines.last().unwrap(), "order-1 is done after 7 steps");
}
