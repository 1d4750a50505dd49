//! Batches of runbooks: their members, phases, steps, and requests about them. Columns and states have the names of the tables.

mod batches;
mod member;
mod notice;
mod phase;
mod request;
mod step;

pub use batches::{Batch, BatchDetails, BatchList, BatchStatus, CreateBatch, Explanation};
pub use member::{Member, MemberCounts, MemberDetails, MemberList, MemberStatus, PutMembers, RemoveMembers};
pub use notice::{Notice, NoticeState};
pub use phase::{Phase, PhaseStatus};
pub use request::{BatchAction, BatchRequest, RequestState, RetryFrom};
pub use step::{Step, StepStatus};
