//! Exit codes: what a script can tell apart. Their list is in `docs/guide/cli.md`; 2 is for arguments that are wrong.

use std::fmt;

use segno::store::ErrorKind;
use segno_stores::Error;

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
    /// A server could not be started or went down.
    Serving(String),
    /// Something could not be measured.
    Measuring(String),
    /// An instance that was waited for did not complete.
    NotCompleted(String),
    /// It did not happen in the time that was given.
    TimedOut(String),
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Store(Error::Open(segno_stores::OpenError::InUse(_))) => 3,
            Failure::Store(error) => match error.kind() {
                ErrorKind::Corrupt => 4,
                ErrorKind::Conflict => 5,
                ErrorKind::NotFound => 6,
                _ => 1,
            },
            Failure::Unsound => 4,
            Failure::Refused(_) => 2,
            Failure::Output(_) | Failure::Serving(_) | Failure::Measuring(_) => 1,
            Failure::Server(error) => match error.status() {
                Some(404) => 6,
                Some(409 | 412 | 422) => 5,
                Some(401 | 403) => 7,
                Some(400 | 413 | 415) => 2,
                _ => 1,
            },
            Failure::NotCompleted(_) => 8,
            Failure::TimedOut(_) => 124,
            Failure::Interrupted => 130,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Store(error) => error.fmt(f),
            Failure::Unsound => f.write_str("the store is damaged; restore a backup, or save what can be saved with \"segno store salvage\""),
            Failure::Refused(text) => f.write_str(text),
            Failure::Output(error) => write!(f, "the output could not be written: {error}"),
            Failure::Server(error) if error.is_connect() => write!(
                f,
                "{error}; is `segno dev` running? Name another server with --server or SEGNO_SERVER"
            ),
            Failure::Server(error) if error.status() == Some(401) => {
                write!(f, "{error}; pass the key with SEGNO_KEY, --key or a profile")
            }
            Failure::Server(error) => error.fmt(f),
            Failure::Serving(text)
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
