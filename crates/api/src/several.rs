//! Filters that take one value or several.
//!
//! In JSON one value stands for itself and several are a list. In a query a parameter is repeated
//! (`status=failed&status=cancelled`); the server's reader of queries joins what is repeated by
//! [`JOINED_BY`], because the form of a query knows no lists.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::action::ActionStatusName;
use crate::batch::{BatchStatus, MemberStatus};
use crate::instance::Status;
use crate::run::{RunStatus, TaskStatus};

/// Stands between the values of a query parameter that was repeated. No value that a filter could
/// match has it: ids and labels have no control characters.
pub const JOINED_BY: char = '\u{1f}';

/// The query parameters that may be repeated.
pub const REPEATABLE: &[&str] = &["label", "status"];

/// A value that a filter may have several of.
pub trait FilterValue: Sized {
    /// What separates values in one text.
    const SEPARATORS: &'static [char];

    /// Reads one value.
    ///
    /// # Errors
    /// When the text is none.
    fn parse<E: de::Error>(text: &str) -> Result<Self, E>;
}

/// Words of the API, of which none has a comma.
macro_rules! words {
    ($($name:ty),+) => {$(
        impl FilterValue for $name {
            const SEPARATORS: &'static [char] = &[',', JOINED_BY];

            fn parse<E: de::Error>(text: &str) -> Result<Self, E> {
                <$name>::deserialize(de::value::StrDeserializer::new(text))
            }
        }
    )+};
}

words!(ActionStatusName, BatchStatus, MemberStatus, RunStatus, Status, TaskStatus);

/// A label as `key=value`. A value may contain commas.
impl FilterValue for String {
    const SEPARATORS: &'static [char] = &[JOINED_BY];

    fn parse<E: de::Error>(text: &str) -> Result<Self, E> {
        Ok(text.to_owned())
    }
}

/// Filters of a query are never written with the others: the client repeats the parameter for each value. `skip_serializing`
/// would take the parameter out of the OpenAPI document.
pub fn is_sent_apart<T>(_values: &[T]) -> bool {
    true
}

/// Writes one value as it is, and several as a list.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: Serialize, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    match values {
        [only] => only.serialize(serializer),
        several => several.serialize(serializer),
    }
}

/// Reads one value, or several.
///
/// # Errors
/// When one is wrong.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: FilterValue + Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct OneOrSeveral<T>(PhantomData<T>);

    impl<'de, T: FilterValue + Deserialize<'de>> Visitor<'de> for OneOrSeveral<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text, or a list of texts")
        }

        fn visit_unit<E: de::Error>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<T>, E> {
            text.split(T::SEPARATORS).map(T::parse).collect()
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Vec<T>, A::Error> {
            let mut several = Vec::new();
            while let Some(value) = values.next_element()? {
                several.push(value);
            }
            Ok(several)
        }
    }

    deserializer.deserialize_any(OneOrSeveral(PhantomData))
}

#[cfg(test)]
mod tests {
    use crate::bulk::BulkFilter;
    use crate::instance::Status;

    #[test]
    fn one_is_itself_and_several_are_a_list() {
        for (json, statuses, labels, written) in [
            (r#"{}"#, vec![], vec![], r#"{}"#),
            (r#"{"status":null,"label":null}"#, vec![], vec![], r#"{}"#),
            (
                r#"{"status":"failed","label":"a=1,2"}"#,
                vec![Status::Failed],
                vec!["a=1,2"],
                r#"{"status":"failed","label":"a=1,2"}"#,
            ),
            (
                r#"{"status":["failed","running"],"label":["a=1","b=2"]}"#,
                vec![Status::Failed, Status::Running],
                vec!["a=1", "b=2"],
                r#"{"status":["failed","running"],"label":["a=1","b=2"]}"#,
            ),
            (
                r#"{"status":"failed,running"}"#,
                vec![Status::Failed, Status::Running],
                vec![],
                r#"{"status":["failed","running"]}"#,
            ),
        ] {
            let filter: BulkFilter = serde_json::from_str(json).unwrap();
            assert_eq!(filter.status, statuses, "{json}");
            assert_eq!(filter.label, labels, "{json}");
            assert_eq!(serde_json::to_string(&filter).unwrap(), written, "{json}");
        }
        for wrong in
            [r#"{"status":"nothing"}"#, r#"{"status":""}"#, r#"{"status":["failed","x"]}"#, r#"{"status":1}"#]
        {
            assert!(serde_json::from_str::<BulkFilter>(wrong).is_err(), "{wrong}");
        }
    }
}
