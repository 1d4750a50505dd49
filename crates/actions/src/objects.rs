//! A deserializer that reads structs from objects only.
//!
//! Structs that serde derives also accept an array of their fields in order. Documents promise an object, and an array would
//! become something else when a field is added. [`Objects`] wraps any deserializer and refuses arrays for structs at every
//! depth.
//!
//! serde buffers what is below `#[serde(flatten)]`, `tag` and `untagged` and reads it by a deserializer of its own. Fields of
//! such types that are structs are marked with `#[serde(deserialize_with = "objects::field")]`.

use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};

/// A deserializer, or part of one, that reads structs from objects only.
pub struct Objects<T>(pub T);

/// Reads a field of a type that serde buffers.
///
/// # Errors
/// Those of the deserializer, and arrays in place of objects.
pub fn field<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(Objects(deserializer))
}

/// What a visitor was given to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Struct,
    Other,
}

/// A visitor that passes on what it reads as [`Objects`].
struct Watching<V> {
    inner: V,
    wanted: Wanted,
}

fn watching<V>(inner: V) -> Watching<V> {
    Watching { inner, wanted: Wanted::Other }
}

macro_rules! pass_on {
    ($($method:ident($($argument:ident: $type:ty),*);)+) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($argument,)* watching(visitor))
        }
    )+};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Watching { inner: visitor, wanted: Wanted::Struct })
    }

    pass_on! {
        deserialize_any();
        deserialize_bool();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_f32();
        deserialize_f64();
        deserialize_char();
        deserialize_str();
        deserialize_string();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_option();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
        deserialize_ignored_any();
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! scalars {
    ($($method:ident($type:ty);)+) => {$(
        fn $method<E: serde::de::Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        }
    )+};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Watching<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    scalars! {
        visit_bool(bool);
        visit_i8(i8);
        visit_i16(i16);
        visit_i32(i32);
        visit_i64(i64);
        visit_i128(i128);
        visit_u8(u8);
        visit_u16(u16);
        visit_u32(u32);
        visit_u64(u64);
        visit_u128(u128);
        visit_f32(f32);
        visit_f64(f64);
        visit_char(char);
        visit_str(&str);
        visit_borrowed_str(&'de str);
        visit_string(String);
        visit_bytes(&[u8]);
        visit_borrowed_bytes(&'de [u8]);
        visit_byte_buf(Vec<u8>);
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Objects(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Objects(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<V::Value, A::Error> {
        match self.wanted {
            Wanted::Struct => Err(A::Error::invalid_type(Unexpected::Seq, &"an object")),
            Wanted::Other => self.inner.visit_seq(Objects(sequence)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Objects(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Objects(data))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Objects<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Objects(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Objects(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Objects<A> {
    type Error = A::Error;
    type Variant = Objects<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.0.variant_seed(Objects(seed))?;
        Ok((value, Objects(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Objects<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Objects(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, watching(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Watching { inner: visitor, wanted: Wanted::Struct })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::Function;
    use crate::hooks::Hook;
    use serde_json::value::RawValue;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is read")]
    struct Inner {
        number: u64,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is read")]
    enum Variant {
        Named { number: u64 },
        Pair(u64, u64),
        Whole(Inner),
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is read")]
    struct Outer {
        inner: Option<Inner>,
        #[serde(default)]
        many: Vec<Inner>,
        #[serde(default)]
        pair: Option<(u64, Inner)>,
        #[serde(default)]
        variant: Option<Variant>,
        #[serde(default)]
        raw: Option<Box<RawValue>>,
    }

    fn is_read<T: serde::de::DeserializeOwned>(text: &str) -> bool {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        T::deserialize(Objects(&mut deserializer)).is_ok()
    }

    #[test]
    fn arrays_are_no_structs_at_any_depth() {
        for (text, expected) in [
            (r#"{"inner":{"number":1}}"#, true),
            (r#"{"inner":[1]}"#, false),
            (r#"[null,[],null,null,null]"#, false),
            (r#"{"inner":null,"many":[{"number":1}]}"#, true),
            (r#"{"inner":null,"many":[[1]]}"#, false),
            (r#"{"inner":null,"pair":[1,{"number":1}]}"#, true),
            (r#"{"inner":null,"pair":[1,[1]]}"#, false),
            (r#"{"inner":null,"variant":{"Named":{"number":1}}}"#, true),
            (r#"{"inner":null,"variant":{"Named":[1]}}"#, false),
            (r#"{"inner":null,"variant":{"Pair":[1,2]}}"#, true),
            (r#"{"inner":null,"variant":{"Whole":[1]}}"#, false),
            (r#"{"inner":null,"raw":[1,[2]]}"#, true),
        ] {
            assert_eq!(is_read::<Outer>(text), expected, "{text}");
        }
    }

    #[test]
    fn declarations_are_objects_also_where_serde_buffers_them() {
        for (text, expected) in [
            (r#"{"executor":"remote","push":{"url":"http://a","secret":{"env":"A"}}}"#, true),
            (r#"{"executor":"remote","push":["http://a",{"env":"A"}]}"#, false),
            (r#"{"executor":"process","command":["a"],"environment":{"A":{"env":"B"}}}"#, true),
            (r#"{"executor":"process","command":["a"],"environment":{"A":["B"]}}"#, false),
            (r#"{"executor":"remote","retry":{"attempts":2}}"#, true),
            (r#"{"executor":"remote","retry":[2]}"#, false),
        ] {
            assert_eq!(is_read::<Function>(text), expected, "{text}");
        }
        for (text, expected) in [
            (r#"{"verification":{"type":"github","secrets":[{"env":"A"}]}}"#, true),
            (r#"{"verification":["github",[{"env":"A"}]]}"#, false),
            (r#"{"verification":"none","dedup":{"header":"a"}}"#, true),
            (r#"{"verification":"none","dedup":["a",null,"1h"]}"#, false),
        ] {
            assert_eq!(is_read::<Hook>(text), expected, "{text}");
        }
    }
}
