//! Where the database is and how the store uses it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use segno::clock::{Clock, SystemClock};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::error::OpenError;

/// Schema that a store lives in unless told otherwise.
pub const DEFAULT_SCHEMA: &str = "segno";

/// Longest name of a schema in bytes; leaves room in the names that the database derives from it.
const MAX_SCHEMA_BYTES: usize = 40;

/// The port of a URL that names none.
pub(crate) const DEFAULT_PORT: u16 = 5432;

const DEFAULT_STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_RETRY_FOR: Duration = Duration::from_secs(25);
const DEFAULT_SLOW_POLL: Duration = Duration::from_secs(5);

/// A server that has lost power closes no connection. Probes find that out, also for the listening connection, on which
/// nothing is sent: after a silence of the first length, this many probes at this distance.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;

/// The driver's value when the URL has no `keepalives_idle`.
const UNSET_KEEPALIVE_IDLE: Duration = Duration::from_secs(2 * 60 * 60);

/// Longest that sent bytes may stay unacknowledged by a server before its connection counts as lost.
const UNACKNOWLEDGED_LIMIT: Duration = Duration::from_secs(15);

/// How a store is opened. Made from a URL; the rest are steps.
///
/// The URL is that of libpq, with a few parameters of our own: `schema`, `pooler=transaction`, `sslrootcert`. It may name
/// several hosts, separated by commas: a primary and its standbys. The store uses the one that takes writes.
#[derive(Clone)]
pub struct PostgresOptions {
    /// One for each host of the URL, in its order; at least one.
    pub(crate) servers: Vec<Config>,
    pub(crate) listen: Option<Vec<Config>>,
    pub(crate) schema: String,
    pub(crate) migration: Migration,
    pub(crate) pooler: Pooler,
    pub(crate) root_certificates: Option<PathBuf>,
    pub(crate) statement_timeout: Duration,
    pub(crate) retry_for: Duration,
    pub(crate) slow_poll: Duration,
    pub(crate) clock: Arc<dyn Clock>,
}

/// What opening a store may do to its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Migration {
    /// Creates a schema that does not exist, and upgrades one of an older build: for servers.
    #[default]
    CreateOrUpgrade,
    /// Creates a schema that does not exist. One of an older build is refused, because the servers
    /// that use it may be of that build: for commands that fill a store.
    Create,
    /// Changes nothing: for commands that read a store or need one that exists.
    Never,
}

/// What stands between the store and the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pooler {
    /// Nothing, or a pooler that gives a connection for a whole session.
    #[default]
    Session,
    /// A pooler that may serve each transaction from another connection. Nothing is set for a session, and nobody
    /// listens for notifications unless [`PostgresOptions::listen_url`] goes past the pooler.
    Transaction,
}

impl std::fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("hosts", &self.servers.iter().flat_map(Config::get_hosts).collect::<Vec<_>>())
            .field("schema", &self.schema)
            .field("pooler", &self.pooler)
            .finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// Reads a URL.
    ///
    /// # Errors
    /// When it is not a URL of PostgreSQL, or a parameter has no such value.
    pub fn from_url(url: &str) -> Result<Self, OpenError> {
        let Own { url, schema, pooler, root_certificates } = Own::split(url)?;
        let servers = one_url_per_host(&url).iter().map(|url| read(url)).collect::<Result<Vec<_>, _>>()?;
        Ok(PostgresOptions {
            servers,
            listen: None,
            schema: schema.unwrap_or_else(|| DEFAULT_SCHEMA.to_owned()),
            migration: Migration::default(),
            pooler,
            root_certificates,
            statement_timeout: DEFAULT_STATEMENT_TIMEOUT,
            retry_for: DEFAULT_RETRY_FOR,
            slow_poll: DEFAULT_SLOW_POLL,
            clock: SystemClock::shared(),
        })
    }

    /// Lives in this schema; made if it is not there.
    ///
    /// # Errors
    /// When the name is not a plain lower-case identifier.
    pub fn schema(mut self, schema: &str) -> Result<Self, OpenError> {
        check_schema(schema)?;
        schema.clone_into(&mut self.schema);
        Ok(self)
    }

    /// What opening the store may do to its schema.
    pub fn migration(mut self, migration: Migration) -> Self {
        self.migration = migration;
        self
    }

    /// Hosts, ports, database and schema as a URL, for messages. Neither a user nor a password is
    /// in it.
    pub fn address(&self) -> String {
        let hosts: Vec<String> = self.servers.iter().map(host_and_port).collect();
        format!("postgres://{}/{}?schema={}", hosts.join(","), self.database(), self.schema)
    }

    /// The database, as far as the URL names one: without a name it is that of the user.
    pub(crate) fn database(&self) -> &str {
        let server = self.servers.first();
        server.and_then(|server| server.get_dbname().or(server.get_user())).unwrap_or_default()
    }

    /// Says what stands between the store and the database.
    pub fn pooler(mut self, pooler: Pooler) -> Self {
        self.pooler = pooler;
        self
    }

    /// Listens for notifications over a connection of its own, past a pooler that cannot carry them.
    ///
    /// # Errors
    /// As [`PostgresOptions::from_url`].
    pub fn listen_url(mut self, url: &str) -> Result<Self, OpenError> {
        self.listen = Some(Self::from_url(url)?.servers);
        Ok(self)
    }

    /// A statement that takes longer is ended by the database.
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.statement_timeout = timeout;
        self
    }

    /// How long a write waits for a database that is away, all tries and the wait behind other
    /// writes included, before it fails with `Unavailable`.
    pub fn retry_for(mut self, duration: Duration) -> Self {
        self.retry_for = duration;
        self
    }

    /// How often the store looks for work that no notification told of.
    pub fn slow_poll(mut self, interval: Duration) -> Self {
        self.slow_poll = interval;
        self
    }

    /// The clock for local waits; visibility and expiry are decided by the database's own.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Whether connections may be encrypted: never those over a Unix socket.
    pub(crate) fn may_encrypt(&self) -> bool {
        self.servers.iter().any(|server| {
            let is_remote = server.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)));
            is_remote && server.get_ssl_mode() != SslMode::Disable
        })
    }

    /// What a listening connection goes to, if there is to be one.
    pub(crate) fn listen_servers(&self) -> Option<&[Config]> {
        match (&self.listen, self.pooler) {
            (Some(servers), _) => Some(servers),
            (None, Pooler::Session) => Some(&self.servers),
            (None, Pooler::Transaction) => None,
        }
    }
}

/// A server as it is written in a URL.
fn host_and_port(server: &Config) -> String {
    let port = server.get_ports().first().copied().unwrap_or(DEFAULT_PORT);
    match server.get_hosts().first() {
        Some(Host::Tcp(name)) if name.contains(':') => format!("[{name}]:{port}"),
        Some(Host::Tcp(name)) => format!("{name}:{port}"),
        Some(Host::Unix(path)) => format!("{}:{port}", path.display().to_string().replace('/', "%2F")),
        None => format!(":{port}"),
    }
}

/// The URL once for each host in it. The driver could go through the hosts itself, but a first host that accepts
/// connections and never answers would keep it from all others.
fn one_url_per_host(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else { return vec![url.to_owned()] };
    let (credentials, rest) = match rest.split_once('@') {
        Some((credentials, rest)) => (format!("{credentials}@"), rest),
        None => (String::new(), rest),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (hosts, path) = rest.split_at(end);
    hosts.split(',').map(|host| format!("{scheme}://{credentials}{host}{path}")).collect()
}

/// Settings of one server, with our own defaults.
fn read(url: &str) -> Result<Config, OpenError> {
    let mut config: Config =
        url.parse().map_err(|error: tokio_postgres::Error| OpenError::Invalid(describe_url_error(&error)))?;
    if config.get_target_session_attrs() == TargetSessionAttrs::ReadOnly {
        let text = "target_session_attrs=read-only names servers that a store cannot write to; leave it out";
        return Err(OpenError::Invalid(text.to_owned()));
    }
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(DEFAULT_CONNECT_TIMEOUT);
    }
    if config.get_application_name().is_none() {
        config.application_name("segno");
    }
    if config.get_keepalives_idle() == UNSET_KEEPALIVE_IDLE {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE_PROBES);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNACKNOWLEDGED_LIMIT);
    }
    Ok(config)
}

/// What the driver says of a URL, without the URL, which may contain a password.
fn describe_url_error(error: &tokio_postgres::Error) -> String {
    let reason = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    format!("the URL of the database cannot be read: {reason}; use postgres://user@host/database")
}

pub(crate) fn check_schema(schema: &str) -> Result<(), OpenError> {
    let starts_well = schema.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    let goes_on_well =
        schema.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if starts_well && goes_on_well && schema.len() <= MAX_SCHEMA_BYTES && !schema.starts_with("pg_") {
        return Ok(());
    }
    Err(OpenError::Invalid(format!(
        "{schema:?} cannot be a schema: use at most {MAX_SCHEMA_BYTES} lower-case letters, digits and underscores, \
         beginning with a letter and not with pg_"
    )))
}

/// The parameters of a URL that are ours, and the URL without them.
struct Own {
    url: String,
    schema: Option<String>,
    pooler: Pooler,
    root_certificates: Option<PathBuf>,
}

impl Own {
    fn split(url: &str) -> Result<Self, OpenError> {
        let mut own =
            Own { url: String::new(), schema: None, pooler: Pooler::Session, root_certificates: None };
        let Some((address, query)) = url.split_once('?') else {
            url.clone_into(&mut own.url);
            return Ok(own);
        };
        let mut others: Vec<String> = Vec::new();
        for parameter in query.split('&') {
            match parameter.split_once('=') {
                Some(("schema", schema)) => {
                    check_schema(schema)?;
                    own.schema = Some(schema.to_owned());
                }
                Some(("pooler", "transaction")) => own.pooler = Pooler::Transaction,
                Some(("pooler", "session")) => own.pooler = Pooler::Session,
                Some(("pooler", other)) => {
                    let text = format!("pooler={other} is unknown; use pooler=transaction or pooler=session");
                    return Err(OpenError::Invalid(text));
                }
                Some(("sslrootcert", path)) => own.root_certificates = Some(PathBuf::from(path)),
                // Certificates are always verified, so these ask for what is done anyway.
                Some(("sslmode", "verify-full" | "verify-ca")) => others.push("sslmode=require".to_owned()),
                _ => others.push(parameter.to_owned()),
            }
        }
        own.url =
            if others.is_empty() { address.to_owned() } else { format!("{address}?{}", others.join("&")) };
        Ok(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_parameters_are_taken_out_of_the_url() {
        let url = "postgres://u:p@h:1/d?schema=mine&sslmode=verify-full&pooler=transaction&connect_timeout=3&sslrootcert=/ca";
        let options = PostgresOptions::from_url(url).unwrap();
        assert_eq!((options.schema.as_str(), options.pooler), ("mine", Pooler::Transaction));
        assert_eq!(options.root_certificates, Some(PathBuf::from("/ca")));
        assert_eq!(options.servers[0].get_ssl_mode(), SslMode::Require);
        assert_eq!(options.servers[0].get_connect_timeout(), Some(&Duration::from_secs(3)));
        assert!(options.listen_servers().is_none(), "such a pooler carries no notifications");
    }

    #[test]
    fn every_host_of_a_url_is_a_server_that_must_take_writes() {
        let url = "postgres://u:p@db1:5433,[::1]:5434,%2Frun%2Fpg/d?connect_timeout=2&keepalives_idle=60";
        let options = PostgresOptions::from_url(url).unwrap();
        let shown: Vec<String> = options
            .servers
            .iter()
            .map(|server| format!("{:?} {:?}", server.get_hosts(), server.get_ports()))
            .collect();
        assert_eq!(shown, ["[Tcp(\"db1\")] [5433]", "[Tcp(\"::1\")] [5434]", "[Unix(\"/run/pg\")] [5432]"]);
        for server in &options.servers {
            assert_eq!(server.get_user(), Some("u"));
            assert_eq!(server.get_password(), Some(&b"p"[..]));
            assert_eq!(server.get_dbname(), Some("d"));
            assert_eq!(server.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
            assert_eq!(server.get_connect_timeout(), Some(&Duration::from_secs(2)));
            assert_eq!(server.get_keepalives_idle(), Duration::from_secs(60), "the URL is kept to");
            assert_eq!(server.get_tcp_user_timeout(), Some(&UNACKNOWLEDGED_LIMIT));
        }
    }

    #[test]
    fn an_address_has_hosts_database_and_schema_and_no_credentials() {
        for (url, address) in [
            ("postgres://u:secret@h/d", "postgres://h:5432/d?schema=segno"),
            (
                "postgres://u:secret@db1:5433,[::1]/d?schema=mine",
                "postgres://db1:5433,[::1]:5432/d?schema=mine",
            ),
            ("postgres://u:secret@%2Frun%2Fpg/d", "postgres://%2Frun%2Fpg:5432/d?schema=segno"),
            ("postgres://lab:secret@h", "postgres://h:5432/lab?schema=segno"),
        ] {
            assert_eq!(PostgresOptions::from_url(url).unwrap().address(), address, "{url}");
        }
    }

    #[test]
    fn a_server_without_power_is_noticed_within_half_a_minute() {
        let options = PostgresOptions::from_url("postgres://u@h/d").unwrap();
        let server = &options.servers[0];
        let probing = server.get_keepalives_interval().unwrap() * server.get_keepalives_retries().unwrap();
        assert!(server.get_keepalives_idle() + probing <= Duration::from_secs(30));
    }

    #[test]
    fn a_bad_url_is_refused_with_a_reason_and_without_its_password() {
        for (url, reason) in [
            ("postgres://u:secret@h/d?colour=blue", "colour"),
            ("postgres://u:secret@h/d?schema=A", "cannot be a schema"),
            ("postgres://u:secret@h/d?schema=", "cannot be a schema"),
            ("postgres://u:secret@h/d?schema=a%22", "cannot be a schema"),
            ("postgres://u:secret@h/d?schema=pg_x", "cannot be a schema"),
            ("postgres://u:secret@h/d?pooler=none", "use pooler=transaction"),
            ("postgres://u:secret@h:port/d", "port"),
            ("postgres://u:secret@h,h2/d?target_session_attrs=read-only", "leave it out"),
        ] {
            let error = PostgresOptions::from_url(url).unwrap_err().to_string();
            assert!(error.contains(reason), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
