//! Functions: the one way to run things.
//!
//! A function is a name with an executor. Whatever wants work done calls a function by name with JSON input, through the
//! built-in orchestration `invoke`, which gives it retries, timeouts, cancellation, history and visibility.
//!
//! | file | what |
//! |---|---|
//! | `function.rs` | a declaration: executor, schema, defaults |
//! | `names.rs`, `duration.rs`, `secret.rs`, `schema.rs` | what declarations are made of |
//! | `rust.rs`, `process/`, `http/`, `remote.rs` | the executors, with their settings |
//! | `push.rs` | handing a call to the URL of a worker elsewhere |
//! | `compute.rs` | CPU-bound work of tenants beside the threads that serve |
//! | `catalogue.rs`, `builder.rs`, `stored.rs`, `policy.rs` | which functions there are: configured ones, stored ones, and what stored ones may do |
//! | `invocation.rs`, `prepare.rs` | a call that is ready to be started, and how a request becomes one |
//! | `invoke.rs` | the orchestration `invoke` and the activity `function` |
//! | `reading.rs` | what other rooms read for a tenant: documents and secrets, by the rules of stored functions |
//! | `labels.rs`, `status.rs` | what lists know of calls; how far one is |
//! | `begun.rs` | attempts that are begun once |
//! | `issue.rs` | inputs that are completed with tokens when their calls are handed out |
//! | `settle.rs` | what the commit that ends a call writes for the room that asked for it |
//! | `limits.rs` | every limit |
//! | `error.rs` | how calls of the catalogue fail |

mod begun;
mod builder;
mod catalogue;
mod compute;
mod duration;
mod error;
mod function;
pub mod http;
mod invocation;
mod invoke;
mod issue;
mod labels;
pub mod limits;
mod names;
mod policy;
mod prepare;
pub mod process;
mod push;
mod reading;
mod remote;
mod rust;
mod schema;
mod secret;
mod settle;
mod status;
mod stored;

pub use begun::RECOVERED;
pub use builder::FunctionsBuilder;
pub use catalogue::{Functions, Origin, VersionedFunction};
pub use compute::compute;
pub use duration::HumanDuration;
pub use error::FunctionError;
pub(crate) use function::CallLimits;
pub use function::{Executor, Function, RetryPolicy};
pub(crate) use invocation::keyed_id;
pub use invocation::{
    Call, Invocation, Route, invocation_id, node_prefix, node_tag, pool_tag, push_prefix, push_tag,
    remote_tag, shared_push_tag, start_id, tag_scope,
};
pub use invoke::{FUNCTION, INVOKE, is_built_in};
pub use issue::Issuer;
pub use labels::{FUNCTION_LABEL, TRIGGER_LABEL, Trigger};
pub use names::{CallName, FunctionName, HookName, Letters, Namespace, PoolName, Scope, Tag, Tenant};
pub use policy::StoredPolicy;
pub use prepare::InvokeRequest;
pub use process::{FunctionLog, LogKey, LogRow};
pub use push::{PushDelivery, PushTarget, Pushed};
pub use reading::Fetch;
pub use remote::{Push, RemoteSettings};
pub use rust::RustSettings;
pub use schema::{InputSchema, Violation};
pub use secret::{Secret, SecretReference, SettingValue};
pub(crate) use settle::Settlement;
pub use settle::{CallEnd, Settle, SettleError, Settler};
pub use status::{CallStatus, FailedAttempt, MAX_SHOWN_ATTEMPTS, call_status};
