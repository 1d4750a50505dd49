//! The text of a view: pure. Names and values come from others and are quoted, whatever is in them.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::{ColumnType, View, ViewColumn, ViewValue};

/// Longest name that PostgreSQL keeps; it cuts longer ones.
pub const MAX_NAME_BYTES: usize = 63;

/// The functions that views use, by signature. None of them fails, whatever it is given.
pub(super) const FUNCTIONS: &[(&str, &str)] = &[
    (
        "record_json(bytea)",
        // A text of PostgreSQL cannot have U+0000, which JSON can write: it becomes U+FFFD.
        r"CREATE OR REPLACE FUNCTION @schema@.record_json(body bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
          BEGIN
              RETURN pg_catalog.convert_from(body, 'UTF8')::pg_catalog.jsonb;
          EXCEPTION WHEN OTHERS THEN
              BEGIN
                  RETURN pg_catalog.regexp_replace(pg_catalog.convert_from(body, 'UTF8'),
                      E'(?<!\\\\)((?:\\\\\\\\)*)\\\\u0000', E'\\1\\\\ufffd', 'g')::pg_catalog.jsonb;
              EXCEPTION WHEN OTHERS THEN
                  RETURN NULL;
              END;
          END $$",
    ),
    (
        "record_integer(text)",
        // A caught error costs a tenth of what matching a regular expression does.
        "CREATE OR REPLACE FUNCTION @schema@.record_integer(value text) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS $$
         BEGIN
             RETURN value::pg_catalog.int8;
         EXCEPTION WHEN OTHERS THEN
             RETURN NULL;
         END $$",
    ),
    (
        "record_boolean(text)",
        "CREATE OR REPLACE FUNCTION @schema@.record_boolean(value text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
         AS $$ SELECT CASE value WHEN 'true' THEN true WHEN 'false' THEN false END $$",
    ),
    (
        "record_time(text)",
        // The form first: the database also takes `yesterday` and times without a zone for times.
        "CREATE OR REPLACE FUNCTION @schema@.record_time(value text) RETURNS timestamptz LANGUAGE plpgsql STABLE STRICT AS $$
         BEGIN
             RETURN CASE WHEN value LIKE '____-__-__T__:__:__%Z' THEN value::pg_catalog.timestamptz END;
         EXCEPTION WHEN OTHERS THEN
             RETURN NULL;
         END $$",
    ),
];

/// A name in SQL.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in SQL, whatever `standard_conforming_strings` says.
pub(super) fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!(" E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

/// What a view shows.
pub(super) fn view_text(view: &View, schema: &str, records: &str) -> String {
    let schema = identifier(schema);
    let names = unique_names(view.columns.iter().map(|column| column.name.as_str()));
    let columns: Vec<String> = view
        .columns
        .iter()
        .zip(names)
        .map(|(column, name)| format!("{} AS {}", column_text(column, &schema), identifier(&name)))
        .collect();
    let mut text = format!("SELECT {} FROM ", columns.join(", "));
    // OFFSET 0 keeps the planner from reading a body once for each column.
    if let Some(parent) = &view.parent {
        let _ = write!(
            text,
            "(SELECT id, {schema}.record_json(body) AS body FROM {records} WHERE kind = {} OFFSET 0) AS parent JOIN \
             {records} AS child ON child.id > parent.id || '/' AND child.id < parent.id || '0'",
            literal(parent)
        );
    } else {
        let _ = write!(text, "{records} AS child");
    }
    let _ = write!(
        text,
        " CROSS JOIN LATERAL (SELECT {schema}.record_json(child.body) AS body OFFSET 0) AS own WHERE child.kind = {}",
        literal(&view.kind)
    );
    for condition in &view.conditions {
        let values: Vec<String> = condition.one_of.iter().map(|value| literal(value)).collect();
        let value = value_text(&condition.value);
        let _ = write!(text, " AND {value} = ANY (ARRAY[{}]::text[])", values.join(", "));
    }
    text
}

fn column_text(column: &ViewColumn, schema: &str) -> String {
    let value = match (column.kind, &column.value) {
        (ColumnType::Json, ViewValue::Body(path)) => extracted("jsonb_extract_path", "own", path),
        (ColumnType::Json, ViewValue::Parent(path)) => extracted("jsonb_extract_path", "parent", path),
        (ColumnType::Json, ViewValue::IdPart(_)) => format!("to_jsonb({})", value_text(&column.value)),
        (_, value) => value_text(value),
    };
    let typed = |value: &str| match column.kind {
        ColumnType::Text | ColumnType::Json => value.to_owned(),
        ColumnType::Integer => format!("{schema}.record_integer({value})"),
        ColumnType::Boolean => format!("{schema}.record_boolean({value})"),
        ColumnType::Time => format!("{schema}.record_time({value})"),
    };
    let Some(absent) = &column.absent else { return typed(&value) };
    let absent = match column.kind {
        ColumnType::Json => format!("{schema}.record_json(convert_to({}, 'UTF8'))", literal(absent)),
        _ => typed(&format!("{}::text", literal(absent))),
    };
    // A body that cannot be read has no values, also none that it left out.
    let body = if matches!(column.value, ViewValue::Parent(_)) { "parent" } else { "own" };
    format!("CASE WHEN {body}.body IS NOT NULL THEN coalesce({}, {absent}) END", typed(&value))
}

/// A value as text.
fn value_text(value: &ViewValue) -> String {
    match value {
        ViewValue::IdPart(part) => format!("split_part(child.id, '/', {part})"),
        ViewValue::Body(path) => extracted("jsonb_extract_path_text", "own", path),
        ViewValue::Parent(path) => extracted("jsonb_extract_path_text", "parent", path),
    }
}

fn extracted(function: &str, body: &str, path: &[String]) -> String {
    let mut text = format!("{function}({body}.body");
    for field in path {
        let _ = write!(text, ", {}", literal(field));
    }
    text + ")"
}

/// Names that the database keeps apart: cut to what it keeps, without U+0000, and with a number if
/// they are taken.
fn unique_names<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut unique = Vec::new();
    for name in names {
        let name = name.replace('\0', "\u{fffd}");
        let mut candidate = cut(&name, MAX_NAME_BYTES).to_owned();
        let mut number = 2_usize;
        while candidate.is_empty() || !taken.insert(candidate.clone()) {
            let suffix = format!("_{number}");
            candidate = format!("{}{suffix}", cut(&name, MAX_NAME_BYTES - suffix.len()));
            number += 1;
        }
        unique.push(candidate);
    }
    unique
}

/// The start of a text with at most so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_quoted() {
        for (name, quoted) in [("id", "\"id\""), ("a\"; DROP", "\"a\"\"; DROP\""), ("Ü b", "\"Ü b\"")] {
            assert_eq!(identifier(name), quoted);
        }
        for (text, quoted) in [("x", "'x'"), ("it's", "'it''s'"), ("a\\'", " E'a\\\\'''")] {
            assert_eq!(literal(text), quoted);
        }
    }

    #[test]
    fn names_are_cut_and_kept_apart() {
        let long = "ä".repeat(40);
        let names = unique_names(["id", "id", "", &long, &long, "id_2", "a\0"].into_iter());
        let cut_twice = format!("{}_2", "ä".repeat(30));
        assert_eq!(names, ["id", "id_2", "_2", &"ä".repeat(31), &cut_twice, "id_2_2", "a\u{fffd}"]);
        assert!(names.iter().all(|name| name.len() <= MAX_NAME_BYTES));
    }
}
