//! Keys of members: which texts can be one, and that no two rows of a source have the same.

use std::collections::HashMap;

use segno_actions::document::shown;
use sha2::{Digest, Sha256};

use crate::limits::MAX_MEMBER_KEY_CHARS;
use crate::rows::normal_key;

/// Bytes of a digest: enough that two keys never have the same by chance.
const DIGEST_BYTES: usize = 16;

/// The keys of a source so far.
pub(super) struct MemberKeys {
    /// What places are called: `line` or `row`.
    unit: &'static str,
    /// Places by digest of the normal key: a source may have a million keys of a kilobyte.
    places: HashMap<[u8; DIGEST_BYTES], u64>,
}

impl MemberKeys {
    pub(super) fn new(unit: &'static str) -> Self {
        MemberKeys { unit, places: HashMap::new() }
    }

    /// The key in a cell, if it can be one and no earlier row has it.
    pub(super) fn take(&mut self, text: &str, place: u64) -> Result<String, String> {
        let key = text.trim();
        if key.is_empty() {
            return Err("the key is empty".to_owned());
        }
        if key.chars().count() > MAX_MEMBER_KEY_CHARS {
            return Err(format!("the key is longer than {MAX_MEMBER_KEY_CHARS} characters"));
        }
        if key.chars().any(char::is_control) {
            return Err(format!("the key {:?} has a control character", shown(key)));
        }
        let hash = Sha256::digest(normal_key(key).as_bytes());
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&hash[..DIGEST_BYTES]);
        if let Some(first) = self.places.get(&digest) {
            let (key, unit) = (shown(key), self.unit);
            return Err(format!("the key {key:?} is already on {unit} {first}; letter case does not matter"));
        }
        self.places.insert(digest, place);
        Ok(key.to_owned())
    }
}
