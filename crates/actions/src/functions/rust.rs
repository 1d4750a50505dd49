//! Functions that are code of the embedding program.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use segno::{ActivityContext, Category, Error, Failure, Payload};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Settings of a function that is code: none, the code has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RustSettings {}

type RustFuture = Pin<Box<dyn Future<Output = Result<Payload, Failure>> + Send>>;

/// Registered code, JSON to JSON.
pub(crate) type RustHandler = Arc<dyn Fn(ActivityContext, Payload) -> RustFuture + Send + Sync>;

/// Wraps typed code. Whether the JSON fits its types is seen when it runs.
pub(crate) fn handler<I, O, F, Fut>(code: F) -> RustHandler
where
    I: DeserializeOwned + Send + 'static,
    O: Serialize + 'static,
    F: Fn(ActivityContext, I) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, Failure>> + Send + 'static,
{
    let code = Arc::new(code);
    Arc::new(move |ctx, input| {
        let code = code.clone();
        Box::pin(async move {
            let output = code(ctx, input.decode().map_err(bad_payload)?).await?;
            Payload::encode(&output).map_err(bad_payload)
        })
    })
}

/// JSON that does not fit, or is over a limit, is a matter of configuration: trying again cannot help.
pub(crate) fn bad_payload(error: Error) -> Failure {
    Failure::new(Category::Configuration, error.to_string()).code(error.code().as_str())
}
