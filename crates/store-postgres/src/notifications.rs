//! Waking other nodes: notifications on one channel per schema, gathered for a few milliseconds, and sent only while
//! another node listens.
//!
//! A payload is `1 NODE FLAGS IDS`. The 1 is the version of this format. NODE is a number that a node draws when it
//! opens. FLAGS are letters: `t` turns, `w` activities, `d` due records, `h` hello (answer me), `i` I am here, `*` look at
//! every instance. IDS are instances that changed, each as its length in bytes, a colon, and itself. A node
//! that does not understand a payload looks at everything.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use segno::clock::{SystemClock, duration_ms, sleep};
use tokio::sync::Notify;
use tokio_postgres::types::Type;

use crate::connection::{Connector, OnNotification};
use crate::core::Core;
use crate::item::Item;
use crate::options::PostgresOptions;
use crate::waiting::{Held, Pending, Waiting};

/// Shortest time between two notifications of a node. The first one after a rest goes out at once.
const GATHERING: Duration = Duration::from_millis(20);

/// How often a node says that it is here, and after which silence it is forgotten.
const GREETING: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(35);

/// How often a node looks while it cannot hear.
const DEAF_POLL: Duration = Duration::from_millis(250);

/// Most bytes of instance ids in a payload; the server allows 8,000 in all.
const MAX_ID_BYTES: usize = 7_000;

const FIRST_BACKOFF: Duration = Duration::from_millis(50);
const LONGEST_BACKOFF: Duration = Duration::from_secs(5);

/// What other nodes are to be told, and what is known of them.
pub(crate) struct Outbox {
    node: u64,
    is_listening: AtomicBool,
    /// Steady time at which another node was last heard of; 0 is never.
    heard_at_ms: AtomicU64,
    news: Mutex<News>,
    has_news: Notify,
}

/// What a notification says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct News {
    turns: bool,
    activities: bool,
    due: bool,
    hello: bool,
    here: bool,
    everything: bool,
    instances: BTreeSet<String>,
}

impl News {
    fn is_empty(&self) -> bool {
        *self == News::default()
    }

    fn payload(&self, node: u64) -> String {
        let mut ids = String::new();
        for instance in &self.instances {
            // Writing to a string cannot fail.
            let _ = write!(ids, "{}:{instance}", instance.len());
        }
        let is_too_long = ids.len() > MAX_ID_BYTES;
        let flags = [
            (self.turns, 't'),
            (self.activities, 'w'),
            (self.due, 'd'),
            (self.hello, 'h'),
            (self.here, 'i'),
            (self.everything || is_too_long, '*'),
        ];
        let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| *letter).collect();
        format!("1 {node} {flags} {}", if is_too_long { "" } else { &ids })
    }

    /// Who says what. `None` when it is not understood.
    fn parse(payload: &str) -> Option<(u64, News)> {
        let mut parts = payload.splitn(4, ' ');
        if parts.next() != Some("1") {
            return None;
        }
        let node = parts.next()?.parse().ok()?;
        let (flags, mut ids) = (parts.next()?, parts.next()?);
        let mut instances = BTreeSet::new();
        while !ids.is_empty() {
            let (length, rest) = ids.split_once(':')?;
            let (id, rest) = rest.split_at_checked(length.parse().ok()?)?;
            instances.insert(id.to_owned());
            ids = rest;
        }
        let has = |letter: char| flags.contains(letter);
        let news = News {
            turns: has('t'),
            activities: has('w'),
            due: has('d'),
            hello: has('h'),
            here: has('i'),
            everything: has('*'),
            instances,
        };
        Some((node, news))
    }
}

impl Outbox {
    pub(crate) fn new(node: u64) -> Self {
        Outbox {
            node,
            is_listening: AtomicBool::new(false),
            heard_at_ms: AtomicU64::new(0),
            news: Mutex::default(),
            has_news: Notify::new(),
        }
    }

    /// How often to look for what no notification tells of.
    pub(crate) fn poll_interval(&self, options: &PostgresOptions) -> Duration {
        if self.is_listening.load(Ordering::Relaxed) {
            options.slow_poll
        } else {
            options.slow_poll.min(DEAF_POLL)
        }
    }

    /// Notes what others may want to know of an exchange.
    pub(crate) fn note(&self, items: &[Pending], outcomes: &[i64], waiting: &Waiting) {
        if items.is_empty() || !self.has_company() {
            return;
        }
        self.tell(|news| {
            let done = items.iter().zip(outcomes).filter(|(_, outcome)| **outcome == 0);
            for item in done.map(|(pending, _)| &pending.item) {
                news.turns |= item.shows_turns();
                news.activities |= item.shows_activities();
                news.due |= item.shows_due_records();
                match item {
                    Item::Turn(turn) => match waiting.held(turn.lock_token).and_then(Held::instance) {
                        Some(instance) => drop(news.instances.insert(instance.to_owned())),
                        None => news.everything = true,
                    },
                    Item::Append { instance, .. } => drop(news.instances.insert(instance.clone())),
                    _ => {}
                }
            }
        });
    }

    fn tell(&self, change: impl FnOnce(&mut News)) {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut news);
        if !news.is_empty() {
            self.has_news.notify_one();
        }
    }

    fn has_company(&self) -> bool {
        let heard_at_ms = self.heard_at_ms.load(Ordering::Relaxed);
        heard_at_ms > 0 && steady_ms().saturating_sub(heard_at_ms) < duration_ms(SILENCE)
    }

    fn take(&self) -> News {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn steady_ms() -> u64 {
    use segno::clock::Clock;
    SystemClock.monotonic_ns() / 1_000_000 + 1
}

fn channel(schema: &str) -> String {
    format!("segno_{schema}")
}

/// Sends news to other nodes until it is stopped.
pub(crate) async fn send(core: Arc<Core>) {
    let outbox = &core.outbox;
    loop {
        tokio::select! {
            () = outbox.has_news.notified() => {}
            () = sleep(&SystemClock, GREETING) => outbox.tell(|news| news.here = true),
        }
        let news = outbox.take();
        if news.is_empty() {
            continue;
        }
        let (channel, payload) = (channel(core.schema()), news.payload(outbox.node));
        let parameters = [(&channel as _, Type::TEXT), (&payload as _, Type::TEXT)];
        core.counts.notifications.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = core.rows("notify", "SELECT pg_notify($1, $2)", &parameters).await {
            // The slow poll of the others makes up for it.
            tracing::debug!(%error, "other nodes could not be notified");
        }
        sleep(&SystemClock, GATHERING).await;
    }
}

/// Listens to other nodes until it is stopped, over a connection of its own that is made again when it breaks.
pub(crate) async fn listen(core: Arc<Core>, connector: Connector) {
    let mut backoff = FIRST_BACKOFF;
    loop {
        let hearing = Arc::clone(&core);
        let heard: OnNotification = Arc::new(move |payload| hear(&hearing, payload));
        match connector.connect(Some(heard)).await {
            Ok(mut connection) => {
                let listen = format!("LISTEN \"{}\"", channel(core.schema()));
                if connection.client().batch_execute(&listen).await.is_ok() {
                    backoff = FIRST_BACKOFF;
                    core.outbox.is_listening.store(true, Ordering::Relaxed);
                    core.outbox.tell(|news| news.hello = true);
                    // What was said before this moment was not heard.
                    core.look_at_everything();
                    connection.closed().await;
                    core.outbox.is_listening.store(false, Ordering::Relaxed);
                    core.wake.notify_one();
                }
            }
            Err(error) => tracing::warn!(%error, "cannot listen to other nodes; looking for work more often"),
        }
        sleep(&SystemClock, backoff).await;
        backoff = (backoff * 2).min(LONGEST_BACKOFF);
    }
}

fn hear(core: &Core, payload: &str) {
    let Some((node, news)) = News::parse(payload) else { return core.look_at_everything() };
    let outbox = &core.outbox;
    if node == outbox.node {
        return;
    }
    let was_alone = !outbox.has_company();
    outbox.heard_at_ms.store(steady_ms(), Ordering::Relaxed);
    if news.hello {
        outbox.tell(|news| news.here = true);
    }
    // What the other one did before it knew of this node, it did not tell.
    if was_alone || news.everything {
        core.look_at_everything();
    }
    if news.due {
        core.due_changed.notify_waiters();
    }
    let mut waiting = core.waiting();
    if news.turns {
        waiting.turns.look();
    }
    if news.activities {
        waiting.work.look();
    }
    for instance in &news.instances {
        waiting.check(instance);
    }
    drop(waiting);
    core.wake.notify_one();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(instances: &[&str]) -> News {
        let instances = instances.iter().map(|id| (*id).to_owned()).collect();
        News { turns: true, due: true, instances, ..News::default() }
    }

    #[test]
    fn a_payload_says_what_was_meant() {
        for ids in [&[][..], &["a"], &["a b", "1:x", "line\nbreak", "日本"]] {
            let news = news(ids);
            assert_eq!(News::parse(&news.payload(7)), Some((7, news)));
        }
        assert_eq!(news(&["ab"]).payload(7), "1 7 td 2:ab");
    }

    #[test]
    fn too_many_instances_are_everything() {
        let ids: Vec<String> = (0..2_000).map(|id| format!("instance {id}")).collect();
        let payload = news(&ids.iter().map(String::as_str).collect::<Vec<_>>()).payload(7);
        assert!(payload.len() < 8_000);
        assert!(News::parse(&payload).is_some_and(|(_, news)| news.everything && news.instances.is_empty()));
    }

    #[test]
    fn what_is_not_understood_is_not_guessed() {
        for payload in ["", "2 7 t ", "1 x t ", "1 7 t 5:ab", "1 7 t x:ab", "1 7 t 1:日"] {
            assert_eq!(News::parse(payload), None, "{payload:?}");
        }
    }
}
