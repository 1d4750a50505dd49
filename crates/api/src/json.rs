//! User data: JSON that is passed through untouched, byte for byte.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Any JSON. Its text is kept as it came: numbers keep their digits, objects their order.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes JSON text.
    ///
    /// # Errors
    /// When the text is not JSON.
    pub fn from_text(text: String) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text).map(Json)
    }

    /// The JSON of a value.
    ///
    /// # Errors
    /// When the value has no JSON form.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Json)
    }

    /// The JSON `null`.
    pub fn null() -> Self {
        Json(RawValue::NULL.to_owned())
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text().hash(state);
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Json)
    }
}

impl PartialSchema for Json {
    fn schema() -> RefOr<Schema> {
        let any = ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some("Any JSON value."));
        any.build().into()
    }
}

impl ToSchema for Json {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_user_data_is_kept() {
        let text = r#"{"b":1.10,"a":123456789012345678901234567890}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(json.text(), text);
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        assert!(Json::from_text("{".to_owned()).is_err());
    }
}
