//! How a command fails: exit codes, what a script can tell apart, and the report of a failure. The list of exit codes is in
//! `docs/guide/cli.md`; 2 is for arguments that are wrong.

use std::fmt;

use segno::store::ErrorKind;
use segno_api::FieldProblem;
use segno_stores::{Error, OpenError};
use serde::Serialize;

use crate::output::{Format, without_controls};
use crate::wording::{self, Wording};

/// Code of a store that is damaged.
const DAMAGED: &str = "store-damaged";

/// Code of a directory that a command has not finished to fill.
const UNFINISHED: &str = "store-unfinished";

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// A store or a file refused.
    Store(Error),
    /// A check found something.
    Unsound,
    /// What was asked makes no sense.
    Refused(String),
    /// The output could not be written.
    Output(std::io::Error),
    /// A server refused, or did not answer.
    Server(segno_api::ClientError),
    /// What a server would have refused as well, done without one.
    Answered {
        /// The status that the server would have answered with.
        status: u16,
        /// The code of the problem.
        code: &'static str,
        /// Why.
        text: String,
    },
    /// A server could not be started or went down.
    Serving(String),
    /// Something could not be measured.
    Measuring(String),
    /// An instance that was waited for did not complete.
    NotCompleted(String),
    /// It did not happen in the time that was given.
    TimedOut(String),
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// A failure as programs read it: one JSON object on stderr.
#[derive(Debug, Serialize)]
struct Report<'a> {
    /// Stable name of the problem: a code of the server, or one of the command line.
    code: &'a str,
    /// What went wrong, and what to do about it.
    message: String,
    /// Address of the page about the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<String>,
    /// Fields of the request that are wrong, as the server names them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    errors: &'a [FieldProblem],
    /// Id of the request in the server's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    /// The exit code.
    exit_code: u8,
}

impl Failure {
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Store(Error::Open(OpenError::InUse(_))) => 3,
            Failure::Store(Error::Open(OpenError::Unfinished { .. })) => 4,
            Failure::Store(Error::Url(_) | Error::NotABackup(_)) => 2,
            Failure::Store(error) => match error.kind() {
                ErrorKind::Corrupt => 4,
                ErrorKind::Conflict => 5,
                ErrorKind::NotFound => 6,
                _ => 1,
            },
            Failure::Unsound => 4,
            Failure::Refused(_) => 2,
            Failure::Output(_) | Failure::Serving(_) | Failure::Measuring(_) => 1,
            Failure::Server(error) => exit_code_of(wording::code(error), error.status()),
            Failure::Answered { status, .. } => exit_code_of(None, Some(*status)),
            Failure::NotCompleted(_) => 8,
            Failure::TimedOut(_) => 124,
            Failure::Interrupted => 130,
        }
    }

    /// Stable name of the problem.
    fn code(&self) -> &str {
        match self {
            Failure::Store(Error::Open(OpenError::InUse(_))) => "store-in-use",
            Failure::Store(Error::Open(OpenError::Unfinished { .. })) => UNFINISHED,
            Failure::Store(Error::Url(_) | Error::NotABackup(_)) => "invalid-arguments",
            Failure::Store(error) => match error.kind() {
                ErrorKind::Corrupt => DAMAGED,
                ErrorKind::Conflict => "conflict",
                ErrorKind::NotFound => "not-found",
                _ => "store",
            },
            Failure::Unsound => DAMAGED,
            Failure::Refused(_) => "invalid-arguments",
            Failure::Answered { code, .. } => code,
            Failure::Output(_) => "output",
            Failure::Server(error) => wording::code(error).unwrap_or("unreachable"),
            Failure::Serving(_) => "serving",
            Failure::Measuring(_) => "measuring",
            Failure::NotCompleted(_) => "not-completed",
            Failure::TimedOut(_) => "wait-timed-out",
            Failure::Interrupted => "interrupted",
        }
    }

    /// Address of the page about a problem that no server has told.
    fn page(&self) -> Option<String> {
        let code = Some(self.code()).filter(|code| [DAMAGED, UNFINISHED].contains(code))?;
        Some(wording::page_of(code))
    }

    /// What is printed on stderr, in the words of the command and the format that was asked for.
    pub fn report(&self, wording: &Wording, format: Format) -> String {
        let message = match self {
            Failure::Server(error) => wording.message(error),
            failure => failure.to_string(),
        };
        if !format.is_for_programs() {
            let code = match self {
                Failure::Server(error) => wording::code(error).map(|code| format!(" [{code}]")),
                _ => None,
            };
            let text = format!("{}: {message}{}", wording.program, code.unwrap_or_default());
            return without_controls(&text).into_owned();
        }
        let problem = match self {
            Failure::Server(segno_api::ClientError::Problem(problem)) => Some(problem),
            _ => None,
        };
        let report = Report {
            code: self.code(),
            message,
            page: problem.map(|problem| wording::page(problem)).or_else(|| self.page()),
            errors: problem.map_or(&[], |problem| &problem.errors),
            request_id: problem.and_then(|problem| problem.request_id.as_deref()),
            exit_code: self.exit_code(),
        };
        serde_json::to_string(&report).unwrap_or(report.message)
    }
}

/// The exit code of a refusal: by its code, which may be more exact than the status of the answer.
fn exit_code_of(code: Option<&str>, status: Option<u16>) -> u8 {
    match (code.unwrap_or_default(), status) {
        (code, _) if code.starts_with("unknown-") || code == "not-found" => 6,
        (code, _) if code.ends_with("-exists") => 5,
        (DAMAGED, _) => 4,
        (_, Some(404)) => 6,
        (_, Some(409 | 412 | 422)) => 5,
        (_, Some(401 | 403)) => 7,
        (_, Some(400 | 413 | 415)) => 2,
        _ => 1,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Store(error) => error.fmt(f),
            Failure::Unsound => f.write_str("the store is damaged; restore a backup, or save what can be saved with \"segno store salvage\""),
            Failure::Refused(text) => f.write_str(text),
            Failure::Output(error) => write!(f, "the output could not be written: {error}"),
            Failure::Server(error) => error.fmt(f),
            Failure::Answered { text, .. }
            | Failure::Serving(text)
            | Failure::Measuring(text)
            | Failure::NotCompleted(text)
            | Failure::TimedOut(text) => f.write_str(text),
            Failure::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Store(error)
    }
}

impl From<segno_api::ClientError> for Failure {
    fn from(error: segno_api::ClientError) -> Self {
        Failure::Server(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Output(error)
    }
}
