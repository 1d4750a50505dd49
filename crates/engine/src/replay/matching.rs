//! Matching of recorded events with the commands that the code issues during replay.

use std::collections::BTreeSet;

use crate::event::{Event, EventKind};
use crate::failure::Category;

use super::journal::Journal;
use super::nondeterminism::Nondeterminism;

/// Verifies that the code has issued the commands that precede an event, and takes the command that
/// the event records.
pub(super) fn match_event(journal: &mut Journal, event: &Event) -> Result<(), Nondeterminism> {
    if event.kind.is_command() {
        return match_command(journal, event);
    }
    expect_no_command_before(journal, event)?;
    match_step(journal, event)
}

/// The next command of the code must be the recorded one.
fn match_command(journal: &mut Journal, event: &Event) -> Result<(), Nondeterminism> {
    let fits = journal.commands.front().is_some_and(|command| command.kind.is_same_command(&event.kind));
    if fits && let Some(command) = journal.commands.pop_front() {
        if let Some(token) = command.token {
            journal.bind(token, event.event_id);
        }
        return Ok(());
    }
    if matches!(event.kind, EventKind::Patched { .. }) {
        // The code no longer has this patch: it was retired, which is allowed.
        return Ok(());
    }
    let requested = journal.commands.front();
    let requested = requested.map_or_else(|| "nothing".to_owned(), |command| command.kind.describe());
    Err(Nondeterminism { event_id: event.event_id, recorded: event.kind.describe(), requested })
}

fn expect_no_command_before(journal: &Journal, event: &Event) -> Result<(), Nondeterminism> {
    let requested = match (journal.commands.front(), &event.kind) {
        // Only the code fails with these categories, and it did not fail.
        (None, EventKind::OrchestrationFailed { failure })
            if matches!(
                failure.category,
                Category::Application | Category::Timeout | Category::Infrastructure
            ) =>
        {
            "nothing".to_owned()
        }
        (None, _) => return Ok(()),
        // The code failed, as recorded.
        (Some(command), EventKind::OrchestrationFailed { .. })
            if matches!(command.kind, EventKind::OrchestrationFailed { .. }) =>
        {
            return Ok(());
        }
        // The engine ended the execution; the commands that the code issued after that were never
        // recorded.
        (Some(_), EventKind::OrchestrationFailed { failure })
            if matches!(failure.category, Category::Configuration | Category::Poison) =>
        {
            return Ok(());
        }
        (Some(command), _) => command.kind.describe(),
    };
    Err(Nondeterminism { event_id: event.event_id, recorded: event.kind.describe(), requested })
}

/// A recorded step must be one that the code has requested, by number and name.
fn match_step(journal: &Journal, event: &Event) -> Result<(), Nondeterminism> {
    let (EventKind::StepCompleted { step, name, .. } | EventKind::StepFailed { step, name, .. }) =
        &event.kind
    else {
        return Ok(());
    };
    let requested = match journal.steps.get(step) {
        Some(pending) if pending.name == *name => return Ok(()),
        Some(pending) => format!("step {step} {:?}", pending.name),
        None => format!("no step {step}"),
    };
    Err(Nondeterminism { event_id: event.event_id, recorded: event.kind.describe(), requested })
}

/// At the end of the history, the code must not have issued a command that was not recorded.
pub(super) fn expect_no_commands_left(journal: &Journal, next_event_id: u64) -> Result<(), Nondeterminism> {
    match journal.commands.front() {
        None => Ok(()),
        Some(command) => Err(Nondeterminism {
            event_id: next_event_id,
            recorded: "the end of the history".to_owned(),
            requested: command.kind.describe(),
        }),
    }
}

/// The patches that a history has recorded.
pub(super) fn recorded_patches(history: &[Event]) -> BTreeSet<String> {
    let ids = history.iter().filter_map(|event| match &event.kind {
        EventKind::Patched { id } => Some(id.clone()),
        _ => None,
    });
    ids.collect()
}
