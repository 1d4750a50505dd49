//! What a content has, counted and as a checksum. The same content has the same checksum, whatever store or file it is in
//! and however it is cut into batches and blocks. When it was taken, and which numbers are used up, do not count.

use segno::store::{ContentItem, encode_item};
use sha2::{Digest, Sha256};

/// Counts and checksums items as they pass.
#[derive(Debug, Default)]
pub struct ContentDigest {
    hash: Sha256,
    summary: ContentSummary,
}

/// What a content has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContentSummary {
    /// When it was taken, in Unix milliseconds of the source's clock.
    pub taken_at_ms: u64,
    /// Instances.
    pub instances: u64,
    /// Executions.
    pub executions: u64,
    /// Events.
    pub events: u64,
    /// Messages of the orchestrator queue.
    pub messages: u64,
    /// Activities of the worker queue.
    pub work_items: u64,
    /// Records.
    pub records: u64,
    /// SHA-256 over everything but when it was taken, as hexadecimal digits.
    pub sha256: String,
}

impl ContentSummary {
    /// Whether both are of the same content, whenever they were taken.
    pub fn is_same_content(&self, other: &ContentSummary) -> bool {
        let ContentSummary { taken_at_ms: _, sha256, .. } = self;
        *sha256 == other.sha256 && self.counts() == other.counts()
    }

    pub(crate) fn counts(&self) -> [u64; 6] {
        [self.instances, self.executions, self.events, self.messages, self.work_items, self.records]
    }
}

impl ContentDigest {
    /// Adds an item.
    pub fn add(&mut self, item: &ContentItem) {
        let mut bytes = Vec::with_capacity(256);
        encode_item(item, &mut bytes);
        self.add_encoded(item, &bytes);
    }

    /// Adds an item whose bytes are in hand.
    pub(crate) fn add_encoded(&mut self, item: &ContentItem, bytes: &[u8]) {
        let summary = &mut self.summary;
        match item {
            ContentItem::Header(header) => {
                summary.taken_at_ms = header.taken_at_ms;
                return;
            }
            ContentItem::Instance(_) => summary.instances += 1,
            ContentItem::Execution(_) => summary.executions += 1,
            ContentItem::Event(_) => summary.events += 1,
            ContentItem::Message(_) => summary.messages += 1,
            ContentItem::WorkItem(_) => summary.work_items += 1,
            ContentItem::Record(_) => summary.records += 1,
        }
        let len = u32::try_from(bytes.len()).expect("no item has 4 GiB");
        self.hash.update(len.to_le_bytes());
        self.hash.update(bytes);
    }

    /// What was counted so far.
    pub fn so_far(&self) -> &ContentSummary {
        &self.summary
    }

    /// What there was in all.
    pub fn finish(self) -> ContentSummary {
        let sha256 = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        ContentSummary { sha256, ..self.summary }
    }
}
