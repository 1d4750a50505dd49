//! How orchestrations, activities and steps fail: a category that code can match on.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::duration_ms;
use crate::error::Error;
use crate::limits::{MAX_FAILURE_MESSAGE_BYTES, MAX_NAME_BYTES};
use crate::payload::Payload;

/// Why something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Category {
    /// User code returned it, or panicked.
    Application,
    /// A per-attempt timeout, a deadline or a heartbeat timeout ran out.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// Code and stored state do not fit: unregistered name, nondeterministic code, bad payload, broken limit.
    Configuration,
    /// Something around the code failed. The engine retries these by itself; user code may raise it too.
    Infrastructure,
    /// It was delivered again and again without an answer (a worker that dies on it, data that cannot be read).
    Poison,
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Category::Application => "application",
            Category::Timeout => "timeout",
            Category::Cancelled => "cancelled",
            Category::Configuration => "configuration",
            Category::Infrastructure => "infrastructure",
            Category::Poison => "poison",
        })
    }
}

/// A failure that is recorded in history and handed to code that may catch it.
///
/// Any `std::error::Error` turns into a retryable application failure with `?`, which is why `Failure` itself
/// does not implement that trait.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Why.
    pub category: Category,
    /// What happened, for people.
    pub message: String,
    /// A stable word for programs, such as `unregistered` or one of the application's own.
    pub code: Option<String>,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// Data of the application, as it was written.
    pub details: Option<Payload>,
    /// The next attempt is not made earlier than this, whatever the retry policy is.
    pub retry_after_ms: Option<u64>,
}

impl Failure {
    /// A failure of a category; timeouts, infrastructure and application failures are retryable.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        let retryable =
            matches!(category, Category::Application | Category::Timeout | Category::Infrastructure);
        Failure {
            category,
            message: message.into(),
            code: None,
            retryable,
            details: None,
            retry_after_ms: None,
        }
    }

    /// A retryable failure of the application.
    pub fn application(message: impl Into<String>) -> Self {
        Self::new(Category::Application, message)
    }

    /// A cancellation with its reason.
    pub fn cancelled(reason: impl Into<String>) -> Self {
        Self::new(Category::Cancelled, reason)
    }

    pub(crate) fn timeout(code: &str, message: impl Into<String>) -> Self {
        Self::new(Category::Timeout, message).code(code)
    }

    pub(crate) fn configuration(code: &str, message: impl Into<String>) -> Self {
        Self::new(Category::Configuration, message).code(code)
    }

    /// The same failure, but no retry policy will try again.
    #[must_use]
    pub fn non_retryable(mut self) -> Self {
        self.retryable = false;
        self
    }

    /// The same failure with a stable word for programs.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// The same failure with details for programs. Those that break a limit of payloads are left out, and the message
    /// says so.
    #[must_use]
    pub fn details(mut self, details: impl Serialize) -> Self {
        match Payload::encode(&details) {
            Ok(details) => self.details = Some(details),
            Err(error) => self.leave_out_details(&error),
        }
        self
    }

    /// The same failure, but the next attempt is not made earlier than this. More than
    /// [`MAX_RETRY_AFTER`](crate::limits::MAX_RETRY_AFTER) is as much.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after_ms = Some(duration_ms(wait));
        self
    }

    /// Whether this is a cancellation.
    pub fn is_cancelled(&self) -> bool {
        self.category == Category::Cancelled
    }

    /// Whether this is a timeout.
    pub fn is_timeout(&self) -> bool {
        self.category == Category::Timeout
    }

    /// Whether the failure has this stable word.
    pub fn has_code(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }
}

impl Failure {
    /// Cuts down what is over the limits: a failure must always fit into the history, or its call would never end.
    pub(crate) fn bounded(mut self) -> Self {
        cut(&mut self.message, MAX_FAILURE_MESSAGE_BYTES);
        if let Some(code) = &mut self.code {
            cut(code, MAX_NAME_BYTES);
        }
        if let Some(Err(error)) = self.details.as_ref().map(Payload::check) {
            self.leave_out_details(&error);
        }
        self
    }

    fn leave_out_details(&mut self, error: &Error) {
        self.details = None;
        self.message = format!("{} (its details were left out: {error})", self.message);
    }
}

fn cut(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes {
        let at = (0..=max_bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(at);
        text.push('…');
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category, self.message)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Failure::application(message)
    }
}

/// A bad payload or limit met inside an orchestration or activity is a matter of configuration: retrying cannot help.
pub(crate) fn from_engine_error(error: &Error) -> Failure {
    Failure::configuration(error.code().as_str(), error.to_string())
}

/// The message of a caught panic.
pub(crate) fn from_panic(what: &str, panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message");
    Failure::application(format!("{what} panicked: {text}")).code("panicked")
}
