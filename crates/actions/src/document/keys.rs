//! Tables of keys, against which JSON Schemas and pages of the guide are tested.

/// The keys of one kind of map.
#[derive(Debug)]
pub struct ObjectKeys {
    /// The map's name in the JSON Schema.
    pub object: &'static str,
    /// Its keys.
    pub keys: &'static [&'static str],
}
