//! Work that is bound to a session goes to the session's one owner, until the session expires.

use segno::store::TagFilter;

use super::fixture::*;

/// Two activities of session `s`, the first of which `a` has taken, claiming the session for `env.span()`.
async fn claimed_by_a(env: &Env) {
    env.queue(session_job("s", 1)).await;
    env.queue(session_job("s", 2)).await;
    assert_eq!(env.take_ids(ask().owner("a").session_lock(env.span())).await, [1]);
}

pub(super) async fn a_fetch_without_sessions_passes_over_session_work(env: Env) {
    env.queue(session_job("s", 1)).await;
    env.queue(job(2)).await;
    assert_eq!(env.take_ids(ask().max(9)).await, [2]);
}

pub(super) async fn a_fetch_with_sessions_takes_plain_work_too(env: Env) {
    env.queue(job(1)).await;
    env.queue(session_job("s", 2)).await;
    assert_eq!(env.take_ids(ask().owner("a").max(9)).await, [1, 2]);
}

pub(super) async fn a_fetch_claims_a_free_session(env: Env) {
    claimed_by_a(&env).await;
    assert_eq!(env.take_ids(ask().owner("b").max(9)).await, [] as [u64; 0]);
    assert_eq!(env.take_ids(ask().owner("a")).await, [2]);
}

pub(super) async fn a_claim_covers_work_that_comes_later(env: Env) {
    claimed_by_a(&env).await;
    env.queue(session_job("s", 3)).await;
    assert_eq!(env.take_ids(ask().owner("b").max(9)).await, [] as [u64; 0]);
    assert_eq!(env.take_ids(ask().owner("a").max(9)).await, [2, 3]);
}

pub(super) async fn one_fetch_takes_several_items_of_the_session_it_claims(env: Env) {
    env.queue(session_job("s", 1)).await;
    env.queue(session_job("s", 2)).await;
    assert_eq!(env.take_ids(ask().owner("a").max(9)).await, [1, 2]);
}

pub(super) async fn a_session_is_held_by_an_owner_not_by_a_slot(env: Env) {
    claimed_by_a(&env).await;
    assert_eq!(env.take_ids(ask().owner("a").owned_only()).await, [2]);
}

pub(super) async fn sessions_have_their_own_owners(env: Env) {
    env.queue(session_job("s", 1)).await;
    env.take(ask().owner("a")).await;
    env.queue(session_job("t", 2)).await;
    env.take(ask().owner("b")).await;
    env.queue(session_job("s", 3)).await;
    env.queue(session_job("t", 4)).await;
    assert_eq!(env.take_ids(ask().owner("b").max(9)).await, [4]);
    assert_eq!(env.take_ids(ask().owner("a").max(9)).await, [3]);
}

pub(super) async fn anothers_session_does_not_block_work_behind_it(env: Env) {
    claimed_by_a(&env).await;
    env.queue(session_job("t", 3)).await;
    env.queue(job(4)).await;
    assert_eq!(env.take_ids(ask().owner("b").max(9)).await, [3, 4]);
}

pub(super) async fn a_fetch_for_owned_sessions_claims_none(env: Env) {
    env.queue(session_job("s", 1)).await;
    assert_eq!(env.take_ids(ask().owner("a").owned_only()).await, [] as [u64; 0]);
    assert_eq!(env.take_ids(ask().owner("b")).await, [1]);
}

pub(super) async fn a_fetch_for_owned_sessions_takes_plain_work_too(env: Env) {
    env.queue(job(1)).await;
    assert_eq!(env.take_ids(ask().owner("a").owned_only()).await, [1]);
}

pub(super) async fn a_session_is_held_until_its_time(env: Env) {
    claimed_by_a(&env).await;
    env.advance_short_of_span().await;
    assert_eq!(env.take_ids(ask().owner("b")).await, [] as [u64; 0]);
}

pub(super) async fn an_expired_session_can_be_claimed_by_another(env: Env) {
    claimed_by_a(&env).await;
    env.advance_span().await;
    assert_eq!(env.take_ids(ask().owner("b")).await, [2]);
    env.queue(session_job("s", 3)).await;
    assert_eq!(env.take_ids(ask().owner("a")).await, [] as [u64; 0]);
}

pub(super) async fn an_expired_session_is_not_owned(env: Env) {
    claimed_by_a(&env).await;
    env.advance_span().await;
    assert_eq!(env.take_ids(ask().owner("a").owned_only()).await, [] as [u64; 0]);
}

pub(super) async fn an_expired_session_leaves_the_locks_of_its_work_alone(env: Env) {
    env.queue(session_job("s", 1)).await;
    let work = env.take(ask().owner("a").session_lock(env.span())).await.remove(0);
    env.advance_span().await;
    assert_eq!(env.take_ids(ask().owner("b")).await, [] as [u64; 0]);
    env.complete(work.lock_token, "i1").await.unwrap();
}

pub(super) async fn an_abandoned_item_stays_with_its_session(env: Env) {
    env.queue(session_job("s", 1)).await;
    let work = env.take(ask().owner("a")).await.remove(0);
    env.abandon_work_item(work.lock_token, None, false).await.unwrap();
    assert_eq!(env.take_ids(ask().owner("b")).await, [] as [u64; 0]);
    assert_eq!(env.take_ids(ask().owner("a")).await, [1]);
}

pub(super) async fn a_session_outlives_its_finished_work(env: Env) {
    env.queue(session_job("s", 1)).await;
    let work = env.take(ask().owner("a")).await.remove(0);
    env.finish(work.lock_token).await.unwrap();
    env.queue(session_job("s", 2)).await;
    assert_eq!(env.take_ids(ask().owner("b")).await, [] as [u64; 0]);
}

pub(super) async fn a_fetch_that_takes_nothing_claims_nothing(env: Env) {
    env.queue(segno::store::WorkerMessage { tag: Some("gpu".to_owned()), ..session_job("s", 1) }).await;
    assert_eq!(env.take_ids(ask().owner("a").tags(TagFilter::DefaultOnly)).await, [] as [u64; 0]);
    assert_eq!(env.take_ids(ask().owner("b").tags(TagFilter::tags(["gpu"]))).await, [1]);
}

pub(super) async fn a_renewed_session_outlives_its_first_time(env: Env) {
    claimed_by_a(&env).await;
    assert_eq!(env.renew_session_lock(&["a"], LOCK, LOCK).await.unwrap(), 1);
    env.advance_span().await;
    assert_eq!(env.take_ids(ask().owner("b")).await, [] as [u64; 0]);
    assert_eq!(env.take_ids(ask().owner("a")).await, [2]);
}

pub(super) async fn a_renewed_session_ends_after_its_new_time(env: Env) {
    claimed_by_a(&env).await;
    env.renew_session_lock(&["a"], env.span() * 2, LOCK).await.unwrap();
    env.advance_span().await;
    assert_eq!(env.take_ids(ask().owner("b")).await, [] as [u64; 0]);
    env.advance_span().await;
    assert_eq!(env.take_ids(ask().owner("b")).await, [2]);
}

pub(super) async fn sessions_of_all_named_owners_are_renewed_and_counted(env: Env) {
    for (id, (owner, session)) in (1..).zip([("a", "s"), ("a", "t"), ("b", "u"), ("c", "v")]) {
        env.queue(session_job(session, id)).await;
        assert_eq!(env.take_ids(ask().owner(owner)).await, [id]);
    }
    assert_eq!(env.renew_session_lock(&["a", "b"], LOCK, LOCK).await.unwrap(), 3);
    assert_eq!(env.renew_session_lock(&["nobody"], LOCK, LOCK).await.unwrap(), 0);
    assert_eq!(env.renew_session_lock(&[], LOCK, LOCK).await.unwrap(), 0);
}

pub(super) async fn an_expired_session_cannot_be_renewed(env: Env) {
    claimed_by_a(&env).await;
    env.advance_span().await;
    assert_eq!(env.renew_session_lock(&["a"], LOCK, LOCK).await.unwrap(), 0);
    assert_eq!(env.take_ids(ask().owner("b")).await, [2]);
}

pub(super) async fn an_idle_session_is_not_renewed(env: Env) {
    env.queue(session_job("s", 1)).await;
    env.take(ask().owner("a")).await;
    env.advance_span().await;
    assert_eq!(env.renew_session_lock(&["a"], LOCK, env.span()).await.unwrap(), 0);
    assert_eq!(env.renew_session_lock(&["a"], LOCK, LOCK).await.unwrap(), 1);
}

pub(super) async fn renewing_an_item_keeps_its_session_from_being_idle(env: Env) {
    env.queue(session_job("s", 1)).await;
    let work = env.take(ask().owner("a")).await.remove(0);
    env.advance_span().await;
    env.renew_work(work.lock_token, LOCK).await.unwrap();
    assert_eq!(env.renew_session_lock(&["a"], LOCK, env.span()).await.unwrap(), 1);
}

pub(super) async fn finishing_an_item_keeps_its_session_from_being_idle(env: Env) {
    env.queue(session_job("s", 1)).await;
    let work = env.take(ask().owner("a")).await.remove(0);
    env.advance_span().await;
    env.finish(work.lock_token).await.unwrap();
    assert_eq!(env.renew_session_lock(&["a"], LOCK, env.span()).await.unwrap(), 1);
}

pub(super) async fn fetching_an_item_keeps_its_session_from_being_idle(env: Env) {
    env.queue(session_job("s", 1)).await;
    env.take(ask().owner("a")).await;
    env.advance_span().await;
    env.queue(session_job("s", 2)).await;
    env.take(ask().owner("a")).await;
    assert_eq!(env.renew_session_lock(&["a"], LOCK, env.span()).await.unwrap(), 1);
}

pub(super) async fn an_orphaned_session_is_swept(env: Env) {
    env.queue(session_job("s", 1)).await;
    let work = env.take(ask().owner("a").session_lock(env.span())).await.remove(0);
    env.finish(work.lock_token).await.unwrap();
    env.advance_span().await;
    assert_eq!(env.cleanup_orphaned_sessions().await.unwrap(), 1);
    assert_eq!(env.cleanup_orphaned_sessions().await.unwrap(), 0);
}

pub(super) async fn a_held_session_is_not_swept(env: Env) {
    env.queue(session_job("s", 1)).await;
    let work = env.take(ask().owner("a")).await.remove(0);
    env.finish(work.lock_token).await.unwrap();
    env.advance_span().await;
    assert_eq!(env.cleanup_orphaned_sessions().await.unwrap(), 0);
}

pub(super) async fn a_session_with_work_is_not_swept(env: Env) {
    claimed_by_a(&env).await;
    env.advance_span().await;
    assert_eq!(env.cleanup_orphaned_sessions().await.unwrap(), 0);
}

pub(super) async fn a_session_is_swept_however_lately_it_was_used(env: Env) {
    env.queue(session_job("s", 1)).await;
    let work = env.take(ask().owner("a").session_lock(env.span())).await.remove(0);
    env.advance_span().await;
    env.finish(work.lock_token).await.unwrap();
    assert_eq!(env.cleanup_orphaned_sessions().await.unwrap(), 1);
}

pub(super) async fn a_swept_session_can_be_used_again(env: Env) {
    env.queue(session_job("s", 1)).await;
    let work = env.take(ask().owner("a").session_lock(env.span())).await.remove(0);
    env.finish(work.lock_token).await.unwrap();
    env.advance_span().await;
    env.cleanup_orphaned_sessions().await.unwrap();
    env.queue(session_job("s", 2)).await;
    assert_eq!(env.take_ids(ask().owner("b")).await, [2]);
}

pub(super) async fn work_of_a_swept_session_is_untouched(env: Env) {
    claimed_by_a(&env).await;
    env.advance_span().await;
    env.cleanup_orphaned_sessions().await.unwrap();
    assert_eq!(env.take_ids(ask().owner("b")).await, [2]);
}
