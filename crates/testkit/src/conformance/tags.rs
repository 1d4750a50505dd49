//! A worker takes the activities whose tag its filter names, and no others.

use segno::store::{TagFilter, TagPrefixes};

use super::fixture::*;

/// One activity without a tag, one each with `gpu` and `cpu`.
async fn three_jobs(env: &Env) {
    env.queue(tagged_job("gpu", 1)).await;
    env.queue(job(2)).await;
    env.queue(tagged_job("cpu", 3)).await;
}

async fn taken(env: &Env, tags: TagFilter) -> Vec<u64> {
    three_jobs(env).await;
    env.take_ids(ask().max(9).tags(tags)).await
}

pub(super) async fn the_default_takes_only_untagged_work(env: Env) {
    assert_eq!(taken(&env, TagFilter::DefaultOnly).await, [2]);
}

pub(super) async fn a_tag_takes_only_work_with_that_tag(env: Env) {
    assert_eq!(taken(&env, TagFilter::tags(["gpu"])).await, [1]);
}

pub(super) async fn several_tags_take_work_with_any_of_them(env: Env) {
    assert_eq!(taken(&env, TagFilter::tags(["gpu", "cpu", "unknown"])).await, [1, 3]);
}

pub(super) async fn as_many_tags_as_a_fetch_may_name_take_the_oldest_first(env: Env) {
    let tag = |n: u64| format!("tag {n:03}");
    let most = segno::limits::MAX_FETCH_TAGS as u64;
    let all = TagFilter::Tags((0..most).map(tag).collect());
    // First fewer tags in use than in the filter, then more.
    env.queue(tagged_job(&tag(most), 1)).await;
    env.queue(tagged_job(&tag(most - 1), 2)).await;
    env.queue(tagged_job(&tag(0), 3)).await;
    assert_eq!(env.take_ids(ask().max(9).tags(all.clone())).await, [2, 3]);
    for n in (0..most + 40).rev() {
        env.queue(tagged_job(&tag(n), 1_000 + n)).await;
    }
    let expected: Vec<u64> = (0..most).rev().map(|n| 1_000 + n).collect();
    assert_eq!(env.take_ids(ask().max(500).tags(all)).await, expected);
}

pub(super) async fn default_and_a_tag_takes_both(env: Env) {
    assert_eq!(taken(&env, TagFilter::default_and(["cpu"])).await, [2, 3]);
}

fn prefixes<const P: usize, const E: usize>(prefixes: [&str; P], except: [&str; E]) -> TagFilter {
    TagFilter::Prefixes(TagPrefixes {
        prefixes: prefixes.map(str::to_owned).into(),
        except: except.map(str::to_owned).into(),
        ..TagPrefixes::default()
    })
}

pub(super) async fn a_prefix_takes_every_tag_that_begins_with_it(env: Env) {
    for (id, tag) in
        (1..).zip(["push:b", "push;", "push:a", "push:", "pus", "push", "push:a/b", "x", "push:é"])
    {
        env.queue(tagged_job(tag, id)).await;
    }
    env.queue(job(100)).await;
    assert_eq!(env.take_ids(ask().max(9).tags(prefixes(["push:"], []))).await, [1, 3, 4, 7, 9]);
    assert_eq!(env.take_ids(ask().max(9).tags(prefixes(["x", "pus", "push"], []))).await, [2, 5, 6, 8]);
}

pub(super) async fn a_prefix_leaves_out_the_tags_that_it_excepts(env: Env) {
    for (id, tag) in (1..).zip(["p:a", "p:b", "p:a", "p:ab", "q:a"]) {
        env.queue(tagged_job(tag, id)).await;
    }
    assert_eq!(env.take_ids(ask().max(9).tags(prefixes(["p:", "q"], ["p:a", "z"]))).await, [2, 4, 5]);
    assert_eq!(env.take_ids(ask().max(1).tags(prefixes(["p:"], ["p:b"]))).await, [1]);
    assert_eq!(env.take_ids(ask().max(9).tags(prefixes(["p:"], []))).await, [3]);
}

pub(super) async fn a_prefix_leaves_out_the_prefixes_that_it_excepts(env: Env) {
    let filter = |except: &[&str]| {
        TagFilter::Prefixes(TagPrefixes {
            prefixes: ["p:".to_owned(), "q:".to_owned()].into(),
            except: ["p:b/z".to_owned()].into(),
            except_prefixes: except.iter().map(|prefix| (*prefix).to_owned()).collect(),
        })
    };
    for (id, tag) in (1..).zip(["p:a/x", "p:a/y", "p:a", "p:ab/x", "p:b/x", "q:a/x", "p:b/z", "p:a%"]) {
        env.queue(tagged_job(tag, id)).await;
    }
    assert_eq!(env.take_ids(ask().max(9).tags(filter(&["p:a/", "q:", "z"]))).await, [3, 4, 5, 8]);
    // What is queued while a fetch waits is taken or left out by the same rule.
    let fetch = env.waiting_work(ask().max(9).tags(filter(&["p:a/", "q:"])).waiting()).await;
    env.queue(tagged_job("p:a/z", 9)).await;
    env.settle().await;
    fetch.still_waits();
    env.queue(tagged_job("p:c/x", 10)).await;
    assert_eq!(fetch.answer().await[0].message, tagged_job("p:c/x", 10));
    assert_eq!(env.take_ids(ask().max(9).tags(filter(&[]))).await, [1, 2, 6, 9]);
}

pub(super) async fn a_fetch_by_prefix_waits_for_what_it_takes(env: Env) {
    let fetch = env.waiting_work(ask().max(9).tags(prefixes(["p:"], ["p:a"])).waiting()).await;
    env.queue(tagged_job("p:a", 1)).await;
    env.queue(tagged_job("q", 2)).await;
    env.settle().await;
    fetch.still_waits();
    env.queue(tagged_job("p:b", 3)).await;
    assert_eq!(fetch.answer().await[0].message, tagged_job("p:b", 3));
    assert_eq!(env.take_ids(ask().max(9)).await, [1, 2]);
}

pub(super) async fn any_takes_everything(env: Env) {
    assert_eq!(taken(&env, TagFilter::Any).await, [1, 2, 3]);
}

pub(super) async fn none_takes_nothing(env: Env) {
    assert_eq!(taken(&env, TagFilter::None).await, [] as [u64; 0]);
}

pub(super) async fn work_that_does_not_match_blocks_nobody(env: Env) {
    for id in 0..50 {
        env.queue(tagged_job("gpu", id)).await;
    }
    env.queue(job(99)).await;
    assert_eq!(env.take_ids(ask().tags(TagFilter::DefaultOnly)).await, [99]);
}

pub(super) async fn passing_over_work_is_no_attempt(env: Env) {
    env.queue(tagged_job("gpu", 1)).await;
    assert!(env.take(ask().tags(TagFilter::DefaultOnly)).await.is_empty());
    assert_eq!(env.take(ask().tags(TagFilter::tags(["gpu"]))).await[0].attempt_count, 1);
}

pub(super) async fn tags_are_compared_exactly(env: Env) {
    for (id, tag) in (1..).zip(["GPU", "gpu ", "gp", "gpu2", ""]) {
        env.queue(tagged_job(tag, id)).await;
    }
    assert_eq!(env.take_ids(ask().max(9).tags(TagFilter::tags(["gpu"]))).await, [] as [u64; 0]);
    assert_eq!(env.take_ids(ask().max(9).tags(TagFilter::DefaultOnly)).await, [] as [u64; 0]);
}

pub(super) async fn tags_of_a_turn_are_kept(env: Env) {
    env.turn_of("i1").await.work(tagged_job("gpu", 1)).work(job(2)).ack().await;
    let work = env.take(ask().tags(TagFilter::tags(["gpu"]))).await;
    assert_eq!(work[0].message, tagged_job("gpu", 1));
}

pub(super) async fn work_of_several_tags_keeps_its_order(env: Env) {
    for (id, tag) in (1..).zip(["gpu", "cpu", "gpu", "cpu"]) {
        env.queue(tagged_job(tag, id)).await;
    }
    assert_eq!(env.take_ids(ask().max(9).tags(TagFilter::tags(["gpu", "cpu"]))).await, [1, 2, 3, 4]);
}

pub(super) async fn tags_and_sessions_must_both_fit(env: Env) {
    let bound = |tag: Option<&str>, id| segno::store::WorkerMessage {
        tag: tag.map(str::to_owned),
        ..session_job("s", id)
    };
    env.queue(bound(Some("gpu"), 1)).await;
    env.queue(bound(None, 2)).await;
    assert_eq!(env.take_ids(ask().max(9).tags(TagFilter::tags(["gpu"]))).await, [] as [u64; 0]);
    assert_eq!(env.take_ids(ask().max(9).owner("a").tags(TagFilter::tags(["gpu"]))).await, [1]);
}
