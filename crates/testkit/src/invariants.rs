//! What must be true of every history and queue, whatever happened. Names as in the list of invariants:
//!
//! * H1: event ids run from 1 without a gap, and times never decrease.
//! * H2: at most one last event, and it is last.
//! * H3, L1, T2: every completion has one schedule before it, and every schedule at most one completion.
//! * At rest: nothing is queued, delayed or locked, and nothing that has started still runs.

use std::collections::BTreeMap;

use segno::Client;
use segno::event::{Event, EventKind};
use segno::store::InstanceQuery;

/// Something that must never be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Violation {
    /// Which history, or which queue.
    pub place: String,
    /// What is wrong there.
    pub problem: String,
}

/// Checks every history in the store.
///
/// # Errors
/// The first violation.
pub async fn check(client: &Client) -> Result<(), Violation> {
    for instance in instances(client).await {
        for execution_id in client.executions(&instance).await.unwrap_or_default() {
            let place = format!("{instance:?} execution {execution_id}");
            let history = client.history_of_execution(&instance, execution_id).await;
            let problem = match history {
                Ok(history) => check_history(&history).err(),
                Err(error) => Some(error.to_string()),
            };
            if let Some(problem) = problem {
                return Err(Violation { place, problem });
            }
        }
    }
    Ok(())
}

/// Checks that nothing is left to do: empty queues, no locks, and every instance that started has ended.
///
/// # Errors
/// The first violation.
pub async fn check_at_rest(client: &Client) -> Result<(), Violation> {
    let depths = client.queue_depths().await.map_err(|error| queues(error.to_string()))?;
    if depths != segno::store::QueueDepths::default() {
        return Err(queues(format!("they are not empty: {depths:?}")));
    }
    for id in instances(client).await {
        let instance = client.instance(&id).await.map_err(|error| queues(error.to_string()))?;
        if instance.orchestration.is_some() && !instance.has_ended() {
            let problem = format!("it has not ended, but nothing is queued for it: {}", instance.status);
            return Err(Violation { place: format!("{id:?}"), problem });
        }
    }
    Ok(())
}

fn queues(problem: String) -> Violation {
    Violation { place: "the queues".to_owned(), problem }
}

/// Every instance id in the store, sorted.
pub async fn instances(client: &Client) -> Vec<String> {
    let mut ids = Vec::new();
    let mut query = InstanceQuery { limit: segno::limits::MAX_PAGE_ROWS, ..InstanceQuery::default() };
    while let Ok(page) = client.list(query.clone()).await {
        ids.extend(page.instances.into_iter().map(|instance| instance.id));
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    ids.sort();
    ids
}

/// Checks one history by itself.
///
/// # Errors
/// Says what is wrong.
pub fn check_history(history: &[Event]) -> Result<(), String> {
    let mut open = BTreeMap::new();
    let mut at_ms = 0;
    for (position, event) in history.iter().enumerate() {
        let (expected, is_last) = (position as u64 + 1, position + 1 == history.len());
        if event.event_id != expected {
            return Err(format!("H1: event {} stands where {expected} should", event.event_id));
        }
        if event.at_ms < at_ms {
            return Err(format!("H1: event {expected} is older than the one before it"));
        }
        at_ms = event.at_ms;
        if event.kind.is_last() && !is_last {
            return Err(format!("H2: {} is event {expected} and not the last", event.kind.describe()));
        }
        if let Some(sort) = opens(&event.kind) {
            open.insert(event.event_id, (sort, false));
        }
        if let Some((sort, source)) = closes(&event.kind) {
            match open.get_mut(&source) {
                Some((opened, closed)) if *opened == sort && !*closed => *closed = true,
                Some((_, true)) => {
                    return Err(format!("H3: {} (event {expected}) comes second", event.kind.describe()));
                }
                _ => return Err(format!("H3: {} (event {expected}) has no schedule", event.kind.describe())),
            }
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Sort {
    Activity,
    Timer,
    Child,
}

fn opens(kind: &EventKind) -> Option<Sort> {
    match kind {
        EventKind::ActivityScheduled { .. } => Some(Sort::Activity),
        EventKind::TimerCreated { .. } => Some(Sort::Timer),
        EventKind::SubOrchestrationScheduled { .. } => Some(Sort::Child),
        _ => None,
    }
}

fn closes(kind: &EventKind) -> Option<(Sort, u64)> {
    match kind {
        EventKind::ActivityCompleted { source, .. } | EventKind::ActivityFailed { source, .. } => {
            Some((Sort::Activity, *source))
        }
        EventKind::TimerFired { source } => Some((Sort::Timer, *source)),
        EventKind::SubOrchestrationCompleted { source, .. }
        | EventKind::SubOrchestrationFailed { source, .. } => Some((Sort::Child, *source)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segno::Payload;

    fn history(kinds: Vec<EventKind>) -> Vec<Event> {
        let events = kinds.into_iter().enumerate();
        events.map(|(at, kind)| Event { event_id: at as u64 + 1, at_ms: 5, kind }).collect()
    }

    #[test]
    fn broken_histories_are_found() {
        let timer = || EventKind::TimerCreated { fire_at_ms: 9 };
        let fired = |source| EventKind::TimerFired { source };
        let done = || EventKind::OrchestrationCompleted { output: Payload::null() };
        assert_eq!(check_history(&history(vec![timer(), fired(1), done()])), Ok(()));
        for (kinds, rule) in [
            (vec![timer(), fired(1), fired(1)], "H3"),
            (vec![fired(1), timer()], "H3"),
            (vec![timer(), EventKind::ActivityCompleted { source: 1, result: Payload::null() }], "H3"),
            (vec![done(), timer()], "H2"),
        ] {
            assert!(check_history(&history(kinds)).unwrap_err().starts_with(rule));
        }
        let mut gap = history(vec![timer(), done()]);
        gap[1].event_id = 3;
        assert!(check_history(&gap).unwrap_err().starts_with("H1"));
        gap[1].event_id = 2;
        gap[1].at_ms = 4;
        assert!(check_history(&gap).unwrap_err().starts_with("H1"));
    }
}
