//! Looking an instance up.

use segno::client::Instance;

use crate::app::AppState;
use crate::problem::Refusal;
use crate::scope::Scope;

/// The instance of this id.
///
/// # Errors
/// `not-found` when there is none for this caller.
pub async fn find(app: &AppState, scope: &Scope, id: &str) -> Result<Instance, Refusal> {
    find_stored(app, scope, &scope.stored(id)).await
}

/// The same, by its stored id.
///
/// # Errors
/// `not-found` when there is none.
pub async fn find_stored(app: &AppState, scope: &Scope, stored: &str) -> Result<Instance, Refusal> {
    app.client.instance(stored).await.map_err(|error| Refusal::from_engine(&error, scope))
}
