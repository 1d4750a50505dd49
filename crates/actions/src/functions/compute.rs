//! CPU-bound work of tenants off the threads that serve: rendering large templates, searching rare times. It runs on the pool
//! that checks inputs, so that one fair queue (ADR 0024) is between all tenants and all such work.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::error::FunctionError;
use super::names::Scope;
use super::schema::threads::{self, Patience};

/// Runs work of a tenant. What it costs counts for the tenant: another one waits for at most one piece of work of it.
///
/// # Errors
/// `unavailable` when too much of the tenant waits already.
///
/// # Panics
/// When the work does.
pub async fn compute<T: Send + 'static>(
    scope: &Scope,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FunctionError> {
    let caught = move || catch_unwind(AssertUnwindSafe(work));
    let done = threads::shared().run(scope, Patience::Caller, caught).await?;
    Ok(done.unwrap_or_else(|panic| resume_unwind(panic)))
}
