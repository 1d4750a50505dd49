//! Inputs that are completed when their calls are handed out: with tokens, which must not be stored where viewers read them.
//!
//! A call that was made with [`Settle::issuing`](super::Settle::issuing) names the kind. The [`Issuer`] of the kind completes the
//! input in memory, each time the call is handed to what runs it: a tool, an HTTP call, code, or a worker elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use segno::{Category, Failure, Payload};

use super::catalogue::Functions;
use super::invocation::Call;
use super::names::Scope;

/// Completes inputs of calls of one kind.
pub trait Issuer: Send + Sync + 'static {
    /// The input as it is handed out now, in Unix milliseconds. It may be called several times for one call.
    ///
    /// # Errors
    /// What is wrong with the stored input.
    fn complete(&self, scope: &Scope, stored: &Payload, now_ms: u64) -> Result<Payload, String>;
}

/// Issuers by kind.
pub(super) type Issuers = BTreeMap<&'static str, Arc<dyn Issuer>>;

impl Functions {
    /// Completes the input of a call that is about to be handed out. Every path to an executor or worker comes through here.
    ///
    /// # Errors
    /// A configuration failure when this node has no issuer for the kind, or the stored input is none that it can complete.
    pub fn hand_out(&self, call: &mut Call) -> Result<(), Failure> {
        let Some(kind) = &call.issuer else { return Ok(()) };
        let refused = |problem: String| {
            let message = format!("the input of a call of kind {kind:?} cannot be completed: {problem}");
            Failure::new(Category::Configuration, message)
        };
        let Some(issuer) = self.inner.issuers.get(kind.as_str()) else {
            return Err(refused(
                "this node issues no tokens; update it, and set ledger.url on it".to_owned(),
            ));
        };
        let now_ms = self.inner.clock.now_ms();
        call.input = issuer.complete(&call.scope(), &call.input, now_ms).map_err(refused)?;
        Ok(())
    }
}
