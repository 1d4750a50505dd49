//! Replay proper: recorded events go through the code, and its commands must be the recorded ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::event::{Event, EventKind};
use crate::failure::Category;

use super::execution::{Execution, ExecutionId, OrchestrationHandler, find_started};
use super::journal::Mode;
use super::nondeterminism::Nondeterminism;

impl Execution {
    /// Rebuilds an execution from its history.
    pub(crate) fn replay(
        id: ExecutionId,
        history: Vec<Event>,
        handler: &OrchestrationHandler,
    ) -> Result<Self, Nondeterminism> {
        let (at, started) = find_started(&history).ok_or_else(|| Nondeterminism {
            event_id: 1,
            recorded: "a history without OrchestrationStarted".to_owned(),
            requested: "an orchestration".to_owned(),
        })?;
        let mut execution = Self::new(id, Arc::clone(started), handler);
        execution.shared.journal().recorded_patches = recorded_patches(&history);
        execution.take_early(&history[..at]);
        execution.started_at_ms = history[at].at_ms;
        execution.root.engine_at_work.store(true, Ordering::Relaxed);
        for event in history.into_iter().skip(at) {
            execution.replay_event(event)?;
        }
        execution.expect_no_commands_left()?;
        execution.root.engine_at_work.store(false, Ordering::Relaxed);
        execution.shared.journal().mode = Mode::Live;
        execution.replayed_events = execution.last_event_id;
        Ok(execution)
    }

    fn replay_event(&mut self, event: Event) -> Result<(), Nondeterminism> {
        if is_command(&event.kind) {
            self.match_command(&event)?;
        } else {
            self.expect_no_command_before(&event)?;
            self.check_step(&event)?;
        }
        self.apply(event);
        Ok(())
    }

    /// The next command of the code must be the recorded one.
    fn match_command(&mut self, event: &Event) -> Result<(), Nondeterminism> {
        let mut journal = self.shared.journal();
        let fits = journal.commands.front().is_some_and(|command| same_command(&command.kind, &event.kind));
        if fits {
            let command = journal.commands.pop_front().expect("it was there a line ago");
            if let Some(token) = command.token {
                journal.bind(token, event.event_id);
            }
            return Ok(());
        }
        if matches!(event.kind, EventKind::Patched { .. }) {
            // The code no longer asks for this patch: it was retired, which is fine.
            return Ok(());
        }
        let requested = journal.commands.front();
        let requested = requested.map_or_else(|| "nothing".to_owned(), |command| command.kind.describe());
        Err(Nondeterminism { event_id: event.event_id, recorded: event.kind.describe(), requested })
    }

    fn expect_no_command_before(&self, event: &Event) -> Result<(), Nondeterminism> {
        let journal = self.shared.journal();
        match (journal.commands.front(), &event.kind) {
            // Only the code gives failures of these categories, and it did not.
            (None, EventKind::OrchestrationFailed { failure })
                if matches!(
                    failure.category,
                    Category::Application | Category::Timeout | Category::Infrastructure
                ) =>
            {
                Err(Nondeterminism {
                    event_id: event.event_id,
                    recorded: event.kind.describe(),
                    requested: "nothing".to_owned(),
                })
            }
            (None, _) => Ok(()),
            // The code failed, as recorded.
            (Some(command), EventKind::OrchestrationFailed { .. })
                if matches!(command.kind, EventKind::OrchestrationFailed { .. }) =>
            {
                Ok(())
            }
            // The engine ended the execution; what the code would have done next was never recorded.
            (Some(_), EventKind::OrchestrationFailed { failure })
                if matches!(failure.category, Category::Configuration | Category::Poison) =>
            {
                Ok(())
            }
            (Some(command), _) => Err(Nondeterminism {
                event_id: event.event_id,
                recorded: event.kind.describe(),
                requested: command.kind.describe(),
            }),
        }
    }

    fn expect_no_commands_left(&self) -> Result<(), Nondeterminism> {
        match self.shared.journal().commands.front() {
            None => Ok(()),
            Some(command) => Err(Nondeterminism {
                event_id: self.last_event_id + 1,
                recorded: "the end of the history".to_owned(),
                requested: command.kind.describe(),
            }),
        }
    }

    /// A recorded step must be one that the code asked for, by number and name.
    fn check_step(&self, event: &Event) -> Result<(), Nondeterminism> {
        let (EventKind::StepCompleted { step, name, .. } | EventKind::StepFailed { step, name, .. }) =
            &event.kind
        else {
            return Ok(());
        };
        let journal = self.shared.journal();
        let requested = match journal.steps.get(step) {
            Some(pending) if pending.name == *name => return Ok(()),
            Some(pending) => format!("step {step} {:?}", pending.name),
            None => format!("no step {step}"),
        };
        Err(Nondeterminism { event_id: event.event_id, recorded: event.kind.describe(), requested })
    }
}

fn recorded_patches(history: &[Event]) -> BTreeSet<String> {
    let ids = history.iter().filter_map(|event| match &event.kind {
        EventKind::Patched { id } => Some(id.clone()),
        _ => None,
    });
    ids.collect()
}

/// Kinds that are recorded because the code asked for them.
fn is_command(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ActivityScheduled { .. }
            | EventKind::ActivityCancelRequested { .. }
            | EventKind::TimerCreated { .. }
            | EventKind::TimerCancelled { .. }
            | EventKind::MessageSubscribed { .. }
            | EventKind::MessageSubscriptionCancelled { .. }
            | EventKind::SubOrchestrationScheduled { .. }
            | EventKind::SubOrchestrationCancelRequested { .. }
            | EventKind::OrchestrationChained { .. }
            | EventKind::CustomStatusUpdated { .. }
            | EventKind::LabelUpdated { .. }
            | EventKind::Patched { .. }
            | EventKind::OrchestrationCompleted { .. }
            | EventKind::OrchestrationContinuedAsNew { .. }
    )
}

/// Whether a command is the recorded one: same kind, same names. Inputs may differ: what was recorded holds.
fn same_command(requested: &EventKind, recorded: &EventKind) -> bool {
    use EventKind as K;
    match (requested, recorded) {
        (K::ActivityScheduled { name: a, .. }, K::ActivityScheduled { name: b, .. }) => a == b,
        (K::ActivityCancelRequested { source: a }, K::ActivityCancelRequested { source: b })
        | (K::TimerCancelled { source: a }, K::TimerCancelled { source: b })
        | (K::MessageSubscriptionCancelled { source: a }, K::MessageSubscriptionCancelled { source: b })
        | (
            K::SubOrchestrationCancelRequested { source: a },
            K::SubOrchestrationCancelRequested { source: b },
        ) => a == b,
        (K::TimerCreated { .. }, K::TimerCreated { .. })
        | (K::CustomStatusUpdated { .. }, K::CustomStatusUpdated { .. })
        | (K::OrchestrationCompleted { .. }, K::OrchestrationCompleted { .. })
        | (K::OrchestrationContinuedAsNew { .. }, K::OrchestrationContinuedAsNew { .. }) => true,
        (
            K::MessageSubscribed { channel: a, name: a_name },
            K::MessageSubscribed { channel: b, name: b_name },
        ) => a == b && a_name == b_name,
        (
            K::SubOrchestrationScheduled { name: a, instance: a_id, .. },
            K::SubOrchestrationScheduled { name: b, instance: b_id, .. },
        )
        | (
            K::OrchestrationChained { name: a, instance: a_id, .. },
            K::OrchestrationChained { name: b, instance: b_id, .. },
        ) => a == b && a_id == b_id,
        (K::LabelUpdated { key: a, .. }, K::LabelUpdated { key: b, .. }) => a == b,
        (K::Patched { id: a }, K::Patched { id: b }) => a == b,
        _ => false,
    }
}
