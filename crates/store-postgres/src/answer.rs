//! What the database answers to an exchange: rows with a section number that share their columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use segno::store::{
    ErrorKind, ExecutionStatus, InstanceInfo, LockToken, LockedWorkItem, ProviderError, QueuedMessage,
    ScheduledActivityIdentifier, StoredEvent, WorkerMessage,
};
use tokio_postgres::Row;

use crate::columns::tag;
use crate::number::{status, unsigned};
use crate::waiting::Held;

const OPERATION: &str = "exchange";

/// Everything that one exchange brought.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The database's time.
    pub(crate) now_ms: i64,
    /// Whether this had been done before and only its answer was lost.
    pub(crate) repeated: bool,
    /// When time alone may bring turns.
    pub(crate) next_turn_ms: Option<i64>,
    /// When time alone may bring activities.
    pub(crate) next_activity_ms: Option<i64>,
    /// Something was in another transaction's hands for the moment.
    pub(crate) retry_turns: bool,
    /// The same for activities.
    pub(crate) retry_activities: bool,
    /// One for each item, then one version for each record.
    pub(crate) outcomes: Vec<i64>,
    /// What was locked, by token.
    pub(crate) locks: Vec<(LockToken, Held)>,
    /// Locked instances.
    pub(crate) turns: Vec<LockedTurn>,
    /// Locked activities.
    pub(crate) activities: Vec<LockedWorkItem>,
    /// Instances that were asked for.
    pub(crate) instances: Vec<InstanceInfo>,
    /// Bytes of bodies.
    pub(crate) bytes: usize,
}

/// A locked instance, without its history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockedTurn {
    pub(crate) lock_token: LockToken,
    pub(crate) instance: String,
    pub(crate) orchestration_name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) execution_id: u64,
    pub(crate) incarnation: Option<u64>,
    pub(crate) status: Option<ExecutionStatus>,
    pub(crate) last_event_id: u64,
    pub(crate) messages: Vec<QueuedMessage>,
    pub(crate) attempt_count: u32,
    pub(crate) fetched_at_ms: u64,
}

impl Answer {
    /// Reads the rows of an exchange.
    pub(crate) fn read(rows: &[Row]) -> Result<Self, ProviderError> {
        let mut answer = Answer::default();
        for row in rows {
            let section: i16 = get(row, 0)?;
            match section {
                0 => answer.read_header(row)?,
                1 => answer.outcomes = get::<Option<Vec<i64>>>(row, 13)?.unwrap_or_default(),
                3 => answer.read_turn(row)?,
                4 => answer.read_message(row)?,
                5 => answer.read_activity(row)?,
                6 => answer.instances.push(instance_info(row, 1)?),
                other => return Err(unreadable(format!("section {other} of an exchange is unknown"))),
            }
        }
        Ok(answer)
    }

    fn read_header(&mut self, row: &Row) -> Result<(), ProviderError> {
        self.now_ms = get(row, 1)?;
        self.repeated = get::<i64>(row, 2)? != 0;
        self.next_turn_ms = get(row, 3)?;
        self.next_activity_ms = get(row, 4)?;
        let retry: i64 = get(row, 5)?;
        (self.retry_turns, self.retry_activities) = (retry & 1 != 0, retry & 2 != 0);
        Ok(())
    }

    fn read_turn(&mut self, row: &Row) -> Result<(), ProviderError> {
        let code: Option<i64> = get(row, 5)?;
        let (lock_token, instance): (LockToken, String) = (LockToken(unsigned(get(row, 1)?)), get(row, 6)?);
        self.locks.push((lock_token, Held::Instance(instance.clone())));
        self.turns.push(LockedTurn {
            lock_token,
            instance,
            execution_id: unsigned(get(row, 2)?),
            last_event_id: unsigned(get(row, 3)?),
            incarnation: get::<Option<i64>>(row, 4)?.map(i64::cast_unsigned),
            status: code.map(|code| status(OPERATION, code)).transpose()?,
            orchestration_name: get(row, 7)?,
            version: get(row, 8)?,
            messages: Vec::new(),
            attempt_count: 0,
            fetched_at_ms: unsigned(self.now_ms),
        });
        Ok(())
    }

    /// Messages come after all turns, in the order of the turns.
    fn read_message(&mut self, row: &Row) -> Result<(), ProviderError> {
        let token = LockToken(unsigned(get(row, 1)?));
        let place = self.turns.binary_search_by_key(&token, |turn| turn.lock_token);
        let place =
            place.map_err(|_| unreadable(format!("a message of token {} without its turn", token.0)))?;
        let turn = &mut self.turns[place];
        let body = body(row, 11)?;
        self.bytes += body.len();
        turn.messages.push(QueuedMessage { message_id: unsigned(get(row, 2)?), body });
        turn.attempt_count = turn.attempt_count.max(attempts(get(row, 3)?));
        Ok(())
    }

    fn read_activity(&mut self, row: &Row) -> Result<(), ProviderError> {
        let body = body(row, 11)?;
        self.bytes += body.len();
        let lock_token = LockToken(unsigned(get(row, 1)?));
        let rows: Vec<i64> = get(row, 13)?;
        let instance: String = get(row, 6)?;
        self.locks.extend(rows.first().map(|row| (lock_token, Held::Activity(*row, instance.clone()))));
        self.activities.push(LockedWorkItem {
            lock_token,
            attempt_count: attempts(get(row, 4)?),
            fetched_at_ms: unsigned(self.now_ms),
            message: WorkerMessage {
                activity: ScheduledActivityIdentifier {
                    instance,
                    execution_id: get::<i64>(row, 2)?.cast_unsigned(),
                    activity_id: get::<i64>(row, 3)?.cast_unsigned(),
                },
                session_id: get(row, 7)?,
                tag: tag(get(row, 8)?),
                visible_at_ms: get::<Option<i64>>(row, 5)?.map(unsigned),
                body,
            },
        });
        Ok(())
    }
}

/// The columns of `instance_info`, from a place in a row on.
pub(crate) fn instance_info(row: &Row, at: usize) -> Result<InstanceInfo, ProviderError> {
    let numbers: Vec<i64> = get(row, at + 12)?;
    let number = |place: usize| numbers.get(place).copied().map_or(0, unsigned);
    let labels: Vec<String> = get(row, at + 13)?;
    let pinned_version = pinned_version(get(row, at + 9)?)?;
    Ok(InstanceInfo {
        current_execution_id: get::<i64>(row, at)?.cast_unsigned(),
        status: status(OPERATION, get(row, at + 1)?)?,
        created_at_ms: unsigned(get(row, at + 2)?),
        updated_at_ms: unsigned(get(row, at + 3)?),
        completed_at_ms: get::<Option<i64>>(row, at + 4)?.map(unsigned),
        instance_id: get(row, at + 5)?,
        orchestration_name: get::<Option<&str>>(row, at + 6)?.map(Arc::from),
        orchestration_version: get::<Option<&str>>(row, at + 7)?.map(Arc::from),
        parent_instance_id: get(row, at + 8)?,
        pinned_version,
        output: optional_body(row, at + 10)?,
        custom_status: optional_body(row, at + 11)?,
        custom_status_version: number(0),
        revision: number(1),
        labels: pairs(labels),
    })
}

/// The version that an execution is pinned to.
pub(crate) fn pinned_version(text: Option<&str>) -> Result<Option<semver::Version>, ProviderError> {
    text.map(str::parse).transpose().map_err(|error: semver::Error| {
        let text =
            format!("the database has an unreadable version: {error}; was the schema changed by hand?");
        ProviderError::new(ErrorKind::Corrupt, OPERATION, text)
    })
}

/// Labels from their flat form.
pub(crate) fn pairs(flat: Vec<String>) -> BTreeMap<String, String> {
    let mut texts = flat.into_iter();
    std::iter::from_fn(|| Some((texts.next()?, texts.next()?))).collect()
}

fn attempts(count: i64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A column.
pub(crate) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    place: usize,
) -> Result<T, ProviderError> {
    row.try_get(place).map_err(|error| unreadable(error.to_string()))
}

/// A column of bytes.
pub(crate) fn body(row: &Row, place: usize) -> Result<Bytes, ProviderError> {
    get::<&[u8]>(row, place).map(Bytes::copy_from_slice)
}

/// A row with the number and the bytes of an event.
pub(crate) fn stored_event(row: &Row) -> Result<StoredEvent, ProviderError> {
    Ok(StoredEvent { event_id: unsigned(get(row, 0)?), data: body(row, 1)? })
}

/// A column of bytes that may be absent.
pub(crate) fn optional_body(row: &Row, place: usize) -> Result<Option<Bytes>, ProviderError> {
    Ok(get::<Option<&[u8]>>(row, place)?.map(Bytes::copy_from_slice))
}

pub(crate) fn unreadable(text: String) -> ProviderError {
    let text = format!("the answer of the database cannot be read: {text}; was the schema changed by hand?");
    ProviderError::new(ErrorKind::Corrupt, OPERATION, text)
}
