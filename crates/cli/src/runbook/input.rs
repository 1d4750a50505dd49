//! Files that the verbs read, and how their problems are shown.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use segno_runbook::problem::Problems;

use crate::exit::Failure;
use crate::output::{Output, count};

/// Reads a file or, for `-`, standard input, up to one byte more than allowed, so that the limit is
/// reported by what checks it.
pub fn read(path: &Path, max_bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let limit = max_bytes as u64 + 1;
    let outcome = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes))
    };
    outcome.map_err(|error| Failure::Refused(format!("{} cannot be read: {error}", path.display())))?;
    Ok(bytes)
}

/// The problems of a file, one on a line, as compilers print them.
pub fn lines(path: &Path, problems: &Problems) -> String {
    let mut text = String::new();
    for problem in problems.iter() {
        let column = if problem.column > 0 { format!(":{}", problem.column) } else { String::new() };
        let about = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
        let advice = problem.advice.as_ref().map_or_else(String::new, |advice| format!("; {advice}"));
        text.push_str(&format!(
            "{}:{}{column}: {}: {about}{}{advice}\n",
            path.display(),
            problem.line,
            problem.severity,
            problem.problem
        ));
    }
    match problems.omitted() {
        0 => text,
        more => text + &format!("{}: and {} more\n", path.display(), count(more as u64)),
    }
}

/// Prints the problems of a file on stderr: lines for people, warnings for programs.
pub fn show(output: &Output, path: &Path, problems: &Problems) {
    for line in lines(path, problems).lines() {
        if output.format.is_for_programs() { output.warn(line) } else { output.hint(line) }
    }
}

/// A file has errors, which were printed.
pub fn refused(path: &Path, problems: &Problems, code: &str) -> Failure {
    Failure::Refused(format!("{} has {} [{code}]", path.display(), counted(problems.errors(), "error")))
}

/// `2 errors`, `1 warning`.
pub fn counted(number: usize, what: &str) -> String {
    format!("{} {what}{}", count(number as u64), if number == 1 { "" } else { "s" })
}
