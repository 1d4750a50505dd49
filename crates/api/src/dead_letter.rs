//! Dead letters: what was given up, why, and the way back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::Json;
use crate::unreadable::Unreadable;

/// What was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum GivenUp {
    /// A message that its instance could not take. To resubmit it is to send it again.
    Message,
    /// A turn of an instance that was delivered too often; the instance has failed. To resubmit it is to begin the next
    /// execution of the instance.
    Turn,
    /// An activity that could not be read or was delivered too often; its orchestration was told of the failure. To resubmit
    /// it is to begin the next execution of the instance, if it has failed.
    Activity,
}

/// Something that was given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetter {
    /// Its id.
    pub id: String,
    /// What was given up.
    pub what: GivenUp,
    /// The instance that it was for.
    pub instance: String,
    /// The execution of the instance, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<u64>,
    /// Name of the activity, function or orchestration, or what the message was: `signal approved`. Absent for messages in
    /// lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Why.
    pub reason: String,
    /// How often it was delivered.
    pub deliveries: u32,
    /// When it was given up.
    pub given_up_at: Timestamp,
    /// When it is forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// What it carried, as far as it can be read as JSON; only of one letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Json>,
    /// What it carried, in base64, if it cannot be read; only of one letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

/// A page of dead letters, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterList {
    /// The letters, without what they carried.
    pub dead_letters: Vec<DeadLetter>,
    /// Rows of this page that cannot be read; absent when there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Unreadable>,
    /// Give this as `cursor` for the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Which dead letters. All that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListDeadLetters {
    /// Only of this instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Only of this sort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub what: Option<GivenUp>,
    /// At most this many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<usize>,
    /// `next_cursor` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// What became of a letter that was resubmitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resubmitted {
    /// Id of the letter, which is gone.
    pub id: String,
    /// The instance.
    pub instance: String,
    /// The execution that begins; absent for a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<u64>,
}
