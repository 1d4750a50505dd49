//! Backups hold what they were made of, or say that they do not.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only the tests themselves")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use segno::store::memory::MemoryStore;
use segno::store::{
    ContentHeader, ContentItem, ErrorKind, ExecutionContent, ExecutionStatus, InstanceContent,
    MessageContent, OrchestratorMessage, Record, ScheduledActivityIdentifier, StartGuard, StoredEvent,
    TimerIdentifier, Transfer, WorkItemContent, WorkerMessage,
};
use segno_stores::{
    BackupReader, BackupWriter, ContentSummary, Error, IfThere, LedgerContent, LedgerEnd, LedgerPart,
    NoLedger, StoreUrl, back_up, fill, verify_backup,
};

/// One of everything.
fn content() -> Vec<ContentItem> {
    let activity = ScheduledActivityIdentifier { instance: "b".to_owned(), execution_id: 2, activity_id: 4 };
    let execution = |execution_id, status| {
        ContentItem::Execution(Box::new(ExecutionContent {
            execution_id,
            status,
            output: Some(Bytes::from_static(b"output")),
            pinned_version: Some("0.1.0".parse().unwrap()),
            incarnation: Some(7),
            started_at_ms: 1_000,
            completed_at_ms: Some(2_000).filter(|_| status != ExecutionStatus::Running),
        }))
    };
    let instance = |id: &str, current_execution_id| {
        ContentItem::Instance(Box::new(InstanceContent {
            instance_id: id.to_owned(),
            orchestration_name: Some("Flow".into()),
            orchestration_version: Some("1".into()),
            parent_instance_id: None,
            current_execution_id,
            created_at_ms: 1_000,
            updated_at_ms: 2_000,
            revision: 9,
            custom_status: Some(Bytes::from_static(b"half")),
            custom_status_version: 2,
            labels: BTreeMap::from([("team".to_owned(), "a".to_owned())]),
        }))
    };
    let event = |event_id: u64| {
        ContentItem::Event(StoredEvent { event_id, data: Bytes::from(format!("event {event_id}")) })
    };
    let message = |id, visible_at_ms: Option<u64>, guard| {
        let timer = visible_at_ms.map(|_| TimerIdentifier { execution_id: 2, timer_id: 3 });
        let body = Bytes::from_static(b"message");
        let message = OrchestratorMessage { instance: "b".to_owned(), visible_at_ms, timer, guard, body };
        let attempts = u32::from(visible_at_ms.is_none());
        ContentItem::Message(Box::new(MessageContent { id, message, attempts, holds_instance: false }))
    };
    vec![
        ContentItem::Header(ContentHeader {
            taken_at_ms: 3_000,
            last_message_id: 12,
            last_work_item_id: 5,
            last_record_version: 30,
        }),
        instance("a", 1),
        execution(1, ExecutionStatus::Completed),
        event(1),
        event(2),
        instance("b", 2),
        execution(1, ExecutionStatus::ContinuedAsNew),
        event(1),
        execution(2, ExecutionStatus::Running),
        event(1),
        message(10, Some(9_000_000_000_000), StartGuard::None),
        message(12, None, StartGuard::IfAbsent),
        ContentItem::WorkItem(Box::new(WorkItemContent {
            id: 5,
            message: WorkerMessage {
                activity,
                session_id: Some("s".to_owned()),
                tag: Some("gpu".to_owned()),
                visible_at_ms: None,
                body: Bytes::from_static(b"work"),
            },
            delayed_until_ms: None,
            attempts: 2,
        })),
        ContentItem::Record(Box::new(Record {
            kind: "k".to_owned(),
            id: "r".to_owned(),
            version: 29,
            due_at_ms: Some(4_000),
            expires_at_ms: None,
            body: Bytes::from_static(b"{}"),
        })),
    ]
}

fn write(path: &Path, content: &[ContentItem]) -> ContentSummary {
    let mut writer = BackupWriter::create(path, IfThere::Refuse).unwrap();
    content.iter().for_each(|item| writer.put(item).unwrap());
    writer.finish(LedgerEnd::None).unwrap().0
}

/// Parts of a ledger.
fn parts() -> Vec<LedgerPart> {
    let part = |path: &str, offset, is_last, bytes: &'static [u8]| LedgerPart::Bytes {
        path: path.to_owned(),
        offset,
        is_last,
        bytes: Bytes::from_static(bytes),
    };
    vec![
        part("t/n/ledger/a.json", 0, false, b"[1,"),
        part("t/n/ledger/a.json", 3, true, b"2]"),
        part("t/n/empty", 0, true, b""),
        LedgerPart::Dropped { path: "t/n/empty".to_owned() },
    ]
}

fn write_with_ledger(path: &Path) -> LedgerContent {
    let mut writer = BackupWriter::create(path, IfThere::Refuse).unwrap();
    content().iter().for_each(|item| writer.put(item).unwrap());
    parts().iter().for_each(|part| writer.put_ledger(part).unwrap());
    writer.finish(LedgerEnd::Included).unwrap().1
}

fn read_parts(path: &Path) -> Result<Vec<LedgerPart>, Error> {
    let mut reader = BackupReader::open(path)?;
    while !reader.next_block()?.is_empty() {}
    let mut found = Vec::new();
    loop {
        let parts = reader.next_parts()?;
        if parts.is_empty() {
            return Ok(found);
        }
        found.extend(parts);
    }
}

fn read(path: &Path) -> Result<Vec<ContentItem>, Error> {
    let mut reader = BackupReader::open(path)?;
    let mut content = Vec::new();
    loop {
        let items = reader.next_block()?;
        if items.is_empty() {
            while !reader.next_parts()?.is_empty() {}
            return Ok(content);
        }
        content.extend(items);
    }
}

fn place(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("backup.segno")
}

#[test]
fn only_its_owner_may_read_a_backup() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = place(&directory);
    // What an interrupted backup of an earlier build left behind.
    let partial = PathBuf::from(format!("{}.partial", path.display()));
    fs::write(&partial, "").unwrap();
    fs::set_permissions(&partial, fs::Permissions::from_mode(0o644)).unwrap();
    write(&path, &content());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_backup_reads_as_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let written = write(&place(&directory), &content());
    assert_eq!(read(&place(&directory)).unwrap(), content());
    let verified = verify_backup(&place(&directory), &mut |_| {}).unwrap();
    assert_eq!((verified.content, verified.ledger), (written.clone(), LedgerContent::None));
    assert_eq!((written.instances, written.executions, written.events), (2, 3, 4));
    assert_eq!((written.messages, written.work_items, written.records), (2, 1, 1));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is left behind");
}

#[test]
fn the_checksum_is_that_of_the_content_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut later = content();
    if let ContentItem::Header(header) = &mut later[0] {
        header.taken_at_ms += 1;
        header.last_message_id += 1;
    }
    let mut other = content();
    if let ContentItem::Event(event) = &mut other[3] {
        event.data = Bytes::from_static(b"event x");
    }
    let [one, later, other] = [content(), later, other]
        .map(|content| write(&directory.path().join(content_name(&content)), &content));
    assert!(one.is_same_content(&later));
    assert!(!one.is_same_content(&other));
}

fn content_name(content: &[ContentItem]) -> String {
    format!("{:08x}", crc32c::crc32c(format!("{content:?}").as_bytes()))
}

#[test]
fn a_backup_of_many_blocks_reads_as_it_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut content = vec![content()[0].clone()];
    // Some of it compresses well and some not at all.
    let mut noise: u64 = 1;
    for number in 0..5_000_u64 {
        let body = if number % 2 == 0 {
            Bytes::from(vec![b'x'; 500])
        } else {
            let next = |_| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (noise >> 56) as u8
            };
            (0..500).map(next).collect()
        };
        content.push(ContentItem::Record(Box::new(Record {
            kind: "k".to_owned(),
            id: format!("{number:05}"),
            version: 1,
            due_at_ms: None,
            expires_at_ms: None,
            body,
        })));
    }
    write(&place(&directory), &content);
    assert_eq!(read(&place(&directory)).unwrap(), content);
}

#[test]
fn every_flipped_bit_and_every_cut_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    write(&place(&directory), &content());
    let sound = fs::read(place(&directory)).unwrap();
    let damaged = directory.path().join("damaged");
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&damaged, &bytes).unwrap();
        let error = read(&damaged).expect_err(&format!("bit {bit}"));
        assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Invalid), "bit {bit}: {error}");
    }
    for len in 0..sound.len() {
        fs::write(&damaged, &sound[..len]).unwrap();
        read(&damaged).expect_err(&format!("cut to {len}"));
    }
    fs::write(&damaged, [&sound[..], b"x"].concat()).unwrap();
    read(&damaged).expect_err("something behind the end");
}

#[test]
fn a_backup_has_the_ledger_or_tells_where_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = place(&directory);
    let written = write_with_ledger(&path);
    assert!(matches!(written, LedgerContent::Included { objects: 1, bytes: 5, .. }), "{written:?}");
    assert_eq!(read_parts(&path).unwrap(), parts());
    assert_eq!(read(&path).unwrap(), content());
    assert_eq!(verify_backup(&path, &mut |_| {}).unwrap().ledger, written);
    assert_eq!(BackupReader::peek_ledger(&path).unwrap(), written);
    fs::remove_file(&path).unwrap();
    let mut writer = BackupWriter::create(&path, IfThere::Refuse).unwrap();
    writer.put(&content()[0]).unwrap();
    let (_, elsewhere) = writer.finish(LedgerEnd::Elsewhere("s3://bucket".to_owned())).unwrap();
    assert!(!elsewhere.is_complete());
    assert_eq!(BackupReader::peek_ledger(&path).unwrap(), elsewhere);
    assert_eq!(verify_backup(&path, &mut |_| {}).unwrap().ledger, elsewhere);
}

#[test]
fn every_flipped_bit_and_every_cut_of_a_ledger_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    write_with_ledger(&place(&directory));
    let sound = fs::read(place(&directory)).unwrap();
    let damaged = directory.path().join("damaged");
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&damaged, &bytes).unwrap();
        read_parts(&damaged).expect_err(&format!("bit {bit}"));
    }
    for len in 0..sound.len() {
        fs::write(&damaged, &sound[..len]).unwrap();
        read_parts(&damaged).expect_err(&format!("cut to {len}"));
        BackupReader::peek_ledger(&damaged).expect_err(&format!("cut to {len}"));
    }
}

#[test]
fn what_is_no_backup_is_refused_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let path = place(&directory);
    let check = |reason: &str, kind: ErrorKind| {
        let error = BackupReader::open(&path).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(error.kind(), kind);
    };
    check("No such file", ErrorKind::NotFound);
    fs::write(&path, "hello").unwrap();
    check("is not a Segno backup", ErrorKind::Invalid);
    fs::remove_file(&path).unwrap();
    write(&path, &content());
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 3;
    let checksum = crc32c::crc32c(&bytes[..12]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    check("has backup format 3, this build reads up to 2", ErrorKind::Invalid);
}

#[test]
fn a_file_that_is_there_stays_unless_it_is_to_be_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = place(&directory);
    fs::write(&path, "precious").unwrap();
    assert_eq!(BackupWriter::create(&path, IfThere::Refuse).unwrap_err().kind(), ErrorKind::Conflict);
    let mut writer = BackupWriter::create(&path, IfThere::Replace).unwrap();
    writer.put(&content()[0]).unwrap();
    assert!(BackupWriter::create(&path, IfThere::Replace).is_err(), "one writer at a time");
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"precious", "an unfinished backup changes nothing");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    BackupWriter::create(&path, IfThere::Replace).unwrap().finish(LedgerEnd::None).unwrap();
    assert!(BackupReader::open(&path).is_ok());
}

#[test]
fn a_file_that_comes_meanwhile_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = place(&directory);
    let writer = BackupWriter::create(&path, IfThere::Refuse).unwrap();
    fs::write(&path, "precious").unwrap();
    assert_eq!(writer.finish(LedgerEnd::None).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

/// Memory, file, embedded store, memory: the content is the same at the end.
#[tokio::test]
async fn content_goes_through_files_and_stores_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let (path, url) = (place(&directory), directory.path().join("store").display().to_string());
    let written = write(&path, &content());
    let url: StoreUrl = url.parse().unwrap();
    let embedded = url.open_for_import(segno_stores::FilledBy::Restore).await.unwrap();
    let mut reader = BackupReader::open(&path).unwrap();
    let restored = fill(&mut reader, &*embedded, "store", &mut |_| {}).await.unwrap();
    assert!(restored.is_same_content(&written));
    let memory = MemoryStore::new();
    let mut export = embedded.export().await.unwrap();
    fill(&mut *export, &*memory, "memory", &mut |_| {}).await.unwrap();
    drop(export);
    let again = directory.path().join("again.segno");
    let mut export = memory.export().await.unwrap();
    let last =
        back_up(&mut *export, &again, IfThere::Refuse, &mut NoLedger, &mut |_| {}).await.unwrap().content;
    assert!(last.is_same_content(&written), "{last:?} {written:?}");
}

#[tokio::test]
async fn a_damaged_backup_never_becomes_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = place(&directory);
    write(&path, &content());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let url = StoreUrl::Embedded(directory.path().join("store"));
    let store = url.open_for_import(segno_stores::FilledBy::Restore).await.unwrap();
    let mut reader = BackupReader::open(&path).unwrap();
    let error = fill(&mut reader, &*store, "store", &mut |_| {}).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    drop(store);
    let error = url.open().await.map(drop).unwrap_err();
    assert!(error.to_string().contains("was interrupted"), "{error}");
    fs::write(&path, &bytes).unwrap();
    let store = url.open_for_import(segno_stores::FilledBy::Restore).await.unwrap();
    let mut reader = BackupReader::open(&path).unwrap();
    fill(&mut reader, &*store, "store", &mut |_| {}).await.unwrap();
    drop(store);
    assert_eq!(url.open().await.unwrap().list_instances().await.unwrap().len(), 2);
}

/// Files that must be readable for ever. `UPDATE_GOLDEN=1` writes one that is missing, and never another.
#[test]
fn golden_backups_are_readable() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let first = golden.join("backup-1.segno");
    assert_eq!(read(&first).unwrap(), content());
    assert_eq!(BackupReader::peek_ledger(&first).unwrap(), LedgerContent::Unknown);
    let path = golden.join("backup-2.segno");
    if std::env::var_os("UPDATE_GOLDEN").is_some() && !path.exists() {
        write_with_ledger(&path);
    }
    assert_eq!((read(&path).unwrap(), read_parts(&path).unwrap()), (content(), parts()));
    let directory = tempfile::tempdir().unwrap();
    write_with_ledger(&place(&directory));
    assert_eq!(fs::read(place(&directory)).unwrap(), fs::read(&path).unwrap(), "the bytes are the same");
}
