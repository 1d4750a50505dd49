//! Instances are found by any criterion, newest first, a page at a time, without gap or repeat.

use segno::store::{ExecutionStatus, InstanceCursor, InstanceQuery};

use super::fixture::*;

fn all() -> InstanceQuery {
    InstanceQuery { limit: 100, ..InstanceQuery::default() }
}

fn prefix(id_prefix: &str) -> InstanceQuery {
    InstanceQuery { id_prefix: Some(id_prefix.to_owned()), ..all() }
}

async fn found(env: &Env, query: InstanceQuery) -> Vec<String> {
    let page = env.query_instances(query).await.unwrap();
    assert_eq!(page.next, None, "everything fits on one page");
    page.instances.into_iter().map(|info| info.instance_id).collect()
}

/// Reads all pages; fails if they do not end.
async fn paged(env: &Env, query: InstanceQuery) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), query.cursor.clone());
    for _ in 0..100 {
        let page = env.query_instances(InstanceQuery { cursor, ..query.clone() }).await.unwrap();
        assert!(page.instances.len() <= query.limit);
        ids.extend(page.instances.into_iter().map(|info| info.instance_id));
        cursor = page.next;
        if cursor.is_none() {
            return ids;
        }
    }
    panic!("the pages do not end: {ids:?}");
}

/// Starts these instances, one tick apart.
async fn start_all(env: &Env, ids: &[&str]) {
    for id in ids {
        env.start(id).await;
        env.tick().await;
    }
}

pub(super) async fn an_empty_store_gives_an_empty_last_page(env: Env) {
    assert!(found(&env, all()).await.is_empty());
}

pub(super) async fn no_criterion_finds_all_newest_first(env: Env) {
    start_all(&env, &["b", "c", "a"]).await;
    assert_eq!(found(&env, all()).await, ["a", "c", "b"]);
}

pub(super) async fn a_row_is_the_full_description(env: Env) {
    env.turn_of("i1").await.named("Flow").label("team", "blue").custom_status("s").output("o").ack().await;
    let page = env.query_instances(all()).await.unwrap();
    assert_eq!(page.instances, [env.info("i1").await]);
}

pub(super) async fn instances_of_equal_age_come_in_id_order(env: Env) {
    for id in ["c", "a", "b"] {
        env.start(id).await;
    }
    let rows = env.query_instances(all()).await.unwrap().instances;
    let mut sorted = rows.clone();
    sorted.sort_by(|a, b| (b.created_at_ms, &a.instance_id).cmp(&(a.created_at_ms, &b.instance_id)));
    assert_eq!(rows, sorted);
}

pub(super) async fn a_later_turn_does_not_change_the_order(env: Env) {
    start_all(&env, &["a", "b"]).await;
    env.turn_of("a").await.event(2).ack().await;
    assert_eq!(found(&env, all()).await, ["b", "a"]);
}

pub(super) async fn a_prefix_finds_ids_that_start_with_it(env: Env) {
    start_all(&env, &["a", "ab", "b", "abc", "ba"]).await;
    assert_eq!(found(&env, prefix("ab")).await, ["abc", "ab"]);
    assert_eq!(found(&env, prefix("")).await.len(), 5);
    assert!(found(&env, prefix("abcd")).await.is_empty());
}

pub(super) async fn a_prefix_is_compared_byte_by_byte(env: Env) {
    start_all(&env, &["a_b", "axb", "a%b", "A_b", "a\\b"]).await;
    assert_eq!(found(&env, prefix("a_")).await, ["a_b"]);
    assert_eq!(found(&env, prefix("a%")).await, ["a%b"]);
    assert_eq!(found(&env, prefix("a\\")).await, ["a\\b"]);
}

pub(super) async fn a_tenant_is_a_prefix(env: Env) {
    // S1
    start_all(&env, &["n/t/1", "n/t2/1", "n/t/2", "n/t"]).await;
    assert_eq!(found(&env, prefix("n/t/")).await, ["n/t/2", "n/t/1"]);
}

pub(super) async fn a_prefix_may_end_in_the_highest_character(env: Env) {
    start_all(&env, &["a\u{10FFFF}", "a\u{10FFFF}b", "b"]).await;
    assert_eq!(found(&env, prefix("a\u{10FFFF}")).await, ["a\u{10FFFF}b", "a\u{10FFFF}"]);
}

pub(super) async fn a_state_finds_instances_in_it_now(env: Env) {
    start_all(&env, &["a", "b", "c"]).await;
    env.put_status("b", ExecutionStatus::Completed).await;
    let in_state = |status| InstanceQuery { statuses: [status].into(), ..all() };
    assert_eq!(found(&env, in_state(ExecutionStatus::Completed)).await, ["b"]);
    assert_eq!(found(&env, in_state(ExecutionStatus::Running)).await, ["c", "a"]);
    assert!(found(&env, in_state(ExecutionStatus::Cancelled)).await.is_empty());
}

pub(super) async fn a_state_is_that_of_the_current_execution(env: Env) {
    env.start_executions("i1", 2).await;
    let in_state = |status| InstanceQuery { statuses: [status].into(), ..all() };
    assert_eq!(found(&env, in_state(ExecutionStatus::Running)).await, ["i1"]);
    assert!(found(&env, in_state(ExecutionStatus::ContinuedAsNew)).await.is_empty());
}

pub(super) async fn several_states_find_instances_in_any_of_them(env: Env) {
    start_all(&env, &["a", "b", "c", "d", "e"]).await;
    env.put_status("b", ExecutionStatus::Completed).await;
    env.put_status("c", ExecutionStatus::Failed).await;
    env.put_status("e", ExecutionStatus::Completed).await;
    let in_states = |statuses: &[ExecutionStatus]| InstanceQuery {
        statuses: statuses.iter().copied().collect(),
        ..all()
    };
    use ExecutionStatus::{Cancelled, Completed, Failed, Running};
    assert_eq!(found(&env, in_states(&[Completed, Failed])).await, ["e", "c", "b"]);
    assert_eq!(found(&env, in_states(&[Failed, Running])).await, ["d", "c", "a"]);
    assert_eq!(found(&env, in_states(&[Cancelled, Failed])).await, ["c"]);
    assert_eq!(found(&env, in_states(&ExecutionStatus::ALL)).await, ["e", "d", "c", "b", "a"]);
    assert!(found(&env, in_states(&[Cancelled, ExecutionStatus::Pending])).await.is_empty());
}

pub(super) async fn pages_of_several_states_have_no_gap_and_no_repeat(env: Env) {
    let statuses = [ExecutionStatus::Completed, ExecutionStatus::Failed, ExecutionStatus::Running];
    for number in 0..18 {
        let id = format!("i{number:02}");
        env.turn_of(&id).await.named("Flow").label("team", "blue").ack().await;
        if let Some(status) = statuses.get(number % 3).filter(|status| **status != ExecutionStatus::Running) {
            env.put_status(&id, *status).await;
        }
        // Some are of one age, and of several states.
        if number % 4 == 0 {
            env.tick().await;
        }
    }
    let ended = InstanceQuery { statuses: statuses[..2].iter().copied().collect(), ..all() };
    let name = Some("Flow".to_owned());
    let labels = || [("team".to_owned(), "blue".to_owned())].into();
    for query in [
        ended.clone(),
        InstanceQuery { orchestration_name: name.clone(), ..ended.clone() },
        InstanceQuery { labels: labels(), ..ended.clone() },
        InstanceQuery {
            id_prefix: Some("i".to_owned()),
            labels: labels(),
            orchestration_name: name,
            ..ended
        },
    ] {
        let whole = found(&env, query.clone()).await;
        assert_eq!(whole.len(), 12, "{query:?}");
        for limit in [1, 5, 11] {
            assert_eq!(paged(&env, InstanceQuery { limit, ..query.clone() }).await, whole, "limit {limit}");
        }
    }
}

pub(super) async fn a_name_finds_instances_of_one_orchestration(env: Env) {
    env.turn_of("a").await.named("Order").ack().await;
    env.turn_of("b").await.named("Orders").ack().await;
    env.turn_of("c").await.event(1).ack().await;
    let named = |name: &str| InstanceQuery { orchestration_name: Some(name.to_owned()), ..all() };
    assert_eq!(found(&env, named("Order")).await, ["a"]);
    assert!(found(&env, named("order")).await.is_empty());
}

pub(super) async fn a_changed_name_is_found_by_the_new_one_only(env: Env) {
    env.turn_of("i1").await.named("Old").ack().await;
    env.turn_of("i1").await.execution(2).named("New").ack().await;
    let named = |name: &str| InstanceQuery { orchestration_name: Some(name.to_owned()), ..all() };
    assert_eq!(found(&env, named("New")).await, ["i1"]);
    assert!(found(&env, named("Old")).await.is_empty());
}

pub(super) async fn a_label_finds_instances_that_carry_it_now(env: Env) {
    env.turn_of("a").await.label("team", "blue").ack().await;
    env.turn_of("b").await.label("team", "red").ack().await;
    env.turn_of("c").await.label("blue", "team").ack().await;
    env.turn_of("d").await.label("team", "blue").ack().await;
    env.turn_of("d").await.label("team", "green").ack().await;
    let label = |key: &str, value: &str| InstanceQuery {
        labels: [(key.to_owned(), value.to_owned())].into(),
        ..all()
    };
    assert_eq!(found(&env, label("team", "blue")).await, ["a"]);
    assert_eq!(found(&env, label("team", "green")).await, ["d"]);
    assert!(found(&env, label("team", "bl")).await.is_empty());
}

pub(super) async fn several_labels_must_all_be_carried(env: Env) {
    env.turn_of("a").await.label("team", "blue").label("stage", "test").label("size", "1").ack().await;
    env.tick().await;
    env.turn_of("b").await.label("team", "blue").label("stage", "live").ack().await;
    env.tick().await;
    env.turn_of("c").await.label("team", "red").label("stage", "test").ack().await;
    env.tick().await;
    env.turn_of("d").await.label("team", "blue").label("stage", "test").ack().await;
    let with = |labels: &[(&str, &str)]| InstanceQuery {
        labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..all()
    };
    assert_eq!(found(&env, with(&[("team", "blue"), ("stage", "test")])).await, ["d", "a"]);
    assert_eq!(found(&env, with(&[("team", "blue"), ("stage", "test"), ("size", "1")])).await, ["a"]);
    assert!(found(&env, with(&[("team", "blue"), ("team", "red")])).await.is_empty(), "nothing has both");
    assert!(found(&env, with(&[("team", "blue"), ("stage", "none")])).await.is_empty());
    env.put_status("a", ExecutionStatus::Failed).await;
    let failed = [ExecutionStatus::Failed, ExecutionStatus::Cancelled].into();
    let both = InstanceQuery { statuses: failed, ..with(&[("team", "blue"), ("stage", "test")]) };
    assert_eq!(found(&env, both).await, ["a"]);
    let paged_by_one = InstanceQuery { limit: 1, ..with(&[("team", "blue"), ("stage", "test")]) };
    assert_eq!(paged(&env, paged_by_one).await, ["d", "a"]);
}

pub(super) async fn a_parent_finds_its_direct_children(env: Env) {
    env.start("p").await;
    env.start_child("p1", "p").await;
    env.start_child("p11", "p1").await;
    let query = InstanceQuery { parent_instance_id: Some("p".to_owned()), ..all() };
    assert_eq!(found(&env, query).await, ["p1"]);
}

pub(super) async fn a_span_of_time_has_its_start_but_not_its_end(env: Env) {
    start_all(&env, &["a", "b", "c"]).await;
    let created = env.info("b").await.created_at_ms;
    let from = InstanceQuery { created_from_ms: Some(created), ..all() };
    let before = InstanceQuery { created_before_ms: Some(created), ..all() };
    let exactly = InstanceQuery { created_before_ms: Some(created + 1), ..from.clone() };
    assert_eq!(found(&env, from).await, ["c", "b"]);
    assert_eq!(found(&env, before).await, ["a"]);
    assert_eq!(found(&env, exactly).await, ["b"]);
}

pub(super) async fn all_criteria_must_hold(env: Env) {
    for id in ["x1", "x2", "x3", "y1"] {
        env.turn_of(id)
            .await
            .named(if id == "x3" { "Other" } else { "Flow" })
            .label("team", "blue")
            .ack()
            .await;
        env.tick().await;
    }
    env.put_status("x2", ExecutionStatus::Failed).await;
    let query = InstanceQuery {
        statuses: [ExecutionStatus::Running].into(),
        orchestration_name: Some("Flow".to_owned()),
        labels: [("team".to_owned(), "blue".to_owned())].into(),
        created_from_ms: Some(0),
        created_before_ms: Some(u64::MAX >> 2),
        ..prefix("x")
    };
    assert_eq!(found(&env, query.clone()).await, ["x1"]);
    let other_team = [("team".to_owned(), "red".to_owned())].into();
    assert!(found(&env, InstanceQuery { labels: other_team, ..query }).await.is_empty());
}

pub(super) async fn pages_have_no_gap_and_no_repeat(env: Env) {
    let ids: Vec<String> = (0..23).map(|id| format!("i{id:02}")).collect();
    for (index, id) in ids.iter().enumerate() {
        env.start(id).await;
        if index % 5 == 0 {
            env.tick().await;
        }
    }
    let whole = found(&env, all()).await;
    assert_eq!(whole.len(), 23);
    for limit in [1, 4, 22] {
        assert_eq!(paged(&env, InstanceQuery { limit, ..all() }).await, whole, "limit {limit}");
    }
}

pub(super) async fn pages_of_a_criterion_have_no_gap_and_no_repeat(env: Env) {
    for id in 0..12 {
        let name = if id % 3 == 0 { "Third" } else { "Flow" };
        env.turn_of(&format!("i{id:02}")).await.named(name).ack().await;
    }
    let query = InstanceQuery { orchestration_name: Some("Flow".to_owned()), ..all() };
    let whole = found(&env, query.clone()).await;
    assert_eq!(whole.len(), 8);
    assert_eq!(paged(&env, InstanceQuery { limit: 3, ..query.clone() }).await, whole);
    assert_eq!(paged(&env, InstanceQuery { limit: 3, ..prefix("i") }).await.len(), 12);
    assert_eq!(
        paged(&env, InstanceQuery { limit: 3, statuses: [ExecutionStatus::Running].into(), ..query }).await,
        whole
    );
}

pub(super) async fn a_page_that_is_just_full_is_the_last(env: Env) {
    start_all(&env, &["a", "b"]).await;
    let page = env.query_instances(InstanceQuery { limit: 2, ..all() }).await.unwrap();
    assert_eq!((page.instances.len(), page.next), (2, None));
}

pub(super) async fn a_cursor_is_the_last_row_of_its_page(env: Env) {
    start_all(&env, &["a", "b", "c"]).await;
    let page = env.query_instances(InstanceQuery { limit: 2, ..all() }).await.unwrap();
    let created_at_ms = env.info("b").await.created_at_ms;
    assert_eq!(page.next, Some(InstanceCursor { created_at_ms, instance_id: "b".to_owned() }));
}

pub(super) async fn a_cursor_survives_the_deletion_of_its_row(env: Env) {
    start_all(&env, &["a", "b", "c"]).await;
    let page = env.query_instances(InstanceQuery { limit: 2, ..all() }).await.unwrap();
    env.delete_instance("b", true).await.unwrap();
    let rest = env.query_instances(InstanceQuery { cursor: page.next, ..all() }).await.unwrap();
    assert_eq!(rest.instances.iter().map(|info| info.instance_id.as_str()).collect::<Vec<_>>(), ["a"]);
}

pub(super) async fn an_instance_that_comes_later_does_not_disturb_the_pages(env: Env) {
    start_all(&env, &["a", "b", "c"]).await;
    let page = env.query_instances(InstanceQuery { limit: 2, ..all() }).await.unwrap();
    start_all(&env, &["d"]).await;
    assert_eq!(found(&env, InstanceQuery { cursor: page.next, ..all() }).await, ["a"]);
}

pub(super) async fn a_deleted_instance_is_found_by_nothing(env: Env) {
    // C3
    env.turn_of("i1")
        .await
        .named("Flow")
        .label("team", "blue")
        .status(ExecutionStatus::Completed)
        .ack()
        .await;
    env.delete_instance("i1", false).await.unwrap();
    for query in [
        all(),
        prefix("i1"),
        InstanceQuery { statuses: [ExecutionStatus::Completed].into(), ..all() },
        InstanceQuery { statuses: [ExecutionStatus::Running].into(), ..all() },
        InstanceQuery { orchestration_name: Some("Flow".to_owned()), ..all() },
        InstanceQuery { orchestration_name: Some("Before".to_owned()), ..all() },
        InstanceQuery { labels: [("team".to_owned(), "blue".to_owned())].into(), ..all() },
        InstanceQuery { labels: [("team".to_owned(), "red".to_owned())].into(), ..all() },
    ] {
        assert!(found(&env, query).await.is_empty());
    }
}

pub(super) async fn an_instance_without_a_start_is_found_without_a_name(env: Env) {
    env.turn_of("i1").await.status(ExecutionStatus::Pending).ack().await;
    assert_eq!(
        found(&env, InstanceQuery { statuses: [ExecutionStatus::Pending].into(), ..all() }).await,
        ["i1"]
    );
    assert!(found(&env, InstanceQuery { orchestration_name: Some(String::new()), ..all() }).await.is_empty());
}
