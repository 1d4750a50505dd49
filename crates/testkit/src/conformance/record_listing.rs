//! Records of a kind are listed by id prefix in byte order, a page at a time.

use segno::store::ListRecords;

use super::fixture::*;

async fn listed(env: &Env, id_prefix: &str) -> Vec<String> {
    let request = ListRecords { kind: "k", id_prefix, after_id: None, limit: 100 };
    record_ids(&env.list_records(request).await.unwrap())
}

async fn write_all(env: &Env, ids: &[&str]) {
    env.write(ids.iter().map(|id| put(id))).await;
}

pub(super) async fn records_are_listed_in_byte_order(env: Env) {
    write_all(&env, &["b", "a", "é", "B", "ab", "Z", "10", "9", "a b", "a-b", "日"]).await;
    assert_eq!(listed(&env, "").await, ["10", "9", "B", "Z", "a", "a b", "a-b", "ab", "b", "é", "日"]);
}

pub(super) async fn a_prefix_selects_ids_that_start_with_it(env: Env) {
    write_all(&env, &["a", "a/", "a/1", "a/2", "a0", "b/1"]).await;
    assert_eq!(listed(&env, "a/").await, ["a/", "a/1", "a/2"]);
    assert_eq!(listed(&env, "a").await, ["a", "a/", "a/1", "a/2", "a0"]);
    assert!(listed(&env, "a/1/").await.is_empty());
}

pub(super) async fn a_prefix_has_no_wildcards(env: Env) {
    write_all(&env, &["a%", "a_", "ab", "a\\", "a*"]).await;
    assert_eq!(listed(&env, "a%").await, ["a%"]);
    assert_eq!(listed(&env, "a_").await, ["a_"]);
    assert_eq!(listed(&env, "a\\").await, ["a\\"]);
    assert_eq!(listed(&env, "a*").await, ["a*"]);
}

pub(super) async fn a_prefix_may_end_in_the_highest_character(env: Env) {
    write_all(&env, &["\u{10FFFF}", "\u{10FFFF}\u{10FFFF}", "\u{10FFFF}a", "ÿ", "ÿa", "\u{7f}", "\u{7f}a"])
        .await;
    assert_eq!(listed(&env, "\u{10FFFF}").await, ["\u{10FFFF}", "\u{10FFFF}a", "\u{10FFFF}\u{10FFFF}"]);
    assert_eq!(listed(&env, "ÿ").await, ["ÿ", "ÿa"]);
    assert_eq!(listed(&env, "\u{7f}").await, ["\u{7f}", "\u{7f}a"]);
}

pub(super) async fn a_prefix_is_compared_without_folding(env: Env) {
    write_all(&env, &["Straße", "strasse", "é1", "e\u{301}1", "É1"]).await;
    assert_eq!(listed(&env, "é").await, ["é1"]);
    assert_eq!(listed(&env, "s").await, ["strasse"]);
}

pub(super) async fn a_kind_lists_only_its_own(env: Env) {
    env.write([put_of("k", "a"), put_of("kk", "b"), put_of("K", "c"), put_of("", "d")]).await;
    assert_eq!(listed(&env, "").await, ["a"]);
}

pub(super) async fn a_page_ends_at_its_limit(env: Env) {
    write_all(&env, &["a", "b", "c"]).await;
    let request = ListRecords { kind: "k", limit: 2, ..ListRecords::default() };
    assert_eq!(record_ids(&env.list_records(request).await.unwrap()), ["a", "b"]);
}

pub(super) async fn pages_have_no_gap_and_no_repeat(env: Env) {
    let ids: Vec<String> = (0..23).map(|id| format!("p/{id:02}")).collect();
    env.write(ids.iter().map(|id| put(id)).chain([put("o"), put("q")])).await;
    for limit in [1, 5, 22, 23] {
        let (mut seen, mut after_id): (Vec<String>, Option<String>) = (Vec::new(), None);
        for _ in 0..=ids.len() {
            let request = ListRecords { kind: "k", id_prefix: "p/", after_id: after_id.as_deref(), limit };
            let page = record_ids(&env.list_records(request).await.unwrap());
            after_id = page.last().cloned();
            seen.extend(page);
            if after_id.is_none() {
                break;
            }
        }
        assert_eq!(seen, ids, "limit {limit}");
    }
}

pub(super) async fn a_page_continues_after_a_deleted_record(env: Env) {
    write_all(&env, &["a", "b", "c"]).await;
    env.write([delete("b")]).await;
    let request = ListRecords { kind: "k", id_prefix: "", after_id: Some("b"), limit: 9 };
    assert_eq!(record_ids(&env.list_records(request).await.unwrap()), ["c"]);
}

pub(super) async fn a_page_after_an_id_outside_the_prefix_stays_in_the_prefix(env: Env) {
    write_all(&env, &["a", "b/1", "b/2", "c"]).await;
    let after = |after_id| ListRecords { kind: "k", id_prefix: "b/", after_id: Some(after_id), limit: 9 };
    assert_eq!(record_ids(&env.list_records(after("a")).await.unwrap()), ["b/1", "b/2"]);
    assert!(env.list_records(after("c")).await.unwrap().is_empty());
}

pub(super) async fn expired_records_are_not_listed(env: Env) {
    env.write([put("a"), put("b").living(env.span()), put("c")]).await;
    assert_eq!(listed(&env, "").await, ["a", "b", "c"]);
    env.advance_span().await;
    assert_eq!(listed(&env, "").await, ["a", "c"]);
}

pub(super) async fn expired_records_do_not_fill_a_page(env: Env) {
    env.write([put("a").living(env.span()), put("b").living(env.span()), put("c"), put("d")]).await;
    env.advance_span().await;
    let request = ListRecords { kind: "k", limit: 2, ..ListRecords::default() };
    assert_eq!(record_ids(&env.list_records(request).await.unwrap()), ["c", "d"]);
}

pub(super) async fn a_listed_record_is_the_whole_record(env: Env) {
    env.write([put("a").due(5).living(LOCK)]).await;
    let request = ListRecords { kind: "k", limit: 9, ..ListRecords::default() };
    assert_eq!(env.list_records(request).await.unwrap(), [env.record("a").await.unwrap()]);
}
