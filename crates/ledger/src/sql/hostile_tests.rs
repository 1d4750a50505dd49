//! Queries that want what they may not have: files, settings, memory, time.

use std::time::Duration;

use segno::clock::{Clock as _, SystemClock};

use super::testing::{rows, tables};
use super::{Engine, Query, SqlError};

#[tokio::test]
async fn nothing_but_tables_and_pure_functions_can_be_named() {
    for query in [
        "PRAGMA hard_heap_limit = 0",
        "SELECT 1; PRAGMA case_sensitive_like = OFF",
        "ATTACH DATABASE '/tmp/segno-x.db' AS x",
        "SELECT 1 /* */; ATTACH DATABASE '/tmp/segno-x.db' AS x --",
        "VACUUM INTO '/tmp/segno-x.db'",
        "CREATE TABLE x AS SELECT 1",
        "CREATE VIRTUAL TABLE x USING fts5(a)",
        "INSERT INTO things (id) VALUES ('x')",
        "UPDATE things SET status = 'x'",
        "DELETE FROM things",
        "WITH x AS (SELECT 1) DELETE FROM things",
        "WITH x AS (DELETE FROM things RETURNING id) SELECT * FROM x",
        "SELECT * INTO x FROM things",
        "BEGIN",
        "SELECT * FROM sqlite_master",
        "SELECT * FROM sqlite_schema",
        "SELECT * FROM temp.things",
        "SELECT * FROM pragma_database_list",
        "SELECT * FROM pragma_table_info('things')",
        "SELECT * FROM dbstat",
        "SELECT * FROM sqlite_dbpage",
        "SELECT * FROM fts3tokenize",
        "SELECT * FROM generate_series(1, 3)",
        "SELECT load_extension('/tmp/x.so')",
        "SELECT readfile('/etc/passwd')",
        "SELECT writefile('/tmp/segno-x', 'x')",
        "SELECT edit('x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT sqlite_version()",
        "SELECT randomblob(10)",
        "SELECT zeroblob(1000000000)",
        "SELECT \"load_extension\"('x')",
        "SELECT 1 WHERE 1 IN (SELECT load_extension('x'))",
        "SELECT * FROM things ORDER BY load_extension('x')",
        "SELECT count(*) OVER (PARTITION BY load_extension('x')) FROM things",
        "SELECT count(*) FILTER (WHERE load_extension('x')) FROM things",
        "SELECT * FROM things WHERE created_at > load_extension('x')",
        "SELECT * FROM things WINDOW w AS (PARTITION BY load_extension('x'))",
        "SELECT * FROM json_each(load_extension('x'))",
        "SELECT * FROM things LIMIT load_extension('x')",
        "SELECT * FROM things a JOIN things b ON load_extension('x')",
        "SELECT id FROM things WHERE id MATCH 'x'",
        "SELECT id REGEXP 'x' FROM things",
        "TABLE things",
        "SELECT * FROM things FOR UPDATE",
        "SELECT * FROM things INDEXED BY x",
        "SELECT 0x10",
        "SELECT :name",
        "SELECT @name",
        "SELECT $name",
    ] {
        let answer = rows(query).await;
        assert!(answer.starts_with("sql-refused"), "{query}: {answer}");
    }
}

/// The code of a query that has so much time.
async fn code(query: &str, timeout: Duration) -> String {
    let engine = Engine::new(SystemClock::shared());
    let query = Query { timeout, ..Query::new(query) };
    match engine.run("t", query, &tables().0).await {
        Ok(answer) => format!("{} rows", answer.rows.len()),
        Err(error @ SqlError::Internal(_)) => error.to_string(),
        Err(error) => error.code().unwrap_or("-").to_owned(),
    }
}

#[tokio::test]
async fn bombs_end_in_time() {
    let long_text = format!("SELECT instr(hex(printf('%4000000d', 1)), '{}b')", "20".repeat(8_000));
    let pattern = format!("SELECT hex(printf('%4000000d', 1)) LIKE '{}x'", "%0".repeat(120));
    for (query, expected) in [
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
            "sql-timeout",
        ),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n", "1000 rows"),
        ("SELECT count(*) FROM things a, things b, things c, things d, things e, things f", "sql-timeout"),
        ("SELECT printf('%1000000000d', 1)", "sql-too-large"),
        ("SELECT length(printf('%.*c', 1000000000, 'x'))", "sql-too-large"),
        ("SELECT replace(printf('%1000000d', 1), ' ', printf('%1000000d', 1))", "sql-failed"),
        ("SELECT length(group_concat(printf('%1000000d', 1))) FROM things a, things b", "sql-too-large"),
        ("SELECT json_group_array(printf('%1000000d', 1)) FROM things a, things b", "sql-too-large"),
        (
            "SELECT count(*) FROM (SELECT printf('%1000000d', a.size) AS x FROM things a, things b, things c ORDER BY x)",
            "sql-too-large",
        ),
        (
            "WITH RECURSIVE n(i, x) AS (SELECT 1, printf('%1000000d', 1) UNION ALL SELECT i + 1, i || x FROM n) \
             SELECT count(DISTINCT x) FROM n",
            "sql-too-large or sql-timeout",
        ),
        ("SELECT DISTINCT printf('%1000000d', random()) FROM things a, things b, things c", "33 rows"),
        (&long_text, "1 rows"),
        (&pattern, "1 rows"),
    ] {
        let begin_ns = SystemClock.monotonic_ns();
        let seconds = if expected == "sql-timeout" { 1 } else { 30 };
        let found = code(query, Duration::from_secs(seconds)).await;
        let is_expected = expected.split(" or ").any(|expected| expected == found);
        assert!(is_expected, "{} returned {found}", &query[..query.len().min(200)]);
        let seconds = (SystemClock.monotonic_ns() - begin_ns) / 1_000_000_000;
        assert!(seconds < 35, "{query} took {seconds} s");
    }
}

#[tokio::test]
async fn a_pattern_that_backtracks_through_a_long_text_ends_at_its_time() {
    let (like, glob) = (format!("%{}x%", "20".repeat(120)), format!("*{}x*", "20".repeat(120)));
    for condition in [format!("LIKE '{like}'"), format!("LIKE '{like}' ESCAPE '!'"), format!("GLOB '{glob}'")]
    {
        let query = format!(
            "SELECT count(*) FROM things a, things b, things c WHERE hex(printf('%4000000d', a.size)) {condition}"
        );
        let begin_ns = SystemClock.monotonic_ns();
        assert_eq!(code(&query, Duration::from_secs(1)).await, "sql-timeout", "{query}");
        let seconds = (SystemClock.monotonic_ns() - begin_ns) / 1_000_000_000;
        assert!(seconds < 10, "{query} took {seconds} s");
    }
}

#[tokio::test]
async fn a_query_that_runs_out_of_memory_does_no_harm_to_others() {
    let engine = Engine::new(SystemClock::shared());
    let tables = tables().0;
    let bomb = "SELECT count(*) FROM (SELECT printf('%1000000d', a.size) AS x FROM things a, things b, things c ORDER BY x)";
    let timeout = Duration::from_secs(30);
    let bomb = Query { timeout, ..Query::new(bomb) };
    let others = async {
        for _ in 0..20 {
            let query = Query { timeout, ..Query::new("SELECT count(*) FROM things a, things b ORDER BY 1") };
            engine.run("others", query, &tables).await.unwrap();
        }
    };
    let (bombed, ()) = tokio::join!(engine.run("hostile", bomb, &tables), others);
    assert!(matches!(bombed, Err(SqlError::OutOfMemory)), "{bombed:?}");
}

#[tokio::test]
async fn a_caller_that_leaves_ends_its_query() {
    let engine = Engine::new(SystemClock::shared());
    let tables = tables().0;
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    for _ in 0..4 {
        let query = Query { timeout: Duration::from_secs(20), ..Query::new(endless) };
        tokio::select! {
            biased;
            _ = engine.run("t", query, &tables) => unreachable!("it has no end"),
            () = segno::clock::sleep(&SystemClock, Duration::from_millis(50)) => {}
        }
    }
    // The tenant has one place: it is free only if the threads have ended.
    assert!(engine.run("t", Query::new("SELECT 1"), &tables).await.is_ok());
}
