//! A broker in process: subscriptions of topics as queues, SASL, tokens at `$cbs`, dead letters.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use fe2o3_amqp::acceptor::{
    ConnectionAcceptor, LinkAcceptor, LinkEndpoint, ListenerConnectionHandle, SaslAnonymousMechanism,
    SaslPlainMechanism, SessionAcceptor,
};
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body, Data, Header, Message as WireMessage, Outcome,
};
use fe2o3_amqp::types::primitives::{Array, OrderedMap, SimpleValue, Symbol, Timestamp, Value};
use fe2o3_amqp::{Receiver, Sender};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// How clients show who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// As `guest` with the password `secret/+`.
    Plain,
    /// By a token of the policy `Root`.
    Token,
}

/// The end of locks that were renewed, far ahead.
pub const RENEWED_UNTIL_MS: i64 = 4_000_000_000_000;

#[derive(Default)]
struct Queues {
    waiting: HashMap<String, VecDeque<WireMessage<Body<Value>>>>,
    /// Reason and description of the messages that were rejected.
    dead: Vec<String>,
    tokens: Vec<String>,
    /// Tokens of the locks that were renewed.
    renewed: Vec<[u8; 16]>,
}

/// The broker. It dies when it is dropped.
pub struct TestBroker {
    pub port: u16,
    queues: Arc<Mutex<Queues>>,
    changed: Arc<Notify>,
    connections: Arc<Mutex<JoinSet<()>>>,
    _accepting: JoinSet<()>,
}

impl TestBroker {
    pub async fn start(access: Access) -> TestBroker {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (queues, changed) = (Arc::<Mutex<Queues>>::default(), Arc::new(Notify::new()));
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let mut accepting = JoinSet::new();
        let shared = (queues.clone(), changed.clone(), connections.clone());
        accepting.spawn(async move {
            let (queues, changed, connections) = shared;
            while let Ok((stream, _)) = listener.accept().await {
                let serve = serve(stream, access, (queues.clone(), changed.clone()));
                connections.lock().unwrap().spawn(serve);
            }
        });
        TestBroker { port, queues, changed, connections, _accepting: accepting }
    }

    /// Drops all connections, as a broker that restarts does.
    pub fn disconnect(&self) {
        self.connections.lock().unwrap().abort_all();
        self.changed.notify_waiters();
    }

    pub fn dead(&self) -> Vec<String> {
        self.queues.lock().unwrap().dead.clone()
    }

    pub fn tokens(&self) -> Vec<String> {
        self.queues.lock().unwrap().tokens.clone()
    }

    pub fn renewed(&self) -> Vec<[u8; 16]> {
        self.queues.lock().unwrap().renewed.clone()
    }

    /// Makes the queue of a subscription.
    pub fn subscribe(&self, topic: &str, name: &str) {
        let address = format!("{topic}/Subscriptions/{name}");
        self.queues.lock().unwrap().waiting.entry(address).or_default();
    }
}

type Shared = (Arc<Mutex<Queues>>, Arc<Notify>);

async fn serve(stream: TcpStream, access: Access, shared: Shared) {
    let acceptor = ConnectionAcceptor::builder().container_id("broker");
    let connection: Result<ListenerConnectionHandle, _> = match access {
        Access::Plain => {
            let plain = SaslPlainMechanism::new("guest", "secret/+");
            acceptor.sasl_acceptor(plain).build().accept(stream).await
        }
        Access::Token => acceptor.sasl_acceptor(SaslAnonymousMechanism::new()).build().accept(stream).await,
    };
    let Ok(mut connection) = connection else { return };
    let Ok(mut session) = SessionAcceptor::new().accept(&mut connection).await else { return };
    let links = LinkAcceptor::builder().build();
    let mut tasks = JoinSet::new();
    let answers = Arc::new(Mutex::new(VecDeque::new()));
    let renewals: Renewals = Arc::default();
    let has_token = Arc::new(Mutex::new(access == Access::Plain));
    while let Ok(link) = links.accept(&mut session).await {
        match link {
            LinkEndpoint::Receiver(link) => {
                let address =
                    link.target().as_ref().and_then(|target| target.address.clone()).unwrap_or_default();
                if address == "$cbs" {
                    let state = (answers.clone(), has_token.clone());
                    tasks.spawn(take_tokens(link, shared.clone(), state));
                } else if address.ends_with("/$management") {
                    tasks.spawn(take_renewals(link, renewals.clone(), shared.clone()));
                } else if *has_token.lock().unwrap() {
                    tasks.spawn(take_messages(link, address, shared.clone()));
                }
            }
            LinkEndpoint::Sender(link) => {
                let address =
                    link.source().as_ref().and_then(|source| source.address.clone()).unwrap_or_default();
                if address == "$cbs" {
                    tasks.spawn(answer_tokens(link, answers.clone(), shared.1.clone()));
                } else if address.ends_with("/$management") {
                    tasks.spawn(answer_renewals(link, renewals.clone(), shared.1.clone()));
                } else if *has_token.lock().unwrap() {
                    tasks.spawn(deliver(link, address, shared.clone()));
                }
            }
        }
    }
}

/// Messages of a topic go to the queues of all its subscriptions.
async fn take_messages(mut link: Receiver, topic: String, (queues, changed): Shared) {
    while let Ok(delivery) = link.recv::<Body<Value>>().await {
        let prefix = format!("{topic}/Subscriptions/");
        let is_taken = {
            let mut queues = queues.lock().unwrap();
            let mut is_taken = false;
            for (_, queue) in queues.waiting.iter_mut().filter(|(address, _)| address.starts_with(&prefix)) {
                queue.push_back(delivery.message().clone());
                is_taken = true;
            }
            is_taken
        };
        let settled = if is_taken { link.accept(&delivery).await } else { link.release(&delivery).await };
        if settled.is_err() {
            return;
        }
        changed.notify_waiters();
    }
}

async fn deliver(mut link: Sender, address: String, (queues, changed): Shared) {
    loop {
        let changes = changed.notified();
        // It stays in the queue until it is settled: this task may be ended with its connection.
        let next = queues.lock().unwrap().waiting.get_mut(&address).and_then(|queue| {
            let message = queue.front_mut()?;
            let delivered = message.clone();
            message.header.get_or_insert_with(Header::default).delivery_count += 1;
            Some(delivered)
        });
        let Some(message) = next else {
            changes.await;
            continue;
        };
        let outcome = link.send(data(&message)).await;
        let mut queues = queues.lock().unwrap();
        if let Ok(Outcome::Accepted(_) | Outcome::Rejected(_)) = &outcome {
            queues.waiting.get_mut(&address).and_then(VecDeque::pop_front);
        }
        match outcome {
            Ok(Outcome::Rejected(rejected)) => {
                let error = rejected.error.expect("a reason");
                let info = error.info.expect("what Service Bus reads");
                let text = |name: &str| match info.get(&Symbol::from(name)) {
                    Some(Value::String(text)) => text.clone(),
                    other => format!("{other:?}"),
                };
                let reason = format!("{}: {}", text("DeadLetterReason"), text("DeadLetterErrorDescription"));
                queues.dead.push(reason);
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// A message with its bytes as they came.
fn data(message: &WireMessage<Body<Value>>) -> WireMessage<Data> {
    let bytes: Vec<u8> = match &message.body {
        Body::Data(parts) => parts.clone().into_iter().flat_map(|part| part.0.into_vec()).collect(),
        _ => Vec::new(),
    };
    let mut wire = WireMessage::builder().data(bytes).build();
    wire.header.clone_from(&message.header);
    wire.properties.clone_from(&message.properties);
    wire.application_properties.clone_from(&message.application_properties);
    wire
}

/// Answers to renewals that wait to be sent: the status.
type Renewals = Arc<Mutex<VecDeque<i32>>>;

/// Every lock is renewed but the third, which has ended.
async fn take_renewals(mut link: Receiver, renewals: Renewals, (queues, changed): Shared) {
    while let Ok(delivery) = link.recv::<Body<Value>>().await {
        let properties = delivery.message().application_properties.clone().unwrap_or_default();
        let operation = properties.get("operation");
        assert_eq!(operation, Some(&SimpleValue::String("com.microsoft:renew-lock".to_owned())));
        let Body::Value(AmqpValue(Value::Map(map))) = delivery.body() else { panic!("no map") };
        let Some(Value::Array(tokens)) = map.get(&Value::String("lock-tokens".to_owned())) else {
            panic!("no tokens: {map:?}")
        };
        let Some(Value::Uuid(token)) = tokens.0.first() else { panic!("no token: {tokens:?}") };
        let count = {
            let mut queues = queues.lock().unwrap();
            queues.renewed.push(*token.as_inner());
            queues.renewed.len()
        };
        renewals.lock().unwrap().push_back(if count < 3 { 200 } else { 410 });
        if link.accept(&delivery).await.is_err() {
            return;
        }
        changed.notify_waiters();
    }
}

async fn answer_renewals(mut link: Sender, renewals: Renewals, changed: Arc<Notify>) {
    loop {
        let changes = changed.notified();
        let next = renewals.lock().unwrap().pop_front();
        let Some(status) = next else {
            changes.await;
            continue;
        };
        let mut body: OrderedMap<String, Array<Timestamp>> = OrderedMap::new();
        let expirations = Array::from(vec![Timestamp::from_milliseconds(RENEWED_UNTIL_MS)]);
        body.insert("expirations".to_owned(), expirations);
        let answer = WireMessage::builder()
            .application_properties(ApplicationProperties::builder().insert("statusCode", status).build())
            .body(AmqpValue(body))
            .build();
        if link.send(answer).await.is_err() {
            return;
        }
    }
}

type TokenState = (Arc<Mutex<VecDeque<i32>>>, Arc<Mutex<bool>>);

async fn take_tokens(mut link: Receiver, (queues, changed): Shared, (answers, has_token): TokenState) {
    while let Ok(delivery) = link.recv::<Body<Value>>().await {
        let token = match delivery.body() {
            Body::Value(value) => match &value.0 {
                Value::String(text) => text.clone(),
                _ => String::new(),
            },
            _ => String::new(),
        };
        let properties = delivery.message().application_properties.clone().unwrap_or_default();
        let is_put = properties.get("operation") == Some(&SimpleValue::String("put-token".to_owned()));
        let is_good = is_put && token.starts_with("SharedAccessSignature sr=") && token.ends_with("skn=Root");
        queues.lock().unwrap().tokens.push(token);
        *has_token.lock().unwrap() = is_good;
        answers.lock().unwrap().push_back(if is_good { 202 } else { 401 });
        if link.accept(&delivery).await.is_err() {
            return;
        }
        changed.notify_waiters();
    }
}

async fn answer_tokens(mut link: Sender, answers: Arc<Mutex<VecDeque<i32>>>, changed: Arc<Notify>) {
    loop {
        let changes = changed.notified();
        let next = answers.lock().unwrap().pop_front();
        let Some(status) = next else {
            changes.await;
            continue;
        };
        let answer = WireMessage::builder()
            .application_properties(ApplicationProperties::builder().insert("status-code", status).build())
            .data(Vec::new())
            .build();
        if link.send(answer).await.is_err() {
            return;
        }
    }
}
