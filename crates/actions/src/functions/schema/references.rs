//! Where the references of a schema lead. The validator has no way to ask, so its rules are repeated here: identifiers
//! and anchors count in the places for subschemas of the schema's draft, and a reference is resolved against the
//! nearest identifier above it. What would lead anywhere else is refused.

use std::collections::{HashMap, HashSet};

use boon::Draft;
use reqwest::Url;
use serde_json::Value;

use crate::functions::limits::MAX_SCHEMA_SUBSCHEMAS;

/// The name that a schema has while it is compiled. Nothing is there, and nothing is fetched.
pub(super) const SCHEMA_URL: &str = "https://segno.invalid/input-schema";

/// Keywords whose value is a subschema.
const ONE: &[&str] = &[
    "not",
    "additionalProperties",
    "items",
    "additionalItems",
    "propertyNames",
    "contains",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentSchema",
];
/// Keywords whose value is a list of subschemas.
const LIST: &[&str] = &["allOf", "anyOf", "oneOf", "items", "prefixItems"];
/// Keywords whose value is an object of subschemas.
const MAP: &[&str] =
    &["definitions", "$defs", "properties", "patternProperties", "dependencies", "dependentSchemas"];
/// Keywords that name a place; outside the places for subschemas they are refused.
const NAMES: &[&str] = &["$id", "id", "$anchor", "$dynamicAnchor"];

/// A part of the schema with an identifier of its own.
struct Resource {
    pointer: String,
    url: Url,
    anchors: HashMap<String, String>,
}

/// Identifiers, anchors and subschemas of one schema.
pub(super) struct References<'s> {
    schema: &'s Value,
    pub(super) draft: Draft,
    root_url: Url,
    resources: HashMap<String, Resource>,
    dynamic: HashMap<String, Vec<String>>,
    places: HashSet<String>,
}

impl<'s> References<'s> {
    /// Collects what the schema names.
    pub(super) fn collect(schema: &'s Value, draft: Draft) -> Result<Self, String> {
        let root_url = Url::parse(SCHEMA_URL).map_err(|error| error.to_string())?;
        let mut references = References {
            schema,
            draft,
            root_url: root_url.clone(),
            resources: HashMap::new(),
            dynamic: HashMap::new(),
            places: HashSet::new(),
        };
        let root = Resource { pointer: String::new(), url: root_url, anchors: HashMap::new() };
        references.resources.insert(String::new(), root);
        references.walk(schema, String::new(), String::new())?;
        Ok(references)
    }

    /// The value at a pointer.
    pub(super) fn value(&self, pointer: &str) -> Option<&'s Value> {
        self.schema.pointer(pointer)
    }

    /// Whether a pointer leads to a place for subschemas, which the metaschema has checked.
    pub(super) fn is_place(&self, pointer: &str) -> bool {
        self.places.contains(pointer)
    }

    /// The pointer that a reference at a pointer leads to.
    pub(super) fn resolve(&self, from: &str, reference: &str) -> Result<String, String> {
        let (address, fragment) = split(reference)?;
        let base = self.resource_of(from);
        let url = if address.is_empty() { base.url.clone() } else { join(&base.url, address)? };
        let resource = if url == self.root_url {
            self.resources.get("")
        } else {
            self.resources.values().find(|resource| resource.url == url)
        };
        let Some(resource) = resource else {
            return Err(format!(
                "{reference:?} leads to another document; put what it defines into $defs of this schema"
            ));
        };
        let pointer = if fragment.is_empty() || fragment.starts_with('/') {
            format!("{}{fragment}", resource.pointer)
        } else {
            let anchor = resource.anchors.get(&fragment);
            anchor.cloned().ok_or_else(|| nothing_at(reference))?
        };
        let found = self.schema.pointer(&pointer).is_some();
        found.then_some(pointer).ok_or_else(|| nothing_at(reference))
    }

    /// The places that a dynamic reference may lead to besides its own, whatever was evaluated before it.
    pub(super) fn dynamic_places(&self, reference: &str) -> Result<Vec<String>, String> {
        let (_, fragment) = split(reference)?;
        Ok(self.dynamic.get(&fragment).cloned().unwrap_or_default())
    }

    fn resource_of(&self, pointer: &str) -> &Resource {
        let mut prefix = pointer;
        loop {
            if let Some(resource) = self.resources.get(prefix) {
                return resource;
            }
            // The root has the empty pointer, so that the loop ends there.
            prefix = prefix.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    /// Its depth is that of the schema, which is bounded.
    fn walk(&mut self, value: &Value, pointer: String, resource: String) -> Result<(), String> {
        if self.places.len() >= MAX_SCHEMA_SUBSCHEMAS {
            return Err(format!("it has more than {MAX_SCHEMA_SUBSCHEMAS} subschemas"));
        }
        self.places.insert(pointer.clone());
        let Value::Object(fields) = value else { return Ok(()) };
        let resource = self.name(value, &pointer, resource)?;
        for (keyword, value) in fields {
            if self.draft < since(keyword) {
                continue;
            }
            if ONE.contains(&keyword.as_str()) && (value.is_object() || value.is_boolean()) {
                self.walk(value, append(&pointer, &[keyword]), resource.clone())?;
            }
            match value {
                Value::Array(items) if LIST.contains(&keyword.as_str()) => {
                    for (index, item) in items.iter().enumerate() {
                        let pointer = append(&pointer, &[keyword, &index.to_string()]);
                        self.walk(item, pointer, resource.clone())?;
                    }
                }
                Value::Object(items) if MAP.contains(&keyword.as_str()) => {
                    for (name, item) in items {
                        self.walk(item, append(&pointer, &[keyword, name]), resource.clone())?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes the identifier and the anchors of a subschema; returns the pointer of the resource that it belongs to.
    fn name(&mut self, value: &Value, pointer: &str, resource: String) -> Result<String, String> {
        let text = |keyword: &str| value.get(keyword).and_then(Value::as_str);
        let old = self.draft < Draft::V2019_09;
        if old && value.get("$ref").is_some() {
            return Ok(resource); // Everything beside a reference is ignored.
        }
        let (mut resource, mut anchors) = (resource, Vec::new());
        if let Some(id) = text(if self.draft == Draft::V4 { "id" } else { "$id" }) {
            let (address, fragment) = split(id)?;
            if !address.is_empty() {
                let url = join(&self.resource_of(&resource).url, address)?;
                pointer.clone_into(&mut resource);
                let named = Resource { pointer: pointer.to_owned(), url, anchors: HashMap::new() };
                self.resources.insert(pointer.to_owned(), named);
            }
            if old && !fragment.is_empty() && !fragment.starts_with('/') {
                anchors.push(fragment);
            }
        }
        if !old {
            anchors.extend(text("$anchor").map(str::to_owned));
        }
        if self.draft == Draft::V2020_12
            && let Some(anchor) = text("$dynamicAnchor")
        {
            anchors.push(anchor.to_owned());
            self.dynamic.entry(anchor.to_owned()).or_default().push(pointer.to_owned());
        }
        if let Some(resource) = self.resources.get_mut(&resource) {
            resource.anchors.extend(anchors.into_iter().map(|anchor| (anchor, pointer.to_owned())));
        }
        Ok(resource)
    }
}

/// The draft that made a keyword one with subschemas; the validator looks into no other places.
fn since(keyword: &str) -> Draft {
    match keyword {
        "propertyNames" | "contains" => Draft::V6,
        "if" | "then" | "else" => Draft::V7,
        "$defs" | "dependentSchemas" | "unevaluatedProperties" | "unevaluatedItems" | "contentSchema" => {
            Draft::V2019_09
        }
        "prefixItems" => Draft::V2020_12,
        _ => Draft::V4,
    }
}

/// Whether anything in a value names a place.
pub(super) fn names_a_place(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(names_a_place),
        Value::Object(fields) => {
            NAMES.iter().any(|name| fields.get(*name).is_some_and(Value::is_string))
                || fields.values().any(names_a_place)
        }
        _ => false,
    }
}

fn nothing_at(reference: &str) -> String {
    format!("this is not a usable JSON Schema: {reference:?} leads to nothing in it")
}

/// A pointer with further tokens.
pub(super) fn append(pointer: &str, tokens: &[&str]) -> String {
    let mut out = pointer.to_owned();
    for token in tokens {
        out.push('/');
        out.push_str(&token.replace('~', "~0").replace('/', "~1"));
    }
    out
}

/// The part of a reference before `#`, and what is behind it, decoded.
fn split(reference: &str) -> Result<(&str, String), String> {
    let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let (mut bytes, mut rest) = (Vec::with_capacity(fragment.len()), fragment.as_bytes());
    while let [first, behind @ ..] = rest {
        let coded = behind.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let coded = coded.filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match coded.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    let fragment = String::from_utf8(bytes).map_err(|_| format!("{reference:?} is not UTF-8"))?;
    Ok((address, fragment))
}

fn join(base: &Url, address: &str) -> Result<Url, String> {
    base.join(address).map_err(|error| format!("{address:?} is not a URL: {error}"))
}
