//! Free text for people: descriptions, reasons and notes. One rule at every door.
//!
//! Line feeds and tabs are allowed, because a description may have several lines. All other control characters are
//! refused: a terminal obeys them, so a reason could overwrite what is shown beside it. Names, labels and keys are
//! not free text; they have one line, and rules of their own. What a worker or tool reports of a failure is not refused,
//! because the failure would be lost with it; whatever shows it writes control characters out.

/// What is wrong with a free text of at most so many bytes, as the end of a sentence about its field; `None` if nothing is.
pub fn problem(text: &str, max_bytes: usize) -> Option<String> {
    if text.len() > max_bytes {
        return Some(format!("has {} bytes, the limit is {max_bytes}; shorten it", text.len()));
    }
    let is_refused = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
    let (before, found) = text.chars().enumerate().find(|(_, c)| is_refused(c))?;
    let number = before + 1;
    Some(format!(
        "has the control character {found:?} (character {number}); only line feeds and tabs are allowed, remove it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_but_line_feed_and_tab_are_refused() {
        for (text, refused) in [
            ("", None),
            ("until the\n\tmigration is over ✓", None),
            ("red \u{1b}[31m", Some(r"has the control character '\u{1b}' (character 5)")),
            ("one\r\ntwo", Some(r"has the control character '\r' (character 4)")),
            ("nul\0", Some(r"has the control character '\0' (character 4)")),
            ("\u{9b}31m", Some(r"has the control character '\u{9b}' (character 1)")),
            ("12345678901234567890123456789012345678901", Some("has 41 bytes, the limit is 40")),
        ] {
            let found = problem(text, 40);
            match refused {
                None => assert_eq!(found, None, "{text:?}"),
                Some(start) => assert!(found.is_some_and(|found| found.starts_with(start)), "{text:?}"),
            }
        }
    }
}
