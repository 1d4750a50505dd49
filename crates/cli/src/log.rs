//! What is logged: lines for people on a terminal, JSON elsewhere; `SEGNO_LOG` says how much,
//! `SEGNO_LOG_FORMAT` how. A warning that repeats is [throttled](crate::log_throttle).

use std::io::{IsTerminal, stderr};

use segno::clock::SystemClock;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt, registry};

use crate::exit::Failure;
use crate::log_throttle::{LineForm, Throttled};
use crate::traces::SpanLayer;

/// How much is logged when nobody says.
const DEFAULT_FILTER: &str = "info";

/// Sets up logging to stderr, and gives spans to `traces`.
///
/// # Errors
/// When `SEGNO_LOG` or `SEGNO_LOG_FORMAT` cannot be read.
pub fn set_up(traces: Option<SpanLayer>) -> Result<(), Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let filter =
        variable("SEGNO_LOG").or_else(|| variable("RUST_LOG")).unwrap_or_else(|| DEFAULT_FILTER.to_owned());
    let filter = EnvFilter::try_new(&filter)
        .map_err(|error| Failure::Refused(format!("SEGNO_LOG: {filter:?} cannot be read: {error}")))?;
    let format = variable("SEGNO_LOG_FORMAT");
    let for_people = match format.as_deref() {
        Some("text") => true,
        Some("json") => false,
        None => stderr().is_terminal(),
        Some(other) => {
            return Err(Failure::Refused(format!("SEGNO_LOG_FORMAT is {other:?}; use \"text\" or \"json\"")));
        }
    };
    let clock = SystemClock::shared();
    let lines = fmt::layer().with_writer(stderr);
    let lines: SpanLayer = match for_people {
        true => lines
            .with_ansi(stderr().is_terminal() && variable("NO_COLOR").is_none())
            .with_target(false)
            .map_event_format(|format| Throttled::new(format, LineForm::Text, clock))
            .with_filter(filter)
            .boxed(),
        false => lines
            .json()
            .flatten_event(true)
            .map_event_format(|format| Throttled::new(format, LineForm::Json, clock))
            .with_filter(filter)
            .boxed(),
    };
    let layers: Vec<SpanLayer> = std::iter::once(lines).chain(traces).collect();
    let outcome = registry().with(layers).try_init();
    outcome.map_err(|error| Failure::Serving(format!("logging cannot be set up: {error}")))
}
