//! Files written and read back, and files that were damaged or made to do harm.

use std::sync::Arc;

use bytes::Bytes;

use super::limits::ROW_GROUP_ROWS;
use super::*;
use crate::ids::Ulid;
use crate::tables::{Cell, Column, Kind, Row, TaskRow, VisitTables, visit_tables};

/// A row of any table with random cells that fit its columns.
fn random_cells(columns: &[Column], random: &mut fastrand::Rng) -> Vec<Cell> {
    let cell = |column: &Column| {
        if column.nullable && random.bool() {
            return Cell::Null;
        }
        match column.kind {
            Kind::Text => Cell::Text("größe".repeat(random.usize(0..4)).into()),
            Kind::Integer => Cell::Integer(random.i64(..)),
            Kind::Count => Cell::Count(random.u32(..)),
            Kind::Flag => Cell::Flag(random.bool()),
        }
    };
    columns.iter().map(cell).collect()
}

fn encode(layout: &Layout, rows: &[Vec<Cell>]) -> Bytes {
    let mut encoder = Encoder::new(layout.clone()).unwrap();
    rows.iter().for_each(|row| encoder.push(row.clone()).unwrap());
    encoder.finish().unwrap()
}

fn open(layout: &Layout, bytes: &Bytes) -> Result<ColumnarFile, Damaged> {
    ColumnarFile::open(layout, bytes.len() as u64, bytes)?.map_err(|_| Damaged("longer".to_owned()))
}

fn decode(layout: &Layout, bytes: &Bytes) -> Result<Vec<Vec<Cell>>, Damaged> {
    let file = open(layout, bytes)?;
    let mut rows = Vec::new();
    for group in 0..file.groups() {
        let range = file.range(group);
        let (start, end) = (range.start as usize, (range.end as usize).min(bytes.len()));
        rows.extend(file.rows(group, &bytes.slice(start.min(end)..end))?);
    }
    Ok(rows)
}

#[test]
fn rows_of_every_table_are_read_back_and_equal_rows_give_equal_bytes() {
    struct Check(fastrand::Rng);
    impl VisitTables for Check {
        fn table<R: Row>(&mut self) {
            for layout in [Layout::of::<R>(), Layout::tombstones_of::<R>()] {
                assert_eq!(layout.key().len(), R::KEY.len(), "{}", R::TABLE);
                for count in [0, 1, 2, 300] {
                    let rows: Vec<_> =
                        (0..count).map(|_| random_cells(layout.columns(), &mut self.0)).collect();
                    let bytes = encode(&layout, &rows);
                    assert_eq!(decode(&layout, &bytes).unwrap(), rows, "{}", R::TABLE);
                    assert_eq!(bytes, encode(&layout, &rows), "{}", R::TABLE);
                }
            }
        }
    }
    visit_tables(&mut Check(fastrand::Rng::with_seed(1)));
}

#[test]
fn a_file_of_several_row_groups_is_pruned_by_statistics() {
    let layout = Layout::of::<crate::tables::IdempotencyKeyRow>();
    let mut random = fastrand::Rng::with_seed(2);
    let run = layout.position("run_id").unwrap();
    let rows = (0..ROW_GROUP_ROWS * 2 + 5).map(|at| {
        let mut row = random_cells(layout.columns(), &mut random);
        row[run] = Cell::Text(format!("run-{at:08}").into());
        row
    });
    let rows: Vec<_> = rows.collect();
    let bytes = encode(&layout, &rows);
    let file = open(&layout, &bytes).unwrap();
    assert_eq!(file.groups(), 3);
    let wanted = format!("run-{:08}", ROW_GROUP_ROWS + 1);
    let may: Vec<bool> = (0..3).map(|group| file.may_have(group, &[(run, &wanted)])).collect();
    assert_eq!(may, [false, true, false]);
    assert!((0..3).all(|group| !file.may_have(group, &[(run, "run-9")])));
    let range = file.range(1);
    let part = bytes.slice(range.start as usize..range.end as usize);
    let read = file.rows(1, &part).unwrap();
    assert_eq!(read[..], rows[ROW_GROUP_ROWS..ROW_GROUP_ROWS * 2]);
    let only = file.cells(1, &part, &[run]).unwrap();
    assert_eq!(only[0][1], Cell::Text(wanted.as_str().into()));
    // A short tail names how much is needed.
    let tail = bytes.slice(bytes.len() - 100..);
    let needed = ColumnarFile::open(&layout, bytes.len() as u64, &tail).unwrap().unwrap_err();
    let tail = bytes.slice(bytes.len() - needed as usize..);
    assert!(ColumnarFile::open(&layout, bytes.len() as u64, &tail).unwrap().is_ok());
}

/// A table before and after columns were added.
fn small_layout(with_addition: bool) -> Layout {
    let column = |name, kind, nullable| Column { name, kind, nullable };
    let mut columns = vec![column("id", Kind::Text, false), column("count", Kind::Count, true)];
    if with_addition {
        columns.push(column("added", Kind::Integer, true));
    }
    Layout::new("things", columns, &["id"])
}

#[test]
fn columns_that_were_added_are_null_in_older_files_and_ignored_by_older_readers() {
    let (old, new) = (small_layout(false), small_layout(true));
    let row = vec![Cell::Text("a".into()), Cell::Count(7)];
    let longer = vec![Cell::Text("a".into()), Cell::Count(7), Cell::Null];
    assert_eq!(decode(&new, &encode(&old, std::slice::from_ref(&row))).unwrap(), vec![longer.clone()]);
    assert_eq!(decode(&old, &encode(&new, &[longer])).unwrap(), vec![row.clone()]);
    let other =
        Layout::new("things", vec![Column { name: "id", kind: Kind::Integer, nullable: false }], &["id"]);
    let error = decode(&other, &encode(&old, &[row])).unwrap_err().to_string();
    assert!(error.contains("column id of things is missing or has another type"), "{error}");
}

#[test]
fn a_cell_that_does_not_fit_is_refused_when_writing() {
    for row in [vec![Cell::Null, Cell::Null], vec![Cell::Text("a".into()), Cell::Flag(true)], vec![]] {
        let mut encoder = Encoder::new(small_layout(false)).unwrap();
        encoder.push(row).unwrap();
        assert!(encoder.finish().unwrap_err().to_string().contains("does not fit column"));
    }
}

#[test]
fn damaged_files_are_errors_and_never_panics() {
    let layout = Layout::of::<TaskRow>();
    let mut random = fastrand::Rng::with_seed(3);
    let rows: Vec<_> = (0..40).map(|_| random_cells(layout.columns(), &mut random)).collect();
    let whole = encode(&layout, &rows);
    for length in (0..whole.len()).step_by(7) {
        assert!(decode(&layout, &whole.slice(..length)).is_err(), "cut off at {length}");
    }
    let mut refused = 0;
    for at in (0..whole.len()).step_by(11) {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 1 << random.u8(0..8);
        // Statistics and values may differ; a reader that verifies the SHA-256 of the manifest sees
        // none of these.
        refused += usize::from(decode(&layout, &Bytes::from(bytes)).is_err());
    }
    assert!(refused > whole.len() / 44, "{refused} flips were noticed");
}

#[test]
fn hostile_sizes_are_refused_before_anything_is_allocated() {
    let layout = small_layout(false);
    let whole = encode(&layout, &[vec![Cell::Text("a".into()), Cell::Count(7)]]);
    let with_footer_length = |length: u32| {
        let mut bytes = whole.to_vec();
        let at = bytes.len() - 8;
        bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        decode(&layout, &Bytes::from(bytes)).unwrap_err().to_string()
    };
    assert!(with_footer_length(u32::MAX).contains("its footer claims"));
    assert!(with_footer_length(whole.len() as u32).contains("its footer claims"));
    let long = ColumnarFile::open(&layout, u64::MAX, &whole).unwrap_err().to_string();
    assert!(long.contains("at most"), "{long}");
    // The first page begins after the magic number: its second and third field are the sizes.
    let header = super::guard::page_header(&whole[4..]).unwrap();
    assert_eq!(header.kind, super::guard::DICTIONARY_PAGE);
    let mut bytes = whole.to_vec();
    assert_eq!(bytes[6], 0x15, "the uncompressed size");
    bytes[7] = 0x7e;
    let error = decode(&layout, &Bytes::from(bytes)).unwrap_err().to_string();
    assert!(error.contains("another size"), "{error}");
}

#[test]
fn rows_of_a_type_are_read_back_by_their_type() {
    let row = crate::tables::IdempotencyKeyRow {
        tenant_id: "acme".into(),
        workspace_id: "prod".into(),
        idempotency_key: "run:1".into(),
        event_id: Ulid::at(5, 6),
        event_type: "RunTriggered".into(),
        recorded_at: 5,
        run_id: None,
        row_version: Ulid::at(5, 6),
    };
    let rows = vec![row];
    let read: Vec<crate::tables::IdempotencyKeyRow> = read_rows(&encode_rows(&rows).unwrap()).unwrap();
    assert_eq!(read, rows);
    let text: Arc<str> = "not a ULID".into();
    let mut cells = rows[0].to_cells();
    cells[3] = Cell::Text(text);
    let layout = Layout::of::<crate::tables::IdempotencyKeyRow>();
    let error = read_rows::<crate::tables::IdempotencyKeyRow>(&encode(&layout, &[cells])).unwrap_err();
    assert!(error.to_string().contains("column event_id"), "{error}");
}
