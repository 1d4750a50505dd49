//! Keys of members: which texts can be one, and that no two rows of a source have the same.

use std::collections::HashMap;

use crate::limits::MAX_MEMBER_KEY_CHARS;
use crate::names::shown;
use crate::rows::normal_key;

/// The keys of a source so far.
pub(super) struct MemberKeys {
    /// What places are called: `line` or `row`.
    unit: &'static str,
    /// Places by normal key.
    places: HashMap<String, u64>,
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
        let normal = normal_key(key);
        if let Some(first) = self.places.get(&normal) {
            let (key, unit) = (shown(key), self.unit);
            return Err(format!("the key {key:?} is already on {unit} {first}; letter case does not matter"));
        }
        self.places.insert(normal, place);
        Ok(key.to_owned())
    }
}
