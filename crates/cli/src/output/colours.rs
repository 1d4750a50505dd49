//! Colours of states, for people at a terminal.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{IsTerminal, stdout};
use std::sync::LazyLock;

use clap::ValueEnum;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Also in pipes and files.
    Always,
    /// Not at all.
    Never,
}

/// Whether texts are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// They are, by ANSI escape sequences.
    Ansi,
    /// They are not.
    Plain,
}

/// What is before each of our own escape sequences until they are printed. It is another one in every process, so that no text
/// of others has it: without it, an escape sequence is written out.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("\u{fdd0}{:016x}", RandomState::new().hash_one("colours")));

/// The end of every colour.
const RESET: &str = "\x1b[0m";

/// Headings.
const BOLD: &str = "\x1b[1m";

/// The colours of states, by the first word of a cell.
const STATES: &[(&str, &str)] = &[
    ("completed", "\x1b[32m"),
    ("active", "\x1b[32m"),
    ("failed", "\x1b[31m"),
    ("dead", "\x1b[31m"),
    ("cancelled", "\x1b[33m"),
    ("paused", "\x1b[33m"),
    ("running", "\x1b[36m"),
    ("pending", "\x1b[34m"),
];

/// A text that does nothing to a terminal but show itself: control characters, overrides of the writing direction and
/// characters that are not seen are written out. What is shown was often written by others: names, reasons, outputs. Lines, tabs and the colours of
/// [`Colours`] stay; what others write as a colour is written out.
pub fn without_controls(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let mut ours = STATES.iter().map(|(_, colour)| *colour).chain([RESET, BOLD]);
        let marked = rest.strip_prefix(MARK.as_str());
        let code = marked.and_then(|rest| ours.find(|code| rest.starts_with(*code)));
        let length = match code {
            Some(code) => {
                safe.push_str(code);
                MARK.len() + code.len()
            }
            None if is_control(sign) => {
                safe.extend(sign.escape_unicode());
                sign.len_utf8()
            }
            None => {
                safe.push(sign);
                sign.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    Cow::Owned(safe)
}

/// A text of others as part of a line: as [`without_controls`], and in one line.
pub(super) fn in_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(|sign| is_control(sign) || sign == '\n' || sign == '\t') {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' | '\t' | '\r' => safe.extend(sign.escape_default()),
            _ if is_control(sign) => safe.extend(sign.escape_unicode()),
            _ => safe.push(sign),
        }
    }
    Cow::Owned(safe)
}

fn is_control(sign: char) -> bool {
    let is_mark = sign == '\u{fdd0}';
    is_mark || is_unseen(sign) || (sign.is_control() && sign != '\n' && sign != '\t')
}

/// Whether a character has no shape of its own: two names that differ in it look alike, and some of them change the order
/// of what follows. These are Unicode's default-ignorable characters, separators of lines, and interlinear annotations.
fn is_unseen(sign: char) -> bool {
    matches!(sign,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

impl Colours {
    /// What was chosen, as it is on this standard output.
    pub fn of_stdout(choice: ColorChoice) -> Self {
        let no_color = std::env::var_os("NO_COLOR");
        Self::decide(choice, stdout().is_terminal(), no_color.as_deref(), std::env::var_os("TERM").as_deref())
    }

    fn decide(
        choice: ColorChoice,
        is_terminal: bool,
        no_color: Option<&OsStr>,
        term: Option<&OsStr>,
    ) -> Self {
        let is_wanted = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                is_terminal && no_color.is_none_or(OsStr::is_empty) && term != Some(OsStr::new("dumb"))
            }
        };
        if is_wanted { Colours::Ansi } else { Colours::Plain }
    }

    /// A heading.
    pub fn heading(self, text: &str) -> String {
        self.painted(text, Some(BOLD))
    }

    /// A state, such as `failed`, in its colour.
    pub fn state(self, text: &str) -> String {
        let word = text.split(|sign: char| !sign.is_alphanumeric() && sign != '_').next().unwrap_or_default();
        let colour = STATES.iter().find(|(state, _)| *state == word).map(|(_, colour)| *colour);
        self.painted(text, colour)
    }

    fn painted(self, text: &str, colour: Option<&str>) -> String {
        match colour {
            Some(colour) if self == Colours::Ansi && !text.is_empty() => {
                let mark = &*MARK;
                format!("{mark}{colour}{text}{mark}{RESET}")
            }
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_nothing_by_texts_of_others() {
        for (text, shown) in [
            ("plain\ttext\nÄ 日", "plain\ttext\nÄ 日"),
            ("\u{1b}]0;title\u{7}x", "\\u{1b}]0;title\\u{7}x"),
            ("\u{1b}[32mcompleted\u{1b}[0m", "\\u{1b}[32mcompleted\\u{1b}[0m"),
            ("\u{fdd0}\u{1b}[31mred", "\\u{fdd0}\\u{1b}[31mred"),
            (Colours::Ansi.state("completed").as_str(), "\u{1b}[32mcompleted\u{1b}[0m"),
            ("\u{1b}[2Jgone\r", "\\u{1b}[2Jgone\\u{d}"),
            ("\u{9b}31m \u{202e}abc", "\\u{9b}31m \\u{202e}abc"),
            ("pay\u{200b}ment a\u{ad}b", "pay\\u{200b}ment a\\u{ad}b"),
            ("\u{200e}\u{200f}\u{61c}\u{2028}\u{feff}", "\\u{200e}\\u{200f}\\u{61c}\\u{2028}\\u{feff}"),
            ("a\u{fe0f}\u{e0041}\u{3164}", "a\\u{fe0f}\\u{e0041}\\u{3164}"),
            ("שלום عربى हिन्दी 👍", "שלום عربى हिन्दी 👍"),
        ] {
            assert_eq!(without_controls(text), shown);
        }
    }

    #[test]
    fn colours_are_for_terminals_unless_they_are_refused() {
        use ColorChoice::{Always, Auto, Never};
        let (set, empty, dumb) = (Some(OsStr::new("1")), Some(OsStr::new("")), Some(OsStr::new("dumb")));
        for (choice, is_terminal, no_color, term, colours) in [
            (Auto, true, None, None, Colours::Ansi),
            (Auto, true, empty, None, Colours::Ansi),
            (Auto, true, set, None, Colours::Plain),
            (Auto, true, None, dumb, Colours::Plain),
            (Auto, false, None, None, Colours::Plain),
            (Always, false, set, dumb, Colours::Ansi),
            (Never, true, None, None, Colours::Plain),
        ] {
            assert_eq!(Colours::decide(choice, is_terminal, no_color, term), colours, "{choice:?}");
        }
    }

    #[test]
    fn states_have_colours_and_other_words_none() {
        let printed = Colours::Ansi.state("failed: no disk");
        assert_eq!(without_controls(&printed), "\x1b[31mfailed: no disk\x1b[0m");
        assert_eq!(Colours::Ansi.state("something"), "something");
        assert_eq!(Colours::Plain.state("failed"), "failed");
        assert_eq!(Colours::Ansi.heading(""), "");
    }
}
