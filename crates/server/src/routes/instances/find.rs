//! Looking an instance up.

use std::time::Duration;

use segno::client::Instance;
use segno::store::ErrorKind;

use crate::app::AppState;
use crate::problem::Refusal;
use crate::scope::Scope;

/// An instance has its row from its first turn on. A caller that was told that its start is stored must find it before
/// that too, so what is not there is waited for this long.
const FIRST_TURN: Duration = Duration::from_millis(250);

/// The instance of this id.
///
/// # Errors
/// `not-found` when there is none for this caller.
pub async fn find(app: &AppState, scope: &Scope, id: &str) -> Result<Instance, Refusal> {
    let stored = scope.stored(id);
    match app.client.instance(&stored).await {
        Ok(found) => Ok(found),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let begun = app.client.wait_for_revision(&stored, 0, FIRST_TURN).await;
            begun.map_err(|late| match late.code() {
                segno::Code::WaitTimedOut => Refusal::from_engine(&error, scope),
                _ => Refusal::from_engine(&late, scope),
            })
        }
        Err(error) => Err(Refusal::from_engine(&error, scope)),
    }
}
