//! A history as a drawing: one line per activity, timer, child and wait, on one axis of time. Pure.

use std::collections::BTreeMap;

use segno_api::history::HistoryEvent;
use serde::Deserialize;

use crate::output::duration;

/// Columns of the axis.
const COLUMNS: usize = 48;

/// Longest name that is shown, in characters.
const MAX_NAME: usize = 28;

/// The signs of bars.
const ENDED: char = '█';
const OPEN: char = '░';
const UNFINISHED: char = '▒';
const FAILED: char = '×';

/// What the signs mean.
const LEGEND: &[(char, &str)] = &[
    (ENDED, "█ until it ended"),
    (OPEN, "░ until now: it has not ended"),
    (UNFINISHED, "▒ until the execution ended without it"),
    (FAILED, "× an attempt failed"),
];

/// Events that end an execution, and with it all that is open.
const LAST: &[&str] = &["OrchestrationCompleted", "OrchestrationFailed", "OrchestrationContinuedAsNew"];

/// How something that has a beginning ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Done,
    Failed,
    Dropped,
    /// Not by itself: the execution ended before.
    Unfinished,
}

/// What is read of an event; all else of it may be as deep and large as it wants.
#[derive(Default, Deserialize)]
struct Data {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    source: Option<u64>,
}

struct Span {
    name: String,
    from_ms: i64,
    to_ms: Option<i64>,
    end: End,
    attempts: Vec<i64>,
}

/// Draws a history; what is open goes on until now.
pub fn draw(events: &[HistoryEvent], now_ms: i64) -> String {
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return String::new() };
    let spans = spans(events);
    if spans.is_empty() {
        return String::new();
    }
    let last_ms = last.at.as_millisecond();
    let is_open = spans.iter().any(|span| span.end == End::Open);
    let to_ms = if is_open { last_ms.max(now_ms) } else { last_ms };
    let axis = Axis { from_ms: first.at.as_millisecond(), to_ms };
    let width = spans.iter().map(|span| span.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for span in &spans {
        let bar = axis.bar(span);
        let took = duration(span.to_ms.unwrap_or(axis.to_ms) - span.from_ms);
        let how = match span.end {
            End::Open => "…",
            End::Done => "",
            End::Failed => "failed",
            End::Dropped => "dropped",
            End::Unfinished => "unfinished",
        };
        let gap = " ".repeat(width - span.name.chars().count());
        text.push_str(format!("  {}{gap}  │{bar}│ {took} {how}", span.name).trim_end());
        text.push('\n');
    }
    text.push_str(&format!("  {}  0{:>COLUMNS$}\n", " ".repeat(width), duration(axis.to_ms - axis.from_ms)));
    text
}

/// What the signs of a drawing mean; those that are in it.
pub fn legend(drawing: &str) -> String {
    let used: Vec<&str> =
        LEGEND.iter().filter(|(sign, _)| drawing.contains(*sign)).map(|(_, meaning)| *meaning).collect();
    if used.is_empty() { String::new() } else { format!("\n  {}\n", used.join("   ")) }
}

struct Axis {
    from_ms: i64,
    to_ms: i64,
}

impl Axis {
    fn column(&self, at_ms: i64) -> usize {
        let whole = (self.to_ms - self.from_ms).max(1);
        let last = COLUMNS as i64 - 1;
        usize::try_from(((at_ms - self.from_ms) * last / whole).clamp(0, last)).unwrap_or(0)
    }

    fn bar(&self, span: &Span) -> String {
        let (from, to) = (self.column(span.from_ms), self.column(span.to_ms.unwrap_or(self.to_ms)));
        let failed: Vec<usize> = span.attempts.iter().map(|at| self.column(*at)).collect();
        let cell = |column: usize| match column {
            _ if column < from || column > to => ' ',
            _ if failed.contains(&column) => FAILED,
            _ if span.end == End::Open => OPEN,
            _ if span.end == End::Unfinished => UNFINISHED,
            _ => ENDED,
        };
        (0..COLUMNS).map(cell).collect()
    }
}

/// The activity that runs functions, and what is read of its input.
const FUNCTION: &str = "function";

#[derive(Deserialize)]
struct FunctionCall {
    input: FunctionInput,
}

#[derive(Deserialize)]
struct FunctionInput {
    function: String,
}

/// The function that an activity runs, if it is the one that runs functions.
fn function_of(activity: &str, data: &str) -> Option<String> {
    let call: FunctionCall = serde_json::from_str(data).ok().filter(|_| activity == FUNCTION)?;
    Some(call.input.function)
}

fn spans(events: &[HistoryEvent]) -> Vec<Span> {
    let mut spans = BTreeMap::<u64, Span>::new();
    for event in events {
        let data: Data = serde_json::from_str(event.data.text()).unwrap_or_default();
        let at_ms = event.at.as_millisecond();
        if LAST.contains(&event.kind.as_str()) {
            leave_unfinished(&mut spans, at_ms);
            continue;
        }
        let name = data.name.unwrap_or_default();
        let opened = match event.kind.as_str() {
            "ActivityScheduled" => {
                Some(function_of(&name, event.data.text()).unwrap_or_else(|| name.clone()))
            }
            "TimerCreated" => Some("timer".to_owned()),
            "SubOrchestrationScheduled" => Some(format!("child {name}")),
            "MessageSubscribed" => Some(format!("wait for {name}")),
            _ => None,
        };
        if let Some(name) = opened {
            let name = name.chars().take(MAX_NAME).collect();
            spans.insert(
                event.id,
                Span { name, from_ms: at_ms, to_ms: None, end: End::Open, attempts: Vec::new() },
            );
            continue;
        }
        if matches!(event.kind.as_str(), "StepCompleted" | "StepFailed") {
            let end = if event.kind == "StepFailed" { End::Failed } else { End::Done };
            let name = format!("step {name}").chars().take(MAX_NAME).collect();
            spans.insert(
                event.id,
                Span { name, from_ms: at_ms, to_ms: Some(at_ms), end, attempts: Vec::new() },
            );
            continue;
        }
        if event.kind == "MessageReceived" {
            receive(&mut spans, &format!("wait for {name}"), at_ms);
            continue;
        }
        let Some(span) = data.source.and_then(|source| spans.get_mut(&source)) else { continue };
        let end = match event.kind.as_str() {
            "ActivityAttemptFailed" => {
                span.attempts.push(at_ms);
                continue;
            }
            "ActivityCompleted" | "TimerFired" | "SubOrchestrationCompleted" => End::Done,
            "ActivityFailed" | "SubOrchestrationFailed" => End::Failed,
            _ => End::Dropped,
        };
        span.to_ms = Some(at_ms);
        span.end = end;
    }
    spans.into_values().collect()
}

/// The execution ends, and nothing of it goes on.
fn leave_unfinished(spans: &mut BTreeMap<u64, Span>, at_ms: i64) {
    for span in spans.values_mut().filter(|span| span.end == End::Open) {
        span.to_ms = Some(at_ms);
        span.end = End::Unfinished;
    }
}

/// A message ends the oldest wait for its name.
fn receive(spans: &mut BTreeMap<u64, Span>, name: &str, at_ms: i64) {
    let name: String = name.chars().take(MAX_NAME).collect();
    if let Some(span) = spans.values_mut().find(|span| span.end == End::Open && span.name == name) {
        span.to_ms = Some(at_ms);
        span.end = End::Done;
    }
}

#[cfg(test)]
mod tests {
    use segno_api::Json;

    use super::*;

    fn event(id: u64, at_ms: i64, kind: &str, data: &str) -> HistoryEvent {
        let at = jiff::Timestamp::from_millisecond(at_ms).unwrap();
        HistoryEvent { id, at, kind: kind.to_owned(), data: Json::from_text(data.to_owned()).unwrap() }
    }

    #[test]
    fn spans_are_drawn_on_one_axis() {
        let events = [
            event(1, 0, "OrchestrationStarted", "{}"),
            event(2, 0, "ActivityScheduled", r#"{"name":"charge"}"#),
            event(3, 500, "ActivityAttemptFailed", r#"{"source":2,"attempt":1}"#),
            event(4, 1_000, "ActivityCompleted", r#"{"source":2}"#),
            event(5, 1_000, "MessageSubscribed", r#"{"name":"wave","channel":"signal"}"#),
            event(6, 1_000, "TimerCreated", "{}"),
            event(7, 2_000, "CustomStatusUpdated", "{}"),
        ];
        let drawing = draw(&events, 1_500);
        let lines: Vec<&str> = drawing.lines().collect();
        assert_eq!(lines.len(), 4, "{drawing}");
        assert!(
            lines[0].contains("charge") && lines[0].contains('×') && lines[0].ends_with("│ 1.0 s"),
            "{drawing}"
        );
        assert!(lines[1].contains("wait for wave") && lines[1].ends_with('…'), "{drawing}");
        assert!(lines[3].trim().starts_with('0') && lines[3].ends_with("2.0 s"), "{drawing}");
        assert_eq!(draw(&[], 0), "");
        let legend_of = |count: usize| legend(&draw(&events[..count], 1_500));
        assert_eq!(legend_of(2), "\n  ░ until now: it has not ended\n");
        assert_eq!(legend_of(4), "\n  █ until it ended   × an attempt failed\n");
        assert_eq!(legend(""), "");
        assert!(draw(&events, 4_000).ends_with("4.0 s\n"));
    }

    #[test]
    fn nothing_is_open_after_the_end_of_the_execution() {
        for last in LAST {
            let events = [
                event(1, 0, "OrchestrationStarted", "{}"),
                event(2, 0, "ActivityScheduled", r#"{"name":"charge"}"#),
                event(3, 0, "MessageSubscribed", r#"{"name":"wave","channel":"signal"}"#),
                event(4, 0, "TimerCreated", "{}"),
                event(5, 0, "SubOrchestrationScheduled", r#"{"name":"ship"}"#),
                event(6, 1_000, "OrchestrationCancelRequested", "{}"),
                event(7, 2_000, last, "{}"),
            ];
            let drawing = draw(&events, 3_600_000);
            assert!(!drawing.contains(['…', OPEN]), "{drawing}");
            assert_eq!(drawing.matches("│ 2.0 s unfinished").count(), 4, "{drawing}");
            assert!(drawing.ends_with("2.0 s\n"), "the axis ends with the execution: {drawing}");
            assert_eq!(legend(&drawing), "\n  ▒ until the execution ended without it\n");
            let nothing = [event(1, 0, "OrchestrationCancelRequested", "{}"), event(2, 0, last, "{}")];
            assert_eq!(draw(&nothing, 1_000), "", "an axis without anything on it tells nothing");
            let before = draw(&events[..6], 3_600_000);
            assert_eq!(before.matches('…').count(), 4, "a request to cancel is not an end: {before}");
        }
    }
}
