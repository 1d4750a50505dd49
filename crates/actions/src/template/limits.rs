//! Every limit of templates, by name and with its unit.

/// Longest text template in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 16 * 1024;

/// Largest JSON template in bytes of JSON text.
pub const MAX_JSON_TEMPLATE_BYTES: usize = 64 * 1024;

/// Most placeholders of one text.
pub const MAX_PLACEHOLDERS: usize = 256;

/// Most filters of one placeholder.
pub const MAX_FILTERS: usize = 8;

/// Most parts of one path, as in `a.b.c`.
pub const MAX_PATH_PARTS: usize = 32;

/// Largest result in bytes, also of every filter on the way: what an input may have.
pub const MAX_OUTPUT_BYTES: usize = segno::limits::MAX_PAYLOAD_BYTES;

/// Most bytes that all filters of one rendering read: a result can be small where what it was made of is not.
pub const MAX_FILTERED_BYTES: usize = 16 * MAX_OUTPUT_BYTES;

/// Most steps of one condition: a value that is compared, or 64 bytes of text.
pub const MAX_CONDITION_STEPS: usize = 2_000_000;

/// Deepest nesting of a JSON template and of what it renders to. JSON readers give up at 128.
pub const MAX_DEPTH: usize = 100;

/// Longest condition in bytes.
pub const MAX_CONDITION_BYTES: usize = 4 * 1024;

/// Deepest nesting of parentheses and `not` in a condition.
pub const MAX_CONDITION_DEPTH: usize = 32;
