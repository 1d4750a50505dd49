//! `data_source`: what is queried, and which columns mean what.

use std::collections::{BTreeMap, BTreeSet};

use segno_actions::document::{Field, Fields, PartReader, Tree, shown};
use segno_actions::functions::{SecretReference, SettingValue};
use serde_json::Value;

use super::keys::{DATA_SOURCE, MULTI_VALUED, SECRET};
use super::reader::Reader;
use crate::definition::{BatchTime, DataSource, MultiValued, MultiValuedFormat, SourceKind};
use crate::limits::{
    DEFAULT_INTERVAL_SEC, DEFAULT_MAX_REMOVED_PERCENT, MAX_HEADERS, MAX_MULTI_VALUED_COLUMNS,
    MAX_QUERY_BYTES, MAX_URL_BYTES, MIN_INTERVAL_SEC,
};
use crate::names::NameKind;

/// The types of data sources, and the keys that only this type has.
const TYPES: [(&str, &[&str]); 5] = [
    ("sql", &["connection", "query"]),
    ("csv", &["location"]),
    ("http", &["url", "headers", "rows", "next_page"]),
    ("function", &["function", "input"]),
    ("manual", &[]),
];

/// Types of other systems, which a function can stand in for.
const FOREIGN_TYPES: [&str; 2] = ["dataverse", "databricks"];

/// Keys that have no effect where nothing is queried.
const QUERY_KEYS: [&str; 3] = ["batch_time", "interval", "max_removed_percent"];

/// The formats of multi-valued columns.
const FORMATS: [(&str, MultiValuedFormat); 3] = [
    ("semicolon_delimited", MultiValuedFormat::SemicolonDelimited),
    ("comma_delimited", MultiValuedFormat::CommaDelimited),
    ("json_array", MultiValuedFormat::JsonArray),
];

impl Reader<'_> {
    /// Reads the data source.
    pub fn data_source(&mut self, field: Field<'_>) -> Option<DataSource> {
        self.places.insert(&field.path, field.at());
        let fields = self.fields(field, &DATA_SOURCE)?;
        for key in ["primary_key", "batch_time_column", "multi_valued_columns"] {
            if let Some(field) = fields.get(key) {
                self.places.insert(&field.path, field.at());
            }
        }
        let kind = self.source_type(&fields).and_then(|name| {
            self.keys_of_other_types(&fields, name);
            self.source_kind(&fields, name)
        });
        let primary_key = self
            .required(&fields, "primary_key", "SourceId")
            .and_then(|field| self.name(&field, NameKind::Column));
        let is_manual = matches!(kind, Some(SourceKind::Manual));
        let batch_time = self.batch_time(&fields, is_manual);
        let multi_valued_columns =
            fields.get("multi_valued_columns").map(|field| self.multi_valued(&field)).unwrap_or_default();
        let interval_sec = match fields.get("interval") {
            Some(field) => self.seconds(&field, MIN_INTERVAL_SEC),
            None => Some(DEFAULT_INTERVAL_SEC),
        };
        let max_removed_percent = match fields.get("max_removed_percent") {
            Some(field) => self.percent(&field, 0),
            None => Some(DEFAULT_MAX_REMOVED_PERCENT),
        };
        Some(DataSource {
            kind: kind?,
            primary_key: primary_key?,
            batch_time: batch_time?,
            multi_valued_columns,
            interval_sec: interval_sec?,
            max_removed_percent: max_removed_percent?,
        })
    }

    fn source_type(&mut self, fields: &Fields<'_>) -> Option<&'static str> {
        let field = self.required(fields, "type", "sql")?;
        if let Tree::Text(text) = &field.node.tree
            && FOREIGN_TYPES.contains(&text.as_str())
        {
            let problem = field.error(format!("data sources of type {text:?} are not supported"));
            let advice = "use type: function with a function that runs the query and returns the rows";
            self.push(problem.advice(advice));
            return None;
        }
        self.choice(&field, &TYPES.map(|(name, _)| (name, name)))
    }

    /// Warns of keys that the type of the data source does not use.
    fn keys_of_other_types(&mut self, fields: &Fields<'_>, name: &str) {
        let of_others = TYPES.iter().filter(|(other, _)| *other != name).flat_map(|(_, keys)| keys.iter());
        let of_queries = QUERY_KEYS.iter().filter(|_| name == "manual");
        for key in of_others.chain(of_queries) {
            if let Some(field) = fields.get(key) {
                let problem = format!("{key} has no effect in a data source of type {name}");
                self.push(field.warning(problem).advice("remove it, or change the type"));
            }
        }
    }

    fn source_kind(&mut self, fields: &Fields<'_>, name: &str) -> Option<SourceKind> {
        match name {
            "sql" => {
                let connection =
                    self.required(fields, "connection", "MIGRATION_DB").and_then(|field| self.secret(field));
                let query = self
                    .required(fields, "query", "SELECT …")
                    .and_then(|field| self.lines(&field, MAX_QUERY_BYTES));
                Some(SourceKind::Sql { connection: connection?, query: query? })
            }
            "csv" => {
                let field = self.required(fields, "location", "/srv/members.csv")?;
                let location = self.line(&field, MAX_URL_BYTES)?;
                if !location.starts_with('/') && !is_url(&location) {
                    let problem = format!("{:?} is neither an absolute path nor a URL", shown(&location));
                    let advice = "write a path that begins with /, or a URL that begins with https://";
                    self.push(field.error(problem).advice(advice));
                }
                Some(SourceKind::Csv { location })
            }
            "http" => self.http(fields),
            "function" => {
                let function = self
                    .required(fields, "function", "list-members")
                    .and_then(|field| self.name(&field, NameKind::Function));
                let input = match fields.get("input") {
                    Some(field) => self.json(&field, MAX_QUERY_BYTES),
                    None => Some(Value::Null),
                };
                Some(SourceKind::Function { function: function?, input: input? })
            }
            _ => Some(SourceKind::Manual),
        }
    }

    fn http(&mut self, fields: &Fields<'_>) -> Option<SourceKind> {
        let url = self.required(fields, "url", "https://…").and_then(|field| {
            let url = self.line(&field, MAX_URL_BYTES)?;
            if !is_url(&url) {
                let problem = field.error(format!("{:?} is not a URL", shown(&url)));
                self.push(problem.advice("write one that begins with https:// or http://"));
                return None;
            }
            Some(url)
        });
        let headers =
            fields.get("headers").map_or_else(|| Some(BTreeMap::new()), |field| self.headers(&field));
        let rows = self.json_pointer(fields, "rows");
        let next_page = self.json_pointer(fields, "next_page");
        Some(SourceKind::Http { url: url?, headers: headers?, rows, next_page })
    }

    fn headers(&mut self, field: &Field<'_>) -> Option<BTreeMap<String, SettingValue>> {
        let entries = self.map(field)?;
        if entries.len() > MAX_HEADERS {
            let problem = format!("there are {} headers, the limit is {MAX_HEADERS}", entries.len());
            self.push(field.error(problem));
        }
        let mut headers = BTreeMap::new();
        for entry in entries.iter().take(MAX_HEADERS) {
            let value = field.value(entry);
            if !is_header_name(&entry.key) {
                self.push(value.error(format!("{:?} is not a name of a header", shown(&entry.key))));
            }
            let value = match &value.node.tree {
                Tree::Map(_) => self.secret(value).map(SettingValue::Secret),
                _ => self.line(&value, MAX_URL_BYTES).map(SettingValue::Text),
            };
            headers.extend(value.map(|value| (entry.key.clone(), value)));
        }
        Some(headers)
    }

    fn json_pointer(&mut self, fields: &Fields<'_>, key: &str) -> Option<String> {
        let field = fields.get(key)?;
        let pointer = self.line(&field, MAX_URL_BYTES)?;
        if !pointer.starts_with('/') {
            let problem = field.error(format!("{:?} is not a JSON pointer", shown(&pointer)));
            self.push(problem.advice("write it as /data/items"));
            return None;
        }
        Some(pointer)
    }

    /// A secret: the name of an environment variable, `{env: NAME}` or `{file: /path}`.
    fn secret(&mut self, field: Field<'_>) -> Option<SecretReference> {
        let advice = "write the name of an environment variable, {env: NAME} or {file: /path}";
        let at = field.clone();
        let reference = if matches!(field.node.tree, Tree::Map(_)) {
            let fields = self.fields(field, &SECRET)?;
            match (fields.get("env"), fields.get("file")) {
                (Some(env), None) => SecretReference::Env(self.text(&env, MAX_URL_BYTES)?),
                (None, Some(file)) => SecretReference::File(self.line(&file, MAX_URL_BYTES)?.into()),
                _ => {
                    self.push(at.error("expected exactly one of env and file").advice(advice));
                    return None;
                }
            }
        } else {
            SecretReference::Env(self.text(&field, MAX_URL_BYTES)?)
        };
        match reference.check("secret") {
            Ok(()) => Some(reference),
            Err(_) => {
                // The text may be the secret itself, so it is not repeated.
                self.push(at.error("this is not a reference to a secret").advice(advice));
                None
            }
        }
    }

    fn batch_time(&mut self, fields: &Fields<'_>, is_manual: bool) -> Option<BatchTime> {
        let column = fields.get("batch_time_column");
        let word = fields.get("batch_time");
        match (column, word) {
            (Some(column), None) => self.name(&column, NameKind::Column).map(BatchTime::Column),
            (Some(_), Some(word)) if !is_manual => {
                let problem = word.error("batch_time and batch_time_column exclude each other");
                self.push(problem.advice("remove one of them"));
                None
            }
            (Some(column), Some(_)) => self.name(&column, NameKind::Column).map(BatchTime::Column),
            (None, _) if is_manual => Some(BatchTime::Manual),
            (None, Some(word)) => self.choice(&word, &[("immediate", ())]).map(|()| BatchTime::Immediate),
            (None, None) => {
                let problem = fields.whole().error("nothing says when the batch of a row starts");
                self.push(problem.advice("add batch_time_column: COLUMN or batch_time: immediate"));
                None
            }
        }
    }

    fn multi_valued(&mut self, field: &Field<'_>) -> Vec<MultiValued> {
        let mut seen = BTreeSet::new();
        let mut columns = Vec::new();
        for item in self.list(field, MAX_MULTI_VALUED_COLUMNS) {
            let Some(fields) = self.fields(item, &MULTI_VALUED) else { continue };
            let name = self.required(&fields, "name", "Aliases").and_then(|field| {
                let name = self.name(&field, NameKind::Column)?;
                self.unique(&mut seen, &name, &field);
                Some(name)
            });
            let format = self
                .required(&fields, "format", "semicolon_delimited")
                .and_then(|field| self.choice(&field, &FORMATS));
            if let (Some(name), Some(format)) = (name, format) {
                columns.push(MultiValued { name, format });
            }
        }
        columns
    }
}

fn is_url(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty()) && !text.contains(char::is_whitespace)
}

fn is_header_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(allowed)
}
