//! What queries return, and what they fetch for it.

use super::testing::{rows, run};

fn check(wrong: &mut Vec<String>, query: &str, found: String, expected: &str) {
    if found != expected {
        wrong.push(format!("{query}\n  returned {found}\n  expected {expected}"));
    }
}

#[tokio::test]
async fn queries_return_what_sqlite_would() {
    let mut wrong = Vec::new();
    for (query, expected) in [
        ("SELECT 1 + 1, 'it''s', \"x\" FROM (SELECT 7 AS x)", "2 it's 7"),
        ("SELECT count(*) FROM things", "40"),
        (
            "SELECT status, count(*) FROM things GROUP BY status ORDER BY 1",
            "completed 13; failed 14; running 13",
        ),
        ("SELECT id, size FROM things WHERE id = 'order-3'", "order-3 9"),
        ("SELECT id FROM THINGS AS T WHERE t.ID = 'order-3'", "order-3"),
        ("SELECT count(*) FROM things WHERE id LIKE 'order-%'", "14"),
        ("SELECT count(*) FROM things WHERE id GLOB 'order-*' AND size > 3", "5"),
        ("SELECT count(*) FROM things WHERE labels ->> 'region' = 'eu'", "20"),
        ("SELECT count(*) FROM things WHERE json_extract(labels, '$.region') = 'us'", "20"),
        ("SELECT created_at FROM things ORDER BY created_at DESC LIMIT 1", "2027-01-15T08:19:00.000Z"),
        ("SELECT strftime('%H:%M', max(created_at)) FROM things", "08:19"),
        ("SELECT count(*) FROM things WHERE created_at >= '2027-01-15 08:10'", "20"),
        ("SELECT count(*) FROM things WHERE '2027-01-15T09:10:00+01:00' <= created_at", "20"),
        ("SELECT count(*) FROM things WHERE created_at < datetime('2027-01-15 08:09', '+1 minute')", "20"),
        ("SELECT count(*) FROM things WHERE created_at BETWEEN '2027-01-15' AND '2027-01-16'", "40"),
        ("SELECT count(*) FROM things WHERE created_at > ago('1h')", "40"),
        ("SELECT now() > '2026' AND now() < '2200', ago('24h') < now()", "1 1"),
        ("SELECT count(*) FROM things t JOIN parts p ON p.thing = t.id WHERE t.status = 'failed'", "21"),
        (
            "SELECT count(*), count(p.number) FROM things t LEFT JOIN parts p ON p.thing = t.id AND p.number = 2",
            "40 10",
        ),
        ("SELECT count(*) FROM things WHERE id IN (SELECT thing FROM parts WHERE number = 2)", "10"),
        (
            "WITH big AS (SELECT * FROM things WHERE size > 5) SELECT count(*) FROM big WHERE status = 'failed'",
            "2",
        ),
        (
            "SELECT status FROM things UNION SELECT status FROM parts ORDER BY 1",
            "NULL; completed; failed; running",
        ),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n",
            "15",
        ),
        (
            "SELECT rank() OVER (ORDER BY size DESC) AS r, size FROM things WHERE status = 'failed' ORDER BY 1 LIMIT 2",
            "1 9; 1 9",
        ),
        ("SELECT value FROM json_each('[1,2]')", "1; 2"),
        (
            "SELECT instr('häuser', 'u'), replace('aXbX', 'X', 'yy'), trim('  a '), trim('xyaxy', 'yx'), ltrim('xa', 'x')",
            "3 ayybyy a a a",
        ),
        (
            "SELECT CASE WHEN size IS NULL THEN 'none' ELSE 'some' END, count(*) FROM things GROUP BY 1 ORDER BY 1",
            "none 8; some 32",
        ),
        ("SELECT count(DISTINCT name) FILTER (WHERE status = 'failed') FROM things", "4"),
        ("VALUES (1, 'a'), (2, 'b')", "1 a; 2 b"),
        ("SELECT id FROM things WHERE id = 'order-3' -- OR 1 = 1", "order-3"),
    ] {
        check(&mut wrong, query, rows(query).await, expected);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn what_cannot_be_run_says_why() {
    let mut wrong = Vec::new();
    for (query, expected) in [
        ("SELECT * FROM thing", "sql-refused: there is no table \"thing\"; there are: things, parts"),
        ("SELECT nope FROM things", "sql-failed: the query failed: no such column: nope"),
        (
            "SELECT statsu FROM things",
            "sql-failed: the query failed: no such column: statsu; did you mean \"status\"?",
        ),
        (
            "SELECT t.id FROM things AS t JOIN parts AS p ON p.thing = t.id WHERE p.nummber = 1",
            "sql-failed: the query failed: no such column: p.nummber; did you mean \"number\"?",
        ),
        (
            "SELECT \"createdAt\" FROM things",
            "sql-failed: the query failed: no such column: \"createdAt\" - should this be a string literal in single-quotes?; did you mean \"created_at\"?",
        ),
        ("SELECT number FROM things", "sql-failed: the query failed: no such column: number"),
        (
            "SELECT \"x\"",
            "sql-failed: the query failed: no such column: \"x\" - should this be a string literal in single-quotes?",
        ),
        (
            "SELECT * FROM main.things",
            "sql-refused: the name main.things: tables have names of one part, and is not supported",
        ),
        (
            "SELECT ago('soon')",
            "sql-failed: the query failed: ago(\"soon\") is not a duration; write one such as '15m', '1h 30m' or '24h'",
        ),
        (
            "WITH things AS (SELECT 1) SELECT * FROM things",
            "sql-refused: WITH things has the name of a table; choose another one",
        ),
    ] {
        check(&mut wrong, query, rows(query).await, expected);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_marked() {
    let engine = super::Engine::new(segno::clock::SystemClock::shared());
    let query = super::Query { max_rows: 10, ..super::Query::new("SELECT * FROM things") };
    let answer = engine.run("t", query, &super::testing::tables().0).await.unwrap();
    assert_eq!((answer.rows.len(), answer.is_truncated), (10, true));
    assert_eq!(answer.fetched[0].kept_rows, 11, "one more than is shown says that there are more");
    let answer = run("SELECT * FROM things").await.unwrap();
    assert_eq!((answer.rows.len(), answer.is_truncated), (40, false));
}

/// What a query fetches: table(columns) [pushed] {filtered} limit, and how many rows were read.
async fn fetched(query: &str) -> String {
    let answer = match run(query).await {
        Ok(answer) => answer,
        Err(error) => return error.to_string(),
    };
    let shown = answer.fetched.iter().map(|fetched| {
        let mut text = format!("{}({})", fetched.table, fetched.columns.join(","));
        if !fetched.pushed.is_empty() {
            text.push_str(&format!(" [{}]", fetched.pushed.join("; ")));
        }
        if !fetched.filtered.is_empty() {
            text.push_str(&format!(" {{{}}}", fetched.filtered.join("; ")));
        }
        if let Some(limit) = fetched.limit {
            text.push_str(&format!(" limit {limit}"));
        }
        format!("{text} read {}", fetched.read_rows)
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[tokio::test]
async fn no_more_is_fetched_than_a_query_needs() {
    let mut wrong = Vec::new();
    for (query, expected) in [
        ("SELECT count(*) FROM things", "things() read 40"),
        ("SELECT status, count(*) FROM things GROUP BY 1", "things(status) read 40"),
        (
            "SELECT labels FROM things WHERE id = 'order-3'",
            "things(id,labels) [id = 'order-3'] limit 1001 read 1",
        ),
        (
            "SELECT count(*) FROM things WHERE id LIKE 'order-1%'",
            "things(id) [id begins with 'order-1'] read 3",
        ),
        ("SELECT count(*) FROM things WHERE id LIKE 'o_der%'", "things(id) read 40"),
        ("SELECT count(*) FROM things WHERE id LIKE '%r'", "things(id) read 40"),
        ("SELECT count(*) FROM things WHERE size = 4", "things(size) {size = 4} read 40"),
        (
            "SELECT count(*) FROM things WHERE name = 'f1' AND status = 'failed' AND name = 'f2'",
            "things(name,status) [name = 'f1'; status = 'failed'] read 2",
        ),
        (
            "SELECT count(*) FROM things WHERE status IN ('failed', 'running')",
            "things(status) [status is one of 2 values] read 27",
        ),
        (
            "SELECT count(*) FROM things WHERE status = 'failed' OR id = 'order-3'",
            "things(id,status) read 40",
        ),
        ("SELECT count(*) FROM things WHERE NOT status = 'failed'", "things(status) read 40"),
        (
            "SELECT count(*) FROM things WHERE (status = 'failed' AND (size = 4))",
            "things(status,size) [status = 'failed'] {size = 4} read 14",
        ),
        (
            "SELECT count(*) FROM things WHERE created_at >= '2027-01-15 08:10' AND created_at < '2027-01-15 08:12'",
            "things(created_at) [created_at >= '2027-01-15T08:10:00.000Z' and created_at < '2027-01-15T08:12:00.000Z'] read 4",
        ),
        (
            "SELECT id FROM things ORDER BY created_at DESC LIMIT 2 OFFSET 1",
            "things(id,created_at) limit 3 read 3",
        ),
        (
            "SELECT id FROM things WHERE status = 'failed' LIMIT 2",
            "things(id,status) [status = 'failed'] limit 2 read 3",
        ),
        ("SELECT id FROM things ORDER BY created_at LIMIT 2", "things(id,created_at) read 40"),
        (
            "SELECT id AS created_at FROM things ORDER BY created_at DESC LIMIT 2",
            "things(id,created_at) read 40",
        ),
        ("SELECT count(*) FROM things LIMIT 2", "things() read 40"),
        ("SELECT DISTINCT status FROM things LIMIT 2", "things(status) read 40"),
        ("SELECT id FROM things WHERE upper(status) = 'FAILED' LIMIT 2", "things(id,status) read 40"),
        (
            "SELECT p.number FROM things t JOIN parts p ON p.thing = t.id WHERE t.id = 'invoice-38'",
            "things(id) [id = 'invoice-38'] read 1, parts(thing,number) [thing is one of 1 values of things] read 1",
        ),
        (
            "SELECT count(*) FROM parts WHERE thing IN (SELECT id FROM things WHERE status = 'failed' AND id LIKE 'order-2%')",
            "things(id,status) [id begins with 'order-2'; status = 'failed'] read 3, parts(thing,status) [thing is one of 3 values of things] read 5",
        ),
        (
            "SELECT count(*) FROM things t LEFT JOIN parts p ON p.thing = t.id AND t.status = 'failed'",
            "things(id,status) read 40, parts(thing,status) [thing is one of 40 values of things] read 60",
        ),
        (
            "SELECT count(*) FROM things a, things b WHERE a.id = 'order-3' AND b.id = 'order-6'",
            "things(id) [id = 'order-3'; id = 'order-6'] read 2",
        ),
        ("SELECT count(*) FROM things a, things b WHERE a.id = 'order-3'", "things(id) read 40"),
        ("SELECT * FROM (SELECT id FROM things WHERE id = 'order-3')", "things(id) [id = 'order-3'] read 1"),
        ("SELECT count(*) FROM things WHERE id = 'order-3' COLLATE NOCASE", "things(id) read 40"),
        (
            "SELECT count(*) FROM things WHERE created_at > ago('1h') AND size = '4'",
            "things(size,created_at) [created_at >= T] read 40",
        ),
    ] {
        let mut found = fetched(query).await;
        if expected.contains(">= T]") {
            let begin = found.find(">= '").unwrap();
            found.replace_range(begin + 3..begin + 29, "T");
        }
        check(&mut wrong, query, found, expected);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn an_answer_is_written_on_the_thread_of_its_query() {
    let engine = super::Engine::new(segno::clock::SystemClock::shared());
    let write = |_| Ok(std::thread::current().name().map(str::to_owned));
    let tables = super::testing::tables().0;
    let name = engine.run_into("t", super::Query::new("SELECT 1"), &tables, write).await.unwrap();
    assert_eq!(name.as_deref(), Some("segno-sql"));
}

#[tokio::test]
async fn a_query_that_got_no_place_says_so() {
    let clock = segno_testkit::clock::VirtualClock::auto();
    let engine = super::Engine::new(clock);
    let tables = super::testing::tables().0;
    let (until, unless) = std::sync::mpsc::channel::<()>();
    let unless = std::sync::Arc::new(std::sync::Mutex::new(unless));
    let slow = {
        let engine = engine.clone();
        let tables = tables.clone();
        tokio::spawn(async move {
            let write = move |_| {
                let _ = unless.lock().unwrap().recv();
                Ok(())
            };
            let query = super::Query { timeout: super::limits::MAX_TIMEOUT, ..super::Query::new("SELECT 1") };
            engine.run_into("t", query, &tables, write).await
        })
    };
    tokio::task::yield_now().await;
    let query = super::Query { timeout: std::time::Duration::from_secs(5), ..super::Query::new("SELECT 2") };
    let error = engine.run("t", query, &tables).await.unwrap_err();
    assert!(error.to_string().contains("waited 5 s for other queries and did not begin"), "{error}");
    assert_eq!(error.code(), Some("sql-timeout"));
    drop(until);
    slow.abort();
}
