//! Admission control of messages: how many wait unread in an instance, and how many bytes they
//! have.

use crate::limits::{MAX_UNREAD_BYTES, MAX_UNREAD_MESSAGES};
use crate::payload::Payload;

const MIB: usize = 1024 * 1024;

/// Messages that wait, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    messages: usize,
    bytes: usize,
}

impl Unread {
    pub(crate) fn messages(self) -> usize {
        self.messages
    }

    pub(crate) fn add(&mut self, data: &Payload) {
        self.messages += 1;
        self.bytes += data.as_str().len();
    }

    pub(crate) fn remove(&mut self, data: &Payload) {
        self.messages -= 1;
        self.bytes -= data.as_str().len();
    }

    pub(crate) fn plus(self, other: Unread) -> Unread {
        Unread { messages: self.messages + other.messages, bytes: self.bytes + other.bytes }
    }

    /// Why one more message is refused, if it is.
    pub(crate) fn refusal(self, data: &Payload) -> Option<String> {
        if self.messages >= MAX_UNREAD_MESSAGES {
            return Some(format!(
                "{MAX_UNREAD_MESSAGES} messages wait unread in the instance, which is the limit"
            ));
        }
        let bytes = data.as_str().len();
        (self.bytes + bytes > MAX_UNREAD_BYTES).then(|| {
            format!(
                "{} bytes of messages wait unread in the instance and this one has {bytes}; the limit is {} MiB",
                self.bytes,
                MAX_UNREAD_BYTES / MIB
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::journal::NextExecution;
    use super::super::{Execution, ExecutionId, OrchestrationHandler};
    use super::*;
    use crate::Signal;
    use crate::context::Context;
    use crate::event::{Channel, Output, Started};
    use crate::limits::{MAX_HISTORY_BYTES, MAX_PAYLOAD_BYTES};
    use crate::work_item::WorkItem;

    #[test]
    fn messages_are_refused_beyond_the_number_and_beyond_the_bytes() {
        let ten = Payload::from_json("\"12345678\"").unwrap();
        for (messages, bytes, refused) in [
            (0, 0, None),
            (MAX_UNREAD_MESSAGES - 1, 0, None),
            (MAX_UNREAD_MESSAGES, 0, Some("10000 messages wait unread")),
            (1, MAX_UNREAD_BYTES - 10, None),
            (1, MAX_UNREAD_BYTES - 9, Some("67108855 bytes of messages wait unread")),
        ] {
            let refusal = Unread { messages, bytes }.refusal(&ten);
            match refused {
                None => assert_eq!(refusal, None),
                Some(text) => assert!(refusal.is_some_and(|refusal| refusal.starts_with(text)), "{text}"),
            }
        }
    }

    /// An execution whose code waits for ever, with so many messages carried over.
    fn begin(carried: &[Payload]) -> Execution {
        begin_with(carried, Arc::new(|_, _| Box::pin(std::future::pending())))
    }

    /// An execution whose code ends with the signal `wave`.
    fn begin_waiting(carried: &[Payload]) -> Execution {
        let handler: OrchestrationHandler = Arc::new(|shared, _| {
            Box::pin(async move { Context::new(shared).signal(Signal::<Payload>::new("wave")).await })
        });
        begin_with(carried, handler)
    }

    fn begin_with(carried: &[Payload], handler: OrchestrationHandler) -> Execution {
        let started = serde_json::json!({
            "name": "main", "version": "1.0.0", "input": "null", "seed": 1, "engine_version": "1.0.0",
        });
        let mut started: Started = serde_json::from_value(started).unwrap();
        started.carried = carried
            .iter()
            .map(|data| crate::event::CarriedMessage {
                channel: Channel::Mailbox,
                name: "jobs".to_owned(),
                data: data.clone(),
            })
            .collect();
        let id = ExecutionId { instance: "a".into(), execution_id: 1 };
        Execution::begin(id, &[], started, &handler, 1)
    }

    /// An execution that has continued as new.
    fn begin_and_continue() -> Execution {
        let handler: OrchestrationHandler = Arc::new(|shared, _| {
            let next = NextExecution { input: Payload::null(), version: None };
            shared.journal().next_execution = Some(next);
            Box::pin(std::future::pending())
        });
        begin_with(&[], handler)
    }

    fn send(execution: &mut Execution, channel: Channel, data: &Payload) {
        execution.handle(WorkItem::message(channel, "jobs".to_owned(), data.clone(), None), 2);
    }

    /// Every place in which messages wait counts, and nothing else does.
    #[test]
    fn the_bytes_of_messages_are_bounded_wherever_they_wait() {
        let large = Payload::from_json(format!("\"{}\"", "x".repeat(MAX_PAYLOAD_BYTES - 2))).unwrap();
        let fit = MAX_UNREAD_BYTES / MAX_PAYLOAD_BYTES;
        for state in ["running", "carried", "paused", "resumed", "continued"] {
            let mut execution = match state {
                "carried" => begin(std::slice::from_ref(&large)),
                "continued" => begin_and_continue(),
                _ => begin(&[]),
            };
            let carried = if state == "carried" { 1 } else { 0 };
            if matches!(state, "paused" | "resumed") {
                execution.handle(WorkItem::PauseInstance { reason: "x".to_owned() }, 2);
            }
            for _ in carried..fit {
                send(&mut execution, Channel::Mailbox, &large);
            }
            if state == "resumed" {
                execution.handle(WorkItem::ResumeInstance, 2);
            }
            send(&mut execution, Channel::Signal, &Payload::null());
            send(&mut execution, Channel::Mailbox, &large);
            let refused = execution.take_plan().refused;
            assert_eq!(refused.len(), 2, "{state}: the last two; a small one does not fit either");
            assert!(matches!(refused[0].0, WorkItem::ExternalRaised { .. }), "{state}: not one too early");
            assert!(refused.iter().all(|(_, reason)| reason.contains("64 MiB")), "{state}");
        }
    }

    /// Else unread messages of other names would keep code from ever getting what it waits for.
    #[test]
    fn a_message_that_the_code_waits_for_is_taken_beyond_the_limit() {
        for (is_paused, name, refused) in [(false, "wave", 0), (false, "noise", 1), (true, "wave", 1)] {
            let noise = Payload::null();
            let mut execution = begin_waiting(&vec![noise.clone(); MAX_UNREAD_MESSAGES]);
            if is_paused {
                execution.handle(WorkItem::PauseInstance { reason: "x".to_owned() }, 2);
            }
            execution.handle(WorkItem::message(Channel::Signal, name.to_owned(), noise, None), 2);
            assert_eq!(execution.has_ended(), name == "wave" && !is_paused);
            assert_eq!(execution.take_plan().refused.len(), refused, "{name}, paused: {is_paused}");
        }
    }

    #[test]
    fn what_an_execution_may_hold_in_memory_is_counted() {
        let ten = Payload::from_json("\"12345678\"").unwrap();
        let mut execution = begin(std::slice::from_ref(&ten));
        let input = execution.started().input.as_str().len();
        assert_eq!(execution.payload_bytes(), input + 10, "the input and what was carried over");
        send(&mut execution, Channel::Mailbox, &ten);
        assert_eq!(execution.payload_bytes(), input + 20);
    }

    /// 51,200 messages of 2 MiB would be a history of 100 GB, which no node could read.
    #[test]
    fn an_execution_fails_when_its_history_is_too_large() {
        let large = Payload::from_json(format!("\"{}\"", "x".repeat(MAX_PAYLOAD_BYTES - 2))).unwrap();
        let most = MAX_HISTORY_BYTES / MAX_PAYLOAD_BYTES;
        for (messages, fails) in [(most - 1, false), (most, true)] {
            let mut execution = begin(&vec![large.clone(); messages]);
            execution.enforce_history_limits(3);
            assert_eq!(execution.has_ended(), fails, "{messages} messages and the input");
            let Some((_, Some(Output::Failed(failure)))) = execution.take_plan().status else { continue };
            assert!(
                failure.has_code("history-too-large") && failure.message.contains("128 MiB"),
                "{failure}"
            );
        }
    }

    #[test]
    fn what_is_read_makes_room() {
        let data = Payload::from_json("true").unwrap();
        let mut unread = Unread::default();
        unread.add(&data);
        unread.add(&data);
        assert_eq!(unread, Unread { messages: 2, bytes: 8 });
        unread.remove(&data);
        assert_eq!(unread.plus(unread), Unread { messages: 2, bytes: 8 });
    }
}
