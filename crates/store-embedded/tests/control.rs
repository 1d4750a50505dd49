//! A store that is in use, asked from outside through the socket in its directory.

#![expect(clippy::unwrap_used, reason = "helpers of tests; clippy knows only the tests themselves")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use segno::store::{ContentItem, Export, OrchestratorMessage, Provider, ProviderAdmin, Records, Transfer};
use segno_embedded::{Control, EmbeddedStore, OpenOptions};

async fn collect(export: &mut dyn Export) -> Vec<ContentItem> {
    let mut content = Vec::new();
    loop {
        let items = export.next_items().await.unwrap();
        if items.is_empty() {
            return content;
        }
        content.extend(items);
    }
}

async fn filled(path: &Path) -> Arc<EmbeddedStore> {
    let store = EmbeddedStore::open(path).unwrap();
    for number in 0..20 {
        let message = OrchestratorMessage::new(format!("i{number:02}"), "go");
        store.enqueue_for_orchestrator(message, None).await.unwrap();
    }
    let put = |kind: &str, id: &str| segno::store::RecordWrite::Put {
        kind: kind.to_owned(),
        id: id.to_owned(),
        expect: segno::store::Expect::Anything,
        due_at_ms: None,
        time_to_live: None,
        body: "{}".into(),
    };
    let writes = vec![put("a", "1"), put("b", "1"), put("b", "2")];
    store.commit_records(segno::store::RecordBatch { writes, ..Default::default() }).await.unwrap();
    store.append_with_execution("old", 1, Vec::new()).await.unwrap();
    store
}

#[tokio::test]
async fn a_store_in_use_is_asked_for_figures_and_content() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path()).await;
    let info = Control::connect(directory.path()).unwrap().info().unwrap();
    assert_eq!(info.queues.orchestrator, 20);
    assert_eq!(info.records.into_iter().collect::<Vec<_>>(), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
    assert_eq!(info.process_id, std::process::id());
    assert!(info.files.iter().any(|file| file.name == "state.redb" && file.bytes > 0));
    let mut export = Control::connect(directory.path()).unwrap().export().unwrap();
    let from_outside = collect(&mut export).await;
    let mut own = store.export().await.unwrap();
    assert_eq!(from_outside[1..], collect(&mut *own).await[1..]);
    assert_eq!(store.list_instances().await.unwrap().len(), 0, "and it goes on working");
}

#[tokio::test]
async fn the_socket_is_for_the_owner_and_goes_with_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control.sock");
    // What a process that was killed left behind.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    assert!(Control::connect(directory.path()).is_err());
    let store = EmbeddedStore::open(directory.path()).unwrap();
    let metadata = fs::metadata(&socket).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert!(Control::connect(directory.path()).unwrap().info().is_ok());
    store.close();
    assert!(!socket.exists());
    assert!(Control::connect(directory.path()).is_err());
    let quiet = OpenOptions::default().without_control_socket();
    let _store = EmbeddedStore::open_with(directory.path(), quiet).unwrap();
    assert!(!socket.exists());
}

#[tokio::test]
async fn the_path_may_be_longer_than_a_socket_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x".repeat(200)).join("y".repeat(200));
    let _store = EmbeddedStore::open(&path).unwrap();
    assert!(Control::connect(&path).unwrap().info().is_ok());
}

#[tokio::test]
async fn what_is_not_understood_is_answered_with_a_reason() {
    let directory = tempfile::tempdir().unwrap();
    let _store = EmbeddedStore::open(directory.path()).unwrap();
    for request in ["SEGNO 2 info\n", "hello\n", "\n", &"x".repeat(1_000)] {
        let mut asker = UnixStream::connect(directory.path().join("control.sock")).unwrap();
        // The store may have answered and gone before everything was sent.
        let _ = asker.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = asker.read_to_end(&mut answer);
        assert!(
            answer.first() == Some(&3) && String::from_utf8_lossy(&answer).contains("SEGNO 1 info"),
            "{request:?}: {answer:?}"
        );
    }
    assert!(Control::connect(directory.path()).unwrap().info().is_ok(), "and the next one is served");
}

#[tokio::test]
async fn closing_does_not_wait_for_an_asker_that_does_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let store = filled(directory.path()).await;
    for number in 0..200 {
        let body = vec![b'x'; 20_000];
        let message = OrchestratorMessage::new(format!("long{number}"), body);
        store.enqueue_for_orchestrator(message, None).await.unwrap();
    }
    let mut asker = UnixStream::connect(directory.path().join("control.sock")).unwrap();
    asker.write_all(b"SEGNO 1 export\n").unwrap();
    let mut first = [0; 1];
    asker.read_exact(&mut first).unwrap();
    store.close();
    assert!(EmbeddedStore::open(directory.path()).is_ok());
}

#[tokio::test]
async fn a_client_that_says_nothing_does_not_keep_a_store_open() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path()).unwrap();
    let _silent = UnixStream::connect(directory.path().join("control.sock")).unwrap();
    store.close();
}
