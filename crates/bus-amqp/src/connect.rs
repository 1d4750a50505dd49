//! Connections to a broker: TCP, TLS, SASL, a token if the broker wants one, then one link.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body, Message as WireMessage, Properties,
};
use fe2o3_amqp::types::primitives::{SimpleValue, Value};
use fe2o3_amqp::{Connection, Receiver, Sender, Session};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use segno::clock::{self, Clock};
use segno_runbook::bus::{BusError, SubscriptionName, TopicName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::broker::{Broker, Credentials};
use crate::token::sign;

/// How long connecting may take as a whole.
const CONNECT: Duration = Duration::from_secs(20);

/// Name of this client at the broker.
const CONTAINER: &str = "segno";

/// Most messages that the broker sends before those before them are taken: their locks run already.
const CREDIT: u32 = 64;

/// The broker closes a connection on which nothing is heard for this long.
const IDLE_MS: u32 = 60_000;

/// For how long tokens are good.
const TOKEN_LIFE: Duration = Duration::from_secs(60 * 60);

/// After this time a link on which nothing is locked is opened anew: long before its token ends, and
/// so that a message that went missing between a broker and its link is delivered again.
const LINK_LIFE: Duration = Duration::from_secs(10 * 60);

/// The node that takes tokens, and the address of its answers.
const CBS: &str = "$cbs";
const CBS_REPLY: &str = "segno-cbs-reply";

/// A link with its connection, which lives as long as it.
pub(super) struct Attached<L> {
    pub(super) link: L,
    /// Another one for each link of this process.
    pub(super) number: u64,
    pub(super) session: SessionHandle<()>,
    fresh_until_ms: u64,
    _connection: ConnectionHandle<()>,
}

impl<L> Attached<L> {
    /// Whether it is younger than [`LINK_LIFE`].
    pub(super) fn is_fresh(&self, now_ms: u64) -> bool {
        now_ms < self.fresh_until_ms
    }
}

/// A connection without a link.
struct Open {
    session: SessionHandle<()>,
    connection: ConnectionHandle<()>,
    fresh_until_ms: u64,
}

/// A link that sends to a topic.
pub(super) async fn sender(
    broker: &Broker,
    topic: &TopicName,
    clock: &dyn Clock,
) -> Result<Attached<Sender>, BusError> {
    within(clock, async {
        let mut open = open(broker, clock).await?;
        let (number, address) = (next_number(), broker.target(topic));
        let name = format!("segno-send-{number}");
        let link = Sender::attach(&mut open.session, name, address.as_str()).await;
        let link = link.map_err(|error| failed(&format!("topic {address:?} cannot be sent to"), &error))?;
        Ok(open.with(link, number))
    })
    .await
}

/// A link that receives from a subscription.
pub(super) async fn receiver(
    broker: &Broker,
    from: &SubscriptionName,
    clock: &dyn Clock,
) -> Result<Attached<Receiver>, BusError> {
    within(clock, async {
        let mut open = open(broker, clock).await?;
        let (number, address) = (next_number(), broker.source(from));
        let link = Receiver::builder()
            .name(format!("segno-receive-{number}"))
            .source(address.as_str())
            .credit_mode(CreditMode::Auto(CREDIT))
            .attach(&mut open.session)
            .await;
        let link = link.map_err(|error| failed(&format!("{address:?} cannot be received from"), &error))?;
        Ok(open.with(link, number))
    })
    .await
}

impl Open {
    fn with<L>(self, link: L, number: u64) -> Attached<L> {
        Attached {
            link,
            number,
            session: self.session,
            fresh_until_ms: self.fresh_until_ms,
            _connection: self.connection,
        }
    }
}

async fn open(broker: &Broker, clock: &dyn Clock) -> Result<Open, BusError> {
    let address = (broker.host.as_str(), broker.port);
    let stream = TcpStream::connect(address).await.map_err(|error| failed("connecting failed", &error))?;
    let _ = stream.set_nodelay(true);
    let mut connection = if broker.is_tls {
        let host = ServerName::try_from(broker.host.clone())
            .map_err(|error| failed("the host has no name that TLS can check", &error))?;
        let stream = TlsConnector::from(tls()?).connect(host, stream).await;
        negotiate(broker, stream.map_err(|error| failed("TLS failed", &error))?).await?
    } else {
        negotiate(broker, stream).await?
    };
    let session = Session::begin(&mut connection).await;
    let mut session = session.map_err(|error| failed("no session was begun", &error))?;
    let now_ms = clock.now_ms();
    if let Credentials::SharedAccess { policy, key } = &broker.credentials {
        let expires_sec = (now_ms / 1_000).saturating_add(TOKEN_LIFE.as_secs());
        let token = sign(&broker.resource(), (policy, key), expires_sec);
        put_token(&mut session, &broker.resource(), token).await?;
    }
    let fresh_until_ms = now_ms.saturating_add(clock::duration_ms(LINK_LIFE));
    Ok(Open { session, connection, fresh_until_ms })
}

/// SASL and the opening of the connection. TLS, if any, is established.
async fn negotiate<S>(broker: &Broker, stream: S) -> Result<ConnectionHandle<()>, BusError>
where
    S: AsyncRead + AsyncWrite + std::fmt::Debug + Send + Unpin + 'static,
{
    let profile = match &broker.credentials {
        Credentials::Plain { user, password } => {
            SaslProfile::Plain { username: user.clone(), password: password.clone() }
        }
        Credentials::Anonymous | Credentials::SharedAccess { .. } => SaslProfile::Anonymous,
    };
    let opened = Connection::builder()
        .container_id(CONTAINER)
        .scheme("amqp")
        .hostname(broker.host.as_str())
        .idle_time_out(IDLE_MS)
        .sasl_profile(profile)
        .open_with_stream(stream)
        .await;
    opened.map_err(|error| failed("the broker refused the connection", &error))
}

/// Claims-based security: shows a token before links are opened.
async fn put_token(session: &mut SessionHandle<()>, resource: &str, token: String) -> Result<(), BusError> {
    let no_node = |error: &dyn std::fmt::Display| failed("the broker takes no tokens at $cbs", error);
    let mut request =
        Sender::attach(session, "segno-cbs-request", CBS).await.map_err(|error| no_node(&error))?;
    let answers = Receiver::builder().name("segno-cbs-answers").source(CBS).target(CBS_REPLY);
    let mut answers = answers.attach(session).await.map_err(|error| no_node(&error))?;
    let message = WireMessage::builder()
        .properties(Properties::builder().message_id(1_u64).reply_to(CBS_REPLY).build())
        .application_properties(
            ApplicationProperties::builder()
                .insert("operation", "put-token")
                .insert("type", "servicebus.windows.net:sastoken")
                .insert("name", resource)
                .build(),
        )
        .body(AmqpValue(token))
        .build();
    request.send(message).await.map_err(|error| no_node(&error))?;
    let answer = answers.recv::<Body<Value>>().await.map_err(|error| no_node(&error))?;
    answers.accept(&answer).await.map_err(|error| no_node(&error))?;
    let properties = answer.message().application_properties.as_ref();
    let status = properties.and_then(|properties| properties.get("status-code"));
    let is_taken = matches!(status, Some(SimpleValue::Int(200 | 202)));
    let _ = request.close().await;
    let _ = answers.close().await;
    if is_taken {
        return Ok(());
    }
    Err(BusError::Unavailable(format!(
        "the broker refused the token (status {status:?}); check the name and the key of the shared access policy"
    )))
}

/// TLS with the certificates that the machine trusts.
fn tls() -> Result<Arc<ClientConfig>, BusError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| failed("TLS cannot be set up", &error))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

async fn within<T>(
    clock: &dyn Clock,
    connecting: impl Future<Output = Result<T, BusError>>,
) -> Result<T, BusError> {
    let late = || BusError::Unavailable(format!("connecting took longer than {CONNECT:?}"));
    clock::timeout(clock, CONNECT, connecting).await.unwrap_or_else(|| Err(late()))
}

fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(super) fn failed(what: &str, error: &dyn std::fmt::Display) -> BusError {
    BusError::Unavailable(format!("{what}: {error}"))
}
