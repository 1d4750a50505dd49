//! Whether two JSON texts mean the same: order of names and spaces apart, digit by digit.

use serde_json::Value;

/// Numbers of at most this many characters are told apart by the parser, which reads others as doubles.
const LONGEST_EXACT_NUMBER: usize = 15;

/// Whether two texts are the same JSON value. What cannot be read is only the same as its own text.
pub fn is_same_json(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    match (read(one), read(other)) {
        (Some(left), Some(right)) => left == right && long_numbers(one) == long_numbers(other),
        _ => false,
    }
}

/// The numbers of a text that lose digits when they are read, sorted.
fn long_numbers(json: &str) -> Vec<&str> {
    let mut numbers = Vec::new();
    let mut parts = json.split('"');
    // A part ends at a quote, which is part of a string if a backslash is before it that is not itself escaped.
    while let Some(outside) = parts.next() {
        let tokens = outside.split(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
        numbers.extend(tokens.filter(|token| token.len() > LONGEST_EXACT_NUMBER));
        for inside in parts.by_ref() {
            let backslashes = inside.bytes().rev().take_while(|byte| *byte == b'\\').count();
            if backslashes % 2 == 0 {
                break;
            }
        }
    }
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_by_what_they_mean() {
        for (one, other, is_same) in [
            (r#"{"a":1,"b":[2]}"#, r#"{ "b" : [2], "a" : 1 }"#, true),
            ("[1]", "[2]", false),
            ("123456789012345678901234567890", "123456789012345678901234567891", false),
            (r#"{"n":123456789012345678901234567890}"#, r#"{ "n": 123456789012345678901234567890}"#, true),
            (r#"["123456789012345678901"]"#, r#"[ "123456789012345678901" ]"#, true),
            (r#"["\"123456789012345678901",1]"#, r#"["\"123456789012345678901" ,1]"#, true),
            (r#"["\\",12345678901234567890]"#, r#"["\\", 12345678901234567891]"#, false),
            ("[[", "[[", true),
            ("[[", "[", false),
        ] {
            assert_eq!(is_same_json(one, other), is_same, "{one} {other}");
        }
    }
}
