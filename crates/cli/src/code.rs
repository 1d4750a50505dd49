//! Codes of failures that the command line finds by itself: stable names that scripts compare, each with a page in
//! `docs/errors/`. Refusals of a server, and of the rooms that are used without one, have codes of their own.

/// Where the pages of codes are.
const PAGES: &str = "https://segno.dev/errors/";

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// The arguments are wrong.
    InvalidArguments,
    /// There is no such file or store.
    NotFound,
    /// A file cannot be read or written.
    FileFailed,
    /// No server answers.
    Unreachable,
    /// The certificate of the server is not accepted.
    CertificateRefused,
    /// Something answers that is not a Segno server.
    UnreadableAnswer,
    /// A server cannot start.
    ServingFailed,
    /// A measurement failed.
    MeasuringFailed,
    /// Standard output cannot be written.
    OutputFailed,
    /// The instance that was waited for failed or was cancelled.
    NotCompleted,
    /// It did not happen in the time that was given.
    WaitTimedOut,
    /// The store is open in another process.
    StoreInUse,
    /// The store or backup is damaged.
    StoreDamaged,
    /// A command was filling the directory and was interrupted.
    StoreUnfinished,
    /// Something is in the way, such as a file that exists.
    Conflict,
    /// The store refused or could not do it.
    Store,
    /// Ctrl-C was pressed.
    Interrupted,
}

impl Code {
    /// The stable name, as in `docs/errors/<name>.md`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::InvalidArguments => "invalid-arguments",
            Code::NotFound => "not-found",
            Code::FileFailed => "file-failed",
            Code::Unreachable => "unreachable",
            Code::CertificateRefused => "certificate-refused",
            Code::UnreadableAnswer => "unreadable-answer",
            Code::ServingFailed => "serving",
            Code::MeasuringFailed => "measuring",
            Code::OutputFailed => "output",
            Code::NotCompleted => "not-completed",
            Code::WaitTimedOut => "wait-timed-out",
            Code::StoreInUse => "store-in-use",
            Code::StoreDamaged => "store-damaged",
            Code::StoreUnfinished => "store-unfinished",
            Code::Conflict => "conflict",
            Code::Store => "store",
            Code::Interrupted => "interrupted",
        }
    }
}

/// Address of the page about a code.
pub fn page(code: &str) -> String {
    format!("{PAGES}{code}")
}
