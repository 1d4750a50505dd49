//! Keys of rows. The first byte is the table. Numbers are big-endian, so that the order of keys is the order of
//! numbers; every text but the last part of a key has its length before it, so that no id can be mistaken for a
//! part of another key, whatever it contains.

use segno::store::ExecutionStatus;

pub(crate) use crate::rows::key::Key;

/// A table: the first byte of its keys. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Table {
    /// CheckpointMeta about the whole store, by number.
    Meta = 1,
    /// Instance rows by id.
    Instances = 2,
    /// Rows of executions that are not the current one, by instance and execution id.
    Executions = 3,
    /// Events of one or more commits, by instance, execution and first event id.
    Events = 4,
    /// Messages by id.
    OrchestratorQueue = 5,
    /// Attempts and visibility of abandoned messages, by message id.
    OrchestratorStanding = 6,
    /// Activities by item id.
    WorkerQueue = 7,
    /// Attempts and visibility of abandoned activities, by item id.
    WorkerStanding = 8,
    /// Records by kind and id.
    Records = 9,
    /// Index: all instances, newest first.
    ByAge = 16,
    /// Index: instances by state, newest first.
    ByStatus = 17,
    /// Index: instances by name, newest first.
    ByName = 18,
    /// Index: instances by label and value, newest first.
    ByLabel = 19,
    /// Index: instances by parent, newest first.
    ByParent = 20,
    /// Index: instances that ended, roots before children, oldest completion first.
    ByEnd = 21,
    /// Index: records by kind and due time.
    ByDue = 22,
    /// Index: records by the end of their lives.
    ByExpiry = 23,
}

/// The indexes whose keys end in an age and an id.
pub(crate) const AGE_INDEXES: [Table; 5] =
    [Table::ByAge, Table::ByStatus, Table::ByName, Table::ByLabel, Table::ByParent];

const NAMES: [(Table, &str); 17] = [
    (Table::Meta, "meta"),
    (Table::Instances, "instances"),
    (Table::Executions, "executions"),
    (Table::Events, "events"),
    (Table::OrchestratorQueue, "orchestrator queue"),
    (Table::OrchestratorStanding, "orchestrator queue standing"),
    (Table::WorkerQueue, "worker queue"),
    (Table::WorkerStanding, "worker queue standing"),
    (Table::Records, "records"),
    (Table::ByAge, "by age"),
    (Table::ByStatus, "by state"),
    (Table::ByName, "by name"),
    (Table::ByLabel, "by label"),
    (Table::ByParent, "by parent"),
    (Table::ByEnd, "by end"),
    (Table::ByDue, "by due time"),
    (Table::ByExpiry, "by expiry"),
];

impl Table {
    /// The table of a key.
    pub(crate) fn of_key(key: &[u8]) -> Option<Table> {
        let first = key.first()?;
        NAMES.into_iter().map(|(table, _)| table).find(|table| *table as u8 == *first)
    }

    /// What `docs/embedded-format.md` calls it.
    pub(crate) fn name(self) -> &'static str {
        NAMES.into_iter().find(|(table, _)| *table == self).map_or("unknown", |(_, name)| name)
    }
}

/// A key in words, for people.
pub(crate) fn describe(key: &[u8]) -> String {
    let Some(table) = Table::of_key(key) else { return format!("{key:?}") };
    let rest: String =
        key[1..].iter().flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect();
    format!("{} {rest}", table.name())
}

fn key(table: Table) -> Key {
    Key::from_slice(&[table as u8])
}

/// A text with its length before it. The limits of the engine are far below the longest length.
fn push_text(key: &mut Key, text: &str) {
    let len = u32::try_from(text.len()).expect("no id has 4 GiB");
    key.extend_from_slice(&len.to_be_bytes());
    key.extend_from_slice(text.as_bytes());
}

fn push_age(key: &mut Key, created_at_ms: u64, instance: &str) {
    key.extend_from_slice(&(!created_at_ms).to_be_bytes());
    key.extend_from_slice(instance.as_bytes());
}

/// The first key behind all those that start with `prefix`; `None` when there is none.
pub(crate) fn behind(prefix: &[u8]) -> Option<Key> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut key = Key::from_slice(&prefix[..last]);
    key.push(prefix[last] + 1);
    Some(key)
}

/// Every key of a table.
pub(crate) fn table(table: Table) -> Key {
    key(table)
}

/// A fact about the store.
pub(crate) fn meta(number: u8) -> Key {
    Key::from_slice(&[Table::Meta as u8, number])
}

/// Whether a key is that of a fact about the store.
pub(crate) fn is_meta(key: &[u8]) -> bool {
    key.first() == Some(&(Table::Meta as u8))
}

/// A row of a queue, or its standing.
pub(crate) fn queued(table: Table, id: u64) -> Key {
    let mut key = key(table);
    key.extend_from_slice(&id.to_be_bytes());
    key
}

/// Whether a key is an entry of an index of instances. Those are stored many in one row.
pub(crate) fn is_packed(key: &[u8]) -> bool {
    key.first().is_some_and(|table| (Table::ByAge as u8..=Table::ByEnd as u8).contains(table))
}

/// What follows the first byte of a key of this table.
fn within(table: Table, key: &[u8]) -> Option<&[u8]> {
    key.split_first().filter(|(first, _)| **first == table as u8).map(|(_, rest)| rest)
}

/// The tables of the queues, which have numbers that follow each other.
pub(crate) const QUEUES: [Table; 4] =
    [Table::OrchestratorQueue, Table::OrchestratorStanding, Table::WorkerQueue, Table::WorkerStanding];

/// Which of [`QUEUES`] a key starts with, and what follows.
fn within_queue(key: &[u8]) -> Option<(usize, &[u8])> {
    let (table, rest) = key.split_first()?;
    let slot = usize::from(table.wrapping_sub(QUEUES[0] as u8));
    (slot < QUEUES.len()).then_some((slot, rest))
}

/// Which of [`QUEUES`] a key belongs to, and the id in it.
pub(crate) fn queue_slot(key: &[u8]) -> Option<(usize, u64)> {
    let (slot, id) = within_queue(key)?;
    Some((slot, u64::from_be_bytes(id.try_into().ok()?)))
}

/// Whether a key is in the table of a queue and has no id.
pub(crate) fn is_malformed(key: &[u8]) -> bool {
    within_queue(key).is_some() && queue_slot(key).is_none()
}

/// The id in a key of a queue.
pub(crate) fn queued_id(table: Table, key: &[u8]) -> Option<u64> {
    within(table, key)?.try_into().ok().map(u64::from_be_bytes)
}

/// The id in the key of an instance row.
pub(crate) fn instance_id(key: &[u8]) -> Option<&str> {
    std::str::from_utf8(within(Table::Instances, key)?).ok()
}

/// An instance row; with a part of an id, the beginning of all that start with it.
pub(crate) fn instance(id: &str) -> Key {
    let mut key = key(Table::Instances);
    key.extend_from_slice(id.as_bytes());
    key
}

/// All executions, or all events, of an instance.
pub(crate) fn of_instance(table: Table, instance: &str) -> Key {
    let mut key = key(table);
    push_text(&mut key, instance);
    key
}

/// One execution; in the events table, the beginning of all its events.
pub(crate) fn execution(table: Table, instance: &str, execution_id: u64) -> Key {
    let mut key = of_instance(table, instance);
    key.extend_from_slice(&execution_id.to_be_bytes());
    key
}

/// Events of one or more commits.
pub(crate) fn events(instance: &str, execution_id: u64, first_event_id: u64) -> Key {
    let mut key = execution(Table::Events, instance, execution_id);
    key.extend_from_slice(&first_event_id.to_be_bytes());
    key
}

/// The beginning that the keys of all events of an execution share.
pub(crate) fn execution_prefix(key: &[u8]) -> Option<&[u8]> {
    let (_, rest) = take_text(within(Table::Events, key)?)?;
    let (_, first_event_id) = take_time(rest)?;
    Some(&key[..key.len() - first_event_id.len()])
}

/// The instance that a row of executions or events belongs to.
pub(crate) fn owner(table: Table, key: &[u8]) -> Option<&str> {
    take_text(within(table, key)?).map(|(instance, _)| instance)
}

/// The execution that events of an instance belong to.
pub(crate) fn execution_of_events(key: &[u8], instance: &str) -> Option<u64> {
    let (_, rest) = take_text(within(Table::Events, key)?).filter(|(owner, _)| *owner == instance)?;
    take_time(rest).map(|(execution_id, _)| execution_id)
}

/// The instance that an entry of an index is for.
pub(crate) fn indexed_instance(table: Table, key: &[u8]) -> Option<&str> {
    let rest = within(table, key)?;
    let rest = match table {
        Table::ByStatus | Table::ByEnd => rest.get(1..)?,
        Table::ByName | Table::ByParent => take_text(rest)?.1,
        Table::ByLabel => take_text(take_text(rest)?.1)?.1,
        _ => rest,
    };
    std::str::from_utf8(take_time(rest)?.1).ok()
}

/// A record; with a part of an id, the beginning of all of its kind that start with it.
pub(crate) fn record(kind: &str, id: &str) -> Key {
    let mut key = of_instance(Table::Records, kind);
    key.extend_from_slice(id.as_bytes());
    key
}

/// A text with its length before it, and what follows.
fn take_text(key: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = key.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(u32::from_be_bytes(*len) as usize)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

/// A time, and the text that follows.
fn take_time(key: &[u8]) -> Option<(u64, &[u8])> {
    let (time, rest) = key.split_first_chunk()?;
    Some((u64::from_be_bytes(*time), rest))
}

/// Kind and id in a key of the records table.
pub(crate) fn record_name(key: &[u8]) -> Option<(&str, &str)> {
    let (kind, id) = take_text(within(Table::Records, key)?)?;
    Some((kind, std::str::from_utf8(id).ok()?))
}

/// A record with a due time.
pub(crate) fn due(kind: &str, due_at_ms: u64, id: &str) -> Key {
    let mut key = of_instance(Table::ByDue, kind);
    key.extend_from_slice(&due_at_ms.to_be_bytes());
    key.extend_from_slice(id.as_bytes());
    key
}

/// Kind, due time and id of a record with a due time.
pub(crate) fn due_record(key: &[u8]) -> Option<(&str, u64, &str)> {
    let (kind, rest) = take_text(within(Table::ByDue, key)?)?;
    let (due_at_ms, id) = take_time(rest)?;
    Some((kind, due_at_ms, std::str::from_utf8(id).ok()?))
}

/// A record with a life that ends.
pub(crate) fn expiry(expires_at_ms: u64, kind: &str, id: &str) -> Key {
    let mut key = key(Table::ByExpiry);
    key.extend_from_slice(&expires_at_ms.to_be_bytes());
    push_text(&mut key, kind);
    key.extend_from_slice(id.as_bytes());
    key
}

/// End, kind and id of a record with a life that ends.
pub(crate) fn expiring_record(key: &[u8]) -> Option<(u64, &str, &str)> {
    let (expires_at_ms, rest) = take_time(within(Table::ByExpiry, key)?)?;
    let (kind, id) = take_text(rest)?;
    Some((expires_at_ms, kind, std::str::from_utf8(id).ok()?))
}

/// The beginning of an index by age: what its keys have before the age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgeIndex<'a> {
    All,
    Status(ExecutionStatus),
    Name(&'a str),
    Label(&'a str, &'a str),
    Parent(&'a str),
}

impl AgeIndex<'_> {
    /// What all keys of the index start with.
    pub(crate) fn prefix(self) -> Key {
        match self {
            AgeIndex::All => key(Table::ByAge),
            AgeIndex::Status(status) => Key::from_slice(&[Table::ByStatus as u8, status_number(status)]),
            AgeIndex::Name(name) => of_instance(Table::ByName, name),
            AgeIndex::Parent(parent) => of_instance(Table::ByParent, parent),
            AgeIndex::Label(label, value) => {
                let mut key = of_instance(Table::ByLabel, label);
                push_text(&mut key, value);
                key
            }
        }
    }

    /// The key of an instance in the index; with an empty id, where its age begins.
    pub(crate) fn key(self, created_at_ms: u64, instance: &str) -> Key {
        let mut key = self.prefix();
        push_age(&mut key, created_at_ms, instance);
        key
    }
}

/// Creation time and id of an instance in an index by age, given the length of the index's prefix.
pub(crate) fn aged(key: &[u8], prefix_len: usize) -> Option<(u64, &str)> {
    let (age, id) = key.get(prefix_len..)?.split_first_chunk()?;
    Some((!u64::from_be_bytes(*age), std::str::from_utf8(id).ok()?))
}

/// What may be deleted by itself, and what goes with its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    Root = 0,
    Child = 1,
}

/// All instances of a generation that ended, oldest completion first.
pub(crate) fn ended_ones(generation: Generation) -> Key {
    Key::from_slice(&[Table::ByEnd as u8, generation as u8])
}

/// The key of an instance that ended.
pub(crate) fn ended(generation: Generation, ended_at_ms: u64, instance: &str) -> Key {
    let mut key = ended_ones(generation);
    key.extend_from_slice(&ended_at_ms.to_be_bytes());
    key.extend_from_slice(instance.as_bytes());
    key
}

/// Completion time and id of an instance that ended.
pub(crate) fn ended_instance(key: &[u8]) -> Option<(u64, &str)> {
    let (time, id) = take_time(within(Table::ByEnd, key)?.get(1..)?)?;
    Some((time, std::str::from_utf8(id).ok()?))
}

/// The stored number of a state. Never reused.
pub(crate) fn status_number(status: ExecutionStatus) -> u8 {
    match status {
        ExecutionStatus::Pending => 1,
        ExecutionStatus::Running => 2,
        ExecutionStatus::Paused => 3,
        ExecutionStatus::Completed => 4,
        ExecutionStatus::Failed => 5,
        ExecutionStatus::Cancelled => 6,
        ExecutionStatus::ContinuedAsNew => 7,
    }
}

/// The state with this stored number.
pub(crate) fn status_of(number: u8) -> Option<ExecutionStatus> {
    ExecutionStatus::ALL.into_iter().find(|status| status_number(*status) == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_queue_has_an_id_and_nothing_else() {
        let key = queued(Table::WorkerStanding, 258);
        assert_eq!(queue_slot(&key), Some((3, 258)));
        assert!(!is_malformed(&key));
        for malformed in [&key[..1], &key[..8], &[key.as_slice(), b"x"].concat()] {
            assert!(is_malformed(malformed), "{malformed:?}");
            assert_eq!(queue_slot(malformed), None);
        }
        for other in [record("kind", "id"), events("a", 1, 1), table(Table::Meta), Key::default()] {
            assert!(!is_malformed(&other), "{other:?}");
            assert_eq!(queue_slot(&other), None);
        }
    }

    #[test]
    fn what_lies_behind_a_prefix_is_the_next_key_of_its_length_or_shorter() {
        let cases: [(&[u8], Option<&[u8]>); 4] =
            [(&[4, 1], Some(&[4, 2])), (&[4, 255, 255], Some(&[5])), (&[255], None), (&[], None)];
        for (prefix, expected) in cases {
            assert_eq!(behind(prefix).as_deref(), expected, "{prefix:?}");
        }
    }
}
