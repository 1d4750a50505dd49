//! Cells that hold several values.

use segno::Payload;
use segno_actions::document::shown;
use serde_json::Value;

use crate::definition::MultiValuedFormat;
use crate::limits::MAX_VALUES;

/// The values of a cell as texts, in their order. White space around them and empty values are left
/// out.
///
/// # Errors
/// What is wrong with the cell.
pub fn split_values(text: &str, format: MultiValuedFormat) -> Result<Vec<String>, String> {
    let values = match format {
        MultiValuedFormat::SemicolonDelimited => split_at(text, ';'),
        MultiValuedFormat::CommaDelimited => split_at(text, ','),
        MultiValuedFormat::JsonArray if text.trim().is_empty() => Vec::new(),
        MultiValuedFormat::JsonArray => json_texts(text)?,
    };
    if values.len() > MAX_VALUES {
        return Err(format!("the cell has {} values, the limit is {MAX_VALUES}", values.len()));
    }
    Ok(values)
}

fn split_at(text: &str, separator: char) -> Vec<String> {
    text.split(separator).map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect()
}

fn json_texts(text: &str) -> Result<Vec<String>, String> {
    let not_an_array = || format!("{:?} is not a JSON array of texts", shown(text));
    // The engine's rule first: some names in objects would make the parser read something else.
    let payload = Payload::from_json(text).map_err(|_| not_an_array())?;
    let values: Vec<Value> = payload.decode().map_err(|_| not_an_array())?;
    let as_text = |value| match value {
        Value::String(text) => Ok(text),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(not_an_array()),
    };
    values.into_iter().map(as_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_by_the_format_of_the_column() {
        use MultiValuedFormat::{CommaDelimited, JsonArray, SemicolonDelimited};
        for (text, format, values) in [
            ("a; b ;;c", SemicolonDelimited, &["a", "b", "c"][..]),
            ("a,b", SemicolonDelimited, &["a,b"]),
            ("", SemicolonDelimited, &[]),
            (" ; ", SemicolonDelimited, &[]),
            ("a, b,c;d", CommaDelimited, &["a", "b", "c;d"]),
            (r#"["a", "b, c", 7, true]"#, JsonArray, &["a", "b, c", "7", "true"]),
            ("[]", JsonArray, &[]),
            (" ", JsonArray, &[]),
        ] {
            assert_eq!(split_values(text, format).unwrap(), values, "{text}");
        }
        for text in ["a;b", "{}", "[null]", "[[1]]", "[\"a\"", "[{\"$serde_json::private::RawValue\":\"1\"}]"]
        {
            let problem = split_values(text, JsonArray).unwrap_err();
            assert!(problem.contains("is not a JSON array of texts"), "{text}: {problem}");
        }
        let many = "x;".repeat(MAX_VALUES + 1);
        assert!(split_values(&many, SemicolonDelimited).unwrap_err().contains("the limit is 1000"));
    }
}
