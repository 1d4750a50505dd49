//! Runs every example as a process and compares what it prints with `expected/NAME.txt`; `UPDATE_EXPECT=1` writes those
//! files.

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

fn start(name: &str) -> Child {
    let program = Path::new(env!("CARGO_BIN_EXE_hello")).with_file_name(name);
    let mut command = Command::new(&program);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{} does not start: {error}", program.display()))
}

#[test]
fn every_example_prints_what_it_promises() {
    let programs: Vec<(Child, String)> = names().into_iter().map(|name| (start(&name), name)).collect();
    assert!(programs.len() >= 16, "{} examples are fewer than there were", programs.len());
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
