//! How a command fails: exit codes, what a script can tell apart, and the report of a failure. The list of exit codes is in
//! `docs/guide/cli.md`; 2 is for arguments that are wrong.

use std::fmt;
use std::path::Path;

use segno::store::ErrorKind;
use segno_api::{ClientError, FieldProblem};
use segno_stores::{Error, OpenError};
use serde::Serialize;

use crate::code::{self, Code};
use crate::output::{Format, without_controls};
use crate::wording::{self, Wording};

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// A store or a file refused.
    Store(Error),
    /// A check found something.
    Unsound,
    /// What was asked makes no sense.
    Refused(String),
    /// A file that a flag names cannot be read.
    File {
        /// The file, with the flag that names it if that is not plain.
        place: String,
        /// What the system reported.
        error: std::io::Error,
    },
    /// The output could not be written.
    Output(std::io::Error),
    /// A server refused, or did not answer.
    Server(ClientError),
    /// A server does not answer any more, or not with what is needed, so that something is not known.
    Unanswered {
        /// The last answer, or why there was none.
        error: ClientError,
        /// What is not known because of that.
        unknown: String,
    },
    /// What a server would have refused as well, done without one.
    Answered {
        /// The status that the server would have answered with.
        status: u16,
        /// The code of the problem.
        code: &'static str,
        /// Why, without the code.
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
    page: String,
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
    /// Refuses what a server would refuse as wrong, too.
    pub fn invalid(code: &'static str, text: String) -> Self {
        Failure::Answered { status: BAD_REQUEST, code, text }
    }

    /// Refuses what a server would not find, either.
    pub fn not_found(text: String) -> Self {
        Failure::Answered { status: NOT_FOUND, code: "not-found", text }
    }

    /// A file that cannot be read.
    pub fn of_file(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
        let place = path.display().to_string();
        move |error| Failure::File { place, error }
    }

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
            Failure::File { error, .. } if error.kind() == std::io::ErrorKind::NotFound => 6,
            Failure::File { .. } | Failure::Output(_) | Failure::Serving(_) | Failure::Measuring(_) => 1,
            Failure::Server(error) | Failure::Unanswered { error, .. } => exit_code_of_answer(error),
            Failure::Answered { status, .. } => exit_code_of(None, Some(*status)),
            Failure::NotCompleted(_) => 8,
            Failure::TimedOut(_) => 124,
            Failure::Interrupted => 130,
        }
    }

    /// Stable name of the problem.
    fn code(&self) -> &str {
        let local = match self {
            Failure::Server(error) | Failure::Unanswered { error, .. } => return code_of_answer(error),
            Failure::Answered { code, .. } => return code,
            Failure::Store(Error::Open(OpenError::InUse(_))) => Code::StoreInUse,
            Failure::Store(Error::Open(OpenError::Unfinished { .. })) => Code::StoreUnfinished,
            Failure::Store(Error::Url(_) | Error::NotABackup(_)) => Code::InvalidArguments,
            Failure::Store(error) => match error.kind() {
                ErrorKind::Corrupt => Code::StoreDamaged,
                ErrorKind::Conflict => Code::Conflict,
                ErrorKind::NotFound => Code::NotFound,
                _ if matches!(error, Error::File { .. }) => Code::FileFailed,
                _ => Code::Store,
            },
            Failure::Unsound => Code::StoreDamaged,
            Failure::Refused(_) => Code::InvalidArguments,
            Failure::File { error, .. } if error.kind() == std::io::ErrorKind::NotFound => Code::NotFound,
            Failure::File { .. } => Code::FileFailed,
            Failure::Output(_) => Code::OutputFailed,
            Failure::Serving(_) => Code::ServingFailed,
            Failure::Measuring(_) => Code::MeasuringFailed,
            Failure::NotCompleted(_) => Code::NotCompleted,
            Failure::TimedOut(_) => Code::WaitTimedOut,
            Failure::Interrupted => Code::Interrupted,
        };
        local.as_str()
    }

    /// What is printed on stderr, in the words of the command and the format that was asked for.
    pub fn report(&self, wording: &Wording, format: Format) -> String {
        let message = match self {
            Failure::Server(error) => wording.message(error),
            Failure::Unanswered { error, unknown } => format!("{unknown}: {}", wording.message(error)),
            failure => failure.to_string(),
        };
        let problem = match self {
            Failure::Server(ClientError::Problem(problem))
            | Failure::Unanswered { error: ClientError::Problem(problem), .. } => Some(problem),
            _ => None,
        };
        if !format.is_for_programs() {
            // Codes of the command line itself are left out: the sentence has all that they tell.
            let is_shown = problem.is_some() || matches!(self, Failure::Answered { .. });
            let code = if is_shown { format!(" [{}]", self.code()) } else { String::new() };
            return without_controls(&format!("{}: {message}{code}", wording.program)).into_owned();
        }
        let report = Report {
            code: self.code(),
            message,
            page: problem.map_or_else(|| code::page(self.code()), |problem| wording::page(problem)),
            errors: problem.map_or(&[], |problem| &problem.errors),
            request_id: problem.and_then(|problem| problem.request_id.as_deref()),
            exit_code: self.exit_code(),
        };
        serde_json::to_string(&report).unwrap_or(report.message)
    }
}

/// The status of a request that is wrong.
const BAD_REQUEST: u16 = 400;

/// The status of a request about something that does not exist.
const NOT_FOUND: u16 = 404;

/// The code of what a server answered, or of the lack of an answer.
fn code_of_answer(error: &ClientError) -> &str {
    match error {
        ClientError::Problem(problem) => wording::code(error).unwrap_or(&problem.code),
        ClientError::Unreachable(_) if error.is_certificate() => Code::CertificateRefused.as_str(),
        ClientError::Unreachable(_) => Code::Unreachable.as_str(),
        ClientError::Unreadable { .. } => Code::UnreadableAnswer.as_str(),
        ClientError::Address(_) => Code::InvalidArguments.as_str(),
    }
}

fn exit_code_of_answer(error: &ClientError) -> u8 {
    match error {
        ClientError::Address(_) => 2,
        // What is missing behind an address that is no server's tells nothing about what was asked for.
        ClientError::Unreadable { status: 404, .. } => 1,
        error => exit_code_of(wording::code(error), error.status()),
    }
}

/// The exit code of a refusal: by its code, which may be more exact than the status of the answer.
fn exit_code_of(code: Option<&str>, status: Option<u16>) -> u8 {
    match (code.unwrap_or_default(), status) {
        (code, _) if code.starts_with("unknown-") || code == "not-found" => 6,
        (code, _) if code.ends_with("-exists") => 5,
        (code, _) if code == Code::StoreDamaged.as_str() => 4,
        ("sql-timeout", _) => 124,
        (_, Some(404 | 410)) => 6,
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
            Failure::File { place, error } => write!(f, "{place} cannot be read: {error}"),
            Failure::Output(error) => write!(f, "the output could not be written: {error}"),
            Failure::Server(error) => error.fmt(f),
            Failure::Unanswered { error, unknown } => write!(f, "{unknown}: {error}"),
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

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Failure::Server(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Output(error)
    }
}
