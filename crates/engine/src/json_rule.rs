//! Which JSON the engine takes: what every reader of it can show again.
//!
//! JSON's grammar allows more than parsers do: nesting without end, numbers beyond a double, halves of UTF-16 pairs. The
//! rule is I-JSON's (RFC 7493) with a limit on nesting; digits of numbers and the order and repetition of names are kept as
//! they are written. One pass over the text, without recursion and without memory of its own.

use std::fmt;

/// A number of at most this many characters and without an exponent is always within a double.
const LONGEST_SURE_NUMBER: usize = 300;

/// A name that `serde_json` reads as an order to parse the value behind it once more, so that readers would see something else
/// than was checked, nested as deep as the sender likes.
const RESERVED_NAME: &str = "$serde_json::private::RawValue";

/// How a text breaks the rule, and at which byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It is nested deeper than allowed.
    TooDeep { levels: usize, at: usize },
    /// A number is not finite as a double.
    NumberTooLarge { at: usize },
    /// A `\u` escape is one half of a surrogate pair without the other.
    LoneSurrogate { at: usize },
    /// A name in an object is [`RESERVED_NAME`].
    ReservedName { at: usize },
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::TooDeep { levels, at } => write!(
                f,
                "the payload is nested deeper than {levels} levels at byte {at}; flatten it, or pass a part of it as text"
            ),
            Broken::NumberTooLarge { at } => write!(
                f,
                "the number at byte {at} is beyond a double (about 1.8e308), which many JSON readers refuse; pass it as text"
            ),
            Broken::LoneSurrogate { at } => write!(
                f,
                "the escape at byte {at} is one half of a UTF-16 surrogate pair, which is not text; write both halves, or \
                 encode binary data as base64"
            ),
            Broken::ReservedName { at } => {
                write!(f, "the name {RESERVED_NAME:?} at byte {at} is reserved; use another one")
            }
        }
    }
}

/// Checks text that is known to be JSON by its grammar.
pub(crate) fn check(json: &str, max_levels: usize) -> Result<(), Broken> {
    let bytes = json.as_bytes();
    let (mut at, mut levels) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        at = match byte {
            b'"' => {
                let end = string(bytes, at + 1)?;
                if is_reserved_name(bytes, at, end) {
                    return Err(Broken::ReservedName { at });
                }
                end
            }
            b'-' | b'0'..=b'9' => number(bytes, at)?,
            b'[' | b'{' => {
                levels += 1;
                if levels > max_levels {
                    return Err(Broken::TooDeep { levels: max_levels, at });
                }
                at + 1
            }
            b']' | b'}' => {
                levels = levels.saturating_sub(1);
                at + 1
            }
            _ => at + 1,
        };
    }
    Ok(())
}

/// Refuses a text that is to be read as JSON and has [`RESERVED_NAME`] in an object; the rest of the rule is not checked.
pub(crate) fn check_names(json: &[u8]) -> Result<(), Broken> {
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        at = match byte {
            b'"' => {
                let end = string_end(json, at + 1);
                if is_reserved_name(json, at, end) {
                    return Err(Broken::ReservedName { at });
                }
                end
            }
            _ => at + 1,
        };
    }
    Ok(())
}

/// Whether the string between these places, with its quotes, is [`RESERVED_NAME`] and the name of something.
fn is_reserved_name(bytes: &[u8], from: usize, end: usize) -> bool {
    let quoted = &bytes[from..end];
    let may_be = quoted.len() >= RESERVED_NAME.len() + 2 && matches!(quoted.get(1), Some(b'$' | b'\\'));
    let is_name = || bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
    may_be && is_name() && serde_json::from_slice::<String>(quoted).is_ok_and(|name| name == RESERVED_NAME)
}

/// Where a string ends that begins behind this quote, whatever its escapes are.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at = match byte {
            b'"' => return at + 1,
            b'\\' => at + 2,
            _ => at + 1,
        };
    }
    bytes.len()
}

/// Reads a number and returns where it ends.
fn number(bytes: &[u8], from: usize) -> Result<usize, Broken> {
    let (mut end, mut has_exponent) = (from + 1, false);
    while let Some(byte @ (b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) = bytes.get(end) {
        has_exponent |= matches!(byte, b'e' | b'E');
        end += 1;
    }
    let is_sure = !has_exponent && end - from <= LONGEST_SURE_NUMBER;
    // By the parser that readers use, so that both agree on the last digit.
    if is_sure || serde_json::from_slice::<f64>(&bytes[from..end]).is_ok() {
        return Ok(end);
    }
    Err(Broken::NumberTooLarge { at: from })
}

/// Reads a string from behind its opening quote and returns where it ends.
fn string(bytes: &[u8], mut at: usize) -> Result<usize, Broken> {
    while let Some(byte) = bytes.get(at) {
        at = match byte {
            b'"' => return Ok(at + 1),
            b'\\' => escape(bytes, at)?,
            _ => at + 1,
        };
    }
    Ok(at)
}

/// Reads an escape, both halves of a surrogate pair at once, and returns where it ends.
fn escape(bytes: &[u8], at: usize) -> Result<usize, Broken> {
    match unicode_escape(bytes, at) {
        None => Ok(at + 2),
        Some(0xd800..=0xdbff) => match unicode_escape(bytes, at + 6) {
            Some(0xdc00..=0xdfff) => Ok(at + 12),
            _ => Err(Broken::LoneSurrogate { at }),
        },
        Some(0xdc00..=0xdfff) => Err(Broken::LoneSurrogate { at }),
        Some(_) => Ok(at + 6),
    }
}

/// The code unit of a `\u` escape that begins here.
fn unicode_escape(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn nesting_has_a_limit_and_brackets_in_texts_are_no_nesting() {
        assert_eq!(check(&nested(100), 100), Ok(()));
        assert_eq!(check(&nested(101), 100), Err(Broken::TooDeep { levels: 100, at: 100 }));
        assert_eq!(check(&nested(1_000_000), 100), Err(Broken::TooDeep { levels: 100, at: 100 }));
        let objects = format!("{}1{}", r#"{"a":"#.repeat(101), "}".repeat(101));
        assert!(matches!(check(&objects, 100), Err(Broken::TooDeep { .. })));
        let side_by_side = format!("[{}]", vec![nested(99); 50].join(","));
        assert_eq!(check(&side_by_side, 100), Ok(()));
        assert_eq!(check(&format!("\"{}\"", "[".repeat(500)), 100), Ok(()));
        assert_eq!(check(r#"["\"[[[","\\",["]"]]"#, 2), Ok(()));
    }

    #[test]
    fn numbers_are_finite_as_a_double_and_otherwise_as_they_are() {
        let long = |digits: usize| "7".repeat(digits);
        for fine in [
            "0".to_owned(),
            "-1.5e-400".to_owned(),
            "0e999999999999999999999".to_owned(),
            "1.7976931348623157e308".to_owned(),
            "-1E+300".to_owned(),
            "123456789012345678901234567890".to_owned(),
            long(308),
            format!("0.{}", long(5_000)),
        ] {
            assert_eq!(check(&format!("[{fine},1]"), 100), Ok(()), "{fine}");
            assert!(serde_json::from_str::<serde_json::Value>(&fine).is_ok(), "{fine}");
        }
        for broken in
            ["1e400".to_owned(), "-1e400".to_owned(), "1e99999999999999999999".to_owned(), long(5_000)]
        {
            assert_eq!(check(&format!("[{broken}]"), 100), Err(Broken::NumberTooLarge { at: 1 }), "{broken}");
        }
        assert_eq!(check(r#""1e400""#, 100), Ok(()));
    }

    #[test]
    fn the_name_that_the_parser_takes_for_an_order_is_reserved() {
        let name = RESERVED_NAME;
        let escaped = format!("\\u0024{}", &name[1..]);
        let half = name.replace("private", "pr\\u0069vate");
        for name in [name, &escaped, &half] {
            for (json, at) in
                [(format!(r#"{{"{name}":"1"}}"#), 1), (format!(r#"[{{"a":1,"{name}" \n: "[]"}}]"#), 8)]
            {
                let json = json.replace("\\n", "\n");
                assert_eq!(check(&json, 100), Err(Broken::ReservedName { at }), "{json}");
                assert_eq!(check_names(json.as_bytes()), Err(Broken::ReservedName { at }), "{json}");
            }
            assert_eq!(check(&format!(r#"["{name}"]"#), 100), Ok(()));
            assert_eq!(check_names(format!(r#"{{"a":"{name}"}}"#).as_bytes()), Ok(()));
        }
        // What is inside a text is a text; what is no JSON has no names.
        let inner = serde_json::json!({ "text": format!(r#"{{"{name}":"1"}}"#) }).to_string();
        assert_eq!((check(&inner, 100), check_names(inner.as_bytes())), (Ok(()), Ok(())));
        for odd in ["\"", "\"\\", "{\"$", "\\"] {
            assert_eq!(check_names(odd.as_bytes()), Ok(()), "{odd}");
        }
    }

    #[test]
    fn surrogates_come_in_pairs() {
        for fine in [r"\ud83d\ude00", r"\u0000", r"\uD83D\uDE00x", r"\\ud800", r"é\u00e9", r"\ud7ff\ue000"] {
            assert_eq!(check(&format!("\"{fine}\""), 100), Ok(()), "{fine}");
        }
        for (broken, at) in [
            (r"\ud800", 1),
            (r"\udc00", 1),
            (r"ab\ude00\ud83d", 3),
            (r"\ud800\ud800", 1),
            (r"\ud800x\udc00", 1),
            (r"\ud800\n", 1),
            (r"\uDBFF", 1),
        ] {
            assert_eq!(check(&format!("\"{broken}\""), 100), Err(Broken::LoneSurrogate { at }), "{broken}");
        }
        assert_eq!(check(r#"{"\ud800":1}"#, 100), Err(Broken::LoneSurrogate { at: 2 }));
    }

    /// What passes is read by the parser that most readers use, and the other way round: the limit apart, the rule is
    /// neither stricter nor laxer.
    #[test]
    fn the_rule_agrees_with_the_parser() {
        let mut draws = Draws(7);
        let mut seen = [0, 0];
        for _ in 0..20_000 {
            let text = draws.value(3);
            let is_read = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            assert_eq!(check(&text, 100).is_ok(), is_read, "{text}");
            seen[usize::from(is_read)] += 1;
        }
        assert!(seen.iter().all(|count| *count > 1_000), "{seen:?}");
    }

    /// Random JSON, some of which breaks the rule.
    struct Draws(u64);

    impl Draws {
        fn below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % end
        }

        fn value(&mut self, levels: usize) -> String {
            const LEAVES: [&str; 14] = [
                "1",
                "-0.5",
                "1e308",
                "1.8e308",
                "2e-400",
                "1e400",
                "null",
                r#""x""#,
                r#""\"[""#,
                r#""\\""#,
                r#""\ud800""#,
                r#""\ud800\udc00""#,
                r#""\u0000""#,
                r#""\udc00\ud800""#,
            ];
            let items = |draws: &mut Self| (0..draws.below(3)).map(|_| draws.value(levels - 1)).collect();
            match self.below(4) {
                0 if levels > 0 => {
                    let items: Vec<String> = items(self);
                    format!("[{}]", items.join(" , "))
                }
                1 if levels > 0 => {
                    let items: Vec<String> = items(self);
                    let fields: Vec<String> = items.iter().map(|item| format!("\"k\":{item}")).collect();
                    format!("{{{}}}", fields.join(","))
                }
                _ => LEAVES[self.below(LEAVES.len())].to_owned(),
            }
        }
    }
}
