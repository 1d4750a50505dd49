//! A runtime gets only executions that it can replay; the others wait for one that can, and block nobody.

use segno::store::{
    DispatcherCapabilityFilter, ExecutionStatus, FetchOrchestrationItems, OrchestrationItem, SemverRange,
};
use semver::Version;

use super::fixture::*;

fn versions(ranges: &[(&str, &str)]) -> DispatcherCapabilityFilter {
    let range = |&(min, max): &(&str, &str)| SemverRange { min: version(min), max: version(max) };
    DispatcherCapabilityFilter { supported_versions: ranges.iter().map(range).collect() }
}

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

async fn fetch(env: &Env, ranges: &[(&str, &str)]) -> Vec<OrchestrationItem> {
    let filter = versions(ranges);
    let request =
        FetchOrchestrationItems { max_items: 9, filter: Some(&filter), ..FetchOrchestrationItems::one(LOCK) };
    env.fetch_orchestration_items(request).await.unwrap()
}

/// An instance that is pinned to this version and has a message.
async fn pinned(env: &Env, instance: &str, version: &str) {
    env.turn_of(instance).await.named("Flow").pinned(version).ack().await;
}

pub(super) async fn an_execution_in_the_range_is_fetched(env: Env) {
    pinned(&env, "i1", "1.2.3").await;
    env.send("i1", "go").await;
    assert_eq!(instances(&fetch(&env, &[("1.0.0", "2.0.0")]).await), ["i1"]);
}

pub(super) async fn an_execution_outside_the_range_is_passed_over(env: Env) {
    pinned(&env, "i1", "3.0.0").await;
    env.send("i1", "go").await;
    assert!(fetch(&env, &[("1.0.0", "2.0.0")]).await.is_empty());
    assert_eq!(env.fetch().await.attempt_count, 1, "passing over is neither a lock nor an attempt");
}

pub(super) async fn both_ends_of_a_range_belong_to_it(env: Env) {
    for (instance, version) in [("a", "0.9.9"), ("b", "1.0.0"), ("c", "2.0.0"), ("d", "2.0.1")] {
        pinned(&env, instance, version).await;
    }
    for instance in ["a", "b", "c", "d"] {
        env.send(instance, "go").await;
    }
    assert_eq!(instances(&fetch(&env, &[("1.0.0", "2.0.0")]).await), ["b", "c"]);
}

pub(super) async fn versions_are_compared_as_numbers(env: Env) {
    pinned(&env, "i1", "1.10.0").await;
    env.send("i1", "go").await;
    assert!(fetch(&env, &[("1.0.0", "1.9.0")]).await.is_empty());
    assert_eq!(instances(&fetch(&env, &[("1.9.0", "1.11.0")]).await), ["i1"]);
}

pub(super) async fn a_prerelease_comes_before_its_release(env: Env) {
    pinned(&env, "i1", "1.0.0-beta.2").await;
    env.send("i1", "go").await;
    assert!(fetch(&env, &[("1.0.0", "2.0.0")]).await.is_empty());
    assert_eq!(instances(&fetch(&env, &[("1.0.0-beta.1", "1.0.0")]).await), ["i1"]);
}

pub(super) async fn one_of_several_ranges_is_enough(env: Env) {
    pinned(&env, "a", "1.5.0").await;
    pinned(&env, "b", "2.5.0").await;
    pinned(&env, "c", "3.5.0").await;
    for instance in ["a", "b", "c"] {
        env.send(instance, "go").await;
    }
    assert_eq!(instances(&fetch(&env, &[("1.0.0", "2.0.0"), ("3.0.0", "4.0.0")]).await), ["a", "c"]);
}

pub(super) async fn an_execution_without_a_pin_passes_every_filter(env: Env) {
    env.start("old").await;
    env.send("old", "go").await;
    env.send("new", "go").await;
    assert_eq!(instances(&fetch(&env, &[("5.0.0", "6.0.0")]).await), ["new", "old"]);
}

pub(super) async fn an_empty_filter_takes_only_what_has_no_pin(env: Env) {
    pinned(&env, "i1", "1.0.0").await;
    env.send("i1", "go").await;
    env.send("i2", "go").await;
    assert_eq!(instances(&fetch(&env, &[]).await), ["i2"]);
}

pub(super) async fn no_filter_takes_everything(env: Env) {
    pinned(&env, "i1", "99.0.0").await;
    env.send("i1", "go").await;
    assert_eq!(&*env.fetch().await.instance, "i1");
}

pub(super) async fn what_is_passed_over_blocks_nobody(env: Env) {
    for id in 0..40 {
        pinned(&env, &format!("new{id}"), "9.0.0").await;
    }
    for id in 0..40 {
        env.send(&format!("new{id}"), "go").await;
    }
    env.send("i1", "go").await;
    assert_eq!(instances(&fetch(&env, &[("1.0.0", "2.0.0")]).await), ["i1"]);
}

pub(super) async fn a_pin_given_again_replaces_the_old_one(env: Env) {
    pinned(&env, "i1", "1.0.0").await;
    pinned(&env, "i1", "2.0.0").await;
    env.send("i1", "go").await;
    assert!(fetch(&env, &[("1.0.0", "1.9.0")]).await.is_empty());
    assert_eq!(env.info("i1").await.pinned_version, Some(version("2.0.0")));
}

pub(super) async fn a_pin_belongs_to_one_execution(env: Env) {
    env.turn_of("i1").await.pinned("1.0.0").status(ExecutionStatus::ContinuedAsNew).ack().await;
    env.turn_of("i1").await.execution(2).pinned("2.0.0").ack().await;
    env.send("i1", "go").await;
    assert!(fetch(&env, &[("1.0.0", "1.9.0")]).await.is_empty());
    assert_eq!(instances(&fetch(&env, &[("2.0.0", "2.0.0")]).await), ["i1"]);
}

pub(super) async fn a_new_execution_without_a_pin_passes_every_filter(env: Env) {
    env.turn_of("i1").await.pinned("1.0.0").status(ExecutionStatus::ContinuedAsNew).ack().await;
    env.turn_of("i1").await.execution(2).event(1).ack().await;
    env.send("i1", "go").await;
    assert_eq!(instances(&fetch(&env, &[("5.0.0", "6.0.0")]).await), ["i1"]);
}

pub(super) async fn a_pin_holds_for_messages_that_wait_already(env: Env) {
    let turn = env.turn_of("i1").await;
    env.send("i1", "meanwhile").await;
    turn.pinned("3.0.0").ack().await;
    assert!(fetch(&env, &[("1.0.0", "2.0.0")]).await.is_empty());
    assert_eq!(instances(&fetch(&env, &[("3.0.0", "3.0.0")]).await), ["i1"]);
}

pub(super) async fn an_expired_lock_is_offered_only_to_who_can_replay_it(env: Env) {
    pinned(&env, "i1", "3.0.0").await;
    env.send("i1", "go").await;
    env.fetch_for(env.span()).await;
    env.advance_span().await;
    assert!(fetch(&env, &[("1.0.0", "2.0.0")]).await.is_empty());
    assert_eq!(fetch(&env, &[("3.0.0", "3.0.0")]).await[0].attempt_count, 2);
}
