//! What Tab offers: keywords, functions, tables and the columns of the tables that a query names.

use segno_api::sql::SqlCatalogue;

/// Keywords of queries.
const KEYWORDS: &[&str] = &[
    "AND",
    "AS",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COUNT",
    "CROSS",
    "DESC",
    "DISTINCT",
    "ELSE",
    "END",
    "EXISTS",
    "FILTER",
    "FROM",
    "GLOB",
    "GROUP",
    "HAVING",
    "IN",
    "INNER",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OVER",
    "PARTITION",
    "SELECT",
    "THEN",
    "UNION",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITH",
];

/// Commands of the console.
pub const COMMANDS: &[&str] = &[".explain", ".help", ".queries", ".quit", ".schema", ".tables"];

/// What can stand at a place of a line: where the word begins, and the words that begin like it.
pub fn complete(catalogue: &SqlCatalogue, line: &str, place: usize) -> (usize, Vec<String>) {
    let before = &line[..place];
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    if before.starts_with('.') && !before.contains(' ') {
        return (0, beginning(COMMANDS.iter().copied(), before));
    }
    let begin = before
        .rfind(|c| !is_part(c))
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let word = &before[begin..];
    if before.starts_with(".schema") {
        return (begin, beginning(catalogue.tables.iter().map(|table| table.name.as_str()), word));
    }
    let words: Vec<&str> = line.split(|c| !is_part(c)).collect();
    let is_named = |name: &str| words.iter().any(|word| word.eq_ignore_ascii_case(name));
    let named = catalogue.tables.iter().filter(|table| is_named(&table.name));
    let columns = named.flat_map(|table| &table.columns).map(|column| column.name.as_str());
    if before[..begin].ends_with('.') {
        return (begin, beginning(columns, word));
    }
    if word.is_empty() {
        return (begin, Vec::new());
    }
    let previous = before[..begin].split_whitespace().last().unwrap_or_default();
    let tables = catalogue.tables.iter().map(|table| table.name.as_str());
    if previous.eq_ignore_ascii_case("from") || previous.eq_ignore_ascii_case("join") {
        return (begin, beginning(tables, word));
    }
    let functions = catalogue.functions.iter().map(String::as_str);
    let all = columns.chain(tables).chain(functions).chain(KEYWORDS.iter().copied());
    (begin, beginning(all, word))
}

/// Sorted, each once.
fn beginning<'a>(words: impl Iterator<Item = &'a str>, begin: &str) -> Vec<String> {
    let is_like = |word: &&str| word.get(..begin.len()).is_some_and(|head| head.eq_ignore_ascii_case(begin));
    let mut found: Vec<String> = words.filter(is_like).map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use segno_api::sql::{SqlColumn, SqlTable};

    use super::*;

    #[test]
    fn words_are_completed_by_where_they_stand() {
        let column = |name: &str| SqlColumn {
            name: name.to_owned(),
            kind: "text".to_owned(),
            description: String::new(),
            pushed: Vec::new(),
        };
        let table = |name: &str, columns: &[&str]| SqlTable {
            name: name.to_owned(),
            description: String::new(),
            columns: columns.iter().map(|name| column(name)).collect(),
        };
        let catalogue = SqlCatalogue {
            tables: vec![table("events", &["instance", "kind"]), table("instances", &["id", "status"])],
            functions: vec!["instr".to_owned()],
            shipped: Vec::new(),
        };
        for (line, begin, expected) in [
            ("SELECT * FROM in", 14, vec!["instances"]),
            ("SELECT in", 7, vec!["IN", "INNER", "instances", "instr"]),
            ("SELECT st", 7, vec![]),
            ("SELECT * FROM instances WHERE st", 30, vec!["status"]),
            ("SELECT e.ki", 9, vec![]),
            ("SELECT * FROM events e WHERE e.", 31, vec!["instance", "kind"]),
            ("sel", 0, vec!["SELECT"]),
            (".ta", 0, vec![".tables"]),
            (".schema ev", 8, vec!["events"]),
            ("SELECT 'ü' || ins", 15, vec!["instances", "instr"]),
            ("SELECT ", 7, vec![]),
        ] {
            let (found, words) = complete(&catalogue, line, line.len());
            assert_eq!((found, words), (begin, expected.into_iter().map(str::to_owned).collect()), "{line}");
        }
    }
}
