//! What a query changes in a batch: its rows, sorted by key, merged with the sorted keys that the batch knows. Only differences
//! become messages, so a query that finds nothing new writes nothing into the batch.

use std::iter::Peekable;
use std::vec::IntoIter;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::members::Row;
use crate::message::MemberEntry;
use crate::rows::{MemberKeyRow, normal_key};

/// Bytes of a digest that are kept: enough that two rows of a member never have the same by chance.
const DIGEST_BYTES: usize = 16;

/// What a query changes in a batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Difference {
    /// Members that are new, have returned, or have other data than before.
    pub put: Vec<MemberEntry>,
    /// Keys of members that the source no longer has.
    pub removed: Vec<String>,
    /// Members that the source had before.
    pub known: usize,
}

impl Difference {
    /// Whether the query changes nothing.
    pub fn is_empty(&self) -> bool {
        self.put.is_empty() && self.removed.is_empty()
    }

    /// Whether more members would be removed than one query may remove: a share of those known, rounded up, so that a
    /// small batch can lose a member.
    pub fn removes_more_than(&self, percent: u8) -> bool {
        self.removed.len() > (self.known * usize::from(percent)).div_ceil(100)
    }
}

/// Merges the rows of a query with the keys of a batch, which come in order.
#[derive(Debug)]
pub struct Merge {
    rows: Peekable<IntoIter<(String, Row)>>,
    difference: Difference,
}

impl Merge {
    /// Begins with the rows, in any order. Their keys are unique, whatever their letter case.
    pub fn new(rows: Vec<Row>) -> Self {
        let mut rows: Vec<(String, Row)> = rows.into_iter().map(|row| (normal_key(&row.key), row)).collect();
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        Merge { rows: rows.into_iter().peekable(), difference: Difference::default() }
    }

    /// Takes the next key that the batch knows. Keys come in the order of their bytes.
    pub fn known(&mut self, known: &MemberKeyRow) {
        while let Some((_, row)) = self.rows.next_if(|(key, _)| *key < known.key) {
            self.difference.put.push(member_entry(row));
        }
        self.difference.known += usize::from(known.is_current);
        match self.rows.next_if(|(key, _)| *key == known.key) {
            Some((_, row)) => {
                let entry = member_entry(row);
                if !known.is_current || known.digest != entry.digest {
                    self.difference.put.push(entry);
                }
            }
            None if known.is_current => self.difference.removed.push(known.key.clone()),
            None => {}
        }
    }

    /// Ends with the rows that are after the last known key.
    pub fn finish(mut self) -> Difference {
        self.difference.put.extend(self.rows.map(|(_, row)| member_entry(row)));
        self.difference
    }
}

/// A row as a member of a batch.
pub fn member_entry(row: Row) -> MemberEntry {
    let digest = digest(&row.key, &row.columns);
    MemberEntry { key: row.key, data: row.columns, digest }
}

/// Digest of a member's data, by which the next query finds out whether it has changed.
pub fn digest(key: &str, columns: &Map<String, Value>) -> String {
    let mut hash = Sha256::new();
    // Lengths in front keep texts apart. All values are texts or lists of texts, and columns are sorted.
    let mut text = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    };
    text(key);
    let mut names: Vec<&String> = columns.keys().collect();
    names.sort();
    for name in names {
        text(name);
        text(&columns[name].to_string());
    }
    hash.finalize()[..DIGEST_BYTES].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rows::MemberId;

    fn row(key: &str, value: &str) -> Row {
        let columns = Map::from_iter([("Upn".to_owned(), json!(value))]);
        Row { line: 1, key: key.to_owned(), columns }
    }

    fn known(key: &str, value: &str) -> MemberKeyRow {
        let digest = digest(key, &row(key, value).columns);
        MemberKeyRow { key: normal_key(key), batch_member_id: MemberId(1), digest, is_current: true }
    }

    fn gone(key: &str) -> MemberKeyRow {
        MemberKeyRow { is_current: false, ..known(key, "old") }
    }

    fn difference(rows: &[Row], keys: &[MemberKeyRow]) -> Difference {
        let mut merge = Merge::new(rows.to_vec());
        keys.iter().for_each(|key| merge.known(key));
        merge.finish()
    }

    fn keys(entries: &[MemberEntry]) -> Vec<&str> {
        entries.iter().map(|entry| entry.key.as_str()).collect()
    }

    #[test]
    fn only_differences_are_found() {
        let keys_of_batch = [known("B", "1"), gone("c"), known("d", "1"), gone("e"), known("f", "1")];
        let rows = [row("f", "2"), row("a", "1"), row("B", "1"), row("C", "1"), row("g", "1")];
        let found = difference(&rows, &keys_of_batch);
        assert_eq!(keys(&found.put), ["a", "C", "f", "g"], "new, returned, changed, new");
        assert_eq!(found.removed, ["d"]);
        assert_eq!(found.known, 3);
        assert!(!found.is_empty());
        assert!(difference(&rows[2..3], &keys_of_batch[..1]).is_empty());
        assert_eq!(difference(&[], &keys_of_batch).removed, ["b", "d", "f"]);
        assert_eq!(keys(&difference(&[row("b", "1")], &[]).put), ["b"]);
    }

    #[test]
    fn a_key_in_another_letter_case_is_the_same_member_with_other_data() {
        let found = difference(&[row("ANNA", "1")], &[known("anna", "1")]);
        assert_eq!((keys(&found.put), found.removed.len()), (vec!["ANNA"], 0));
    }

    #[test]
    fn digests_tell_columns_and_values_apart() {
        let of = |columns: Value| digest("k", columns.as_object().unwrap());
        let all = [
            of(json!({})),
            of(json!({"a": "b"})),
            of(json!({"ab": ""})),
            of(json!({"a": ["b"]})),
            of(json!({"a": "b", "c": ""})),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(of(json!({"a": "1", "b": "2"})), of(json!({"b": "2", "a": "1"})));
        assert_eq!(
            of(json!({"a": "b"})),
            "4232685c4f939628800362e2c9f63931",
            "a promise: stored with every member"
        );
    }

    #[test]
    fn removals_are_limited_by_a_share_that_is_rounded_up() {
        for (known, removed, percent, is_more) in [
            (100, 20, 20, false),
            (100, 21, 20, true),
            (3, 1, 20, false),
            (3, 2, 20, true),
            (3, 1, 0, true),
            (3, 3, 100, false),
        ] {
            let removed = vec![String::new(); removed];
            let difference = Difference { put: Vec::new(), removed, known };
            assert_eq!(difference.removes_more_than(percent), is_more, "{known} {percent}");
        }
    }
}
