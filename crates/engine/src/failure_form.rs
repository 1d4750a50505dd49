//! How a failure is stored and shown. Its details are text in memory. In JSON they are that text. In binary form they
//! have been a tree of values since the first version, which rounds numbers of more than 64 bits and sorts names: details
//! that such a tree does not give back as they were written are stored beside it as text.

use serde::de::Deserializer;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Category, Failure};
use crate::payload::Payload;

#[derive(Serialize)]
struct Written<'f> {
    category: Category,
    message: &'f str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'f str>,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details<'f>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details_json: Option<&'f str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Details<'f> {
    Text(&'f Payload),
    Tree(Value),
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (details, details_json) = match &self.details {
            None => (None, None),
            Some(text) if serializer.is_human_readable() => (Some(Details::Text(text)), None),
            Some(text) => {
                let tree: Value = serde_json::from_str(text.as_str()).map_err(serde::ser::Error::custom)?;
                let written = tree.to_string();
                let beside = (written != text.as_str()).then_some(text.as_str());
                (Some(Details::Tree(tree)), beside)
            }
        };
        let written = Written {
            category: self.category,
            message: &self.message,
            code: self.code.as_deref(),
            retryable: self.retryable,
            details,
            retry_after_ms: self.retry_after_ms,
            details_json,
        };
        written.serialize(serializer)
    }
}

#[derive(Deserialize)]
struct Read {
    category: Category,
    message: String,
    #[serde(default)]
    code: Option<String>,
    retryable: bool,
    #[serde(default)]
    details: Option<ReadDetails>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
    #[serde(default)]
    details_json: Option<String>,
}

/// Text in JSON, and a tree that becomes text in binary form.
struct ReadDetails(Payload);

impl<'de> Deserialize<'de> for ReadDetails {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            return Payload::deserialize(deserializer).map(ReadDetails);
        }
        text(&Value::deserialize(deserializer)?.to_string()).map(ReadDetails)
    }
}

impl<'de> Deserialize<'de> for Failure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Read::deserialize(deserializer)?;
        let details = match read.details_json {
            Some(json) => Some(text(&json)?),
            None => read.details.map(|ReadDetails(details)| details),
        };
        Ok(Failure {
            category: read.category,
            message: read.message,
            code: read.code,
            retryable: read.retryable,
            details,
            retry_after_ms: read.retry_after_ms,
        })
    }
}

fn text<E: serde::de::Error>(json: &str) -> Result<Payload, E> {
    Payload::stored(json).map_err(E::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::codec;

    /// What the first version stored: the same type with a tree for its details.
    #[derive(Serialize, Deserialize)]
    struct First {
        category: Category,
        message: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        retryable: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after_ms: Option<u64>,
    }

    fn with(details: &str) -> Failure {
        let mut failure = Failure::application("no").code("c");
        failure.details = Some(Payload::from_json(details).unwrap());
        failure
    }

    #[test]
    fn bytes_are_those_of_the_first_version() {
        for details in
            [None, Some(json!({ "a": [1, -2.5, u64::MAX, "x", true, null], "b": {} })), Some(json!("x"))]
        {
            let mut failure = Failure::application("no").code("c");
            failure.retry_after_ms = Some(5);
            failure.details = details.as_ref().map(|details| Payload::encode(details).unwrap());
            let first = First {
                category: Category::Application,
                message: "no".to_owned(),
                code: Some("c".to_owned()),
                retryable: true,
                details,
                retry_after_ms: Some(5),
            };
            assert_eq!(codec::encode(&failure), codec::encode(&first));
            assert_eq!(codec::decode::<Failure>(&codec::encode(&first)).unwrap(), failure);
            assert_eq!(serde_json::to_string(&failure).unwrap(), serde_json::to_string(&first).unwrap());
        }
        let golden = "0185a863617465676f7279ab6170706c69636174696f6ea76d657373616765a26e6fa4636f6465a163a9726574727961\
                      626c65c3a764657461696c7381a16107";
        let bytes = codec::encode(&with(r#"{"a":7}"#));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden);
    }

    #[test]
    fn details_are_kept_as_they_are_written() {
        for text in [
            r#"{"n":123456789012345678901234567890}"#,
            r#"{"z":1,"a":2}"#,
            r#"{"a":1,"a":2}"#,
            r#"{ "a" : 1.50 }"#,
            r#""text""#,
            "0.1000",
        ] {
            let failure = with(text);
            let stored = codec::encode(&failure);
            let read: Failure = codec::decode(&stored).unwrap();
            assert_eq!(read.details.as_ref().unwrap().as_str(), text);
            assert_eq!(codec::encode(&read), stored);
            let shown = serde_json::to_string(&failure).unwrap();
            assert!(shown.contains(&format!(r#""details":{text}"#)), "{shown}");
            assert_eq!(serde_json::from_str::<Failure>(&shown).unwrap(), failure);
            // A version that knows trees only reads what it would have stored.
            let first: First = codec::decode(&stored).unwrap();
            assert_eq!(first.details, Some(serde_json::from_str(text).unwrap()));
        }
    }
}
