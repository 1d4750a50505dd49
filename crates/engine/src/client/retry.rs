//! Next attempts at once, instead of after their backoff.

use super::Client;
use crate::error::{Code, Error};
use crate::store::{ErrorKind, ExecutionStatus};

impl Client {
    /// Lets the delayed activities of an instance run at once: those that wait for their next attempt, and those that were
    /// released for later. Returns their number. Their attempts count as before, and timers keep their time. Once this has
    /// answered, a worker may fetch them.
    ///
    /// # Errors
    /// `not-found`, `instance-ended`, and `nothing-to-retry` when none of its activities is delayed.
    pub async fn retry_now(&self, instance: &str) -> Result<u64, Error> {
        let info = match self.store.get_instance_info(instance).await {
            // A start that waits for its first turn has no row, and no activities either.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(match self.store.queued_start_ms(instance).await? {
                    Some(_) => nothing(instance, "it has not begun"),
                    None => error.into(),
                });
            }
            info => info?,
        };
        if info.status.is_terminal() {
            let message = format!("instance {instance:?} has ended ({}) and has no activities", info.status);
            return Err(Error::new(Code::InstanceEnded, message));
        }
        match self.store.expedite_activities(instance).await? {
            0 if info.status == ExecutionStatus::Paused => {
                Err(nothing(instance, "it is paused; resume it instead"))
            }
            0 => Err(nothing(instance, "none of its activities waits for its next attempt")),
            expedited => Ok(expedited),
        }
    }
}

fn nothing(instance: &str, why: &str) -> Error {
    Error::new(Code::NothingToRetry, format!("instance {instance:?} has nothing to retry: {why}"))
}
