//! Files that users write, such as runbooks and DAGs: read up to a limit, and their problems shown as compilers do.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use segno_runbook::problem::{Problem, Problems};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::{count, counted};

/// Problems by file, in the order in which they are shown.
#[derive(Default)]
pub struct Found<'f>(Vec<(&'f Path, &'static str, Problems)>);

/// A problem and the file that has it.
#[derive(Debug, Serialize)]
pub struct FileProblem<'p> {
    file: String,
    #[serde(flatten)]
    problem: &'p Problem,
}

impl<'f> Found<'f> {
    /// Adds problems of a file, and the code of its refusal.
    pub fn add(&mut self, file: &'f Path, code: &'static str, problems: Problems) {
        self.0.push((file, code, problems));
    }

    /// How many errors there are.
    pub fn errors(&self) -> usize {
        self.0.iter().map(|(_, _, problems)| problems.errors()).sum()
    }

    /// How many warnings there are.
    pub fn warnings(&self) -> usize {
        self.0.iter().map(|(_, _, problems)| problems.warnings()).sum()
    }

    /// All of them, for programs.
    pub fn to_report<'p>(&'p self) -> Vec<FileProblem<'p>> {
        let of_file = |(file, _, problems): &'p (&Path, &str, Problems)| {
            let file = file.display().to_string();
            problems.iter().map(move |problem| FileProblem { file: file.clone(), problem })
        };
        self.0.iter().flat_map(of_file).collect()
    }

    /// All of them, one on a line, as compilers print them.
    pub fn lines(&self) -> String {
        self.0.iter().map(|(file, _, problems)| lines(file, problems)).collect()
    }

    /// Fails if there are errors, which were printed.
    ///
    /// # Errors
    /// When there are errors: how many in which file, with the code of the first one.
    pub fn check(&self) -> Result<(), Failure> {
        let mut files: Vec<(&Path, &'static str, usize)> = Vec::new();
        for (file, code, problems) in self.0.iter().filter(|(_, _, problems)| problems.has_errors()) {
            match files.iter_mut().find(|(known, ..)| known == file) {
                Some((_, _, errors)) => *errors += problems.errors(),
                None => files.push((file, code, problems.errors())),
            }
        }
        let Some((_, code, _)) = files.first() else { return Ok(()) };
        let texts = files
            .iter()
            .map(|(file, _, errors)| format!("{} has {}", file.display(), counted(*errors as u64, "error")));
        Err(Failure::invalid(code, texts.collect::<Vec<_>>().join(", ")))
    }
}

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
    outcome.map_err(Failure::of_file(path))?;
    Ok(bytes)
}

fn lines(path: &Path, problems: &Problems) -> String {
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
