//! From a text to one parsed query. Sizes and depth are bounded before a syntax tree is built, because building,
//! walking and dropping a tree are recursive.

use sqlparser::ast::{Query, Statement};
use sqlparser::dialect::SQLiteDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::error::SqlError;
use super::limits::{MAX_NESTING, MAX_PATH_TOKENS, MAX_TEXT_BYTES, MAX_TOKENS};

/// A query, with quotes inside of texts and names as they were written (doubled).
///
/// # Errors
/// `sql-too-large` beyond a limit, `sql-refused` for what is not one query.
pub fn parse(text: &str) -> Result<Box<Query>, SqlError> {
    if text.len() > MAX_TEXT_BYTES {
        let detail = format!("the query has {} bytes; the limit is {MAX_TEXT_BYTES}", text.len());
        return Err(SqlError::TooLarge(detail));
    }
    if text.contains('\0') {
        return Err(SqlError::Refused("the query has a NUL character".to_owned()));
    }
    let dialect = SQLiteDialect {};
    let tokens = Tokenizer::new(&dialect, text).with_unescape(false).tokenize_with_location();
    let tokens = tokens.map_err(|error| SqlError::Refused(format!("the query cannot be read: {error}")))?;
    check_tokens(&tokens)?;
    let parser = Parser::new(&dialect).with_recursion_limit(MAX_NESTING).with_tokens_with_locations(tokens);
    let statements = { parser }.parse_statements().map_err(|error| match error {
        ParserError::RecursionLimitExceeded => {
            SqlError::TooLarge(format!("the query is nested deeper than {MAX_NESTING} levels"))
        }
        error => SqlError::Refused(format!("the query cannot be read: {error}")),
    })?;
    let mut statements = statements.into_iter();
    match (statements.next(), statements.next()) {
        (Some(Statement::Query(query)), None) => Ok(query),
        (Some(Statement::Explain { .. } | Statement::ExplainTable { .. }), None) => Err(SqlError::Refused(
            "EXPLAIN is not a query; `fetched` in an answer (`segno sql --explain`) says what is read"
                .to_owned(),
        )),
        (Some(_), None) => Err(SqlError::Refused(
            "only one SELECT is run, or one WITH … SELECT: nothing is written and no setting is changed"
                .to_owned(),
        )),
        (None, _) => Err(SqlError::Refused("the query is empty".to_owned())),
        (Some(_), Some(_)) => Err(SqlError::Refused("there are several statements; send one".to_owned())),
    }
}

/// Refuses what would be too many tokens, or too many of them on one path through the tree: an operator makes the tree
/// at most one level deeper, and a comma begins a path of its own.
fn check_tokens(tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let mut count = 0_usize;
    // For every open parenthesis, the tokens since the last comma in it.
    let mut open = vec![0_usize];
    let mut path = 0_usize;
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) | Token::EOF => continue,
            Token::Placeholder(name) => {
                return Err(SqlError::Refused(format!("the query has a parameter {name}; write the value")));
            }
            Token::LParen => {
                open.push(0);
                path += 1;
            }
            Token::RParen => {
                let closed = if open.len() > 1 { open.pop() } else { None };
                path = path.saturating_sub(closed.map_or(0, |closed| closed + 1));
                raise(&mut open, &mut path);
            }
            Token::Comma => {
                if let Some(since) = open.last_mut() {
                    path -= *since;
                    *since = 0;
                }
            }
            _ => raise(&mut open, &mut path),
        }
        count += 1;
        if count > MAX_TOKENS {
            return Err(SqlError::TooLarge(format!("the query has more than {MAX_TOKENS} words and signs")));
        }
        if path > MAX_PATH_TOKENS {
            let detail = format!(
                "the query has more than {MAX_PATH_TOKENS} words and signs in one expression; use IN (…) for many values"
            );
            return Err(SqlError::TooLarge(detail));
        }
    }
    Ok(())
}

fn raise(open: &mut [usize], path: &mut usize) {
    if let Some(since) = open.last_mut() {
        *since += 1;
        *path += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::limits::STACK_BYTES;
    use super::*;

    /// [`parse`] on a stack like that of the threads of queries.
    fn code_of(text: String) -> Option<Option<&'static str>> {
        let parsing = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || parse(&text));
        let parsed = parsing.expect("a thread").join().expect("no panic");
        parsed.err().map(|error| error.code())
    }

    #[test]
    fn one_query_is_taken_and_nothing_else() {
        for (text, code) in [
            ("SELECT 1", None),
            ("  select 1 ; ", None),
            ("WITH a AS (SELECT 1) SELECT * FROM a -- comment", None),
            ("VALUES (1), (2)", None),
            ("SELECT 'it''s' /* ; DROP */ ;", None),
            ("", Some("sql-refused")),
            (";", Some("sql-refused")),
            ("SELECT 1; SELECT 2", Some("sql-refused")),
            ("SELECT ?", Some("sql-refused")),
            ("SELECT 'open", Some("sql-refused")),
            ("SELECT \0", Some("sql-refused")),
            ("DELETE FROM instances", Some("sql-refused")),
            ("INSERT INTO instances VALUES (1)", Some("sql-refused")),
            ("UPDATE instances SET id = 1", Some("sql-refused")),
            ("REPLACE INTO instances VALUES (1)", Some("sql-refused")),
            ("DROP TABLE instances", Some("sql-refused")),
            ("CREATE TABLE a AS SELECT 1", Some("sql-refused")),
            ("PRAGMA hard_heap_limit = 0", Some("sql-refused")),
            ("ATTACH DATABASE 'x.db' AS x", Some("sql-refused")),
            ("VACUUM INTO 'x.db'", Some("sql-refused")),
            ("BEGIN", Some("sql-refused")),
            ("EXPLAIN SELECT 1", Some("sql-refused")),
        ] {
            assert_eq!(code_of(text.to_owned()), code.map(Some), "{text:?}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_parsed() {
        let nested = format!("SELECT {}1{}", "(".repeat(200), ")".repeat(200));
        let queries = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(100), ")".repeat(100));
        for text in [
            format!("SELECT '{}'", "x".repeat(MAX_TEXT_BYTES)),
            format!("SELECT 1{}", "+1".repeat(5_000)),
            format!("SELECT 1{}", " ISNULL".repeat(5_000)),
            format!("SELECT 1{}", " UNION SELECT 1".repeat(2_000)),
            format!("SELECT (1){}", "+(1)".repeat(5_000)),
            format!("SELECT {}1", "- ".repeat(5_000)),
            format!("SELECT {}1", "NOT ".repeat(5_000)),
            format!("SELECT a{}", ".a".repeat(5_000)),
            format!("SELECT 1{}", "::int".repeat(5_000)),
            format!("SELECT {}", "1,".repeat(20_000)),
            nested,
            queries,
        ] {
            let start = text[..40].to_owned();
            assert_eq!(code_of(text), Some(Some("sql-too-large")), "{start}…");
        }
        let values = vec!["'some-id-of-an-order'"; 1_000].join(", ");
        assert_eq!(code_of(format!("SELECT * FROM instances WHERE id IN ({values})")), None);
    }
}
