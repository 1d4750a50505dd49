//! HTTP calls: what is sent, what an answer means, and where a call may not go.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use segno::{Category, Failure};
use segno_actions::functions::SecretReference;
use segno_actions::functions::http::{Resolver, sign};
use serde_json::{Value, json};

use crate::server::{Answer, Server, json as json_answer, response};
use crate::support::{Node, declaration, name, secret_file};

/// Names of a test and what they stand for; every lookup is remembered.
#[derive(Clone, Default)]
struct Names {
    addresses: HashMap<String, Vec<IpAddr>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    fn new(names: &[(&str, &str)]) -> Self {
        let mut addresses: HashMap<String, Vec<IpAddr>> = HashMap::new();
        for (name, address) in names {
            addresses.entry((*name).to_owned()).or_default().push(address.parse().unwrap());
        }
        Names { addresses, asked: Arc::default() }
    }
}

#[async_trait]
impl Resolver for Names {
    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        self.addresses.get(host).cloned().ok_or_else(|| io::Error::other("no such host"))
    }
}

/// A node with one HTTP function whose URL is on `good.test`, which stands for this machine and is allowed.
async fn node(server: &Server, path: &str, settings: &str) -> Node {
    let toml = format!(
        "executor = \"http\"\nurl = \"http://good.test:{}{path}\"\nallow_hosts = [\"good.test\"]\n{settings}",
        server.port()
    );
    node_with(&toml, Names::new(&[("good.test", "127.0.0.1"), ("evil.test", "127.0.0.1")])).await
}

async fn node_with(toml: &str, names: Names) -> Node {
    let function = declaration(toml);
    Node::start(|builder| builder.resolver(names).declare(name("it"), function)).await
}

async fn call(server: &Server, settings: &str) -> Result<Value, Failure> {
    node(server, "/hook", settings).await.call(json!({ "n": 1 })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_input_is_the_body_and_the_answer_is_the_result() {
    let server = Server::start(|_, asked| json_answer(&format!("{{\"got\":{}}}", asked.body))).await;
    let answer = call(&server, "headers = { X-Mode = \"fast\" }").await.unwrap();
    assert_eq!(answer, json!({ "got": { "n": 1 } }));
    let asked = server.asked().remove(0);
    assert_eq!(asked.line, "POST /hook HTTP/1.1");
    assert_eq!(asked.headers["content-type"], "application/json");
    assert_eq!(asked.headers["x-mode"], "fast");
    assert_eq!(asked.headers["host"], format!("good.test:{}", server.port()));
    assert!(asked.headers["user-agent"].starts_with("segno/"));
    assert_eq!(asked.headers["idempotency-key"].len(), 36);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_get_has_no_body_unless_told() {
    let server = Server::start(|_, _| json_answer("1")).await;
    call(&server, "method = \"GET\"").await.unwrap();
    call(&server, "method = \"GET\"\nsend_body = true").await.unwrap();
    call(&server, "method = \"PUT\"\nsend_body = false").await.unwrap();
    let bodies: Vec<String> = server.asked().into_iter().map(|asked| asked.body).collect();
    assert_eq!(bodies, ["", "{\"n\":1}", ""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_signed_as_standard_webhooks() {
    let server = Server::start(|_, _| json_answer("null")).await;
    let (file, reference) = secret_file("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    call(&server, &format!("signing_secret = {reference}")).await.unwrap();
    let asked = server.asked().remove(0);
    let (id, timestamp) = (&asked.headers["webhook-id"], &asked.headers["webhook-timestamp"]);
    assert_eq!(id, &asked.headers["idempotency-key"]);
    let secret = SecretReference::File(file.path().to_owned()).resolve().await.unwrap();
    let expected = sign(&secret, id, timestamp.parse().unwrap(), asked.body.as_bytes()).unwrap();
    assert_eq!(asked.headers["webhook-signature"], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_says_whether_to_try_again() {
    for (status, again) in [
        (400, false),
        (401, false),
        (404, false),
        (409, false),
        (422, false),
        (302, false),
        (408, true),
        (425, true),
        (429, true),
        (500, true),
        (503, true),
        (599, true),
    ] {
        let server = Server::start(move |_, _| {
            response(&format!("{status} X"), "retry-after: 7\r\nlocation: /x\r\n", "told you")
        })
        .await;
        let failure = call(&server, "").await.unwrap_err();
        assert!(failure.has_code("http-status"), "{failure:?}");
        assert_eq!((failure.category, failure.retryable), (Category::Application, again), "{status}");
        let details: Value = failure.details.unwrap().decode().unwrap();
        assert_eq!(details, json!({ "status": status, "retry_after_seconds": 7, "body": "told you" }));
        assert_eq!(failure.retry_after_ms, Some(7_000), "{status}");
        assert!(failure.message.contains("told you"), "{}", failure.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_has_the_same_idempotency_key() {
    let server = Server::start(|number, _| match number {
        0 => response("503 Busy", "", ""),
        _ => json_answer("2"),
    })
    .await;
    let answer = call(&server, "retry = { attempts = 3, initial_delay = \"1ms\" }").await.unwrap();
    assert_eq!(answer, json!(2));
    let keys: Vec<String> =
        server.asked().into_iter().map(|asked| asked.headers["idempotency-key"].clone()).collect();
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], keys[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_json_text_or_nothing() {
    for (answer, expected) in [
        (("200 OK", "content-type: application/problem+json\r\n", "{\"a\":1}"), json!({ "a": 1 })),
        (("200 OK", "content-type: text/plain\r\n", "17 apples"), json!("17 apples")),
        (("200 OK", "", "[1]"), json!("[1]")),
        (("204 No Content", "", ""), Value::Null),
        (("200 OK", "content-type: application/json\r\n", " "), Value::Null),
    ] {
        let (status, headers, body) = answer;
        let server = Server::start(move |_, _| response(status, headers, body)).await;
        assert_eq!(call(&server, "").await.unwrap(), expected, "{answer:?}");
    }
    let server = Server::start(|_, _| json_answer("<html>")).await;
    let failure = call(&server, "").await.unwrap_err();
    assert!(failure.has_code("output-not-json") && failure.message.contains("<html>"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_long_too_late_or_not_there_fails() {
    let server = Server::start(|_, _| json_answer(&format!("\"{}\"", "x".repeat(100_000)))).await;
    let failure = call(&server, "response_limit = 1000").await.unwrap_err();
    assert!(failure.has_code("output-too-large") && !failure.retryable, "{failure:?}");
    let silent = Server::start(|_, _| Answer::Silence).await;
    let failure = call(&silent, "timeout = \"300ms\"").await.unwrap_err();
    assert!(failure.is_timeout() && failure.has_code("attempt-timeout"), "{failure:?}");
    let closed = Server::start(|_, _| Answer::Text("nonsense\r\n\r\n".to_owned())).await;
    let failure = call(&closed, "").await.unwrap_err();
    assert_eq!(failure.category, Category::Infrastructure, "{failure:?}");
    assert!(failure.has_code("http-unreachable") && failure.retryable, "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_stands_for_a_private_address_is_not_called() {
    let server = Server::start(|_, _| json_answer("1")).await;
    let names = Names::new(&[
        ("rebind.test", "127.0.0.1"),
        ("mixed.test", "93.184.215.14"),
        ("mixed.test", "127.0.0.1"),
        ("six.test", "::1"),
        ("mapped.test", "::ffff:127.0.0.1"),
        ("metadata.test", "169.254.169.254"),
    ]);
    for host in ["rebind.test", "mixed.test", "six.test", "mapped.test", "metadata.test", "REBIND.test"] {
        let toml = format!("executor = \"http\"\nurl = \"http://{host}:{}/\"", server.port());
        let failure = node_with(&toml, names.clone()).await.call(json!(1)).await.unwrap_err();
        assert!(failure.has_code("address-refused") && !failure.retryable, "{host}: {failure:?}");
        assert_eq!(failure.category, Category::Configuration);
        assert!(failure.message.contains("allow_hosts"), "{failure}");
    }
    let toml = format!("executor = \"http\"\nurl = \"http://localhost:{}/\"", server.port());
    let failure = Node::with(&toml).await.call(json!(1)).await.unwrap_err();
    assert!(failure.has_code("address-refused"), "{failure:?}");
    assert_eq!(server.connections(), 0);
    // One lookup for each call: what was checked is what is connected to.
    assert_eq!(names.asked.lock().unwrap().len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_is_not_there_may_come_back() {
    let toml = "executor = \"http\"\nurl = \"http://nowhere.test/\"";
    let failure = node_with(toml, Names::default()).await.call(json!(1)).await.unwrap_err();
    assert!(failure.has_code("http-unreachable") && failure.retryable, "{failure:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_called_when_allowed() {
    let server = Server::start(|_, _| json_answer("1")).await;
    for allowed in
        ["allow_private = true", "allow_hosts = [\"127.0.0.0/8\"]", "allow_hosts = [\"127.0.0.1\"]"]
    {
        let url = format!("executor = \"http\"\nurl = \"http://127.0.0.1:{}/\"\n{allowed}", server.port());
        assert_eq!(Node::with(&url).await.call(json!(1)).await.unwrap(), json!(1), "{allowed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_redirect_is_checked_again() {
    let inner = Server::start(|_, _| json_answer("\"secret\"")).await;
    let port = inner.port();
    for target in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://evil.test:{port}/"),
        format!("http://good.test@evil.test:{port}/"),
        format!("//evil.test:{port}/"),
        "file:///etc/passwd".to_owned(),
    ] {
        let location = format!("location: {target}\r\n");
        let outer = Server::start(move |_, _| response("307 Over There", &location, "")).await;
        let failure = call(&outer, "redirects = 3").await.unwrap_err();
        assert!(failure.has_code("address-refused"), "{target}: {failure:?}");
    }
    assert_eq!(inner.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_are_followed_only_as_far_as_allowed() {
    let server = Server::start(|number, asked| match asked.line.contains("/end") {
        true => json_answer(&number.to_string()),
        false => response("307 Again", &format!("location: /hook{number}\r\n"), ""),
    })
    .await;
    let failure = call(&server, "redirects = 3").await.unwrap_err();
    assert!(failure.has_code("http-status") && failure.message.contains("more redirects"), "{failure}");
    assert_eq!(server.asked().len(), 4);
    let once = Server::start(|number, _| match number {
        0 => response("303 See Other", "location: /end\r\n", ""),
        _ => json_answer("2"),
    })
    .await;
    assert_eq!(call(&once, "redirects = 1").await.unwrap(), json!(2));
    let last = once.asked().remove(1);
    assert_eq!((last.line.as_str(), last.body.as_str()), ("GET /end HTTP/1.1", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_stay_with_their_host() {
    let other = Server::start(|_, _| json_answer("\"there\"")).await;
    let location = format!("location: http://other.test:{}/\r\n", other.port());
    let server = Server::start(move |number, _| match number {
        0 => response("307 Near", "location: /near\r\n", ""),
        _ => response("307 Far", &location, ""),
    })
    .await;
    let (_file, reference) = secret_file("canary-in-the-mine");
    let toml = format!(
        "executor = \"http\"\nurl = \"http://good.test:{}/\"\nallow_private = true\nredirects = 3\n\
         signing_secret = {reference}\nheaders = {{ Authorization = {reference}, Cookie = \"a=b\" }}",
        server.port()
    );
    let names = Names::new(&[("good.test", "127.0.0.1"), ("other.test", "127.0.0.1")]);
    assert_eq!(node_with(&toml, names).await.call(json!(1)).await.unwrap(), json!("there"));
    let near = server.asked();
    assert_eq!(near.len(), 2);
    assert!(near.iter().all(|asked| asked.headers["authorization"] == "canary-in-the-mine"));
    let far = other.asked().remove(0);
    assert_eq!(far.body, "1");
    for header in ["authorization", "cookie", "webhook-signature", "webhook-id"] {
        assert!(!far.headers.contains_key(header), "{far:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_ends_a_call_that_hangs() {
    let server = Server::start(|_, _| Answer::Silence).await;
    let node = node(&server, "/", "").await;
    let instance = node.begin("k", json!(null)).await;
    node.client.cancel(&instance, "not needed").await.unwrap();
    assert!(node.end(&instance).await.unwrap_err().is_cancelled());
}
