use super::*;

fn items() -> Vec<ContentItem> {
    let labels = BTreeMap::from([("team".to_owned(), "a".to_owned()), ("x".to_owned(), "ü".to_owned())]);
    let timer = Some(TimerIdentifier { execution_id: 2, timer_id: 300 });
    let activity =
        ScheduledActivityIdentifier { instance: "i".to_owned(), execution_id: 1, activity_id: u64::MAX };
    vec![
        ContentItem::Header(ContentHeader {
            taken_at_ms: 1_700_000_000_000,
            last_message_id: 1,
            last_work_item_id: 2,
            last_record_version: 3,
        }),
        ContentItem::Instance(Box::new(InstanceContent {
            instance_id: "order/1".to_owned(),
            orchestration_name: Some("Flow".into()),
            orchestration_version: None,
            parent_instance_id: Some(String::new()),
            current_execution_id: 2,
            created_at_ms: 5,
            updated_at_ms: 6,
            revision: 7,
            custom_status: Some(Bytes::new()),
            custom_status_version: 8,
            labels,
        })),
        ContentItem::Execution(Box::new(ExecutionContent {
            execution_id: 2,
            status: ExecutionStatus::Cancelled,
            output: Some(Bytes::from_static(b"\x00\xff")),
            pinned_version: Some(Version::new(1, 2, 3)),
            incarnation: Some(u64::MAX),
            started_at_ms: 9,
            completed_at_ms: None,
        })),
        ContentItem::Event(StoredEvent { event_id: 1, data: Bytes::from_static(b"event") }),
        ContentItem::Message(Box::new(MessageContent {
            id: 4,
            message: OrchestratorMessage {
                instance: "order/1".to_owned(),
                visible_at_ms: Some(10),
                timer,
                guard: StartGuard::IfAbsent,
                body: Bytes::from_static(b"body"),
            },
            attempts: 3,
            holds_instance: true,
        })),
        ContentItem::WorkItem(Box::new(WorkItemContent {
            id: 5,
            message: WorkerMessage {
                activity,
                session_id: Some("s".to_owned()),
                tag: None,
                visible_at_ms: Some(12),
                body: Bytes::from_static(b"work"),
            },
            delayed_until_ms: Some(13),
            attempts: u32::MAX,
        })),
        ContentItem::Record(Box::new(Record {
            kind: "k".to_owned(),
            id: "r".to_owned(),
            version: 14,
            due_at_ms: Some(0),
            expires_at_ms: None,
            body: Bytes::from_static(b"{}"),
        })),
    ]
}

#[test]
fn every_item_comes_back_as_it_was() {
    for item in items() {
        let mut bytes = Vec::new();
        encode_item(&item, &mut bytes);
        assert_eq!(decode_item(&bytes), Ok(item));
    }
}

#[test]
fn bytes_that_are_no_item_are_refused() {
    for item in items() {
        let mut bytes = Vec::new();
        encode_item(&item, &mut bytes);
        for len in 0..bytes.len() {
            assert!(decode_item(&bytes[..len]).is_err(), "{item:?} cut to {len}");
        }
        bytes.push(0);
        assert!(decode_item(&bytes).is_err(), "{item:?} with more behind it");
    }
    assert!(decode_item(&[99, 0x90]).is_err());
}

#[test]
fn every_state_has_a_number_of_its_own() {
    for status in ExecutionStatus::ALL {
        assert_eq!(status_of(status_number(status)), Some(status));
    }
    assert_eq!(status_of(0), None);
    assert_eq!(guard_of(3), None);
}
