//! What lasts longer than a moment ends with the key that it was opened with.

use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use segno_api::Client;
use segno_api::change::FollowChanges;
use segno_api::client::{EventStream, Expected};
use segno_api::invocation::Invoke;
use segno_api::key::{CreateKey, CreatedKey, Grant, Role};
use segno_api::sql::SqlQuery;
use segno_server::settings::{Authentication, Role as NodeRole};
use segno_server::{Server, samples};
use segno_testkit::clock::VirtualClock;
use serde_json::json;
use tokio::task::JoinSet;

use crate::stand::{Ground, PATIENCE, Stand, greet, json_of, settings};

async fn viewer(stand: &Stand, expires_at: Option<jiff::Timestamp>) -> CreatedKey {
    let grants = vec![Grant { namespace: "default".to_owned(), tenant: "default".to_owned() }];
    let request = CreateKey { name: "viewer".to_owned(), role: Role::Viewer, grants, expires_at };
    stand.client().create_key(&request).await.unwrap()
}

/// The names of the events that are left.
async fn rest(mut stream: EventStream) -> Vec<String> {
    let names = async {
        let mut names = Vec::new();
        while let Some(event) = stream.next().await.unwrap() {
            names.push(event.name);
        }
        names
    };
    segno::clock::timeout(&SystemClock, PATIENCE, names).await.expect("the stream goes on")
}

#[tokio::test]
async fn streams_and_long_polls_of_a_revoked_key_end_at_once() {
    let stand = Stand::with_keys().await;
    let waiting = greet("one", r#"{"name":"Ada","wait":true}"#);
    stand.client().start(&waiting, None, Duration::ZERO).await.unwrap();
    stand.client().custom_status("one", 0, PATIENCE).await.unwrap();
    let key = viewer(&stand, None).await;
    let client = Client::new(&stand.url("")).unwrap().key(key.secret.clone());
    let mut all = client.changes(&FollowChanges::default(), None).await.unwrap();
    assert_eq!(all.next().await.unwrap().unwrap().name, "listening");
    let one = client.events("one", Some("1-99")).await.unwrap();
    let poll = tokio::spawn({
        let client = client.clone();
        async move { client.instance("one", PATIENCE).await }
    });
    stand.client().revoke_key(&key.key.id).await.unwrap();
    assert_eq!(rest(all).await, ["revoked"]);
    assert_eq!(rest(one).await, ["revoked"]);
    assert_eq!(poll.await.unwrap().unwrap_err().status(), Some(401));
}

#[tokio::test]
async fn streams_end_on_other_nodes_and_when_the_key_expires() {
    let ground = Ground::new().await;
    let stand = Stand::on(settings(Authentication::Keys), &ground).await;
    let clock = VirtualClock::new();
    let mut api_only = settings(Authentication::Keys);
    api_only.server.roles = [NodeRole::Api].into();
    let builder = Server::builder(ground.of_another_node().await.store, api_only).clock(clock.clone());
    let other = builder.functions(samples::functions).start(crate::stand::listener().await).await.unwrap();
    let open = async |secret: &str| {
        let client = Client::new(&format!("http://{}", other.address())).unwrap().key(secret.to_owned());
        let mut stream = client.changes(&FollowChanges::default(), None).await.unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap().name, "listening");
        stream
    };
    let in_an_hour_ms = SystemClock.now_ms() + 3_600_000;
    let in_an_hour = jiff::Timestamp::from_millisecond(i64::try_from(in_an_hour_ms).unwrap()).unwrap();
    let (revoked, expiring) = (viewer(&stand, None).await, viewer(&stand, Some(in_an_hour)).await);
    let (first, second) = (open(&revoked.secret).await, open(&expiring.secret).await);
    stand.client().revoke_key(&revoked.key.id).await.unwrap();
    // The key was verified a moment ago; it is verified again after three seconds.
    let passing = async {
        loop {
            clock.advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        names = rest(first) => assert_eq!(names, ["revoked"]),
        () = passing => {}
    }
    clock.advance_to_ms(in_an_hour_ms);
    assert_eq!(rest(second).await, ["revoked"]);
}

#[tokio::test]
async fn a_start_or_call_that_waits_for_its_end_answers_what_was_done_when_its_key_is_revoked() {
    let stand = Stand::with_keys().await;
    let admin = stand.client();
    let remote = json_of(&json!({ "executor": "remote" }));
    admin.put_function("render", &remote, Expected::Absent).await.unwrap();
    let secret = stand.key(Role::Operator, "default", "default").await;
    let client = Client::new(&stand.url("")).unwrap().key(secret.clone());
    let start = tokio::spawn({
        let client = client.clone();
        async move {
            let waiting = greet("one", r#"{"name":"Ada","wait":true}"#);
            client.start(&waiting, Some("a key"), PATIENCE).await.map(drop)
        }
    });
    let call = tokio::spawn(async move {
        let request = Invoke { key: Some("two".to_owned()), ..Invoke::new("render", json_of("x")) };
        client.invoke(&request, PATIENCE).await.map(drop)
    });
    let started = async {
        while admin.instance("one", Duration::ZERO).await.is_err()
            || admin.instance("invoke:two", Duration::ZERO).await.is_err()
        {
            tokio::task::yield_now().await;
        }
    };
    segno::clock::timeout(&SystemClock, PATIENCE, started).await.expect("they are not started");
    admin.revoke_key(secret.split('_').nth(1).unwrap()).await.unwrap();
    for (waiting, id) in [(start, "one"), (call, "invoke:two")] {
        let refused = waiting.await.unwrap().unwrap_err();
        assert_eq!((refused.status(), refused.code()), (Some(401), Some("unauthorized")), "{refused}");
        let done = format!("the instance {id:?} was started; while its end was awaited, the key was revoked");
        assert!(refused.to_string().starts_with(&done), "{refused}");
    }
    // The answer that is kept under the key is that of the start.
    let again = greet("one", r#"{"name":"Ada","wait":true}"#);
    let again = admin.start(&again, Some("a key"), PATIENCE).await.unwrap();
    assert!(again.created && again.instance.is_none(), "{again:?}");
}

#[tokio::test]
async fn queries_of_a_revoked_key_end_at_once() {
    let stand = Stand::with_keys().await;
    let key = viewer(&stand, None).await;
    let client = Client::new(&stand.url("")).unwrap().key(key.secret.clone()).retry_for(Duration::ZERO);
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let mut queries = JoinSet::new();
    for _ in 0..9 {
        let client = client.clone();
        queries.spawn(async move {
            let text = Some(endless.to_owned());
            let query = SqlQuery { query: text, timeout_seconds: Some(30), ..SqlQuery::default() };
            client.sql(&query).await.unwrap_err()
        });
    }
    // Eight of a tenant run or wait. Once the ninth is refused, all others have begun.
    let refused = queries.join_next().await.unwrap().unwrap();
    assert_eq!(refused.code(), Some("unavailable"), "{refused}");
    stand.client().revoke_key(&key.key.id).await.unwrap();
    while let Some(refused) = queries.join_next().await {
        let refused = refused.unwrap();
        assert_eq!((refused.status(), refused.code()), (Some(401), Some("unauthorized")), "{refused}");
    }
}

#[tokio::test]
async fn one_key_leaves_streams_for_others() {
    let mut settings = settings(Authentication::Keys);
    settings.server.max_streams_per_key = 2;
    let stand = Stand::with(settings).await;
    let (greedy, other) = (viewer(&stand, None).await, viewer(&stand, None).await);
    let greedy = Client::new(&stand.url("")).unwrap().key(greedy.secret);
    let other = Client::new(&stand.url("")).unwrap().key(other.secret);
    let follow = FollowChanges::default();
    let held = [greedy.changes(&follow, None).await.unwrap(), greedy.changes(&follow, None).await.unwrap()];
    let refused = greedy.changes(&follow, None).await.err().unwrap();
    assert_eq!((refused.status(), refused.code()), (Some(429), Some("too-many-streams")));
    assert!(refused.to_string().contains("server.max_streams_per_key"), "{refused}");
    assert!(other.changes(&follow, None).await.is_ok());
    drop(held);
}
