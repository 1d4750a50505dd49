//! Rows of instances and executions, and what a commit changes in them.
//!
//! The row of an instance holds its current execution; earlier executions have rows of their own. So an instance with
//! one execution, which most are, is one row.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use semver::Version;
use smallvec::{SmallVec, smallvec};

use segno::store::{
    CustomStatusChange, ExecutionInfo, ExecutionMetadata, ExecutionPosition, ExecutionStatus, InstanceInfo,
    WatchUntil,
};

use crate::rows::codec::{Decoder, Encoder, Undecodable};
use crate::rows::keys::{AgeIndex, Generation, Key, ended, status_number, status_of};

/// First byte of every instance row.
const INSTANCE_VERSION: u8 = 1;

/// First byte of every execution row.
const EXECUTION_VERSION: u8 = 1;

/// Three numbers with all their digits and two points are shorter.
const LONGEST_VERSION: usize = 64;

/// Keys of indexes that change together. More than these are rare.
pub(crate) type IndexKeys = SmallVec<[Key; 4]>;

/// What is stored of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstanceRow {
    pub(crate) created_at_ms: u64,
    pub(crate) updated_at_ms: u64,
    pub(crate) revision: u64,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) version: Option<Arc<str>>,
    pub(crate) parent: Option<String>,
    pub(crate) custom_status: Option<Bytes>,
    pub(crate) custom_status_version: u64,
    pub(crate) labels: BTreeMap<String, String>,
    /// Executions and events of the instance, the current execution included.
    pub(crate) execution_count: u64,
    pub(crate) event_count: u64,
    pub(crate) current: ExecutionRow,
}

/// What is stored of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExecutionRow {
    pub(crate) execution_id: u64,
    pub(crate) status: ExecutionStatus,
    pub(crate) output: Option<Bytes>,
    pub(crate) pinned_version: Option<Version>,
    pub(crate) incarnation: Option<u64>,
    pub(crate) started_at_ms: u64,
    pub(crate) completed_at_ms: Option<u64>,
    pub(crate) event_count: u64,
    pub(crate) last_event_id: u64,
}

impl ExecutionRow {
    /// An execution that starts now.
    pub(crate) fn new(execution_id: u64, now_ms: u64) -> Self {
        ExecutionRow {
            execution_id,
            status: ExecutionStatus::Running,
            output: None,
            pinned_version: None,
            incarnation: None,
            started_at_ms: now_ms,
            completed_at_ms: None,
            event_count: 0,
            last_event_id: 0,
        }
    }

    /// Whether it has ended; one that continued as new has, though its instance has not.
    pub(crate) fn has_ended(&self) -> bool {
        self.status.is_terminal() || self.status == ExecutionStatus::ContinuedAsNew
    }

    /// Takes over what belongs to the execution.
    pub(crate) fn apply(&mut self, metadata: &ExecutionMetadata, now_ms: u64) {
        if let Some(status) = metadata.status {
            self.status = status;
            self.completed_at_ms = self.has_ended().then_some(now_ms);
        }
        if metadata.output.is_some() {
            self.output.clone_from(&metadata.output);
        }
        if metadata.pinned_version.is_some() {
            self.pinned_version.clone_from(&metadata.pinned_version);
        }
        if metadata.incarnation.is_some() {
            self.incarnation = metadata.incarnation;
        }
    }

    /// What callers see of it.
    pub(crate) fn info(&self) -> ExecutionInfo {
        ExecutionInfo {
            execution_id: self.execution_id,
            status: self.status,
            output: self.output.clone(),
            started_at_ms: self.started_at_ms,
            completed_at_ms: self.completed_at_ms,
            event_count: self.event_count,
        }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut row = Encoder::new(EXECUTION_VERSION);
        self.encode_into(&mut row);
        row.finish()
    }

    fn encode_into(&self, row: &mut Encoder) {
        row.u64(self.execution_id);
        row.u8(status_number(self.status));
        row.option(self.output.as_ref(), |row, output| row.bytes(output));
        row.option(self.pinned_version.as_ref(), encode_version);
        row.option(self.incarnation, Encoder::u64);
        row.u64(self.started_at_ms);
        row.option(self.completed_at_ms, Encoder::u64);
        row.u64(self.event_count);
        row.u64(self.last_event_id);
    }

    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, Undecodable> {
        Self::decode_from(&mut Decoder::new(bytes, EXECUTION_VERSION)?)
    }

    fn decode_from(row: &mut Decoder<'_>) -> Result<Self, Undecodable> {
        Ok(ExecutionRow {
            execution_id: row.u64()?,
            status: status_of(row.u8()?).ok_or(Undecodable("unknown state"))?,
            output: row.option(Decoder::kept_bytes)?,
            pinned_version: row.option(decode_version)?,
            incarnation: row.option(Decoder::u64)?,
            started_at_ms: row.u64()?,
            completed_at_ms: row.option(Decoder::u64)?,
            event_count: row.u64()?,
            last_event_id: row.u64()?,
        })
    }
}

impl InstanceRow {
    /// The row of a first commit.
    pub(crate) fn new(execution_id: u64, now_ms: u64) -> Self {
        InstanceRow {
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            revision: 0,
            name: None,
            version: None,
            parent: None,
            custom_status: None,
            custom_status_version: 0,
            labels: BTreeMap::new(),
            execution_count: 1,
            event_count: 0,
            current: ExecutionRow::new(execution_id, now_ms),
        }
    }

    /// Stores what belongs to the instance whatever its execution.
    pub(crate) fn apply(&mut self, metadata: &ExecutionMetadata) {
        if metadata.orchestration_name.is_some() {
            self.name.clone_from(&metadata.orchestration_name);
        }
        if metadata.orchestration_version.is_some() {
            self.version.clone_from(&metadata.orchestration_version);
        }
        if metadata.parent_instance_id.is_some() {
            self.parent.clone_from(&metadata.parent_instance_id);
        }
        if let Some(labels) = &metadata.labels {
            self.labels.clone_from(labels);
        }
        if let Some(change) = &metadata.custom_status {
            self.custom_status_version += 1;
            self.custom_status = match change {
                CustomStatusChange::Set(status) => Some(status.clone()),
                CustomStatusChange::Clear => None,
            };
        }
    }

    /// When the instance ended for good.
    pub(crate) fn ended_at_ms(&self) -> Option<u64> {
        self.current.completed_at_ms.filter(|_| self.current.status.is_terminal())
    }

    /// Whether this is what a watch waits for.
    pub(crate) fn meets(&self, until: WatchUntil) -> bool {
        until.is_met_by(self.current.status, self.custom_status_version, self.revision)
    }

    /// The position of its current execution.
    pub(crate) fn position<'a>(&self, instance: &'a str) -> ExecutionPosition<'a> {
        let ExecutionRow { execution_id, incarnation, last_event_id, .. } = self.current;
        ExecutionPosition { instance, execution_id, incarnation, last_event_id }
    }

    /// What callers see of it.
    pub(crate) fn info(&self, instance: &str) -> InstanceInfo {
        InstanceInfo {
            instance_id: instance.to_owned(),
            orchestration_name: self.name.clone(),
            orchestration_version: self.version.clone(),
            current_execution_id: self.current.execution_id,
            status: self.current.status,
            output: self.current.output.clone(),
            created_at_ms: self.created_at_ms,
            updated_at_ms: self.updated_at_ms,
            completed_at_ms: self.current.completed_at_ms,
            parent_instance_id: self.parent.clone(),
            pinned_version: self.current.pinned_version.clone(),
            custom_status: self.custom_status.clone(),
            custom_status_version: self.custom_status_version,
            labels: self.labels.clone(),
            revision: self.revision,
        }
    }

    /// Length of what the instance carries for others.
    pub(crate) fn carried_bytes(&self) -> usize {
        let labels: usize = self.labels.iter().map(|(label, value)| label.len() + value.len()).sum();
        let length = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
        labels + length(&self.custom_status) + length(&self.current.output)
    }

    /// All keys under which indexes have the instance.
    pub(crate) fn index_keys(&self, instance: &str) -> IndexKeys {
        let key = |index: AgeIndex<'_>| index.key(self.created_at_ms, instance);
        let mut keys: IndexKeys = smallvec![key(AgeIndex::All)];
        keys.extend(self.state_keys(instance));
        keys.extend(self.name.as_deref().map(|name| key(AgeIndex::Name(name))));
        keys.extend(self.parent.as_deref().map(|parent| key(AgeIndex::Parent(parent))));
        keys.extend(self.label_keys(instance));
        keys
    }

    fn state_keys(&self, instance: &str) -> impl Iterator<Item = Key> {
        let status = AgeIndex::Status(self.current.status).key(self.created_at_ms, instance);
        let generation = if self.parent.is_some() { Generation::Child } else { Generation::Root };
        let end = self.ended_at_ms().map(|ended_at_ms| ended(generation, ended_at_ms, instance));
        [status].into_iter().chain(end)
    }

    /// What the keys of the state depend on.
    fn state_of_index(&self) -> (ExecutionStatus, Option<u64>, bool) {
        (self.current.status, self.ended_at_ms(), self.parent.is_some())
    }

    fn label_keys(&self, instance: &str) -> impl Iterator<Item = Key> {
        let key = |(label, value): (&String, &String)| {
            AgeIndex::Label(label, value).key(self.created_at_ms, instance)
        };
        self.labels.iter().map(key)
    }

    /// What the indexes lose and gain when this row follows an older one of the same instance.
    pub(crate) fn index_changes(&self, old: &InstanceRow, instance: &str) -> (IndexKeys, IndexKeys) {
        let (mut lost, mut gained) = (IndexKeys::new(), IndexKeys::new());
        if old.state_of_index() != self.state_of_index() {
            lost.extend(old.state_keys(instance));
            gained.extend(self.state_keys(instance));
        }
        let name =
            |row: &InstanceRow| Some(AgeIndex::Name(row.name.as_deref()?).key(row.created_at_ms, instance));
        if old.name != self.name {
            lost.extend(name(old));
            gained.extend(name(self));
        }
        let parent = |row: &InstanceRow| {
            Some(AgeIndex::Parent(row.parent.as_deref()?).key(row.created_at_ms, instance))
        };
        if old.parent != self.parent {
            lost.extend(parent(old));
            gained.extend(parent(self));
        }
        if old.labels != self.labels {
            lost.extend(old.label_keys(instance));
            gained.extend(self.label_keys(instance));
        }
        (lost, gained)
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut row = Encoder::new(INSTANCE_VERSION);
        row.u64(self.created_at_ms);
        row.u64(self.updated_at_ms);
        row.u64(self.revision);
        row.option(self.name.as_deref(), Encoder::text);
        row.option(self.version.as_deref(), Encoder::text);
        row.option(self.parent.as_deref(), Encoder::text);
        row.option(self.custom_status.as_ref(), |row, status| row.bytes(status));
        row.u64(self.custom_status_version);
        row.u32(u32::try_from(self.labels.len()).expect("labels are limited by the engine"));
        for (label, value) in &self.labels {
            row.text(label);
            row.text(value);
        }
        row.u64(self.execution_count);
        row.u64(self.event_count);
        self.current.encode_into(&mut row);
        row.finish_beside_others()
    }

    pub(crate) fn decode(bytes: &Bytes) -> Result<Self, Undecodable> {
        let row = &mut Decoder::new(bytes, INSTANCE_VERSION)?;
        Ok(InstanceRow {
            created_at_ms: row.u64()?,
            updated_at_ms: row.u64()?,
            revision: row.u64()?,
            name: row.option(Decoder::text)?.map(Arc::from),
            version: row.option(Decoder::text)?.map(Arc::from),
            parent: row.option(Decoder::text)?,
            custom_status: row.option(Decoder::kept_bytes)?,
            custom_status_version: row.u64()?,
            labels: (0..row.u32()?)
                .map(|_| Ok((row.text()?, row.text()?)))
                .collect::<Result<_, Undecodable>>()?,
            execution_count: row.u64()?,
            event_count: row.u64()?,
            current: ExecutionRow::decode_from(row)?,
        })
    }
}

fn encode_version(row: &mut Encoder, version: &Version) {
    // Formatting takes longer than all the rest of a row, so the usual version is put together from its numbers.
    let Version { major, minor, patch, pre, build } = version;
    if !(pre.is_empty() && build.is_empty()) {
        return row.text(&version.to_string());
    }
    let mut text: SmallVec<[u8; LONGEST_VERSION]> = SmallVec::new();
    for (part, end) in [(major, "."), (minor, "."), (patch, "")] {
        text.extend_from_slice(itoa::Buffer::new().format(*part).as_bytes());
        text.extend_from_slice(end.as_bytes());
    }
    row.bytes(&text);
}

fn decode_version(row: &mut Decoder<'_>) -> Result<Version, Undecodable> {
    Version::parse(row.str()?).map_err(|_| Undecodable("a pinned version is not a version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> InstanceRow {
        let mut row = InstanceRow::new(3, 1_000);
        row.apply(&ExecutionMetadata {
            orchestration_name: Some("Flow".into()),
            parent_instance_id: Some("root".to_owned()),
            custom_status: Some(CustomStatusChange::Set(Bytes::from_static(b"half"))),
            labels: Some(BTreeMap::from([("team".to_owned(), "a".to_owned())])),
            ..ExecutionMetadata::default()
        });
        row.current.pinned_version = Some(Version::new(1, 2, 3));
        row.current.output = Some(Bytes::from_static(b"out"));
        row
    }

    #[test]
    fn a_row_comes_back_as_it_was() {
        assert_eq!(InstanceRow::decode(&row().encode()), Ok(row()));
        for version in [
            "0.0.0",
            "10.20.300",
            "18446744073709551615.18446744073709551615.18446744073709551615",
            "1.0.0-rc.1+b",
        ] {
            let mut versioned = row();
            versioned.current.pinned_version = Some(version.parse().expect("a version"));
            assert_eq!(InstanceRow::decode(&versioned.encode()), Ok(versioned), "{version}");
        }
    }

    #[test]
    fn index_changes_are_the_difference_of_all_keys() {
        let old = row();
        let mut new = old.clone();
        new.current.status = ExecutionStatus::Completed;
        new.current.completed_at_ms = Some(2_000);
        new.name = None;
        new.parent = Some("other".to_owned());
        new.labels.insert("more".to_owned(), "b".to_owned());
        let (lost, gained) = new.index_changes(&old, "i");
        let mut keys = old.index_keys("i");
        keys.retain(|key| !lost.contains(key));
        keys.extend(gained);
        keys.sort();
        let mut expected = new.index_keys("i");
        expected.sort();
        assert_eq!(keys, expected);
    }
}
