//! Answers that are not a success. Every one has a code with a page in `docs/errors/`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use segno::store::{ErrorKind, ProviderError};
use segno_actions::action::ActionError;
use segno_actions::functions::FunctionError;
use segno_actions::hooks::HookError;
use segno_api::problem::PROBLEM_JSON;
use segno_api::{FieldProblem, Problem};
use segno_ledger::archive::ArchiveFault;
use segno_ledger::drive::LedgerError;
use segno_runbook::bus::BusError;
use segno_runbook::drive::RunbookError;
use segno_runbook::members::InvalidMembers;
use segno_runbook::problem::{Problems, Severity};
use segno_runbook::source::SourceError;
use segno_runbook::yaml::InvalidRunbook;

use crate::operation::{self, Effect};
use crate::scope::Scope;

/// Where the pages about codes are.
const PAGES: &str = "https://segno.dev/errors/";

/// After this many seconds a caller may try again when the store or the server was busy.
const RETRY_AFTER_SECONDS: u32 = 1;

/// Codes that values of a body bring with them when they cannot be read, as in `… [invalid-template]`.
const CODES_OF_VALUES: [&str; 3] = ["invalid-template", "invalid-function-name", "invalid-name"];

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $slug:literal, $status:ident, $title:literal;)+) => {
        /// What the server itself has to refuse. Codes of the engine pass through with their own names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

            fn status(self) -> StatusCode {
                match self { $(Code::$variant => StatusCode::$status,)+ }
            }

            fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)+ }
            }
        }
    };
}

codes! {
    /// The request cannot be read, or a field of it is wrong.
    InvalidRequest = "invalid-request", BAD_REQUEST, "The request is wrong";
    /// The orchestration is one that only Segno itself starts.
    BuiltInOrchestration = "built-in-orchestration", BAD_REQUEST, "The orchestration is part of Segno";
    /// The id or key is one that Segno itself makes.
    ReservedId = "reserved-id", BAD_REQUEST, "The id is reserved";
    /// No key, or one that does not work.
    Unauthorized = "unauthorized", UNAUTHORIZED, "A valid API key is needed";
    /// The key does not allow this.
    Forbidden = "forbidden", FORBIDDEN, "The API key does not allow this";
    /// No node has the orchestration.
    UnknownOrchestration = "unknown-orchestration", NOT_FOUND, "No node has this orchestration";
    /// There is no such route or resource.
    NotFound = "not-found", NOT_FOUND, "There is no such thing";
    /// The route exists, but not with this method.
    MethodNotAllowed = "method-not-allowed", METHOD_NOT_ALLOWED, "The method is not allowed here";
    /// The body took too long to arrive.
    RequestTimeout = "request-timeout", REQUEST_TIMEOUT, "The request took too long to arrive";
    /// The resource exists already, or has changed meanwhile.
    Conflict = "conflict", CONFLICT, "It conflicts with what is there";
    /// The resource has another version than the caller expects.
    PreconditionFailed = "precondition-failed", PRECONDITION_FAILED, "It has changed meanwhile";
    /// The body is larger than the limit.
    BodyTooLarge = "body-too-large", PAYLOAD_TOO_LARGE, "The body is too large";
    /// The body is not declared to be JSON.
    UnsupportedMediaType = "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "The body must be JSON";
    /// A request about a batch cannot be fulfilled.
    BatchRequestRefused = "batch-request-refused", CONFLICT, "The batch does not allow it";
    /// The idempotency key was used for another request.
    IdempotencyMismatch = "idempotency-mismatch", UNPROCESSABLE_ENTITY, "The idempotency key belongs to another request";
    /// A request with the same idempotency key is being worked on.
    IdempotencyInFlight = "idempotency-in-flight", CONFLICT, "The same request is being worked on";
    /// The sender of a webhook could not be verified.
    HookRefused = "hook-refused", UNAUTHORIZED, "The sender cannot be believed";
    /// The key sends more requests than it may.
    RateLimited = "rate-limited", TOO_MANY_REQUESTS, "Too many requests";
    /// The query is not one that may be run.
    SqlRefused = "sql-refused", BAD_REQUEST, "The query is not allowed";
    /// The query could not be evaluated.
    SqlFailed = "sql-failed", BAD_REQUEST, "The query failed";
    /// The query goes beyond a limit on sizes.
    SqlTooLarge = "sql-too-large", BAD_REQUEST, "The query is too large";
    /// The query took too long.
    SqlTimeout = "sql-timeout", REQUEST_TIMEOUT, "The query took too long";
    /// More streams are open than allowed.
    TooManyStreams = "too-many-streams", TOO_MANY_REQUESTS, "Too many streams are open";
    /// More requests wait than allowed.
    TooManyWaits = "too-many-waits", TOO_MANY_REQUESTS, "Too many requests wait";
    /// The tenant has as many saved views and queries as it may have.
    TooManySaved = "too-many-saved", TOO_MANY_REQUESTS, "Too many views and queries are saved";
    /// All connections are taken.
    TooManyConnections = "too-many-connections", SERVICE_UNAVAILABLE, "Too many connections are open";
    /// The store is away or busy.
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "The server cannot do it now";
    /// The server has no ledger, or its object store is away.
    LedgerUnavailable = "ledger-unavailable", SERVICE_UNAVAILABLE, "The ledger cannot be used";
    /// The server has no archive, or its object store is away.
    ArchiveUnavailable = "archive-unavailable", SERVICE_UNAVAILABLE, "The archive cannot be used";
    /// The store has met damage.
    StoreDamaged = "store-damaged", SERVICE_UNAVAILABLE, "The store is damaged";
    /// A write failed, and it is not known whether it was done.
    OutcomeUnknown = "outcome-unknown", SERVICE_UNAVAILABLE, "Whether it was done is unknown";
    /// Something is wrong on the side of the server.
    Internal = "internal", INTERNAL_SERVER_ERROR, "The server failed";
}

/// An answer that is not a success.
#[derive(Debug, Clone)]
pub struct Refusal {
    status: StatusCode,
    code: &'static str,
    title: &'static str,
    detail: Box<str>,
    /// What there is none of.
    missing: Option<&'static str>,
    errors: Vec<FieldProblem>,
    retry_after_seconds: Option<u32>,
    /// What of the store cannot be read.
    damage: Option<Box<str>>,
}

impl Refusal {
    /// A refusal of the server itself.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let busy = matches!(
            code,
            Code::Unavailable
                | Code::LedgerUnavailable
                | Code::OutcomeUnknown
                | Code::RateLimited
                | Code::TooManyWaits
                | Code::TooManyConnections
                | Code::IdempotencyInFlight
        );
        Refusal {
            status: code.status(),
            code: code.as_str(),
            title: code.title(),
            detail: detail.into().into(),
            missing: None,
            errors: Vec::new(),
            retry_after_seconds: busy.then_some(RETRY_AFTER_SECONDS),
            damage: None,
        }
    }

    /// One field of the request is wrong.
    pub fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let error = FieldProblem { field: field.into(), detail: detail.into() };
        let mut refusal = Self::new(Code::InvalidRequest, format!("{}: {}", error.field, error.detail));
        refusal.errors.push(error);
        refusal
    }

    /// A field of a body cannot be read. Values with rules of their own, as templates, have the code of those rules.
    pub fn unread(field: impl Into<String>, reason: String) -> Self {
        let of_value = |code: &&'static str| {
            // Behind the code is the place within the body, which says no more than the field.
            reason.split_once(&format!(" [{code}]")).map(|(problem, _)| (*code, problem.to_owned()))
        };
        let Some((code, problem)) = CODES_OF_VALUES.iter().find_map(of_value) else {
            return Self::field(field, reason);
        };
        let error = FieldProblem { field: field.into(), detail: problem };
        let detail = format!("{}: {}", error.field, error.detail);
        let mut refusal = Self::told(StatusCode::BAD_REQUEST, code, detail);
        refusal.errors.push(error);
        refusal
    }

    /// A cursor that no page has given. Every listing refuses it in these words.
    pub fn broken_cursor() -> Self {
        Self::field("cursor", "is not one that this server gave; take next_cursor of the page before")
    }

    /// The caller names an orchestration that only Segno itself starts.
    pub fn built_in(orchestration: &str) -> Self {
        let detail = format!(
            "{orchestration:?} is part of Segno and is not started by its name; call a function by POST /v1/invocations"
        );
        Self::new(Code::BuiltInOrchestration, detail)
    }

    /// The caller sends a message to an instance of an orchestration that takes none.
    pub fn takes_no_messages(id: &str, orchestration: &str) -> Self {
        let detail = format!(
            "instance {id:?} runs {orchestration:?}, which is part of Segno and takes no messages; a call of a function is \
             answered by its worker, or cancelled by POST /v1/instances/{{id}}/cancel"
        );
        Self::new(Code::BuiltInOrchestration, detail)
    }

    /// The caller wants an id that Segno makes of keys of its own.
    pub fn reserved(field: &str, prefix: &str) -> Self {
        let detail = format!("{field} begins with {prefix:?}, which is reserved; choose another one");
        let mut refusal = Self::new(Code::ReservedId, detail.clone());
        refusal.errors.push(FieldProblem { field: field.to_owned(), detail });
        refusal
    }

    /// User data in a field of the request breaks the rule of the engine.
    pub fn payload(field: &str, error: &segno::Error) -> Self {
        let code = error.code().as_str();
        let mut refusal = Self::told(StatusCode::BAD_REQUEST, code, error.to_string());
        let problem = FieldProblem { field: field.to_owned(), detail: refusal.detail.to_string() };
        refusal.detail = format!("{field}: {}", refusal.detail).into();
        refusal.errors.push(problem);
        refusal
    }

    /// Nothing of this name is there, or not for this caller: the two cannot be told apart.
    pub fn not_found(what: &str, id: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no {what} {id:?}"))
    }

    /// Why stored data cannot be read, if that is what is wrong.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// The stable name of what is wrong.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What is wrong.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// An error of the engine, told in the caller's ids.
    pub fn from_engine(error: &segno::Error, scope: &Scope) -> Self {
        let status = match error.kind() {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Conflict | ErrorKind::LockLost => StatusCode::CONFLICT,
            kind => return Self::from_kind(kind, error),
        };
        Self::told(status, error.code().as_str(), scope.hide_prefix(&error.to_string()))
    }

    /// A lease does not hold, or never did.
    pub fn lease_lost(detail: impl Into<String>) -> Self {
        Self::told(StatusCode::CONFLICT, segno::Code::LeaseLost.as_str(), detail.into())
    }

    /// An error of the catalogue of functions, told in the caller's ids.
    pub fn from_function(error: &FunctionError, scope: &Scope) -> Self {
        if *error == FunctionError::Busy {
            let reason = "too much work of this tenant waits for a thread: checks of inputs, large templates, previews";
            return Self::unavailable(reason, operation::effect());
        }
        let status = match error.kind() {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            kind => return Self::from_kind(kind, error),
        };
        let mut refusal = Self::told(status, error.code(), scope.hide_prefix(&error.to_string()));
        let wrong = |field: String, detail: &str| FieldProblem { field, detail: detail.to_owned() };
        refusal.errors = match error {
            FunctionError::InvalidInput { violations, .. } => {
                let place = |path: &str| format!("input{}", path.replace('/', "."));
                violations.iter().map(|violation| wrong(place(&violation.path), &violation.reason)).collect()
            }
            FunctionError::InvalidFunction { field, problem }
            | FunctionError::InvalidPool { field, problem }
            | FunctionError::NotPermitted { field, problem } => {
                vec![wrong(field.clone(), problem)]
            }
            FunctionError::InvalidInvocation { field, problem } => vec![wrong((*field).to_owned(), problem)],
            _ => Vec::new(),
        };
        refusal
    }

    /// An error about webhooks, told in the caller's ids.
    pub fn from_hook(error: &HookError, scope: &Scope) -> Self {
        if let HookError::Function(error) = error {
            return Self::from_function(error, scope);
        }
        let status = match error.kind() {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Conflict => StatusCode::CONFLICT,
            kind => return Self::from_kind(kind, error),
        };
        let mut refusal = Self::told(status, error.code(), scope.hide_prefix(&error.to_string()));
        if let HookError::Invalid { field, problem } = error {
            refusal.errors.push(FieldProblem { field: field.clone(), detail: problem.clone() });
        }
        refusal
    }

    /// An error about an action, told in the caller's ids.
    pub fn from_action(error: &ActionError, scope: &Scope) -> Self {
        let status = match (error, error.kind()) {
            (ActionError::Function(error), _) => return Self::from_function(error, scope),
            (ActionError::TooMany { .. }, _) => StatusCode::TOO_MANY_REQUESTS,
            (_, ErrorKind::Invalid) => StatusCode::BAD_REQUEST,
            (_, ErrorKind::NotFound) => StatusCode::NOT_FOUND,
            (_, ErrorKind::Conflict) => StatusCode::CONFLICT,
            (_, kind) => return Self::from_kind(kind, error),
        };
        let mut refusal = Self::told(status, error.code(), scope.hide_prefix(&error.to_string()));
        match error {
            ActionError::Invalid { field, problem } => {
                refusal.errors = vec![FieldProblem { field: field.clone(), detail: problem.clone() }];
            }
            ActionError::Unknown { what, .. } => refusal.missing = Some(what),
            _ => {}
        }
        refusal
    }

    /// An error about a runbook or a batch, told in the caller's ids.
    pub fn from_runbook(error: &RunbookError, scope: &Scope) -> Self {
        let status = match (error, error.kind()) {
            // As for every other key that was used for another request.
            (RunbookError::KeyUsed { .. }, _) => StatusCode::UNPROCESSABLE_ENTITY,
            // The fault of another system, not of this one or its store.
            (RunbookError::Source(SourceError::Failed { .. }), _) => StatusCode::BAD_GATEWAY,
            (_, ErrorKind::Invalid) => StatusCode::BAD_REQUEST,
            (_, ErrorKind::NotFound) => StatusCode::NOT_FOUND,
            (_, ErrorKind::Conflict) => StatusCode::CONFLICT,
            (_, kind) => return Self::from_kind(kind, error),
        };
        let mut refusal = Self::told(status, error.code(), scope.hide_prefix(&error.to_string()));
        refusal.errors = match error {
            RunbookError::InvalidBatch { field, problem } => {
                vec![FieldProblem { field: (*field).to_owned(), detail: problem.clone() }]
            }
            RunbookError::Runbook(invalid) => listed("yaml_content", &invalid.problems),
            RunbookError::Members(invalid) | RunbookError::Source(SourceError::Members(invalid)) => {
                listed("members", &invalid.problems)
            }
            _ => Vec::new(),
        };
        if let RunbookError::Runbook(InvalidRunbook { problems, .. })
        | RunbookError::Members(InvalidMembers { problems }) = error
        {
            refusal.detail = summary(problems).into();
        }
        refusal
    }

    /// An error about a DAG, a run or a backfill, told in the caller's ids.
    pub fn from_ledger(error: &LedgerError, scope: &Scope) -> Self {
        let status = match (error, error.kind()) {
            (LedgerError::Store(error), _) => return error.clone().into(),
            (LedgerError::Storage(error), _) => {
                tracing::warn!(%error, "the object store of the ledger is not available");
                let detail = "its object store is not available; the server's log has the reason";
                return Self::new(Code::LedgerUnavailable, detail);
            }
            (LedgerError::Busy, _) => {
                let reason =
                    "too much work of this tenant waits for a thread: documents, checks of inputs, previews";
                return Self::unavailable(reason, operation::effect());
            }
            (LedgerError::Gone(_) | LedgerError::NotVisible(_), _) => StatusCode::SERVICE_UNAVAILABLE,
            (_, ErrorKind::Invalid) => StatusCode::BAD_REQUEST,
            (_, ErrorKind::NotFound) => StatusCode::NOT_FOUND,
            (_, ErrorKind::Conflict) => StatusCode::CONFLICT,
            (_, kind) => return Self::from_kind(kind, error),
        };
        let mut refusal = Self::told(status, error.code(), scope.hide_prefix(&error.to_string()));
        match error {
            LedgerError::Dag(invalid) => {
                refusal.errors = listed("document", &invalid.problems);
                refusal.detail = summary(&invalid.problems).into();
            }
            LedgerError::Invalid { field, problem } => {
                refusal.errors = vec![FieldProblem { field: (*field).to_owned(), detail: problem.clone() }];
            }
            _ => {}
        }
        refusal
    }

    /// An error of the archive.
    pub fn from_archive(error: &ArchiveFault) -> Self {
        match error {
            ArchiveFault::Store(error) => error.clone().into(),
            ArchiveFault::Objects(error) => {
                tracing::warn!(%error, "the archive cannot be used");
                let detail = match error.kind() {
                    ErrorKind::Corrupt => "a file of it is damaged; the server's log names it",
                    _ => "its object store is not available; the server's log has the reason",
                };
                Self::new(Code::ArchiveUnavailable, detail)
            }
        }
    }

    /// An error of the message bus, told in the caller's ids.
    pub fn from_bus(error: &BusError, scope: &Scope) -> Self {
        let status = match (error, error.kind()) {
            (BusError::Store(error), _) => return error.clone().into(),
            (_, ErrorKind::Invalid) => StatusCode::BAD_REQUEST,
            (_, ErrorKind::NotFound) => StatusCode::NOT_FOUND,
            (_, ErrorKind::Conflict) => StatusCode::CONFLICT,
            (_, kind) => return Self::from_kind(kind, error),
        };
        Self::told(status, error.code(), scope.hide_prefix(&error.to_string()))
    }

    /// A refusal with a code that is not the server's own. A text that ends with the code loses it: a problem has it beside.
    pub fn told(status: StatusCode, code: &'static str, detail: String) -> Self {
        let bare = detail.strip_suffix(&format!(" [{code}]")).map(str::to_owned);
        let detail = bare.unwrap_or(detail);
        Refusal {
            status,
            code,
            title: status.canonical_reason().unwrap_or("Refused"),
            detail: detail.into(),
            missing: None,
            errors: Vec::new(),
            retry_after_seconds: None,
            damage: None,
        }
    }

    /// An error that the caller can do nothing about; of its reason, the caller is told the condition of the store.
    fn from_kind(kind: ErrorKind, error: &(dyn std::error::Error + 'static)) -> Self {
        match kind {
            ErrorKind::Unavailable | ErrorKind::Closed => {
                tracing::warn!(%error, "the store is not available");
                let reason = match condition(error) {
                    Some(condition) => format!("the store is not available: {condition}"),
                    None => "the store is not available at the moment".to_owned(),
                };
                Self::unavailable(&reason, operation::effect())
            }
            ErrorKind::Corrupt => {
                tracing::error!(%error, "stored data cannot be read");
                let reason = condition(error).map(|condition| format!(": {condition}")).unwrap_or_default();
                let detail = format!(
                    "what is stored cannot be read{reason}; the server's log has the reason, under the id of this \
                     request. Other data is not affected; if the store is damaged, `segno store check` finds all damage of it"
                );
                let code = segno::Code::StoredDataUnreadable.as_str();
                let damage = condition(error).unwrap_or("it does not decode").into();
                let refusal = Self::told(StatusCode::INTERNAL_SERVER_ERROR, code, detail);
                Refusal { damage: Some(damage), ..refusal }
            }
            _ => {
                tracing::error!(%error, "a request failed");
                let reason = "the server's log has the reason, under the id of this request";
                let doubt = match operation::effect() {
                    Effect::Unknown => "; the operation may have been done, in whole or in part",
                    Effect::ReadOnly | Effect::NothingChanged => "",
                };
                Self::new(Code::Internal, format!("{reason}{doubt}"))
            }
        }
    }

    /// The operation could not be carried out for now; tells whether it may have changed something
    /// all the same.
    pub fn unavailable(reason: &str, effect: Effect) -> Self {
        let (code, advice) = match effect {
            Effect::ReadOnly => (Code::Unavailable, "try again"),
            Effect::NothingChanged => (Code::Unavailable, "nothing was changed; try again"),
            Effect::Unknown => (
                Code::OutcomeUnknown,
                "the operation may have been done, or may still be done; repeat it with the same Idempotency-Key, \
                 or read its resource before you repeat it without one",
            ),
        };
        Self::new(code, format!("{reason}; {advice}"))
    }
}

/// What every caller may know of the condition of the store that an error comes from.
fn condition<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a str> {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.find_map(|error| error.downcast_ref::<ProviderError>())?.condition()
}

/// The first error of a text, and how many there are: `errors` lists them.
fn summary(problems: &Problems) -> String {
    let mut errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    let first = errors.next().map(ToString::to_string).unwrap_or_default();
    match (problems.errors(), errors.count() + 1) {
        (0 | 1, _) => first,
        (all, listed) if all > listed => format!("{all} errors, of which {listed} are listed: {first}"),
        (all, _) => format!("{all} errors: {first}"),
    }
}

/// The errors of a text that a field has, each with its place.
fn listed(field: &str, problems: &Problems) -> Vec<FieldProblem> {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(|problem| FieldProblem { field: field.to_owned(), detail: problem.to_string() }).collect()
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} [{}]", self.detail, self.code)
    }
}

impl From<ProviderError> for Refusal {
    fn from(error: ProviderError) -> Self {
        Self::from_kind(error.kind(), &error)
    }
}

impl Refusal {
    /// The problem as it goes over the wire.
    pub fn problem(&self) -> Problem {
        Problem {
            page: format!("{PAGES}{}", self.code),
            title: self.title.to_owned(),
            status: self.status.as_u16(),
            code: self.code.to_owned(),
            detail: self.detail.to_string(),
            error: self.missing.map(|what| format!("{what} not found")),
            errors: self.errors.clone(),
            request_id: crate::request_id::current(),
        }
    }

    fn body(&self) -> Vec<u8> {
        serde_json::to_vec(&self.problem()).unwrap_or_default()
    }

    /// The answer as it is sent to a peer whose request was not read, on a connection that ends with it.
    pub fn into_http1(self) -> Vec<u8> {
        let body = self.body();
        let retry = self.retry_after_seconds.map(|seconds| format!("retry-after: {seconds}\r\n"));
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-type: {PROBLEM_JSON}\r\ncontent-length: {}\r\n{}connection: close\r\n\r\n",
            self.status,
            body.len(),
            retry.unwrap_or_default()
        );
        [head.as_bytes(), &body].concat()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = self.body();
        let mut response = (self.status, [(header::CONTENT_TYPE, PROBLEM_JSON)], body).into_response();
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
