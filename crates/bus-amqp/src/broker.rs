//! Where a broker is and how it is addressed.
//!
//! `amqps://USER:PASSWORD@HOST[:PORT][/?auth=AUTH&broker=BROKER]`, with characters of user and
//! password percent-encoded. `auth` is `plain` if there is a user, and `anonymous` otherwise; with
//! `cbs`, user and password are the name and the key of a shared access policy. `broker` is
//! `service-bus` by default, `rabbitmq` (version 4) or `rabbitmq3`.

use std::fmt;

use segno_runbook::bus::{
    BrokerNames, JOBS, ORCHESTRATOR, ORCHESTRATOR_EVENTS, RESULTS, SubscriptionName, TopicName,
};

/// A URL that is none of a broker. The text does not repeat the URL, which has a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it is no URL of a broker: {0}; write amqps://USER:PASSWORD@HOST")]
pub struct InvalidBroker(&'static str);

/// How the client shows who it is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    Anonymous,
    Plain {
        user: String,
        password: String,
    },
    /// A token signed with the key of a shared access policy.
    SharedAccess {
        policy: String,
        key: String,
    },
}

/// How a broker spells addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    ServiceBus,
    /// Version 4 and later.
    RabbitMq,
    /// Version 3, whose plugin for AMQP 1.0 has addresses of its own.
    RabbitMq3,
}

/// A broker.
#[derive(Clone, PartialEq, Eq)]
pub struct Broker {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
    pub(crate) credentials: Credentials,
    spelling: Spelling,
    names: BrokerNames,
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Broker").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Broker {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is wrong with it, without the URL.
    pub fn new(url: &str, names: BrokerNames) -> Result<Self, InvalidBroker> {
        let (is_tls, rest) = match (url.strip_prefix("amqps://"), url.strip_prefix("amqp://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => return Err(InvalidBroker("it begins with neither amqps:// nor amqp://")),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, place) = match rest.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, rest),
        };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| InvalidBroker("the port is no number"))?)
            }
            _ => (place, if is_tls { 5671 } else { 5672 }),
        };
        if host.is_empty() || host.contains('/') {
            return Err(InvalidBroker("it has no host, or a path"));
        }
        let mut broker = Broker {
            host: host.to_owned(),
            port,
            is_tls,
            credentials: Credentials::Anonymous,
            spelling: Spelling::ServiceBus,
            names,
        };
        let mut auth = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("auth", value)) => auth = Some(value),
                Some(("broker", "service-bus")) => broker.spelling = Spelling::ServiceBus,
                Some(("broker", "rabbitmq")) => broker.spelling = Spelling::RabbitMq,
                Some(("broker", "rabbitmq3")) => broker.spelling = Spelling::RabbitMq3,
                _ => return Err(InvalidBroker("after the `?` it has something else than auth and broker")),
            }
        }
        broker.credentials = credentials(user, auth)?;
        Ok(broker)
    }

    /// The resource that a token is for.
    pub(crate) fn resource(&self) -> String {
        format!("sb://{}", self.host)
    }

    /// Where messages of a topic are sent to.
    pub(crate) fn target(&self, topic: &TopicName) -> String {
        let name = self.topic(topic);
        match self.spelling {
            Spelling::ServiceBus => name.to_owned(),
            Spelling::RabbitMq => format!("/exchanges/{name}"),
            Spelling::RabbitMq3 => format!("/exchange/{name}"),
        }
    }

    /// Where messages of a subscription are received from.
    pub(crate) fn source(&self, from: &SubscriptionName) -> String {
        let topic = self.topic(&from.topic);
        let name = match from.as_str() {
            ORCHESTRATOR => self.names.subscription.as_str(),
            other => other,
        };
        match self.spelling {
            Spelling::ServiceBus => format!("{topic}/Subscriptions/{name}"),
            Spelling::RabbitMq => format!("/queues/{topic}.{name}"),
            Spelling::RabbitMq3 => format!("/amq/queue/{topic}.{name}"),
        }
    }

    /// The node that renews locks of a subscription; none if a lock lasts as long as its connection.
    pub(crate) fn management(&self, from: &SubscriptionName) -> Option<String> {
        match self.spelling {
            Spelling::ServiceBus => Some(format!("{}/$management", self.source(from))),
            Spelling::RabbitMq | Spelling::RabbitMq3 => None,
        }
    }

    /// Whether the broker knows the outcome that counts a delivery as failed. Version 3 of RabbitMQ
    /// ends the session instead.
    pub(crate) fn counts_failures(&self) -> bool {
        self.spelling != Spelling::RabbitMq3
    }

    fn topic<'a>(&'a self, topic: &'a TopicName) -> &'a str {
        match topic.as_str() {
            ORCHESTRATOR_EVENTS => &self.names.events,
            JOBS => &self.names.jobs,
            RESULTS => &self.names.results,
            other => other,
        }
    }
}

fn credentials(user: Option<&str>, auth: Option<&str>) -> Result<Credentials, InvalidBroker> {
    let Some(user) = user else {
        return match auth {
            None | Some("anonymous") => Ok(Credentials::Anonymous),
            _ => Err(InvalidBroker("it has no user and password")),
        };
    };
    let (user, password) = user.split_once(':').ok_or(InvalidBroker("it has a user and no password"))?;
    let (user, password) = (decoded(user)?, decoded(password)?);
    match auth {
        None | Some("plain") => Ok(Credentials::Plain { user, password }),
        Some("cbs") => Ok(Credentials::SharedAccess { policy: user, key: password }),
        Some("anonymous") => Ok(Credentials::Anonymous),
        Some(_) => Err(InvalidBroker("auth is neither plain, cbs nor anonymous")),
    }
}

/// Text with its percent-encoded bytes decoded.
fn decoded(text: &str) -> Result<String, InvalidBroker> {
    let wrong = InvalidBroker("a % is not followed by two hexadecimal digits");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).ok_or(wrong.clone())?;
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).map_err(|_| InvalidBroker("user or password are not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> BrokerNames {
        BrokerNames {
            events: "orchestrator-events".to_owned(),
            jobs: "worker-jobs".to_owned(),
            results: "worker-results".to_owned(),
            subscription: "segno".to_owned(),
        }
    }

    #[test]
    fn a_url_names_the_broker_and_how_to_show_who_one_is() {
        let broker = Broker::new("amqps://Root%2B:a%2Fb%3D@contoso.servicebus.windows.net", names()).unwrap();
        assert_eq!(
            (broker.host.as_str(), broker.port, broker.is_tls),
            ("contoso.servicebus.windows.net", 5671, true)
        );
        let plain = Credentials::Plain { user: "Root+".to_owned(), password: "a/b=".to_owned() };
        assert!(broker.credentials == plain);
        assert_eq!(broker.target(&TopicName::new("jobs").unwrap()), "worker-jobs");
        let results = SubscriptionName::new("results", "orchestrator").unwrap();
        assert_eq!(broker.source(&results), "worker-results/Subscriptions/segno");
        assert!(!format!("{broker:?}").contains("a/b"));

        let rabbit = Broker::new("amqp://localhost:5673/?broker=rabbitmq", names()).unwrap();
        assert_eq!(
            (rabbit.port, rabbit.target(&TopicName::new("jobs").unwrap())),
            (5673, "/exchanges/worker-jobs".to_owned())
        );
        assert_eq!(rabbit.source(&results), "/queues/worker-results.segno");
        assert_eq!(rabbit.management(&results), None);
        let node = "worker-results/Subscriptions/segno/$management";
        assert_eq!(broker.management(&results).as_deref(), Some(node));
        assert!(rabbit.credentials == Credentials::Anonymous);
        let older = Broker::new("amqp://localhost/?broker=rabbitmq3", names()).unwrap();
        assert_eq!(older.target(&TopicName::new("jobs").unwrap()), "/exchange/worker-jobs");
        assert_eq!(older.source(&results), "/amq/queue/worker-results.segno");
        assert!(rabbit.counts_failures() && !older.counts_failures());
        let cbs = Broker::new("amqps://p:k@h/?auth=cbs", names()).unwrap();
        let signed = Credentials::SharedAccess { policy: "p".to_owned(), key: "k".to_owned() };
        assert!(cbs.credentials == signed);
    }

    #[test]
    fn what_is_no_url_is_told_without_its_password() {
        for url in [
            "https://u:secret@h",
            "amqps://u:secret@",
            "amqps://u:secret@h/path",
            "amqps://secret@h",
            "amqps://u:secret%zz@h",
            "amqps://u:secret@h:port",
            "amqps://u:secret@h/?auth=magic",
            "amqps://u:secret@h/?x=1",
            "amqps://h/?auth=cbs",
        ] {
            let error = Broker::new(url, names()).unwrap_err().to_string();
            assert!(!error.contains("secret") && error.contains("amqps://USER:PASSWORD@HOST"), "{error}");
        }
    }
}
