//! The next execution of an instance that exists: what a restart and a replacement commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::error::{ErrorKind, ProviderError};
use super::execution_status::ExecutionStatus;
use super::message::OrchestratorMessage;
use super::provider::{CustomStatusChange, ExecutionMetadata};

/// In errors.
const OPERATION: &str = "begin_next_execution";

/// A restart or a replacement of an instance, to be committed all or nothing by
/// [`Provider::begin_next_execution`](super::Provider::begin_next_execution).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextExecution {
    /// The execution that the caller has seen as the current one; the next one gets the number after it.
    pub after_execution_id: u64,
    /// Names the new execution: a repetition of the call is recognised by it. See [`ExecutionMetadata::incarnation`].
    pub incarnation: u64,
    /// What happens to an execution that has not ended.
    pub unended: UnendedExecution,
    /// Orchestration name of the new execution.
    pub orchestration_name: Arc<str>,
    /// Orchestration version of the new execution, if chosen.
    pub orchestration_version: Option<Arc<str>>,
    /// The full set of labels of the instance from now on.
    pub labels: BTreeMap<String, String>,
    /// The message that begins the execution. It has no guard and comes after all that are queued.
    pub start: OrchestratorMessage,
}

/// What [`NextExecution`] does with an execution that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnendedExecution {
    /// The call fails with `Conflict`.
    Refuse,
    /// It ends in the same commit.
    End {
        /// Its last state; a terminal one.
        status: ExecutionStatus,
        /// Its output, as the runtime encodes it.
        output: Bytes,
    },
}

impl NextExecution {
    /// The instance.
    pub fn instance(&self) -> &str {
        &self.start.instance
    }

    /// Whether the current execution, of this number and in this state, may be followed by the next one.
    ///
    /// # Errors
    /// `Conflict` when it is another one, or has not ended and is not to be ended.
    pub fn check(&self, current_execution_id: u64, status: ExecutionStatus) -> Result<(), ProviderError> {
        let instance = self.instance();
        let text = if current_execution_id != self.after_execution_id {
            format!(
                "execution {current_execution_id} of {instance} is the current one, not {}; read it again",
                self.after_execution_id
            )
        } else if !status.is_terminal() && self.unended == UnendedExecution::Refuse {
            format!("{instance} is {status}; cancel it first, or end it by force")
        } else {
            return Ok(());
        };
        Err(ProviderError::new(ErrorKind::Conflict, OPERATION, text))
    }

    /// The error when there is no such instance.
    pub fn absent(&self) -> ProviderError {
        let text = format!("there is no instance {}, and no start for it waits", self.instance());
        ProviderError::new(ErrorKind::NotFound, OPERATION, text)
    }

    /// What is stored about the new execution. A version that was not chosen replaces the one of the execution before, so a
    /// store sets [`Self::orchestration_version`] by itself.
    pub fn metadata(&self) -> ExecutionMetadata {
        ExecutionMetadata {
            status: Some(ExecutionStatus::Pending),
            orchestration_name: Some(Arc::clone(&self.orchestration_name)),
            incarnation: Some(self.incarnation),
            custom_status: Some(CustomStatusChange::Clear),
            labels: Some(self.labels.clone()),
            ..ExecutionMetadata::default()
        }
    }
}

impl UnendedExecution {
    /// What is stored about an execution that ends by this.
    pub fn metadata(&self) -> Option<ExecutionMetadata> {
        let UnendedExecution::End { status, output } = self else { return None };
        let (status, output) = (Some(*status), Some(output.clone()));
        Some(ExecutionMetadata { status, output, ..ExecutionMetadata::default() })
    }
}
