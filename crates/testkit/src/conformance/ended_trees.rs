//! An archive lists trees that have ended, and deletes those that are still as they were listed.

use segno::store::{DeleteInstanceResult, EndedQuery, ExecutionStatus, InstanceVersion};

use super::fixture::*;

/// Roots `a`, `b` and `c`, which ended in this order; `b` has a child.
async fn three_trees(env: &Env) {
    env.start("b").await;
    env.start_child("b/1", "b").await;
    env.tick().await;
    env.start_and_end("a").await;
    env.tick().await;
    env.put_status("b/1", ExecutionStatus::Failed).await;
    env.put_status("b", ExecutionStatus::Completed).await;
    env.tick().await;
    env.start_and_end("c").await;
}

async fn trees(env: &Env) -> Vec<Vec<InstanceVersion>> {
    env.ended_trees(EndedQuery { limit: 100, ..EndedQuery::default() }).await.unwrap().trees
}

fn ids(trees: &[Vec<InstanceVersion>]) -> Vec<Vec<&str>> {
    trees.iter().map(|tree| tree.iter().map(|one| one.instance_id.as_str()).collect()).collect()
}

async fn left(env: &Env) -> Vec<String> {
    let mut ids = env.list_instances().await.unwrap();
    ids.sort_unstable();
    ids
}

pub(super) async fn trees_are_listed_by_the_end_of_their_roots(env: Env) {
    three_trees(&env).await;
    let all = trees(&env).await;
    assert_eq!(ids(&all), [vec!["a"], vec!["b", "b/1"], vec!["c"]]);
    for one in all.iter().flatten() {
        assert_eq!(env.info(&one.instance_id).await.version(), *one);
    }
    let completed_before_ms = env.info("c").await.completed_at_ms;
    let query = EndedQuery { completed_before_ms, limit: 100, ..EndedQuery::default() };
    let page = env.ended_trees(query).await.unwrap();
    assert_eq!(ids(&page.trees), [vec!["a"], vec!["b", "b/1"]]);
    assert_eq!(page.next, None);
}

pub(super) async fn a_tree_that_has_not_ended_is_not_listed(env: Env) {
    three_trees(&env).await;
    env.start("running").await;
    env.put_status("b/1", ExecutionStatus::Running).await;
    assert_eq!(ids(&trees(&env).await), [vec!["a"], vec!["c"]]);
}

pub(super) async fn pages_of_trees_have_no_gap_and_no_repeat(env: Env) {
    three_trees(&env).await;
    // It ended with the others, and is passed over: a page may be empty and not be the last.
    env.put_status("b/1", ExecutionStatus::Running).await;
    for limit in [1, 2, 3, 4] {
        let mut query = EndedQuery { limit, ..EndedQuery::default() };
        let mut found = Vec::new();
        let mut pages = 0;
        loop {
            let page = env.ended_trees(query.clone()).await.unwrap();
            found.extend(page.trees);
            pages += 1;
            let Some(next) = page.next else { break };
            query.after = Some(next);
        }
        assert_eq!(ids(&found), [vec!["a"], vec!["c"]], "{limit}");
        assert_eq!(pages, 3_usize.div_ceil(limit), "{limit}");
    }
    let none = env.ended_trees(EndedQuery::default()).await.unwrap();
    assert_eq!((none.trees, none.next), (Vec::new(), None));
}

pub(super) async fn trees_that_are_as_they_were_listed_are_deleted(env: Env) {
    three_trees(&env).await;
    env.start("running").await;
    env.send("b", "late").await;
    let listed = trees(&env).await;
    let result = env.delete_unchanged(&listed[..2]).await.unwrap();
    assert_eq!((result.instances_deleted, result.events_deleted), (3, 3));
    assert_eq!(result.queue_messages_deleted, 1);
    assert_eq!(left(&env).await, ["c", "running"]);
    // What is gone is passed over.
    assert_eq!(env.delete_unchanged(&listed[..2]).await.unwrap(), DeleteInstanceResult::default());
    assert_eq!(env.delete_unchanged(&listed).await.unwrap().instances_deleted, 1);
    assert_eq!(env.get_system_metrics().await.unwrap().total_instances, 1);
}

pub(super) async fn a_tree_that_changed_since_it_was_listed_stays(env: Env) {
    three_trees(&env).await;
    let listed = trees(&env).await;
    env.put_status("b/1", ExecutionStatus::Failed).await;
    assert_eq!(env.delete_unchanged(&listed).await.unwrap().instances_deleted, 2);
    assert_eq!(left(&env).await, ["b", "b/1"]);
    // It has not ended, although its revision is the one that is named.
    let unended = env.info("b").await.version();
    env.put_status("b/1", ExecutionStatus::Running).await;
    let child = env.info("b/1").await.version();
    env.delete_unchanged(&[vec![unended, child]]).await.unwrap();
    assert_eq!(left(&env).await, ["b", "b/1"]);
}

pub(super) async fn a_tree_with_another_instance_of_the_same_id_stays(env: Env) {
    env.start_and_end("a").await;
    let listed = trees(&env).await;
    env.delete_instance("a", false).await.unwrap();
    env.tick().await;
    env.start_and_end("a").await;
    let other = env.info("a").await;
    assert_eq!(other.revision, listed[0][0].revision, "the revision alone does not tell them apart");
    env.delete_unchanged(&listed).await.unwrap();
    assert_eq!(left(&env).await, ["a"]);
}

pub(super) async fn a_tree_with_a_new_child_stays(env: Env) {
    three_trees(&env).await;
    let listed = trees(&env).await;
    env.start_child("b/2", "b").await;
    env.put_status("b/2", ExecutionStatus::Completed).await;
    env.delete_unchanged(&listed[1..2]).await.unwrap();
    assert_eq!(left(&env).await, ["a", "b", "b/1", "b/2", "c"]);
}
