//! Commits, pruning and listings of instances.

use super::*;

fn commit(
    table: &mut InstanceTable,
    instance: &str,
    execution_id: u64,
    metadata: ExecutionMetadata,
    now_ms: u64,
) {
    let instance = &Arc::from(instance);
    table.commit(InstanceCommit { instance, execution_id, events: Vec::new(), metadata, now_ms });
}

fn status(status: ExecutionStatus) -> ExecutionMetadata {
    ExecutionMetadata { status: Some(status), ..ExecutionMetadata::default() }
}

#[test]
fn the_row_shows_the_highest_execution() {
    use ExecutionStatus::{Completed, ContinuedAsNew, Failed, Running};
    let mut table = InstanceTable::default();
    let named = ExecutionMetadata { orchestration_name: Some("n".into()), ..ExecutionMetadata::default() };
    commit(&mut table, "a", 1, ExecutionMetadata::default(), 0);
    assert!(table.info("a").is_none(), "a commit that stores nothing creates nothing");
    for (execution_id, metadata, now_ms, expected) in [
        (1, named.clone(), 1, (1, Running, None)),
        (1, status(ContinuedAsNew), 2, (1, ContinuedAsNew, Some(2))),
        (2, named, 3, (2, Running, None)),
        (1, status(Failed), 4, (2, Running, None)),
        (3, ExecutionMetadata::default(), 5, (2, Running, None)),
        (2, status(Completed), 6, (2, Completed, Some(6))),
    ] {
        commit(&mut table, "a", execution_id, metadata, now_ms);
        let info = table.info("a").unwrap();
        assert_eq!((info.current_execution_id, info.status, info.completed_at_ms), expected, "at {now_ms}");
        assert_eq!((info.created_at_ms, info.updated_at_ms, info.revision), (1, now_ms, now_ms));
    }
    let metrics = table.metrics();
    assert_eq!((metrics.total_executions, metrics.completed_instances, metrics.running_instances), (2, 1, 0));
    assert_eq!(table.execution_info("a", 1).unwrap().completed_at_ms, Some(4));
}

#[test]
fn event_ids_only_go_up() {
    let event = |event_id| StoredEvent { event_id, data: Bytes::new() };
    let mut table = InstanceTable::default();
    let (instance, events) = (&Arc::from("a"), vec![event(1), event(4)]);
    let metadata = ExecutionMetadata::default();
    table.commit(InstanceCommit { instance, execution_id: 1, events, metadata, now_ms: 0 });
    for (ids, accepted) in [
        (vec![], true),
        (vec![5, 6], true),
        (vec![3, 2], false),
        (vec![4], false),
        (vec![5, 1], false),
        (vec![5, 5], false),
        (vec![2, 3, 2], false),
    ] {
        let events: Vec<StoredEvent> = ids.iter().map(|id| event(*id)).collect();
        let result = table.check_new_events("test", "a", 1, &events);
        assert_eq!(result.is_ok(), accepted, "{ids:?}");
    }
    assert!(table.check_new_events("test", "a", 2, &[event(1)]).is_ok(), "each execution has its own ids");
}

#[test]
fn pruning_keeps_the_current_the_newest_and_the_running() {
    let options = |keep_last, completed_before_ms| PruneOptions { keep_last, completed_before_ms };
    for (options, expected) in [
        (options(None, None), vec![2, 5]),
        (options(Some(0), None), vec![2, 5]),
        (options(Some(2), None), vec![2, 4, 5]),
        (options(Some(9), None), vec![1, 2, 3, 4, 5]),
        (options(None, Some(3)), vec![2, 3, 4, 5]),
    ] {
        let mut table = InstanceTable::default();
        for execution_id in 1..=5 {
            let ends =
                if execution_id == 2 { ExecutionStatus::Running } else { ExecutionStatus::ContinuedAsNew };
            commit(&mut table, "a", execution_id, status(ends), execution_id);
        }
        let mut pruned = PruneResult::default();
        table.prune("a", options, &mut pruned);
        assert_eq!(table.execution_ids("a"), expected, "{options:?}");
        assert_eq!(pruned.executions_deleted, 5 - expected.len() as u64);
        assert_eq!(table.metrics().total_executions, expected.len() as u64);
    }
}

/// Instances of every sort, two of each age.
fn mixed_table() -> InstanceTable {
    let mut table = InstanceTable::default();
    for number in 0..40_u64 {
        let metadata = ExecutionMetadata {
            status: Some(ExecutionStatus::ALL[number as usize % 3]),
            orchestration_name: (number % 4 != 0).then(|| format!("name{}", number % 4).into()),
            parent_instance_id: (number % 5 == 0).then(|| "t/0".to_owned()),
            labels: Some(BTreeMap::from([
                ("l".to_owned(), (number % 2).to_string()),
                ("m".to_owned(), (number % 3).to_string()),
            ])),
            ..ExecutionMetadata::default()
        };
        commit(
            &mut table,
            &format!("{}/{number}", if number % 7 == 0 { "t" } else { "u" }),
            1,
            metadata,
            number / 2,
        );
    }
    table
}

#[test]
fn every_listing_gives_what_a_full_scan_gives_page_by_page() {
    let table = mixed_table();
    let mut checked = 0;
    for choice in 0..1_024_u32 {
        let chosen = |bit: u32| choice & (1 << bit) != 0;
        let query = InstanceQuery {
            id_prefix: chosen(0).then(|| if chosen(7) { "t/".to_owned() } else { "u/".to_owned() }),
            statuses: [(1, ExecutionStatus::ALL[0]), (8, ExecutionStatus::ALL[1])]
                .into_iter()
                .filter_map(|(bit, status)| chosen(bit).then_some(status))
                .collect(),
            orchestration_name: chosen(2).then(|| "name1".to_owned()),
            labels: [(3, ("l", "1")), (9, ("m", "2"))]
                .into_iter()
                .filter(|(bit, _)| chosen(*bit))
                .map(|(_, (key, value))| (key.to_owned(), value.to_owned()))
                .collect(),
            parent_instance_id: chosen(4).then(|| "t/0".to_owned()),
            created_from_ms: chosen(5).then_some(4),
            created_before_ms: chosen(6).then_some(15),
            cursor: None,
            limit: 3,
        };
        let mut expected: Vec<(Reverse<u64>, String)> = table
            .rows
            .values()
            .map(|row| &row.info)
            .filter(|info| super::super::instance_index::matches(&query, info))
            .map(|info| (Reverse(info.created_at_ms), info.instance_id.clone()))
            .collect();
        expected.sort();
        let (mut listed, mut query) = (Vec::new(), query);
        loop {
            let page = table.page(&query);
            assert!(page.instances.len() <= 3 && (page.next.is_none() || page.instances.len() == 3));
            listed.extend(
                page.instances.into_iter().map(|info| (Reverse(info.created_at_ms), info.instance_id)),
            );
            query.cursor = page.next;
            if query.cursor.is_none() {
                break;
            }
        }
        assert_eq!(listed, expected, "{query:?}");
        checked += listed.len();
    }
    assert!(checked > 100, "the queries find something");
}

#[test]
fn a_removed_instance_is_in_no_index() {
    let mut table = mixed_table();
    let ids: Vec<Arc<str>> = table.rows.keys().cloned().collect();
    let mut deleted = DeleteInstanceResult::default();
    for id in ids {
        table.remove(&id, &mut deleted);
    }
    assert_eq!((deleted.instances_deleted, deleted.executions_deleted), (40, 40));
    assert_eq!(table.metrics(), SystemMetrics::default());
    assert!(table.index.is_empty());
}
