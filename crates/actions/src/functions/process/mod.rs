//! Functions that are tools: argv, JSON input on stdin, JSON result on stdout, stderr kept as log.
//!
//! | file | what |
//! |---|---|
//! | `run.rs` | one run, from its start to its result |
//! | `group.rs` | everything that a run has started, and the end of it |
//! | `streams.rs` | feeding and reading a tool within bounds |
//! | `log.rs` | what a tool wrote to stderr, kept for a while |

mod group;
mod log;
mod run;
mod streams;

use std::collections::BTreeMap;
use std::path::PathBuf;

use segno::limits::MAX_PAYLOAD_BYTES;
use serde::{Deserialize, Serialize};

use super::duration::HumanDuration;
use super::error::FunctionError;
use super::limits::{MAX_ARGUMENTS, MAX_LOG_BYTES, MAX_STOP_GRACE, MAX_VARIABLES};
use super::secret::{SettingValue, is_variable_name};

pub use log::{FunctionLog, LogKey, LogRow};
pub(crate) use log::{list_logs, read_log};
pub(crate) use run::{Tool, run};

/// Variables that begin like this are ours.
const OWN_VARIABLES: &str = "SEGNO_";

/// Settings of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessSettings {
    /// The program and its arguments, as they are: there is no shell.
    pub command: Vec<String>,
    /// Working directory; without it every run has an empty one of its own, which is removed afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<PathBuf>,
    /// Variables of the tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, SettingValue>,
    /// Variables of the node that the tool gets to see, besides `PATH`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_environment: Vec<String>,
    /// Most bytes on stdout; a tool that writes more is killed.
    #[serde(default = "default_output_limit")]
    pub output_limit: usize,
    /// How many bytes of stderr are kept, from its end.
    #[serde(default = "default_log_limit")]
    pub log_limit: usize,
    /// What an exit code other than 0 is.
    #[serde(default)]
    pub exit_codes: ExitCodes,
    /// Time between SIGTERM and SIGKILL.
    #[serde(default = "default_stop_grace")]
    pub stop_grace: HumanDuration,
}

/// What an exit code other than 0 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCodes {
    /// A failure, which is tried again if the call says so.
    #[default]
    Fail,
    /// A result: `{ "exit_code", "signal", "output", "log" }`, also for 0.
    Report,
}

fn default_output_limit() -> usize {
    1024 * 1024
}

fn default_log_limit() -> usize {
    64 * 1024
}

fn default_stop_grace() -> HumanDuration {
    HumanDuration::from_secs(5)
}

impl ProcessSettings {
    /// A tool with default settings.
    pub fn new(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        ProcessSettings {
            command: command.into_iter().map(Into::into).collect(),
            directory: None,
            environment: BTreeMap::new(),
            pass_environment: Vec::new(),
            output_limit: default_output_limit(),
            log_limit: default_log_limit(),
            exit_codes: ExitCodes::default(),
            stop_grace: default_stop_grace(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), FunctionError> {
        self.check_command()?;
        self.check_variables()?;
        if let Some(directory) = self.directory.as_ref().filter(|directory| !directory.is_absolute()) {
            let problem = format!("{} is not an absolute path; write the whole path", directory.display());
            return Err(FunctionError::invalid("directory", problem));
        }
        for (field, bytes, most) in [
            ("output_limit", self.output_limit, MAX_PAYLOAD_BYTES),
            ("log_limit", self.log_limit, MAX_LOG_BYTES),
        ] {
            if bytes == 0 || bytes > most {
                let problem = format!("{bytes} is out of range; write 1 to {most} bytes");
                return Err(FunctionError::invalid(field, problem));
            }
        }
        if self.stop_grace > MAX_STOP_GRACE {
            let problem = format!("{} is too long; write at most \"{MAX_STOP_GRACE}\"", self.stop_grace);
            return Err(FunctionError::invalid("stop_grace", problem));
        }
        Ok(())
    }

    fn check_command(&self) -> Result<(), FunctionError> {
        let refuse = |problem: String| Err(FunctionError::invalid("command", problem));
        if self.command.first().is_none_or(String::is_empty) {
            return refuse("it names no program; write [\"/usr/bin/tool\", \"argument\"]".to_owned());
        }
        if self.command.len() > MAX_ARGUMENTS {
            return refuse(format!("it has {} parts, the limit is {MAX_ARGUMENTS}", self.command.len()));
        }
        if self.command.iter().any(|part| part.contains('\0')) {
            return refuse("it contains a NUL character; take it out".to_owned());
        }
        Ok(())
    }

    fn check_variables(&self) -> Result<(), FunctionError> {
        let set = self.environment.keys().map(|name| ("environment", name));
        let passed = self.pass_environment.iter().map(|name| ("pass_environment", name));
        for (field, name) in set.chain(passed) {
            if !is_variable_name(name) {
                let problem = format!("{name:?} is no name of an environment variable");
                return Err(FunctionError::invalid(field, problem));
            }
            if name.starts_with(OWN_VARIABLES) {
                let problem = format!("{name}: names that begin with {OWN_VARIABLES} are set by the node");
                return Err(FunctionError::invalid(field, problem));
            }
        }
        if self.environment.len() + self.pass_environment.len() > MAX_VARIABLES {
            let problem = format!("more than {MAX_VARIABLES} variables are set and passed on");
            return Err(FunctionError::invalid("environment", problem));
        }
        for (name, value) in &self.environment {
            let field = format!("environment.{name}");
            match value {
                SettingValue::Secret(reference) => reference.check(&field)?,
                SettingValue::Text(text) if text.contains('\0') => {
                    return Err(FunctionError::invalid(field, "it contains a NUL character; take it out"));
                }
                SettingValue::Text(_) => {}
            }
        }
        Ok(())
    }
}
