//! Secrets by reference: what is stored and shown is where a secret is, never the secret.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use segno::{Category, Failure, Payload};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::FunctionError;
use super::limits::MAX_SECRET_BYTES;

/// Secrets that are shorter are not looked for in output: they would be found everywhere.
const MIN_REDACTED_BYTES: usize = 6;
/// A shorter beginning of a secret at the end of a text that was cut is left there: it would be found everywhere.
const MIN_PARTIAL_BYTES: usize = 4;
/// What stands in output where a secret was.
const REDACTED: &str = "[redacted]";

/// Where a secret is. It is read anew for every run, so that a rotated secret is taken up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum SecretReference {
    /// In an environment variable of the node.
    Env(String),
    /// In a file that the node can read. One line end at its end is left out.
    File(PathBuf),
}

impl fmt::Display for SecretReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretReference::Env(name) => write!(f, "environment variable {name}"),
            SecretReference::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

impl SecretReference {
    /// Checks the form of the reference; the secret is not read.
    ///
    /// # Errors
    /// `invalid-function` with the name of the field.
    pub fn check(&self, field: &str) -> Result<(), FunctionError> {
        match self {
            SecretReference::Env(name) if !is_variable_name(name) => {
                Err(FunctionError::invalid(field, format!("{name:?} is no name of an environment variable")))
            }
            SecretReference::File(path) if !path.is_absolute() => {
                let problem = format!("{} is not an absolute path; write the whole path", path.display());
                Err(FunctionError::invalid(field, problem))
            }
            _ => Ok(()),
        }
    }

    /// Reads the secret.
    ///
    /// # Errors
    /// A configuration failure with the code `secret-unavailable` that names the reference.
    pub async fn resolve(&self) -> Result<Secret, Failure> {
        let reference = self.clone();
        // A file may be on a slow disk, or no file at all.
        let read = tokio::task::spawn_blocking(move || reference.read()).await;
        let read = read.unwrap_or_else(|error| Err(error.to_string()));
        read.map(Secret).map_err(|problem| {
            Failure::new(Category::Configuration, format!("the secret in {self} cannot be used: {problem}"))
                .code("secret-unavailable")
        })
    }

    fn read(&self) -> Result<String, String> {
        let text = match self {
            SecretReference::Env(name) => std::env::var(name).map_err(|error| error.to_string())?,
            SecretReference::File(path) => {
                let bytes = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
                if bytes > MAX_SECRET_BYTES {
                    return Err(format!("it has {bytes} bytes, the limit is {MAX_SECRET_BYTES}"));
                }
                std::fs::read_to_string(path).map_err(|error| error.to_string())?
            }
        };
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
    }
}

/// A setting that is either written out or a reference to a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a text, { env = \"NAME\" } or { file = \"/path\" }")]
pub enum SettingValue {
    /// The value itself.
    Text(String),
    /// Where the value is.
    Secret(SecretReference),
}

impl SettingValue {
    pub(crate) fn secret(&self) -> Option<&SecretReference> {
        match self {
            SettingValue::Text(_) => None,
            SettingValue::Secret(reference) => Some(reference),
        }
    }

    /// The value, read now.
    ///
    /// # Errors
    /// `secret-unavailable` with the reference.
    pub async fn read(&self) -> Result<Secret, Failure> {
        match self {
            SettingValue::Text(text) => Ok(Secret(text.clone())),
            SettingValue::Secret(reference) => reference.resolve().await,
        }
    }

    /// The value, and a note of it if it is secret.
    pub(crate) async fn resolve(&self, redactor: &mut Redactor) -> Result<Secret, Failure> {
        match self {
            SettingValue::Text(text) => Ok(Secret(text.clone())),
            SettingValue::Secret(reference) => redactor.resolve(reference).await,
        }
    }
}

/// A value that does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The value, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Takes the secrets of one run out of whatever the run has to say: a tool or a server may repeat what it was given.
#[derive(Default)]
pub(crate) struct Redactor {
    /// Everything that is looked for: secrets, their lines, and both as they stand in JSON text.
    forms: Vec<String>,
}

impl Redactor {
    /// Reads a secret and remembers it.
    pub(crate) async fn resolve(&mut self, reference: &SecretReference) -> Result<Secret, Failure> {
        let secret = reference.resolve().await?;
        // A key of several lines may be repeated line by line.
        for text in std::iter::once(secret.0.as_str()).chain(secret.0.lines()) {
            let quoted = Value::from(text).to_string();
            let quoted = quoted.strip_prefix('"').and_then(|quoted| quoted.strip_suffix('"'));
            for form in [Some(text), quoted].into_iter().flatten() {
                if form.len() >= MIN_REDACTED_BYTES {
                    self.forms.push(form.to_owned());
                }
            }
        }
        self.forms.sort_unstable();
        self.forms.dedup();
        Ok(secret)
    }

    /// How many bytes before a cut have to be known, so that no part of a secret is left behind it.
    pub(crate) fn margin_bytes(&self) -> usize {
        self.forms.iter().map(String::len).max().unwrap_or_default()
    }

    /// The text without secrets, also where they stand as JSON text.
    pub(crate) fn text(&self, text: &str) -> String {
        redacted(text, 0, self.spans(text))
    }

    /// The same of a text whose end may be missing: neither is the beginning of a secret left at its end.
    pub(crate) fn cut_text(&self, text: &str) -> String {
        self.tail(text, text.len())
    }

    /// The end of a text, from a whole character on, without secrets and parts of secrets. It is the text that is cut and
    /// not what is left of it, so that the text has to have [`Redactor::margin_bytes`] more if it has been cut before.
    pub(crate) fn tail(&self, text: &str, max_bytes: usize) -> String {
        let mut spans = self.spans(text);
        spans.extend(self.partial_at_end(text));
        let from = text.len().saturating_sub(max_bytes);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        redacted(text, from, spans)
    }

    fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let found = |form: &'_ String| {
            let length = form.len();
            text.match_indices(form.as_str()).map(move |(at, _)| at..at + length).collect::<Vec<_>>()
        };
        self.forms.iter().flat_map(found).collect()
    }

    /// The longest end of the text that a secret begins with; a character that was cut in two is part of it.
    fn partial_at_end(&self, text: &str) -> Option<Range<usize>> {
        let whole = text.trim_end_matches(char::REPLACEMENT_CHARACTER).as_bytes();
        let partial = |form: &String| {
            let lengths = (MIN_PARTIAL_BYTES..form.len().min(whole.len() + 1)).rev();
            lengths.into_iter().find(|length| whole.ends_with(&form.as_bytes()[..*length]))
        };
        let longest = self.forms.iter().filter_map(partial).max()?;
        Some(whole.len() - longest..text.len())
    }

    /// JSON without secrets. Only texts and names in it are looked at, so that it stays JSON; all else is as it was, digit by
    /// digit.
    fn json(&self, json: &str) -> String {
        let (mut redacted, mut rest) = (String::with_capacity(json.len()), json);
        while let Some(start) = rest.find('"') {
            let end = start + quoted_bytes(&rest[start..]);
            let (between, quoted) = (&rest[..start], &rest[start..end]);
            redacted.push_str(between);
            match serde_json::from_str::<String>(quoted).map(|text| (self.text(&text), text)) {
                Ok((shown, text)) if shown == text => redacted.push_str(quoted),
                Ok((shown, _)) => redacted.push_str(&Value::from(shown).to_string()),
                // Rather broken than shown.
                Err(_) => redacted.push_str(&self.cut_text(quoted)),
            }
            rest = &rest[end..];
        }
        redacted.push_str(rest);
        redacted
    }

    /// What a tool or server gave as its result, without secrets; nothing is `null`.
    ///
    /// # Errors
    /// Says why it is no JSON.
    pub(crate) fn payload(&self, json: &[u8]) -> Result<Payload, String> {
        let text = std::str::from_utf8(json).map_err(|error| error.to_string())?.trim();
        if text.is_empty() {
            return Ok(Payload::null());
        }
        let payload = Payload::from_json(text).map_err(|error| error.to_string())?;
        if self.forms.is_empty() {
            return Ok(payload);
        }
        Payload::from_json(self.json(text)).map_err(|error| error.to_string())
    }
}

/// The length of the JSON string at the beginning of a text, with its quotes.
fn quoted_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A text from a place on, without these parts of it; parts may overlap each other and the place.
fn redacted(text: &str, from: usize, mut spans: Vec<Range<usize>>) -> String {
    spans.sort_by_key(|span| span.start);
    let (mut out, mut at, mut redacted_to) = (String::with_capacity(text.len() - from), from, None);
    for span in spans.into_iter().filter(|span| span.end > from) {
        if redacted_to.is_none_or(|end| span.start >= end) {
            out.push_str(text.get(at..span.start).unwrap_or_default());
            out.push_str(REDACTED);
        }
        at = at.max(span.end);
        redacted_to = Some(at);
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Whether a text can name an environment variable.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (tempfile::NamedTempFile, SecretReference) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let reference = SecretReference::File(file.path().to_owned());
        (file, reference)
    }

    #[tokio::test]
    async fn a_secret_is_read_when_it_is_needed_and_never_shown() {
        let (file, reference) = file("canary-one\n");
        let secret = reference.resolve().await.unwrap();
        assert_eq!(secret.expose(), "canary-one");
        assert!(!format!("{secret:?} {secret}").contains("canary"));
        std::fs::write(file.path(), "canary-two").unwrap();
        assert_eq!(reference.resolve().await.unwrap().expose(), "canary-two");
        let failure = SecretReference::Env("SEGNO_NO_SUCH_VARIABLE".into()).resolve().await.unwrap_err();
        assert!(failure.has_code("secret-unavailable") && failure.message.contains("SEGNO_NO_SUCH_VARIABLE"));
        assert!(!failure.retryable);
    }

    #[test]
    fn what_is_written_down_is_the_reference() {
        for text in [r#""plain""#, r#"{"env":"TOKEN"}"#, r#"{"file":"/run/secrets/token"}"#] {
            let value: SettingValue = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), text);
        }
        let error = serde_json::from_str::<SettingValue>(r#"{"vault":"x"}"#).unwrap_err().to_string();
        assert!(error.contains(r#"{ env = "NAME" }"#), "{error}");
        assert!(SecretReference::File("relative".into()).check("headers.x").is_err());
        assert!(SecretReference::Env("A=B".into()).check("headers.x").is_err());
    }

    #[tokio::test]
    async fn output_is_redacted_and_stays_json() {
        let (_file, reference) = file("can\"ary-7");
        let (_digits_file, digits) = file("12345678");
        let mut redactor = Redactor::default();
        redactor.resolve(&reference).await.unwrap();
        redactor.resolve(&digits).await.unwrap();
        assert_eq!(redactor.text("key can\"ary-7, 12345678"), "key [redacted], [redacted]");
        let json = br#"{ "a can\"ary-7":["x can\"ary-7", "\\","\u00e9"],"n":12345678, "m":1.50e2}"#;
        let shown = r#"{ "a [redacted]":["x [redacted]", "\\","\u00e9"],"n":12345678, "m":1.50e2}"#;
        assert_eq!(redactor.payload(json).unwrap().as_str(), shown);
        let digits = "[123456789012345678901234567890]";
        assert_eq!(redactor.payload(digits.as_bytes()).unwrap().as_str(), digits);
        assert!(redactor.payload("[".repeat(200).as_bytes()).is_err());
        let (_lines_file, lines) = file("BEGIN KEY\nline-of-key\nEND KEY\n");
        redactor.resolve(&lines).await.unwrap();
        assert_eq!(redactor.text("it is line-of-key\n"), "it is [redacted]\n");
    }

    #[tokio::test]
    async fn overlapping_secrets_and_the_beginning_of_one_leave_nothing() {
        let (_one_file, one) = file("abcdef123456");
        let (_two_file, two) = file("123456xyz\"uvw");
        let mut redactor = Redactor::default();
        redactor.resolve(&one).await.unwrap();
        redactor.resolve(&two).await.unwrap();
        assert_eq!(redactor.text("<abcdef123456xyz\"uvw>"), "<[redacted]>");
        assert_eq!(redactor.text("abcdef123456abcdef123456"), "[redacted][redacted]");
        for (cut, left) in [
            ("it is abcdef1234", "it is [redacted]"),
            ("it is 123456xyz\\\"u", "it is [redacted]"),
            ("abcdef12345", "[redacted]"),
            ("it is abc", "it is abc"),
            ("abcdef123456", "[redacted]"),
        ] {
            assert_eq!(redactor.cut_text(cut), left);
        }
        assert_eq!(redactor.text("it is abcdef1234"), "it is abcdef1234");
        let text = format!("{}abcdef123456{}", "é".repeat(9), "é".repeat(9));
        for max_bytes in 0..text.len() {
            let tail = redactor.tail(&text, max_bytes);
            assert!(!tail.replace("[redacted]", "").contains(|c: char| c.is_ascii()), "{max_bytes}: {tail}");
        }
    }
}
