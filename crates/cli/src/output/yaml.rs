//! JSON as YAML: the same names in the same order, and numbers with their digits.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Longest line of a text that is written in a block of its own, in characters; longer ones are not folded.
const WIDTH: usize = usize::MAX;

/// A JSON text as a YAML document.
///
/// # Errors
/// When the text is no JSON.
pub fn of_json(json: &str) -> Result<String, std::io::Error> {
    let value: &RawValue = serde_json::from_str(json)?;
    let options = serde_saphyr::ser_options! { folded_wrap_chars: WIDTH };
    serde_saphyr::to_string_with_options(&Value(value), options).map_err(std::io::Error::other)
}

/// A JSON value that is read level by level, as it is written, so that nothing of it is lost in between.
struct Value<'a>(&'a RawValue);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let text = self.0.get();
        match text.as_bytes().first() {
            Some(b'{') => {
                let Fields(fields) = serde_json::from_str(text).map_err(S::Error::custom)?;
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(&name, &Value(value))?;
                }
                map.end()
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(S::Error::custom)?;
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    sequence.serialize_element(&Value(item))?;
                }
                sequence.end()
            }
            Some(b'"') => {
                let text: Cow<'_, str> = serde_json::from_str(text).map_err(S::Error::custom)?;
                serializer.serialize_str(&text)
            }
            Some(b'n') => serializer.serialize_unit(),
            Some(b't') => serializer.serialize_bool(true),
            Some(b'f') => serializer.serialize_bool(false),
            _ => number(text, serializer),
        }
    }
}

/// A number; a whole one as such, as long as 128 bits hold it.
fn number<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    use serde::ser::Error;
    if let Ok(number) = text.parse::<i64>() {
        return serializer.serialize_i64(number);
    }
    match text.parse::<i128>() {
        Ok(number) => serializer.serialize_i128(number),
        Err(_) => serializer.serialize_f64(text.parse().map_err(S::Error::custom)?),
    }
}

/// Names and values in the order in which they are written. Of a name that is repeated, which YAML
/// forbids, the last value counts, as it does for readers of JSON.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields: Vec<(Cow<'de, str>, &'de RawValue)> = Vec::new();
                let mut places = std::collections::HashMap::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    match places.get(&name) {
                        Some(place) => fields[*place] = (Cow::Owned(name), value),
                        None => {
                            places.insert(name.clone(), fields.len());
                            fields.push((Cow::Owned(name), value));
                        }
                    }
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_digits_and_texts_are_kept() {
        let json = r#"{"z":1,"a":[1.50,18446744073709551615,170141183460469231731687303715884105727,-0],
            "none":null,"yes":true,"empty":{},"list":[],"deep":[{"b":1},[2,[3]]],"z":2}"#;
        let yaml = of_json(json).unwrap();
        expect_test::expect![[r#"
            z: 2
            a:
            - 1.5
            - 18446744073709551615
            - 170141183460469231731687303715884105727
            - 0
            none: null
            "yes": true
            empty: {}
            list: []
            deep:
            - b: 1
            - - 2
              - - 3
        "#]]
        .assert_eq(&yaml);
    }

    #[test]
    fn texts_that_look_like_something_else_are_quoted() {
        let json = r##"["no","null","~","1e3","0x10","12:30","2026-11-18","","- a","a: b","# c"," d","e\nf\n","\u0007","--- x","{","ok"]"##;
        expect_test::expect![[r##"
            - "no"
            - "null"
            - "~"
            - "1e3"
            - "0x10"
            - "12:30"
            - "2026-11-18"
            - ""
            - "- a"
            - "a: b"
            - "# c"
            - " d"
            - |
              e
              f
            - "\a"
            - "--- x"
            - "{"
            - ok
        "##]]
        .assert_eq(&of_json(json).unwrap());
    }
}
