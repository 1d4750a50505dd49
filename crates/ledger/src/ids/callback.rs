//! The id of a task in the URL that its worker calls back: `ct1_` and base64url of run, NUL, task.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

const PREFIX: &str = "ct1_";

/// A task of a run, as callbacks name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackTask {
    /// The run. It has no NUL.
    pub run_id: String,
    /// The task.
    pub task_key: String,
}

impl fmt::Display for CallbackTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = format!("{}\0{}", self.run_id, self.task_key);
        write!(f, "{PREFIX}{}", URL_SAFE_NO_PAD.encode(joined))
    }
}

/// A text that is not a callback task id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the task id is not one of ours: pass the taskId of the envelope unchanged")]
pub struct InvalidCallbackTask;

impl FromStr for CallbackTask {
    type Err = InvalidCallbackTask;

    fn from_str(text: &str) -> Result<Self, InvalidCallbackTask> {
        let encoded = text.strip_prefix(PREFIX).ok_or(InvalidCallbackTask)?;
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| InvalidCallbackTask)?;
        let joined = String::from_utf8(bytes).map_err(|_| InvalidCallbackTask)?;
        let (run_id, task_key) = joined.split_once('\0').ok_or(InvalidCallbackTask)?;
        Ok(CallbackTask { run_id: run_id.to_owned(), task_key: task_key.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vector_holds_and_is_read_back() {
        let task =
            CallbackTask { run_id: "run-123".to_owned(), task_key: "analytics.daily_sales".to_owned() };
        assert_eq!(task.to_string(), "ct1_cnVuLTEyMwBhbmFseXRpY3MuZGFpbHlfc2FsZXM");
        assert_eq!(task.to_string().parse(), Ok(task));
        for bad in ["", "ct1_", "ct1_!!", "ct1_cnVu", "ct2_cnVuLTEyMwBh", "ct1_gAA"] {
            assert_eq!(bad.parse::<CallbackTask>(), Err(InvalidCallbackTask), "{bad}");
        }
    }
}
