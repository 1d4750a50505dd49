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
    app.client.instance(&scope.stored(id)).await.map_err(|error| Refusal::from_engine(&error, scope))
}
