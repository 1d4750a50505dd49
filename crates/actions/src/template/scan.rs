//! Reading what stands between braces, and conditions: words, texts, numbers and signs.

use serde_json::{Number, Value};

use super::error::{Place, TemplateError};

/// How much of a word that is not understood an error shows.
const SHOWN_CHARS: usize = 40;

/// A place in a text, moving forward.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Scanner { text, at: 0 }
    }

    /// Where it stands.
    pub(super) fn place(&self) -> Place {
        Place::in_text(self.text, self.at)
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Takes this text if it comes next.
    pub(super) fn take(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    /// The word that comes next, without taking it.
    pub(super) fn peek_word(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Takes this word if it comes next and is not the beginning of a longer one.
    pub(super) fn take_word(&mut self, wanted: &str) -> bool {
        self.peek_word() == wanted && self.take(wanted)
    }

    /// Takes the word that comes next; empty if there is none.
    pub(super) fn word(&mut self) -> &'a str {
        let word = self.peek_word();
        self.at += word.len();
        word
    }

    /// A text, a number, `true`, `false` or `null`, if one comes next.
    pub(super) fn literal(&mut self) -> Result<Option<Value>, TemplateError> {
        match self.peek() {
            Some('"' | '\'') => self.quoted().map(|text| Some(Value::String(text))),
            Some(c) if c == '-' || c.is_ascii_digit() => self.number().map(Some),
            _ => {
                let literals =
                    [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)];
                Ok(literals.into_iter().find(|(word, _)| self.take_word(word)).map(|(_, value)| value))
            }
        }
    }

    /// A text in double or single quotes. A backslash takes the next character as it is; `\n` and `\t` are as usual.
    pub(super) fn quoted(&mut self) -> Result<String, TemplateError> {
        let Some(quote) = self.peek().filter(|c| matches!(c, '"' | '\'')) else {
            return Err(self.unexpected("a text in quotes"));
        };
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((offset, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.at += offset + c.len_utf8();
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, escaped)) => text.push(escaped),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(self.invalid(format!("this text has no end; close it with {quote}")))
    }

    fn number(&mut self) -> Result<Value, TemplateError> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.' | '_')))
            .unwrap_or(rest.len());
        let text = &rest[..end];
        let Ok(number) = serde_json::from_str::<Number>(text) else {
            let shown: String = text.chars().take(SHOWN_CHARS).collect();
            return Err(self.invalid(format!("{shown:?} is not a number")));
        };
        self.at += end;
        Ok(Value::Number(number))
    }

    /// Something else was expected here.
    pub(super) fn unexpected(&self, wanted: &str) -> TemplateError {
        let found = match (self.peek_word(), self.peek()) {
            ("", None) => "the end".to_owned(),
            ("", Some(c)) => format!("{c:?}"),
            (word, _) => format!("{:?}", word.chars().take(SHOWN_CHARS).collect::<String>()),
        };
        self.invalid(format!("expected {wanted}, found {found}"))
    }

    pub(super) fn invalid(&self, problem: impl Into<String>) -> TemplateError {
        TemplateError::Invalid { place: self.place(), problem: problem.into() }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn literals_are_read_and_mistakes_have_a_place() {
        for (text, value, rest) in [
            (r#""a\"b\\c\nd" x"#, Some(json!("a\"b\\c\nd")), " x"),
            ("'it''s'", Some(json!("it")), "'s'"),
            ("-1.5e3)", Some(json!(-1500.0)), ")"),
            ("7,", Some(json!(7)), ","),
            ("true)", Some(json!(true)), ")"),
            ("truely", None, "truely"),
            ("null", Some(Value::Null), ""),
            ("payload.x", None, "payload.x"),
        ] {
            let mut scanner = Scanner::new(text);
            assert_eq!(scanner.literal().unwrap(), value, "{text}");
            assert_eq!(scanner.rest(), rest, "{text}");
        }
        for bad in ["\"a", "'a\\", "01", "1x", "--1", "1.2.3"] {
            let error = Scanner::new(bad).literal().unwrap_err();
            assert!(error.to_string().starts_with("column 1: "), "{bad}: {error}");
        }
    }

    #[test]
    fn a_place_is_a_line_and_a_character() {
        let place = |text, offset| Place::in_text(text, offset).to_string();
        assert_eq!(place("abc", 2), "column 3");
        assert_eq!(place("ä\nöx", 5), "line 2, column 2");
        assert_eq!(place("a", 99), "column 2");
    }
}
