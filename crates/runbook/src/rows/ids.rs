//! Ids of rows: 64-bit numbers as in the seed, one type for each table, so that they cannot be mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! row_id {
    ($(#[doc = $doc:literal])+ $name:ident) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

row_id!(
    /// Id of a row of `runbooks`: one version of one runbook.
    RunbookId
);
row_id!(
    /// Id of a row of `batches`.
    BatchId
);
row_id!(
    /// Id of a row of `batch_members`.
    MemberId
);
row_id!(
    /// Id of a row of `phase_executions`.
    PhaseId
);
row_id!(
    /// Id of a row of `step_executions`.
    StepId
);
row_id!(
    /// Id of a row of `init_executions`.
    InitId
);
