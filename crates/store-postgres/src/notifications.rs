//! Waking other nodes: notifications on one channel per schema, gathered for a few milliseconds, and sent only while
//! another node listens.
//!
//! A payload is `2 NODE FLAGS CHANGES`. The 2 is the version of this format. NODE is a number that a node draws when it
//! opens. FLAGS are letters: `t` turns, `w` activities, `d` due records of any kind, `h` hello (answer me), `i` I am here,
//! `*` look at every instance. CHANGES follow one another: `i` and a text is an instance that changed, `d` and two texts
//! are the kind and folder of a record that may be due earlier. A text is its length in bytes, a colon, and itself. In
//! version 1 CHANGES were texts without a letter, all of them instances. A node that does not understand a payload looks
//! at everything.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use segno::clock::{SystemClock, duration_ms, sleep};
use segno::store::folder_of;
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

/// Most bytes of changes in a payload; the server allows 8,000 in all.
const MAX_CHANGE_BYTES: usize = 7_000;

/// Most folders that are gathered for one payload. More than these would not fit anyway.
const MAX_FOLDERS: usize = 500;

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
    any_due: bool,
    hello: bool,
    here: bool,
    everything: bool,
    instances: BTreeSet<String>,
    /// Kinds and folders of records that may be due earlier.
    due: BTreeSet<(String, String)>,
}

impl News {
    fn is_empty(&self) -> bool {
        *self == News::default()
    }

    /// Notes a record that may be due earlier.
    fn note_due(&mut self, kind: &str, id: &str) {
        if !self.any_due {
            self.due.insert((kind.to_owned(), folder_of(id).to_owned()));
            self.any_due = self.due.len() > MAX_FOLDERS;
        }
    }

    fn payload(&self, node: u64) -> String {
        let (mut instances, mut due) = (String::new(), String::new());
        // Writing to a string cannot fail.
        for instance in &self.instances {
            let _ = write!(instances, "i{}:{instance}", instance.len());
        }
        for (kind, folder) in &self.due {
            let _ = write!(due, "d{}:{kind}{}:{folder}", kind.len(), folder.len());
        }
        let is_too_long = instances.len() > MAX_CHANGE_BYTES;
        if is_too_long {
            instances.clear();
        }
        let any_due = self.any_due || instances.len() + due.len() > MAX_CHANGE_BYTES;
        if any_due {
            due.clear();
        }
        let flags = [
            (self.turns, 't'),
            (self.activities, 'w'),
            (any_due, 'd'),
            (self.hello, 'h'),
            (self.here, 'i'),
            (self.everything || is_too_long, '*'),
        ];
        let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| *letter).collect();
        format!("2 {node} {flags} {instances}{due}")
    }

    /// Who says what. `None` when it is not understood.
    fn parse(payload: &str) -> Option<(u64, News)> {
        let mut parts = payload.splitn(4, ' ');
        let version = parts.next().filter(|version| matches!(*version, "1" | "2"))?;
        let node = parts.next()?.parse().ok()?;
        let (flags, mut changes) = (parts.next()?, parts.next()?);
        let (mut instances, mut due) = (BTreeSet::new(), BTreeSet::new());
        while !changes.is_empty() {
            let (letter, rest) = if version == "1" { ("i", changes) } else { changes.split_at_checked(1)? };
            let (text, rest) = take_text(rest)?;
            changes = match letter {
                "i" => {
                    instances.insert(text.to_owned());
                    rest
                }
                "d" => {
                    let (folder, rest) = take_text(rest)?;
                    due.insert((text.to_owned(), folder.to_owned()));
                    rest
                }
                _ => return None,
            };
        }
        let has = |letter: char| flags.contains(letter);
        let news = News {
            turns: has('t'),
            activities: has('w'),
            any_due: has('d'),
            hello: has('h'),
            here: has('i'),
            everything: has('*'),
            instances,
            due,
        };
        Some((node, news))
    }
}

/// A text with its length in front, and what follows it.
fn take_text(changes: &str) -> Option<(&str, &str)> {
    let (length, rest) = changes.split_once(':')?;
    rest.split_at_checked(length.parse().ok()?)
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
                item.due_records().for_each(|(kind, id)| news.note_due(kind, id));
                match item {
                    Item::Turn(turn) => match waiting.held(turn.lock_token).map(Held::instance) {
                        Some(instance) => drop(news.instances.insert(instance.to_owned())),
                        None => news.everything = true,
                    },
                    Item::Append { instance, .. } => drop(news.instances.insert(instance.clone())),
                    _ => {}
                }
            }
        });
    }

    /// Notes that an instance changed outside an exchange and has a message.
    pub(crate) fn note_turn(&self, instance: &str) {
        if self.has_company() {
            self.tell(|news| {
                news.turns = true;
                news.instances.insert(instance.to_owned());
            });
        }
    }

    /// Notes that activities became ready outside an exchange.
    pub(crate) fn note_activities(&self) {
        if self.has_company() {
            self.tell(|news| news.activities = true);
        }
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

    /// Hears of another node, and says whether it is the first for a while. What this node did before it knew of the other,
    /// it told nobody, and the other may have looked before it was done: so the other is told to look again.
    fn meet(&self, said: &News) -> bool {
        let was_alone = !self.has_company();
        self.heard_at_ms.store(steady_ms(), Ordering::Relaxed);
        self.tell(|news| {
            news.here |= said.hello;
            news.everything |= was_alone;
        });
        was_alone
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
        let (channel, payload) = (channel(&core.options.schema), news.payload(outbox.node));
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
                let listen = format!("LISTEN \"{}\"", channel(&core.options.schema));
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
    if node == core.outbox.node {
        return;
    }
    // What the other one did before this node listened was not heard.
    if core.outbox.meet(&news) || news.everything {
        core.look_at_everything();
    }
    if news.any_due {
        core.due_waits.all();
    }
    news.due.iter().for_each(|(kind, folder)| core.due_waits.folder(kind, folder));
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
    core.wake_exchanger(&waiting);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(instances: &[&str]) -> News {
        let instances = instances.iter().map(|id| (*id).to_owned()).collect();
        News { turns: true, any_due: true, instances, ..News::default() }
    }

    #[test]
    fn a_node_that_meets_another_tells_it_to_look_for_what_was_done_before_they_met() {
        let outbox = Outbox::new(7);
        assert!(outbox.meet(&News { hello: true, ..News::default() }));
        let told = News { here: true, everything: true, ..News::default() };
        assert_eq!(outbox.take(), told);
        assert!(!outbox.meet(&told), "they have met");
        assert!(outbox.take().is_empty(), "and have nothing more to say");
    }

    #[test]
    fn a_payload_says_what_was_meant() {
        for ids in [&[][..], &["a"], &["a b", "1:x", "line\nbreak", "日本"]] {
            let news = news(ids);
            assert_eq!(News::parse(&news.payload(7)), Some((7, news)));
        }
        assert_eq!(news(&["ab"]).payload(7), "2 7 td i2:ab");
        let mut due = News::default();
        for (kind, id) in [("k", "eu/7/x"), ("k", "eu/7/y"), ("other", "é"), ("k", "a b/i1:x")] {
            due.note_due(kind, id);
        }
        assert_eq!(due.payload(7), "2 7  d1:k4:a b/d1:k5:eu/7/d5:other0:");
        assert_eq!(News::parse(&due.payload(7)), Some((7, due)));
    }

    #[test]
    fn a_node_of_the_release_before_is_understood() {
        let instances = ["ab", "i1:x"].into_iter().map(str::to_owned).collect();
        let expected = News { turns: true, any_due: true, instances, ..News::default() };
        assert_eq!(News::parse("1 7 td 2:ab4:i1:x"), Some((7, expected)));
    }

    #[test]
    fn too_many_folders_are_any_record() {
        let mut many = news(&["ab"]);
        many.any_due = false;
        (0..MAX_FOLDERS).for_each(|folder| many.note_due("kind", &format!("folder {folder}/x")));
        let (_, read) = News::parse(&many.payload(7)).unwrap();
        assert!(read.any_due && read.due.is_empty() && read.instances.len() == 1 && !read.everything);
        (0..9_999).for_each(|folder| many.note_due("k", &format!("{folder}/x")));
        assert_eq!(many.due.len(), MAX_FOLDERS + 1, "no more are gathered than are of use");
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
        for payload in [
            "",
            "3 7 t ",
            "3 7 t i1:a",
            "1 x t ",
            "1 7 t 5:ab",
            "1 7 t x:ab",
            "1 7 t 1:日",
            "2 7 t x1:a",
            "2 7 t d1:a",
            "2 7 t 1:a",
            "2 7 t i",
        ] {
            assert_eq!(News::parse(payload), None, "{payload:?}");
        }
    }
}
