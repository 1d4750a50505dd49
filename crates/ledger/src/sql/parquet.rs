//! Answers as Parquet files. The type of a column is that of its values: whole numbers, numbers, or texts; a column with
//! both numbers and texts has texts.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::answer::Answer;
use super::error::SqlError;
use super::value::Value;
use crate::columnar::limits::ROW_GROUP_ROWS;

/// The media type of Parquet files.
pub const MEDIA_TYPE: &str = "application/vnd.apache.parquet";

static PROPERTIES: LazyLock<WriterPropertiesPtr> = LazyLock::new(|| {
    let created_by = "segno-sql version 1.0.0 (build 1)".to_owned();
    let properties = WriterProperties::builder().set_created_by(created_by);
    Arc::new(properties.set_compression(Compression::SNAPPY).build())
});

/// What the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Integer,
    Real,
    Text,
    Bytes,
}

impl Form {
    fn of(answer: &Answer, column: usize) -> Self {
        let forms = answer.rows.iter().filter_map(|row| match row.get(column)? {
            Value::Null => None,
            Value::Integer(_) => Some(Form::Integer),
            Value::Real(_) => Some(Form::Real),
            Value::Text(_) => Some(Form::Text),
            Value::Blob(_) => Some(Form::Bytes),
        });
        let wider = |one: Form, other: Form| match (one, other) {
            (one, other) if one == other => one,
            (Form::Integer | Form::Real, Form::Integer | Form::Real) => Form::Real,
            _ => Form::Text,
        };
        forms.reduce(wider).unwrap_or(Form::Text)
    }

    fn field(self, name: &str) -> Type {
        let (physical, logical) = match self {
            Form::Integer => (Physical::INT64, None),
            Form::Real => (Physical::DOUBLE, None),
            Form::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Form::Bytes => (Physical::BYTE_ARRAY, None),
        };
        let field = Type::primitive_type_builder(name, physical);
        let field = field.with_logical_type(logical).with_repetition(Repetition::OPTIONAL);
        field.build().expect("the logical type fits the physical type")
    }
}

/// The file of an answer. Columns of one name are told apart by numbers.
///
/// # Errors
/// `Internal` when the Parquet crate refuses.
pub fn to_parquet(answer: &Answer) -> Result<Bytes, SqlError> {
    write(answer).map_err(|error| SqlError::Internal(format!("the answer is no Parquet file: {error}")))
}

fn write(answer: &Answer) -> Result<Bytes, parquet::errors::ParquetError> {
    let forms: Vec<Form> = (0..answer.columns.len()).map(|column| Form::of(answer, column)).collect();
    let names = names(&answer.columns);
    let fields = names.iter().zip(&forms).map(|(name, form)| TypePtr::new(form.field(name))).collect();
    let schema = TypePtr::new(Type::group_type_builder("answer").with_fields(fields).build()?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::clone(&PROPERTIES))?;
    for rows in answer.rows.chunks(ROW_GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        for (column, form) in forms.iter().enumerate() {
            if let Some(mut writer) = group.next_column()? {
                write_column(&mut writer, *form, rows, column)?;
                writer.close()?;
            }
        }
        group.close()?;
    }
    Ok(Bytes::from(writer.into_inner()?))
}

fn write_column(
    writer: &mut SerializedColumnWriter<'_>,
    form: Form,
    rows: &[Vec<Value>],
    column: usize,
) -> Result<(), parquet::errors::ParquetError> {
    let cells = || rows.iter().map(|row| row.get(column).unwrap_or(&Value::Null));
    let levels: Vec<i16> = cells().map(|cell| i16::from(*cell != Value::Null)).collect();
    let values = cells().filter(|cell| **cell != Value::Null);
    match (writer.untyped(), form) {
        (ColumnWriter::Int64ColumnWriter(writer), Form::Integer) => {
            let integers: Vec<i64> = values.map(integer).collect();
            writer.write_batch(&integers, Some(&levels), None)?;
        }
        (ColumnWriter::DoubleColumnWriter(writer), Form::Real) => {
            let reals: Vec<f64> = values.map(real).collect();
            writer.write_batch(&reals, Some(&levels), None)?;
        }
        (ColumnWriter::ByteArrayColumnWriter(writer), Form::Text | Form::Bytes) => {
            let texts: Vec<ByteArray> = values.map(|cell| bytes(cell, form)).collect();
            writer.write_batch(&texts, Some(&levels), None)?;
        }
        _ => return Err(parquet::errors::ParquetError::General("a column has another type".to_owned())),
    }
    Ok(())
}

fn integer(cell: &Value) -> i64 {
    match cell {
        Value::Integer(number) => *number,
        _ => 0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a column of numbers has the precision of its type")]
fn real(cell: &Value) -> f64 {
    match cell {
        Value::Integer(number) => *number as f64,
        Value::Real(number) => *number,
        _ => 0.0,
    }
}

fn bytes(cell: &Value, form: Form) -> ByteArray {
    match cell {
        Value::Blob(bytes) if form == Form::Bytes => ByteArray::from(bytes.clone()),
        Value::Blob(bytes) => ByteArray::from(
            bytes
                .iter()
                .fold(String::new(), |mut text, byte| {
                    use std::fmt::Write as _;
                    let _ = write!(text, "{byte:02x}");
                    text
                })
                .into_bytes(),
        ),
        Value::Text(text) => ByteArray::from(text.as_bytes().to_vec()),
        Value::Integer(number) => ByteArray::from(number.to_string().into_bytes()),
        Value::Real(number) => ByteArray::from(number.to_string().into_bytes()),
        Value::Null => ByteArray::from(Vec::new()),
    }
}

/// The names of the columns, each once.
fn names(columns: &[String]) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let name = |column: &String| {
        let column = if column.is_empty() { "column" } else { column };
        let numbered = (2..).map(|number| format!("{column}_{number}"));
        let mut names = std::iter::once(column.to_owned()).chain(numbered);
        let free = names.find(|name| !taken.contains(name)).unwrap_or_default();
        taken.insert(free.clone());
        free
    };
    columns.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    fn answer(columns: &[&str], rows: Vec<Vec<Value>>) -> Answer {
        Answer {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows,
            is_truncated: false,
            fetched: Vec::new(),
            fetch_ms: 0,
            evaluate_ms: 0,
        }
    }

    fn read(answer: &Answer) -> String {
        let reader = SerializedFileReader::new(to_parquet(answer).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().to_string()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_value_is_read_back_with_its_type() {
        let text = |text: &str| Value::Text(text.to_owned());
        let found = read(&answer(
            &["n", "n", "count(*)", "mixed", "", "blob"],
            vec![
                vec![
                    Value::Integer(1),
                    Value::Integer(2),
                    Value::Real(0.5),
                    text("ü"),
                    Value::Null,
                    Value::Blob(vec![1]),
                ],
                vec![Value::Null, Value::Real(2.5), Value::Null, Value::Integer(7), Value::Null, Value::Null],
            ],
        ));
        let expected = "{n: 1, n_2: 2.0, count(*): 0.5, mixed: \"ü\", column: null, blob: [1]}\n\
                        {n: null, n_2: 2.5, count(*): null, mixed: \"7\", column: null, blob: null}";
        assert_eq!(found, expected);
    }

    #[test]
    fn an_answer_without_rows_is_a_file_without_rows() {
        assert_eq!(read(&answer(&["a"], Vec::new())), "");
    }

    #[test]
    fn answers_of_many_rows_have_several_row_groups() {
        let rows = (0..ROW_GROUP_ROWS as i64 + 1).map(|number| vec![Value::Integer(number)]).collect();
        let reader = SerializedFileReader::new(to_parquet(&answer(&["a"], rows)).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        assert_eq!(reader.metadata().file_metadata().num_rows(), ROW_GROUP_ROWS as i64 + 1);
    }
}
