//! Throttling of the log: a warning that repeats is logged once a minute, with the number of the
//! lines that were left out.
//!
//! A store that is away fails every loop of a server many times a second, each with the same error.
//! Two warnings are the same if they come from one place in the code of Segno and have the same
//! text in their field `error`; lines without one, errors, and lines of other crates are never left
//! out.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use segno::clock::Clock;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The same warning is logged at most once in this time.
const PERIOD_MS: u64 = 60_000;

/// Most warnings that are known at a time; others are logged each time.
const MAX_KNOWN: usize = 1_024;

/// What targets of our own crates begin with.
const OWN_TARGETS: &str = "segno";

/// Formats events as another format does, without those that repeat.
pub struct Throttled<F> {
    format: F,
    form: LineForm,
    clock: Arc<dyn Clock>,
    repeats: Mutex<Repeats<(Identifier, String)>>,
}

/// What a line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineForm {
    Text,
    Json,
}

impl<F> Throttled<F> {
    /// A format whose lines have this form.
    pub fn new(format: F, form: LineForm, clock: Arc<dyn Clock>) -> Self {
        Throttled { format, form, clock, repeats: Mutex::default() }
    }

    fn decide(&self, event: &Event<'_>) -> Decision {
        let metadata = event.metadata();
        if *metadata.level() != Level::WARN || !metadata.target().starts_with(OWN_TARGETS) {
            return Decision::Log { left_out: 0 };
        }
        let mut error = ErrorText(None);
        event.record(&mut error);
        let Some(error) = error.0 else { return Decision::Log { left_out: 0 } };
        let mut repeats = self.repeats.lock().unwrap_or_else(PoisonError::into_inner);
        repeats.decide((metadata.callsite(), error), self.clock.now_ms())
    }
}

impl<S, N, F> FormatEvent<S, N> for Throttled<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        match self.decide(event) {
            // Nothing is written then.
            Decision::LeaveOut => Ok(()),
            Decision::Log { left_out: 0 } => self.format.format_event(context, writer, event),
            Decision::Log { left_out } => {
                let mut line = String::new();
                self.format.format_event(context, Writer::new(&mut line), event)?;
                writer.write_str(&with_count(line.trim_end(), left_out, self.form))?;
                writer.write_char('\n')
            }
        }
    }
}

/// The line with the number of those that were left out before it.
fn with_count(line: &str, left_out: u64, form: LineForm) -> String {
    match (form, line.strip_suffix('}')) {
        (LineForm::Json, Some(open)) => format!("{open},\"not_logged\":{left_out}}}"),
        _ => format!("{line} not_logged={left_out}"),
    }
}

/// The text of the field `error`.
struct ErrorText(Option<String>);

impl Visit for ErrorText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "error" {
            self.0 = Some(format!("{value:?}"));
        }
    }
}

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    /// It is logged, with the number of the same lines that were left out since the last one.
    Log {
        left_out: u64,
    },
    LeaveOut,
}

/// Warnings that were logged within the period.
struct Repeats<K>(HashMap<K, Known>);

#[derive(Debug, Clone, Copy)]
struct Known {
    logged_at_ms: u64,
    left_out: u64,
}

impl<K> Default for Repeats<K> {
    fn default() -> Self {
        Repeats(HashMap::new())
    }
}

impl<K: Eq + std::hash::Hash> Repeats<K> {
    fn decide(&mut self, key: K, now_ms: u64) -> Decision {
        let is_over = |known: &Known| now_ms.saturating_sub(known.logged_at_ms) >= PERIOD_MS;
        if let Some(known) = self.0.get_mut(&key) {
            if !is_over(known) {
                known.left_out += 1;
                return Decision::LeaveOut;
            }
            let left_out = known.left_out;
            *known = Known { logged_at_ms: now_ms, left_out: 0 };
            return Decision::Log { left_out };
        }
        if self.0.len() >= MAX_KNOWN {
            self.0.retain(|_, known| !is_over(known));
        }
        if self.0.len() < MAX_KNOWN {
            self.0.insert(key, Known { logged_at_ms: now_ms, left_out: 0 });
        }
        Decision::Log { left_out: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::{Layer as _, fmt as lines, registry};

    use super::*;

    #[test]
    fn a_line_that_repeats_is_decided_by_its_key_and_its_time() {
        let mut repeats = Repeats::default();
        let logged = |left_out| Decision::Log { left_out };
        for (key, now_ms, expected) in [
            ("a", 0, logged(0)),
            ("a", 1, Decision::LeaveOut),
            ("b", 1, logged(0)),
            ("a", PERIOD_MS - 1, Decision::LeaveOut),
            ("a", PERIOD_MS, logged(2)),
            ("a", PERIOD_MS + 1, Decision::LeaveOut),
            ("b", PERIOD_MS + 1, logged(0)),
            ("a", 3 * PERIOD_MS, logged(1)),
            // A clock that was set back hides a line no longer than the period.
            ("a", 0, Decision::LeaveOut),
        ] {
            assert_eq!(repeats.decide(key, now_ms), expected, "{key} at {now_ms}");
        }
    }

    #[test]
    fn what_is_known_is_bounded_and_forgotten_after_the_period() {
        let mut repeats = Repeats::default();
        for number in 0..2 * MAX_KNOWN {
            assert_eq!(repeats.decide(number, 0), Decision::Log { left_out: 0 });
        }
        assert_eq!(repeats.0.len(), MAX_KNOWN);
        assert_eq!(repeats.decide(2 * MAX_KNOWN, 1), Decision::Log { left_out: 0 }, "it is not known");
        assert_eq!(repeats.decide(0, 1), Decision::LeaveOut);
        assert_eq!(repeats.decide(2 * MAX_KNOWN, PERIOD_MS), Decision::Log { left_out: 0 });
        assert_eq!(repeats.0.len(), 1);
    }

    /// Time that a test sets.
    #[derive(Default)]
    struct SetClock(AtomicU64);

    impl Clock for SetClock {
        fn now_ms(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }

        fn sleep_until_ms(&self, _at_ms: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::pending())
        }

        fn monotonic_ns(&self) -> u64 {
            0
        }
    }

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The lines of a server whose disk is full for a while.
    fn logged(form: LineForm) -> Vec<String> {
        let (buffer, clock) = (Buffer::default(), Arc::new(SetClock::default()));
        let (written, time) = (buffer.clone(), Arc::clone(&clock) as Arc<dyn Clock>);
        let layer = lines::layer().with_writer(move || written.clone()).without_time().with_ansi(false);
        let layer = match form {
            LineForm::Text => layer.map_event_format(|format| Throttled::new(format, form, time)).boxed(),
            LineForm::Json => layer
                .json()
                .flatten_event(true)
                .map_event_format(|format| Throttled::new(format, form, time))
                .boxed(),
        };
        tracing::subscriber::with_default(registry().with(layer), || {
            let fetch = |error: &str| tracing::warn!(target: "segno::test", %error, "could not fetch");
            for number in 0..3 {
                fetch("full");
                tracing::error!(target: "segno::test", error = "full", number, "a request failed");
                tracing::warn!(target: "elsewhere", error = "full", number, "of another crate");
                tracing::warn!(target: "segno::test", number, "without an error");
            }
            fetch("away");
            clock.0.store(PERIOD_MS, Ordering::SeqCst);
            fetch("full");
            fetch("full");
        });
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_same_warning_is_one_line_in_a_minute_and_all_else_is_logged() {
        let lines = logged(LineForm::Text);
        let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
        for text in ["a request failed", "of another crate", "without an error"] {
            assert_eq!(count(text), 3, "{text}: {lines:?}");
        }
        let fetches: Vec<&String> = lines.iter().filter(|line| line.contains("could not fetch")).collect();
        let [first, other, later] = fetches[..] else { panic!("{fetches:?}") };
        assert!(first.contains("error=full") && !first.contains("not_logged"), "{first}");
        assert!(other.contains("error=away"), "{other}");
        assert!(later.contains("error=full") && later.ends_with(" not_logged=2"), "{later}");
    }

    #[test]
    fn a_line_of_json_stays_json_with_the_count() {
        let lines = logged(LineForm::Json);
        let parsed: Vec<serde_json::Value> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let fetches = parsed.iter().filter(|line| line["message"] == "could not fetch");
        let found: Vec<_> = fetches.map(|line| (line["error"].clone(), line["not_logged"].clone())).collect();
        let none = serde_json::Value::Null;
        assert_eq!(found, [("full".into(), none.clone()), ("away".into(), none), ("full".into(), 2.into())]);
    }
}
