//! The command as it was typed, so that it can be shown with another cursor.

use std::borrow::Cow;

/// Signs that need no quotes in a shell.
const PLAIN_SIGNS: &str = "-_./:=,@%+";

/// A command: the name of the program and its arguments.
#[derive(Debug, Clone, Default)]
pub struct CommandLine {
    program: String,
    arguments: Vec<String>,
}

impl CommandLine {
    /// The arguments without the program that they were given to, and what that is called.
    pub fn new(program: &str, arguments: Vec<String>) -> Self {
        CommandLine { program: program.to_owned(), arguments }
    }

    /// What the program is called.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The command that goes on where this one ended. A key in it is not repeated, because screens and
    /// logs of builds keep what is printed; it is taken from the environment.
    pub fn with_cursor(&self, cursor: &str) -> String {
        let mut words = vec![Cow::Borrowed(self.program.as_str())];
        let mut arguments = self.arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--cursor" => drop(arguments.next()),
                "--key" => {
                    arguments.next();
                    words.push(Cow::Borrowed("--key \"$SEGNO_KEY\""));
                }
                argument if argument.starts_with("--cursor=") => {}
                argument if argument.starts_with("--key=") => {
                    words.push(Cow::Borrowed("--key \"$SEGNO_KEY\""));
                }
                argument => words.push(quoted(argument)),
            }
        }
        words.push(Cow::Borrowed("--cursor"));
        words.push(quoted(cursor));
        words.join(" ")
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || PLAIN_SIGNS.contains(sign);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', "'\\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_continued_with_its_flags_and_without_its_key() {
        for (arguments, continued) in [
            (vec!["list"], "segno list --cursor XYZ"),
            (vec!["list", "--cursor", "ABC", "--limit", "5"], "segno list --limit 5 --cursor XYZ"),
            (vec!["--cursor=ABC", "list"], "segno list --cursor XYZ"),
            (vec!["list", "--prefix", "it's $1"], "segno list --prefix 'it'\\''s $1' --cursor XYZ"),
            (vec!["list", "--prefix", ""], "segno list --prefix '' --cursor XYZ"),
            (vec!["--key", "secret", "list"], "segno --key \"$SEGNO_KEY\" list --cursor XYZ"),
            (vec!["list", "--key=secret"], "segno list --key \"$SEGNO_KEY\" --cursor XYZ"),
        ] {
            let arguments = arguments.into_iter().map(str::to_owned).collect();
            assert_eq!(CommandLine::new("segno", arguments).with_cursor("XYZ"), continued);
        }
    }
}
