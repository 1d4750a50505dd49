//! Suite `CsvUploadServiceTests`: which CSV files are members and which are not, and why.

use std::collections::BTreeSet;

use expect_test::{Expect, expect};
use segno_runbook::definition::DataSource;
use segno_runbook::limits::{MAX_CSV_BYTES, MAX_CSV_ROWS, MAX_MEMBER_KEY_CHARS, MAX_ROW_BYTES};
use segno_runbook::members::{CsvLimits, Rows, examine_csv, read_csv, read_csv_into};
use serde_json::json;

use crate::{definition, listed, with};

fn source() -> DataSource {
    let keys = "{type: manual, primary_key: Id, multi_valued_columns: [{name: Aliases, format: semicolon_delimited}, {name: Tags, format: json_array}]}";
    definition(&with("{type: manual, primary_key: Id}", keys)).data_source
}

fn read(text: impl AsRef<[u8]>, required: &[&str]) -> Result<Rows, String> {
    let required: BTreeSet<String> = required.iter().map(|name| (*name).to_owned()).collect();
    read_csv(text.as_ref(), &source(), &required, CsvLimits::MANUAL).map_err(|error| {
        assert_eq!(error.code(), "invalid-members");
        listed(&error.problems)
    })
}

fn keys(text: impl AsRef<[u8]>) -> Vec<String> {
    read(text, &[]).unwrap().rows.into_iter().map(|row| row.key).collect()
}

fn refused(text: impl AsRef<[u8]>, required: &[&str], expected: Expect) {
    expected.assert_eq(&read(text, required).unwrap_err());
}

#[test]
fn a_valid_file_has_rows_with_lines_keys_and_columns() {
    let rows = read("Id,Upn,Aliases\n1,a@b,x; y\n2,\"c, \"\"d\"\"\",\n", &["Upn"]).unwrap();
    assert_eq!(rows.columns, ["Id", "Upn", "Aliases"]);
    let found: Vec<_> =
        rows.rows.iter().map(|row| (row.line, row.key.as_str(), json!(row.columns))).collect();
    assert_eq!(
        found,
        [
            (2, "1", json!({ "Id": "1", "Upn": "a@b", "Aliases": ["x", "y"] })),
            (3, "2", json!({ "Id": "2", "Upn": "c, \"d\"", "Aliases": [] })),
        ]
    );
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_taken() {
    assert_eq!(keys("\u{feff}Id,Upn\r\n1,a\r\n2,b\r\n"), ["1", "2"]);
}

#[test]
fn a_missing_line_end_and_empty_lines_are_taken() {
    let rows = read("Id,Upn\n\n1,a\n\n\n2,b", &[]).unwrap();
    assert_eq!(rows.rows.iter().map(|row| row.line).collect::<Vec<_>>(), [3, 6]);
}

#[test]
fn lines_are_right_after_cells_of_several_lines() {
    let rows = read("Id,Note\r\n1,\"a\r\nb\r\nc\"\r\n2,x\r\n", &[]).unwrap();
    assert_eq!(rows.rows.iter().map(|row| row.line).collect::<Vec<_>>(), [2, 5]);
    assert_eq!(rows.rows[0].columns["Note"], json!("a\r\nb\r\nc"));
}

#[test]
fn white_space_around_keys_and_names_of_columns_is_left_out() {
    assert_eq!(keys(" Id , Upn\n 1 , a \n"), ["1"]);
    assert_eq!(read("Id,Upn\n1, a \n", &[]).unwrap().rows[0].columns["Upn"], json!(" a "));
}

#[test]
fn a_header_without_rows_has_no_members() {
    assert_eq!(keys("Id,Upn\n"), [""; 0]);
}

#[test]
fn an_empty_file_is_refused() {
    refused(
        "",
        &[],
        expect![[r#"
        error: line 1: the text is empty; write the names of the columns into the first line
    "#]],
    );
    refused(
        "\n\n",
        &[],
        expect![[r#"
        error: line 1: the text is empty; write the names of the columns into the first line
    "#]],
    );
}

#[test]
fn a_missing_key_column_is_refused() {
    refused(
        "Upn,Name\na,b\n",
        &[],
        expect![[r#"
        error: line 1: the column "Id" is missing
    "#]],
    );
}

#[test]
fn missing_required_columns_are_refused_with_a_suggestion() {
    refused(
        "Id,upn,Name\n1,a,b\n",
        &["Upn", "TargetUpn"],
        expect![[r#"
        error: line 1: the column "TargetUpn" is missing
        error: line 1: the column "Upn" is missing; did you mean "upn"?
    "#]],
    );
}

#[test]
fn another_separator_is_recognized() {
    refused(
        "Id;Upn\n1;a\n",
        &["Upn"],
        expect![[r#"
        error: line 1: the column "Id" is missing; separate cells with commas
        error: line 1: the column "Upn" is missing; separate cells with commas
    "#]],
    );
}

#[test]
fn duplicate_columns_are_refused_whatever_their_case() {
    refused(
        "Id,Upn,UPN\n1,a,b\n",
        &[],
        expect![[r#"
        error: line 1: column 3: "UPN" is the name of two columns; letter case does not matter
    "#]],
    );
}

#[test]
fn names_of_columns_are_not_empty_nor_reserved() {
    refused(
        "Id,,_batch_id\n1,a,b\n",
        &[],
        expect![[r#"
            error: line 1: column 2: the name is empty
            error: line 1: column 3: "_batch_id" is a variable of the system; use another name
        "#]],
    );
}

#[test]
fn duplicate_keys_are_refused_with_both_lines() {
    refused(
        "Id,Upn\na,1\nb,2\nA,3\n a ,4\n",
        &[],
        expect![[r#"
        error: line 4: Id: the key "A" is already on line 2; letter case does not matter
        error: line 5: Id: the key "a" is already on line 2; letter case does not matter
    "#]],
    );
}

#[test]
fn empty_keys_are_refused() {
    refused(
        "Id,Upn\n,1\n  ,2\n3,3\n",
        &[],
        expect![[r#"
        error: line 2: Id: the key is empty
        error: line 3: Id: the key is empty
    "#]],
    );
}

#[test]
fn keys_have_a_length_and_no_control_characters() {
    let longest = "k".repeat(MAX_MEMBER_KEY_CHARS);
    assert_eq!(keys(format!("Id\n{longest}\n")), std::slice::from_ref(&longest));
    refused(
        format!("Id\n{longest}k\n\"a\u{1}b\"\n"),
        &[],
        expect![[r#"
        error: line 2: Id: the key is longer than 256 characters
        error: line 3: Id: the key "a\u{1}b" has a control character
    "#]],
    );
}

#[test]
fn rows_of_another_length_are_refused() {
    refused(
        "Id,Upn\n1\n2,a\n3,a,b\n",
        &[],
        expect![[r#"
            error: line 2: expected 2 cells as in the header, found 1; write a cell that has a comma or a line end in quotes
            error: line 4: expected 2 cells as in the header, found 3; write a cell that has a comma or a line end in quotes
        "#]],
    );
}

#[test]
fn a_quote_that_is_not_closed_is_found() {
    refused(
        "Id,Upn\n1,a\n2,\"b\n3,c\n",
        &[],
        expect![[r#"
        error: line 3: a quote in this row is not closed; write a quote within a cell as ""
    "#]],
    );
}

#[test]
fn text_that_is_not_utf_8_is_refused_with_its_cell() {
    refused(
        b"Id,Upn\n1,M\xfcller\n2,b\n",
        &[],
        expect![[r#"
        error: line 2: Upn: the cell is not UTF-8; save the file as UTF-8
    "#]],
    );
    refused(
        b"Id,Gr\xf6\xdfe\n1,2\n",
        &[],
        expect![[r#"
        error: line 1: column 2: its name is not UTF-8; save the file as UTF-8
    "#]],
    );
}

#[test]
fn multi_valued_cells_that_cannot_be_split_are_refused() {
    let rows = read("Id,Tags\n1,\"[\"\"a\"\", 7]\"\n", &[]).unwrap();
    assert_eq!(rows.rows[0].columns["Tags"], json!(["a", "7"]));
    refused(
        "Id,Tags\n1,a;b\n",
        &[],
        expect![[r#"
        error: line 2: Tags: "a;b" is not a JSON array of texts
    "#]],
    );
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let large = vec![b'x'; MAX_CSV_BYTES + 1];
    refused(
        large,
        &[],
        expect![[r#"
        error: line 1: the text has more than the limit of 10 MiB; split the file, and add the other parts with `segno batch add-members`
    "#]],
    );
}

#[test]
fn too_many_rows_are_refused() {
    let rows = |count: usize| format!("Id\n{}", (0..count).map(|key| format!("{key}\n")).collect::<String>());
    assert_eq!(keys(rows(MAX_CSV_ROWS)).len(), MAX_CSV_ROWS);
    refused(
        rows(MAX_CSV_ROWS + 1),
        &[],
        expect![[r#"
            error: line 50002: there are more than 50000 rows, which is the limit; split the file, and add the other parts with `segno batch add-members`
        "#]],
    );
}

#[test]
fn a_row_that_is_too_large_is_refused() {
    refused(
        format!("Id,Note\n1,{}\n", "x".repeat(MAX_ROW_BYTES)),
        &[],
        expect![[r#"
        error: line 2: the row has 65537 bytes, the limit is 65536
    "#]],
    );
}

#[test]
fn problems_of_columns_do_not_hide_those_of_rows() {
    let rows = "Id,Upn,upn\n1,a,b\n1,c,d\n,e,f\n2,g\n";
    refused(
        rows,
        &["Mail"],
        expect![[r#"
        error: line 1: column 3: "upn" is the name of two columns; letter case does not matter
        error: line 1: the column "Mail" is missing
        error: line 3: Id: the key "1" is already on line 2; letter case does not matter
        error: line 4: Id: the key is empty
        error: line 5: expected 3 cells as in the header, found 2; write a cell that has a comma or a line end in quotes
    "#]],
    );
    // Without keys there is nothing to compare, and cells are still counted.
    refused(
        "Key,Upn\n1,a\n1,b\n2\n",
        &[],
        expect![[r#"
        error: line 1: the column "Id" is missing
        error: line 4: expected 2 cells as in the header, found 1; write a cell that has a comma or a line end in quotes
    "#]],
    );
}

#[test]
fn rows_are_examined_with_their_batch_times() {
    let keys = "{type: sql, connection: DB, query: SELECT 1, primary_key: Id, batch_time_column: Wave}";
    let source = definition(&with("{type: manual, primary_key: Id}", keys)).data_source;
    let examine = |text: &str| examine_csv(text.as_bytes(), &source, &BTreeSet::new(), CsvLimits::MANUAL);
    let examined = examine("Id,Wave\n1,2026-03-20\n2,next week\n2,\n3,2026-03-21T06:00:00Z\n");
    assert!(examined.is_usable);
    let used: Vec<&str> = examined.rows.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(used, ["1", "3"]);
    expect![[r#"
        error: line 3: Wave: "next week" is not a time; write 2026-03-15T06:00:00Z, 2026-03-15 06:00 or 2026-03-15
        error: line 4: Id: the key "2" is already on line 3; letter case does not matter
        error: line 4: Wave: "" is not a time; write 2026-03-15T06:00:00Z, 2026-03-15 06:00 or 2026-03-15
    "#]].assert_eq(&listed(&examined.problems));
    let examined = examine("Id\n1\n1\n");
    assert!(!examined.is_usable);
    expect![[r#"
        error: line 1: the column "Wave" is missing
        error: line 3: Id: the key "1" is already on line 2; letter case does not matter
    "#]]
    .assert_eq(&listed(&examined.problems));
    // A data source may have rows without a time; they are left out one by one.
    let read = read_csv(b"Id,Wave\n1,soon\n", &source, &BTreeSet::new(), CsvLimits::SOURCE);
    assert_eq!(read.unwrap().rows.len(), 1);
}

#[test]
fn all_problems_are_reported_at_once_and_counted() {
    let rows: String = (0..150).map(|_| "same,a\n").collect();
    let found = read(format!("Id,Upn\n{rows}"), &[]).unwrap_err();
    assert_eq!(found.lines().count(), 100);
    assert!(found.starts_with("error: line 3: Id: the key \"same\" is already on line 2"), "{found}");
}

#[test]
fn rows_beyond_the_limit_are_refused_before_any_is_taken() {
    let limits = CsvLimits { max_bytes: 1_000, max_rows: 2, advice: "send fewer" };
    for (text, expected) in [
        ("Id\n1\n2\n", Ok(2)),
        ("Id\r\n1\r\n2\r\n", Ok(2)),
        ("Id\n1\n\"2\n\n\"\n\n", Ok(2)),
        ("Id\n1\n\n2\n3\n4\n", Err((0, "line 5: there are more than 2 rows"))),
    ] {
        let mut taken = 0;
        let read = read_csv_into(text.as_bytes(), &source(), &BTreeSet::new(), limits, &mut |_| taken += 1);
        match expected {
            Ok(rows) => assert_eq!((read.map(|columns| columns.len()), taken), (Ok(1), rows), "{text:?}"),
            Err((rows, problem)) => {
                let found = read.unwrap_err().to_string();
                assert!(taken == rows && found.contains(problem), "{text:?}: {taken} {found}");
            }
        }
    }
}
