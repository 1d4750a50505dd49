//! One run of a tool, from its start to its result.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::future::maybe_done;
use segno::clock::{self, Clock, duration_ms};
use segno::store::Store;
use segno::{ActivityContext, Category, Failure, Payload};
use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use super::super::rust::bad_payload;
use super::super::secret::Redactor;
use super::group::{Group, Pipes};
use super::log::{self, FunctionLog, LogKey};
use super::streams::{Captured, TooMuchOutput, input_file};
use super::{ExitCodes, ProcessSettings};

/// How long what is left in the pipes of an ended tool is waited for, should something else hold them open.
const DRAIN: Duration = Duration::from_secs(2);
/// Where programs are looked for if the node does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How much of the log a failure shows, from its end.
const SHOWN_LOG_BYTES: usize = 4 * 1024;
/// How much of an output that is not JSON a failure shows, from its beginning.
const SHOWN_OUTPUT_CHARS: usize = 200;

/// A tool that is to be run for an attempt.
pub(crate) struct Tool<'a> {
    pub(crate) settings: &'a ProcessSettings,
    pub(crate) ctx: &'a ActivityContext,
    pub(crate) timeout: Option<Duration>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) store: &'a dyn Store,
}

/// How a run ended.
enum Ended {
    Exited(io::Result<ExitStatus>),
    TooMuchOutput,
    TimedOut,
    Cancelled(String),
}

/// Runs a tool. Dropping the future kills it with all that it has started.
pub(crate) async fn run(tool: Tool<'_>, input: &Payload) -> Result<Payload, Failure> {
    // From here on: starting the tool is part of what it takes.
    let expires_at_ms = tool.timeout.map(|timeout| tool.clock.now_ms().saturating_add(duration_ms(timeout)));
    let mut redactor = Redactor::default();
    // Made first and so dropped last: nobody works in it any more when it is removed.
    let directory = tool.private_directory()?;
    let command = tool.command(directory.as_ref(), &mut redactor).await?;
    let ctx = tool.ctx;
    let marker = format!("{}-{}-{}", ctx.idempotency_key(), ctx.attempt(), ctx.delivery());
    let input = input_file(input.as_str()).await.map_err(|error| tool.not_started(&error))?;
    let (mut group, pipes) =
        Group::start(command, input, marker).map_err(|error| tool.not_started(&error))?;
    let mut captured = Captured::new(tool.settings.output_limit, tool.settings.log_limit, &redactor);
    let expired = expiry(tool.clock, expires_at_ms);
    let ended = tool.watch(&mut group, pipes, &mut captured, expired).await;
    match &ended {
        Ended::Exited(_) => group.sweep(),
        Ended::TooMuchOutput => group.kill().await,
        // Killed already, before what was left in its pipes was read.
        Ended::TimedOut | Ended::Cancelled(_) => {}
    }
    let log = captured.log.text(&redactor);
    tool.keep_log(&captured, &log).await;
    let run = Run { tool: &tool, redactor: &redactor, log: end_of(&log, SHOWN_LOG_BYTES) };
    run.result(ended, captured.output)
}

impl Tool<'_> {
    fn private_directory(&self) -> Result<Option<TempDir>, Failure> {
        if self.settings.directory.is_some() {
            return Ok(None);
        }
        let only_ours = Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix("segno-").permissions(only_ours).tempdir();
        made.map(Some).map_err(|error| self.not_started(&error))
    }

    async fn command(
        &self,
        directory: Option<&TempDir>,
        redactor: &mut Redactor,
    ) -> Result<Command, Failure> {
        let settings = self.settings;
        let [program, arguments @ ..] = settings.command.as_slice() else {
            return Err(self.not_started(&io::ErrorKind::NotFound.into()));
        };
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into()));
        for name in &settings.pass_environment {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for (name, value) in &settings.environment {
            command.env(name, value.resolve(redactor).await?.expose());
        }
        command.env("SEGNO_IDEMPOTENCY_KEY", self.ctx.idempotency_key());
        command.env("SEGNO_ATTEMPT", self.ctx.attempt().to_string());
        if let Some(directory) = settings.directory.as_deref().or(directory.map(TempDir::path)) {
            command.current_dir(directory);
        }
        Ok(command)
    }

    /// Runs the tool until it ends or has to end. One that has to is asked to, and has some time to do so.
    async fn watch(
        &self,
        group: &mut Group,
        pipes: Pipes,
        captured: &mut Captured,
        expired: impl Future<Output = ()>,
    ) -> Ended {
        let mut pump = pin!(captured.pump(pipes));
        let mut expired = pin!(expired);
        let cancellation = self.ctx.cancellation_token();
        let mut pumping = true;
        let ended = loop {
            tokio::select! {
                biased;
                reason = cancellation.cancelled() => break Ended::Cancelled(reason),
                () = &mut expired => break Ended::TimedOut,
                pumped = &mut pump, if pumping => match pumped {
                    Ok(()) => pumping = false,
                    Err(TooMuchOutput) => break Ended::TooMuchOutput,
                },
                status = group.ended() => break Ended::Exited(status),
            }
        };
        let rest = async { if pumping { pump.await } else { Ok(()) } };
        match ended {
            Ended::Exited(_) => match clock::timeout(self.clock, DRAIN, rest).await {
                Some(Err(TooMuchOutput)) => Ended::TooMuchOutput,
                _ => ended,
            },
            Ended::TooMuchOutput => ended,
            Ended::TimedOut | Ended::Cancelled(_) => {
                group.terminate();
                let mut rest = pin!(maybe_done(rest));
                let orderly = async { tokio::join!(rest.as_mut(), group.ended()) };
                let _ = clock::timeout(self.clock, self.settings.stop_grace.get(), orderly).await;
                group.kill().await;
                // What it wrote before its end may still be in the pipes.
                let _ = clock::timeout(self.clock, DRAIN, rest).await;
                ended
            }
        }
    }

    /// Keeps the log. Without it the result is as good, so trouble is only noted.
    async fn keep_log(&self, captured: &Captured, text: &str) {
        if captured.log.total_bytes() == 0 {
            return;
        }
        let ctx = self.ctx;
        let log = FunctionLog {
            key: LogKey {
                instance: ctx.instance_id().to_owned(),
                call: ctx.idempotency_key().to_owned(),
                attempt: ctx.attempt(),
            },
            total_bytes: captured.log.total_bytes(),
            is_cut: captured.log.is_cut(),
            text: text.to_owned(),
        };
        if let Err(error) = log::keep(self.store, &log).await {
            tracing::warn!(instance = log.key.instance, %error, "the log of a tool could not be kept");
        }
    }

    fn program(&self) -> &str {
        self.settings.command.first().map_or("", String::as_str)
    }

    /// A program that is not there will not come by trying again; a machine that is short of something may recover.
    fn not_started(&self, error: &io::Error) -> Failure {
        use io::ErrorKind::{InvalidInput, NotADirectory, NotFound, PermissionDenied};
        let hopeless = matches!(error.kind(), NotFound | PermissionDenied | NotADirectory | InvalidInput);
        let category = if hopeless { Category::Configuration } else { Category::Infrastructure };
        let message = format!(
            "{:?} could not be started: {error}; check the program, its permissions and the working directory",
            self.program()
        );
        Failure::new(category, message).code("tool-not-started")
    }
}

async fn expiry(clock: &dyn Clock, at_ms: Option<u64>) {
    match at_ms {
        Some(at_ms) => clock::sleep_until(clock, at_ms).await,
        None => std::future::pending().await,
    }
}

/// A run that is over, and how it is told.
struct Run<'a> {
    tool: &'a Tool<'a>,
    redactor: &'a Redactor,
    /// The end of the log, without secrets.
    log: &'a str,
}

impl Run<'_> {
    fn result(&self, ended: Ended, output: Vec<u8>) -> Result<Payload, Failure> {
        let program = self.tool.program();
        match ended {
            Ended::Cancelled(reason) => Err(Failure::cancelled(reason)),
            Ended::TimedOut => {
                let ms = self.tool.timeout.map_or(0, duration_ms);
                let message = self.with_last_line(format!("{program:?} took longer than {ms} ms"));
                let failure = Failure::new(Category::Timeout, message).code("attempt-timeout");
                Err(failure.details(json!({ "log": self.log })))
            }
            Ended::TooMuchOutput => {
                let limit = self.tool.settings.output_limit;
                let message = format!(
                    "{program:?} wrote more than {limit} bytes to stdout and was killed; write large data \
                     elsewhere and return a reference, or raise output_limit"
                );
                let failure = Failure::application(message).non_retryable().code("output-too-large");
                Err(failure.details(json!({ "log": self.log })))
            }
            Ended::Exited(Err(error)) => {
                let message = format!("the end of {program:?} could not be waited for: {error}");
                Err(Failure::new(Category::Infrastructure, message).code("tool-failed"))
            }
            Ended::Exited(Ok(status)) => match self.tool.settings.exit_codes {
                ExitCodes::Report => self.report(status, &output),
                ExitCodes::Fail if status.success() => self.output(&output),
                ExitCodes::Fail => Err(self.failed(status)),
            },
        }
    }

    fn output(&self, output: &[u8]) -> Result<Payload, Failure> {
        self.redactor.payload(output).map_err(|reason| {
            let text = self.redactor.cut_text(&String::from_utf8_lossy(output));
            let start: String = text.chars().take(SHOWN_OUTPUT_CHARS).collect();
            let program = self.tool.program();
            let message = format!(
                "{program:?} must write one JSON value to stdout and nothing else (use stderr for logs), but it \
                 wrote {start:?}: {reason}"
            );
            let failure = Failure::application(message).non_retryable().code("output-not-json");
            failure.details(json!({ "log": self.log }))
        })
    }

    fn report(&self, status: ExitStatus, output: &[u8]) -> Result<Payload, Failure> {
        let output = match self.redactor.payload(output) {
            Ok(json) => json,
            Err(_) => {
                let text = self.redactor.cut_text(&String::from_utf8_lossy(output));
                Payload::encode(&text).map_err(bad_payload)?
            }
        };
        let (exit_code, signal, log) = (status.code(), status.signal(), self.log);
        Payload::encode(&Report { exit_code, log, output, signal }).map_err(bad_payload)
    }

    fn failed(&self, status: ExitStatus) -> Failure {
        let program = self.tool.program();
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("{program:?} ended with exit code {code}"),
            (None, Some(signal)) => format!("{program:?} was killed by signal {signal}"),
            (None, None) => format!("{program:?} ended with {status}"),
        };
        let details = json!({ "exit_code": status.code(), "signal": status.signal(), "log": self.log });
        Failure::application(self.with_last_line(how)).code("tool-failed").details(details)
    }

    /// What a person wants to see first: the last thing that the tool said.
    fn with_last_line(&self, message: String) -> String {
        match self.log.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{message}: {}", line.trim()),
            None => message,
        }
    }
}

/// What a tool gave whose exit code is for the caller to judge.
#[derive(Serialize)]
struct Report<'a> {
    exit_code: Option<i32>,
    log: &'a str,
    output: Payload,
    signal: Option<i32>,
}

/// The end of a text, from a whole character on.
fn end_of(text: &str, max_bytes: usize) -> &str {
    let from = text.len().saturating_sub(max_bytes);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..]
}
