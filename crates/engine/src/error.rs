//! The error of the engine's own calls (client, registry, runtime): a code with a page of advice, and a kind.

use crate::failure::Failure;
use crate::store::{ErrorKind, ProviderError};

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $slug:literal, $kind:ident;)+) => {
        /// What went wrong, each with a page in `docs/errors/`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Code {
            /// Every code, so that a test can check that each has its page.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// The stable name, as in `docs/errors/<name>.md`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $slug,)+ }
            }

            /// What the caller can do.
            pub fn kind(self) -> ErrorKind {
                match self { $(Code::$variant => ErrorKind::$kind,)+ }
            }
        }
    };
}

codes! {
    /// A payload is larger than the limit.
    PayloadTooLarge = "payload-too-large", Invalid;
    /// A payload is nested deeper than the limit.
    PayloadTooDeep = "payload-too-deep", Invalid;
    /// A value cannot be written as JSON, or a text is not JSON that every reader can take.
    PayloadNotJson = "payload-not-json", Invalid;
    /// Stored JSON does not fit the type in the code.
    PayloadMismatch = "payload-mismatch", Invalid;
    /// An instance id is empty, too long, or has characters that are not allowed.
    InvalidInstanceId = "invalid-instance-id", Invalid;
    /// A name is empty, too long, or has characters that are not allowed.
    InvalidName = "invalid-name", Invalid;
    /// A version is not semver.
    InvalidVersion = "invalid-version", Invalid;
    /// Labels break their limits.
    InvalidLabel = "invalid-label", Invalid;
    /// A name and version are registered twice.
    DuplicateRegistration = "duplicate-registration", Invalid;
    /// Registered code requires an activity or orchestration that is not registered.
    MissingRegistration = "missing-registration", Invalid;
    /// A setting is out of range.
    InvalidOption = "invalid-option", Invalid;
    /// The instance exists already.
    InstanceExists = "instance-exists", Conflict;
    /// There is no such instance, execution or dead letter.
    NotFound = "not-found", NotFound;
    /// The instance has ended, so it takes no more messages.
    InstanceEnded = "instance-ended", Conflict;
    /// The instance still runs.
    InstanceRunning = "instance-running", Conflict;
    /// No activity of the instance waits for its next attempt.
    NothingToRetry = "nothing-to-retry", Conflict;
    /// The instance of a dead letter has gone on, so there is nothing to resubmit.
    DeadLetterSettled = "dead-letter-settled", Conflict;
    /// The instance ended with a failure.
    InstanceFailed = "instance-failed", Invalid;
    /// The lease on an activity does not hold any more.
    LeaseLost = "lease-lost", Conflict;
    /// Nothing happened within the time that the caller allowed.
    WaitTimedOut = "wait-timed-out", Unavailable;
    /// Stored data cannot be decoded.
    StoredDataUnreadable = "stored-data-unreadable", Corrupt;
    /// A recorded history does not fit the code.
    Nondeterminism = "nondeterminism", Invalid;
    /// A bulk call would touch more instances than the limit.
    TooManyInstances = "too-many-instances", Invalid;
    /// The store refused or could not do it; the message has its reason.
    Store = "store", Internal;
}

/// An error of a client, registry or runtime call.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message} [{}]", code.as_str())]
pub struct Error {
    code: Code,
    message: String,
    failure: Option<Box<Failure>>,
    #[source]
    source: Option<ProviderError>,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Error { code, message: message.into(), failure: None, source: None }
    }

    /// An instance ended with this failure.
    pub(crate) fn failed(instance: &str, failure: Failure) -> Self {
        Error {
            code: Code::InstanceFailed,
            message: format!("instance {instance} ended: {failure}"),
            failure: Some(Box::new(failure)),
            source: None,
        }
    }

    /// The stable code.
    pub fn code(&self) -> Code {
        self.code
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.source.as_ref().map_or(self.code.kind(), ProviderError::kind)
    }

    /// The error of the store that this one comes from, if it does.
    pub fn store_error(&self) -> Option<&ProviderError> {
        self.source.as_ref()
    }

    /// The failure of the instance that was waited for.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_deref()
    }
}

impl From<ProviderError> for Error {
    fn from(error: ProviderError) -> Self {
        let code = match error.kind() {
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::Corrupt => Code::StoredDataUnreadable,
            _ => Code::Store,
        };
        // What is not there is the caller's business; which call of the store noticed is not.
        let message = match code {
            Code::NotFound => error.message().to_owned(),
            _ => error.to_string(),
        };
        Error { code, message, failure: None, source: Some(error) }
    }
}
