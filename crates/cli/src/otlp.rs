//! Spans over OTLP: protobuf over HTTP, in batches, from a thread of its own.
//!
//! The SDK obeys the standard variables itself: `OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`, `OTEL_EXPORTER_OTLP_HEADERS` and so on.

use std::collections::HashMap;
use std::time::Duration;

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{SpanBuilder, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, Key, KeyValue};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, SpanExporter, WithExportConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, Span};
use segno_server::settings::TelemetrySettings;
use tracing::{Level, Metadata};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, filter_fn};

use crate::exit::Failure;
use crate::traces::Traces;

/// The field of a span, and the header of a request, that names the parent.
const TRACEPARENT: &str = "traceparent";

/// Where collectors take spans, below their base URL.
const SPANS_PATH: &str = "/v1/traces";

/// Longest wait for a collector at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Sends spans if the settings or the standard variables say where to.
///
/// # Errors
/// When an address or another of the standard variables cannot be used.
pub fn start(settings: &TelemetrySettings) -> Result<Traces, Failure> {
    let mut exporter = SpanExporter::builder().with_http();
    match &settings.otlp_endpoint {
        Some(base) => {
            exporter = exporter.with_endpoint(format!("{}{SPANS_PATH}", base.trim_end_matches('/')))
        }
        None if standard_endpoint_is_set() => {}
        None => return Ok(Traces::default()),
    }
    let exporter = exporter
        .build()
        .map_err(|error| Failure::Refused(format!("traces cannot be sent over OTLP: {error}")))?;
    let provider =
        SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource()).build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(ParentFromField(provider.tracer("segno")))
        // A span is made when it is first needed, not when it is entered: a turn learns its parent on the way.
        .with_context_activation(false)
        .with_location(false)
        .with_threads(false)
        .with_filter(filter_fn(is_sent).with_max_level_hint(LevelFilter::DEBUG));
    let flush = move || {
        if let Err(error) = provider.shutdown_with_timeout(FLUSH_TIMEOUT) {
            tracing::warn!(%error, "the last spans were not sent");
        }
    };
    Ok(Traces { layer: Some(layer.boxed()), current: Some(current), flush: Some(Box::new(flush)) })
}

fn standard_endpoint_is_set() -> bool {
    [OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Our spans, and what is logged inside them. Others' spans are left out: those of the HTTP client that sends spans would never
/// come to an end.
fn is_sent(metadata: &Metadata<'_>) -> bool {
    let most = if metadata.is_span() { Level::DEBUG } else { Level::INFO };
    metadata.target().starts_with("segno") && *metadata.level() <= most
}

/// Who sends: what the standard variables say, and `segno` if they give no name.
fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let name = Resource::builder().build().get(&Key::from_static_str("service.name"));
    let builder = Resource::builder().with_attribute(version);
    match name {
        Some(name) if !name.as_str().starts_with("unknown_service") => builder.build(),
        _ => builder.with_service_name("segno").build(),
    }
}

/// Makes spans whose field `traceparent`, if they have one, is their parent.
struct ParentFromField(SdkTracer);

impl Tracer for ParentFromField {
    type Span = Span;

    fn build_with_context(&self, mut builder: SpanBuilder, parent: &Context) -> Span {
        let field = builder.attributes.as_mut().and_then(|attributes| {
            let at = attributes.iter().position(|attribute| attribute.key.as_str() == TRACEPARENT)?;
            Some(attributes.swap_remove(at).value)
        });
        match field {
            // A text that is no trace context leaves the parent as it is.
            Some(text) => {
                let carrier = HashMap::from([(TRACEPARENT.to_owned(), text.as_str().into_owned())]);
                let parent = TraceContextPropagator::new().extract_with_context(parent, &carrier);
                self.0.build_with_context(builder, &parent)
            }
            None => self.0.build_with_context(builder, parent),
        }
    }
}

/// The trace context of the current span.
fn current() -> Option<String> {
    let context = tracing::Span::current().context();
    if !context.has_active_span() {
        return None;
    }
    let mut carrier = HashMap::new();
    TraceContextPropagator::new().inject_context(&context, &mut carrier);
    carrier.remove(TRACEPARENT)
}
