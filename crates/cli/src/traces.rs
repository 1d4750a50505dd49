//! Traces: where the spans of requests, turns and activities go. Sending them (`otlp`) is a feature of the build.

use std::time::Duration;

use segno_server::CurrentTrace;
use segno_server::settings::TelemetrySettings;
use tracing_subscriber::{Layer, Registry};

use crate::exit::Failure;

/// How long what is left of the spans may take to be sent.
const FLUSH_TIME: Duration = Duration::from_secs(5);

/// What takes spans.
pub type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Sends spans. The default sends none.
#[derive(Default)]
pub struct Traces {
    /// Takes the spans.
    pub layer: Option<SpanLayer>,
    /// Tells the trace context of the current span.
    pub current: Option<CurrentTrace>,
    /// Sends what is left; blocks until that is done.
    pub flush: Option<Box<dyn FnOnce() + Send>>,
}

impl Traces {
    /// Sends spans to where the settings say.
    ///
    /// # Errors
    /// When the settings cannot be used.
    #[cfg(feature = "otlp")]
    pub fn start(settings: &TelemetrySettings) -> Result<Self, Failure> {
        crate::otlp::start(settings)
    }

    /// Sends nothing: this build cannot.
    ///
    /// # Errors
    /// When the settings say that spans are to be sent.
    #[cfg(not(feature = "otlp"))]
    pub fn start(settings: &TelemetrySettings) -> Result<Self, Failure> {
        check(settings)?;
        Ok(Traces::default())
    }

    /// Sends what is left, without holding up what else runs.
    pub async fn finish(self) {
        if let Some(flush) = self.flush {
            // It fails only if the flush panics, and then there is nothing more to send. A
            // collector that does not answer does not keep the process from ending.
            let flushed = tokio::task::spawn_blocking(flush);
            let _ = segno::clock::timeout(&segno::clock::SystemClock, FLUSH_TIME, flushed).await;
        }
    }
}

/// Refuses what this build cannot do.
///
/// # Errors
/// When the settings say that spans are to be sent, and this build cannot.
pub fn check(settings: &TelemetrySettings) -> Result<(), Failure> {
    if settings.otlp_endpoint.is_none() || cfg!(feature = "otlp") {
        return Ok(());
    }
    Err(Failure::Refused(
        "telemetry.otlp_endpoint is set, and this segno was built without OTLP; build segno-cli with \
         `--features otlp`, or remove the setting"
            .to_owned(),
    ))
}
