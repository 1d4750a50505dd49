//! Texts of users as errors show them, and as names are compared.

/// How much of a text an error shows, in characters.
const SHOWN_CHARS: usize = 80;

/// The beginning of a text, for errors.
pub fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}

/// The form in which names and keys are compared where letter case does not matter.
pub fn folded(text: &str) -> String {
    text.to_lowercase()
}
