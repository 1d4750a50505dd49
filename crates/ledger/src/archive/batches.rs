//! `batches`, `phases`, `members`, `steps`: batches of runbooks. The server makes their rows.

use std::sync::Arc;

use super::row::archived_row;

archived_row! {
    /// A batch. `incarnation` is when it was first seen.
    BatchRow {
        /// Name of its runbook.
        runbook: Arc<str>,
        /// `completed`, `failed` or `cancelled`.
        status: Arc<str>,
        /// When it was first seen.
        detected_at: i64,
        /// When it ended.
        completed_at: i64,
        /// All of it as the API has it, a JSON object.
        data: Arc<str>,
    }
}

archived_row! {
    /// A phase of a batch. `id`, `incarnation` and `ended_at` are those of the batch.
    PhaseRow {
        /// Id of the phase execution.
        phase: i64,
        /// Name of the phase.
        name: Arc<str>,
        /// How far it got.
        status: Arc<str>,
        /// All of it as the API has it, a JSON object.
        data: Arc<str>,
    }
}

archived_row! {
    /// A member of a batch. `id`, `incarnation` and `ended_at` are those of the batch.
    MemberRow {
        /// Id of the member.
        member: i64,
        /// Value of the primary key column.
        key: Arc<str>,
        /// `active`, `removed`, `failed` or `cancelled`.
        status: Arc<str>,
        /// All of it as the API has it, a JSON object.
        data: Arc<str>,
    }
}

archived_row! {
    /// A step of a member, or an init step. `id`, `incarnation` and `ended_at` are those of the
    /// batch.
    StepRow {
        /// `step` or `init`.
        kind: Arc<str>,
        /// Id of the step execution among those of its kind.
        step: i64,
        /// Id of the member; none for an init step.
        member: Option<i64>,
        /// Id of the phase execution; none for an init step.
        phase: Option<i64>,
        /// Name of the step.
        name: Arc<str>,
        /// The function.
        function: Arc<str>,
        /// How it ended.
        status: Arc<str>,
        /// All of it as the API has it, a JSON object.
        data: Arc<str>,
    }
}
