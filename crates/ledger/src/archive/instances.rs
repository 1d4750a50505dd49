//! `instances`: an instance as it was when it ended, from what the engine hands out and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno::client::Instance;
use segno::event::Output;
use segno::store::ExecutionStatus;
use segno::{Failure, Payload};
use segno_actions::functions::{FUNCTION_LABEL, Scope, Trigger};

use super::row::archived_row;

archived_row! {
    /// An instance.
    InstanceRow {
        /// Name of its orchestration; `invoke` for a call of a function.
        orchestration: Option<Arc<str>>,
        /// The function that it calls.
        function: Option<Arc<str>>,
        /// What made it: `call`, `action`, `schedule`, `hook`, `runbook` or `dag`.
        kind: Option<Arc<str>>,
        /// Version of its orchestration.
        version: Option<Arc<str>>,
        /// `completed`, `failed` or `cancelled`.
        status: Arc<str>,
        /// Number of its last execution, from 1.
        execution: i64,
        /// Id of its parent.
        parent: Option<Arc<str>>,
        /// When it was created.
        created_at: i64,
        /// When something was last committed for it.
        updated_at: i64,
        /// When it ended.
        completed_at: i64,
        /// Milliseconds from its creation to its end.
        duration_ms: i64,
        /// Its result, JSON, when it completed.
        result: Option<Arc<str>>,
        /// Code of its failure.
        failure_code: Option<Arc<str>>,
        /// Category of its failure.
        failure_category: Option<Arc<str>>,
        /// What happened, when it failed or was cancelled.
        failure_message: Option<Arc<str>>,
        /// The whole failure, a JSON object.
        failure: Option<Arc<str>>,
        /// The status that its code has set, JSON.
        custom_status: Option<Arc<str>>,
        /// How often that was set.
        custom_status_version: i64,
        /// Labels of its code and callers, a JSON object.
        labels: Arc<str>,
        /// Labels of Segno, a JSON object.
        system_labels: Arc<str>,
    }
}

/// The names of the states in which an instance is archived.
const STATES: [(ExecutionStatus, &str); 3] = [
    (ExecutionStatus::Completed, "completed"),
    (ExecutionStatus::Failed, "failed"),
    (ExecutionStatus::Cancelled, "cancelled"),
];

impl InstanceRow {
    /// The row of an instance that has ended; `id` is the one in the scope. `None` for one that has not ended.
    pub(super) fn of(scope: &Scope, id: &str, found: &Instance) -> Option<Self> {
        let (_, status) = STATES.into_iter().find(|(status, _)| *status == found.status)?;
        let completed_at_ms = found.completed_at_ms?;
        let prefix = scope.id_prefix();
        let shown = |id: &str| Arc::from(id.strip_prefix(&prefix).unwrap_or(id));
        let text = |text: &Option<String>| text.as_deref().map(Arc::from);
        let failure = found.failure();
        let labels = |is_reserved: bool| -> Arc<str> {
            let wanted = found.labels.iter().filter(|(key, _)| segno::is_reserved_label(key) == is_reserved);
            json(&wanted.collect::<BTreeMap<_, _>>())
        };
        let function = found.labels.get(FUNCTION_LABEL);
        Some(InstanceRow {
            tenant_id: scope.tenant.as_str().into(),
            workspace_id: scope.namespace.as_str().into(),
            id: id.into(),
            incarnation: time(found.created_at_ms),
            revision: time(found.revision),
            ended_at: time(completed_at_ms),
            orchestration: text(&found.orchestration),
            function: function.and_then(|label| label.strip_prefix(&prefix)).map(Arc::from),
            kind: Trigger::of(&found.labels).map(|kind| kind.as_str().into()),
            version: text(&found.version),
            status: status.into(),
            execution: time(found.execution_id),
            parent: found.parent.as_deref().map(shown),
            created_at: time(found.created_at_ms),
            updated_at: time(found.updated_at_ms),
            completed_at: time(completed_at_ms),
            duration_ms: time(completed_at_ms.saturating_sub(found.created_at_ms)),
            result: found.result().map(|result| result.as_str().into()),
            failure_code: failure.and_then(|failure| failure.code.as_deref()).map(Arc::from),
            failure_category: failure.map(|failure| failure.category.to_string().into()),
            failure_message: failure.map(|failure| failure.message.as_str().into()),
            failure: failure.map(json),
            custom_status: found.custom_status.as_ref().map(|status| status.as_str().into()),
            custom_status_version: time(found.custom_status_version),
            labels: labels(false),
            system_labels: labels(true),
        })
    }

    /// The instance, with the ids of its scope.
    ///
    /// # Errors
    /// When a JSON column cannot be read.
    pub fn instance(&self) -> Result<Instance, serde_json::Error> {
        let status = STATES.into_iter().find(|(_, name)| *name == &*self.status);
        let mut labels: BTreeMap<String, String> = serde_json::from_str(&self.labels)?;
        labels.extend(serde_json::from_str::<BTreeMap<String, String>>(&self.system_labels)?);
        let payload = |text: &Arc<str>| serde_json::from_str::<Payload>(text);
        let output = match (&self.result, &self.failure) {
            (Some(result), _) => Some(Output::Completed(payload(result)?)),
            (None, Some(failure)) => Some(Output::Failed(serde_json::from_str::<Failure>(failure)?)),
            (None, None) => None,
        };
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        Ok(Instance {
            id: self.id.as_ref().to_owned(),
            orchestration: text(&self.orchestration),
            version: text(&self.version),
            execution_id: unsigned(self.execution),
            status: status.map_or(ExecutionStatus::Completed, |(status, _)| status),
            output,
            custom_status: self.custom_status.as_ref().map(payload).transpose()?,
            custom_status_version: unsigned(self.custom_status_version),
            labels,
            parent: text(&self.parent),
            created_at_ms: unsigned(self.created_at),
            start_at_ms: None,
            updated_at_ms: unsigned(self.updated_at),
            completed_at_ms: Some(unsigned(self.completed_at)),
            revision: unsigned(self.revision),
            unreadable: None,
        })
    }
}

/// A value as JSON text. Its keys are texts, so it has a JSON form.
fn json(value: &impl serde::Serialize) -> Arc<str> {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned()).into()
}

/// A time or count of the store.
pub(super) fn time(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A time or count of a file. Negative ones are not written.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
