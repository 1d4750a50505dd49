//! The schemas of all tables, to the letter. Files with these columns exist: a column may be added
//! at the end, as nullable; none is ever renamed, retyped or removed.

use std::fmt::Write;

use super::{Kind, Row, VisitTables, visit_tables};

struct Describe(String);

impl VisitTables for Describe {
    fn table<R: Row>(&mut self) {
        writeln!(self.0, "{} ({})", R::TABLE, R::KEY.join(", ")).unwrap();
        for column in R::COLUMNS {
            let kind = match column.kind {
                Kind::Text => "text",
                Kind::Integer => "integer",
                Kind::Count => "count",
                Kind::Flag => "flag",
            };
            let nullable = if column.nullable { "?" } else { "" };
            writeln!(self.0, "  {}: {kind}{nullable}", column.name).unwrap();
        }
    }
}

#[test]
fn contract_orchestration_parquet_schemas_backward_compatible() {
    let mut described = Describe(String::new());
    visit_tables(&mut described);
    expect_test::expect_file!["../../tests/golden/schemas.txt"].assert_eq(&described.0);
}

#[test]
fn keys_are_text_columns_and_begin_with_the_scope() {
    struct Check(usize);
    impl VisitTables for Check {
        fn table<R: Row>(&mut self) {
            self.0 += 1;
            assert_eq!(R::KEY[..2], ["tenant_id", "workspace_id"], "{}", R::TABLE);
            assert_eq!([R::COLUMNS[0].name, R::COLUMNS[1].name], R::KEY[..2], "{}", R::TABLE);
            for key in R::KEY {
                let column = R::COLUMNS.iter().find(|column| column.name == *key).unwrap();
                assert_eq!((column.kind, column.nullable), (Kind::Text, false), "{} {key}", R::TABLE);
            }
        }
    }
    let mut check = Check(0);
    visit_tables(&mut check);
    assert_eq!(check.0, 17);
}
